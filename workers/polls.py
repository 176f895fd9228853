"""Whether the server has a worker's polls: only then does it hand tasks to that worker.

The SDK's worker is entered before its first polls have left. Whoever is told meanwhile that it is
ready would look at the task queue and find nobody there.
"""

import asyncio
import time
from datetime import timedelta

from temporalio.api.enums.v1 import TaskQueueType
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from domain.names import TASK_QUEUE

# Polls arrive within tenths of a second. Shorter than what `refund up` waits for the ready line.
POLL_PATIENCE = timedelta(seconds=30)
_KINDS = (TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW, TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY)
_LOOK_SECONDS = 0.1
_RPC_TIMEOUT = timedelta(seconds=5)
_FORBIDS = (
    RPCStatusCode.PERMISSION_DENIED,
    RPCStatusCode.UNAUTHENTICATED,
    RPCStatusCode.UNIMPLEMENTED,
)

# When the server saw the last poll, by kind of task, in nanoseconds of its clock; 0 for never.
Polls = dict["TaskQueueType.ValueType", int]


class NotListed(Exception):
    """The server does not list this worker; the message is one line."""


class CannotLook(Exception):
    """The server does not let us look at the task queue; the message is one line."""


async def polls_before(client: Client) -> Polls:
    """The polls of an earlier worker of this identity, which the server lists for five minutes.

    In a container, the next worker has the same host and process id as the one that was killed.
    """
    try:
        return await _polls(client)
    except RPCError:
        # Told where it matters: by `until_listed`, which asks the same.
        return dict.fromkeys(_KINDS, 0)


async def until_listed(client: Client, before: Polls, patience: timedelta = POLL_PATIENCE) -> None:
    """Wait until the server lists new polls of this identity for every kind of task.

    Raises:
        NotListed: it does not within that time.
        CannotLook: it does not tell us who polls.
    """
    gives_up_at = time.monotonic() + patience.total_seconds()
    why = "it lists no poll of ours"
    while True:
        try:
            now = await _polls(client)
            if all(now[kind] > before[kind] for kind in _KINDS):
                return
        except RPCError as error:
            why = " ".join(error.message.split())[:200]
            if error.status in _FORBIDS:
                raise CannotLook(f"Temporal does not tell who polls {TASK_QUEUE}: {why}") from None
        if time.monotonic() >= gives_up_at:
            waited = f"{patience.total_seconds():g} s"
            raise NotListed(f"Temporal has no polls of this worker after {waited}: {why}")
        await asyncio.sleep(_LOOK_SECONDS)


async def _polls(client: Client) -> Polls:
    polls = {}
    for kind in _KINDS:
        answer = await client.workflow_service.describe_task_queue(
            DescribeTaskQueueRequest(
                namespace=client.namespace,
                task_queue=TaskQueue(name=TASK_QUEUE),
                task_queue_type=kind,
            ),
            timeout=_RPC_TIMEOUT,
        )
        ours = [poller for poller in answer.pollers if poller.identity == client.identity]
        polls[kind] = max((one.last_access_time.ToNanoseconds() for one in ours), default=0)
    return polls
