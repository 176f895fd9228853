"""Find a run and read what it says of itself, with a worker or without one."""

import asyncio
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from pydantic import ValidationError
from temporalio.api.common.v1 import Payload
from temporalio.api.enums.v1 import EventType
from temporalio.client import (
    Client,
    WorkflowExecutionDescription,
    WorkflowExecutionStatus,
    WorkflowFailureError,
    WorkflowHandle,
    WorkflowQueryFailedError,
)
from temporalio.service import RPCError, RPCStatusCode

from domain import names
from domain.models import Stage
from domain.request import RefundRequest
from domain.trail import RunStatus
from starters.connect import RPC_TIMEOUT
from starters.errors import CommandError, Exit, is_namespace_missing

Handle = WorkflowHandle[Any, RunStatus]

# Between two looks at a run that somebody waits for.
POLL_SECONDS = 0.3
# A worker that is there answers a query in well under a second, even after a replay.
QUERY_SECONDS = 3.0
# A run that was ended is no worker's any more: one may have to read and replay all of it.
LAST_WORDS_SECONDS = 15.0
# Between a query that came at a bad moment and the next.
_AGAIN_SECONDS = 0.05

_NOBODY_ANSWERED = (
    RPCStatusCode.CANCELLED,
    RPCStatusCode.DEADLINE_EXCEEDED,
    RPCStatusCode.FAILED_PRECONDITION,
)

# How a run ends when it does not end by itself.
_ENDED_FROM_OUTSIDE = frozenset(
    {
        WorkflowExecutionStatus.TERMINATED,
        WorkflowExecutionStatus.FAILED,
        WorkflowExecutionStatus.TIMED_OUT,
        WorkflowExecutionStatus.CANCELED,
    }
)


@dataclass(frozen=True)
class Found:
    """A run that exists, as the server describes it."""

    handle: Handle
    description: WorkflowExecutionDescription
    request_id: str

    @property
    def workflow_id(self) -> str:
        return self.description.id

    @property
    def order_id(self) -> str:
        return names.order_of_workflow(self.workflow_id) or self.workflow_id

    @property
    def run_id(self) -> str:
        return self.description.run_id

    @property
    def was_ended(self) -> bool:
        """Whether it was ended from outside, and so may have left something half done."""
        return self.description.status in _ENDED_FROM_OUTSIDE

    @property
    def is_open(self) -> bool:
        return self.description.status is WorkflowExecutionStatus.RUNNING

    @property
    def state(self) -> str:
        """The server's word for the run, such as `completed`."""
        status = self.description.status
        return status.name.lower() if status is not None else "unknown"


def resolve(run: str) -> str:
    """The workflow id that RUN means: it is one, or it is an order id.

    Raises:
        CommandError: it can be neither.
    """
    if names.order_of_workflow(run) is not None:
        return run
    if not names.is_identifier(run):
        raise CommandError(
            f"{run[:60]!r} is neither an order id nor a workflow id of a refund", Exit.USAGE
        )
    return names.workflow_id(run)


async def find(client: Client, workflow_id: str, run_id: str | None = None) -> Found | None:
    """One run, or the newest, of a workflow id; None where there is none (any more)."""
    handle: Handle = client.get_workflow_handle(workflow_id, run_id=run_id, result_type=RunStatus)
    try:
        description = await handle.describe(rpc_timeout=RPC_TIMEOUT)
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND and not is_namespace_missing(error):
            return None
        raise
    exact: Handle = client.get_workflow_handle(
        workflow_id, run_id=description.run_id, result_type=RunStatus
    )
    memo = await description.memo()
    return Found(exact, description, str(memo.get(names.MEMO_REQUEST_ID, "")))


async def find_or_fail(client: Client, run: str, run_id: str | None = None) -> Found:
    """The run that RUN means: the newest, or the one with this run id.

    Raises:
        CommandError: there is none, or the run id can be none.
    """
    workflow_id = resolve(run)
    if run_id is not None and not _is_uuid(run_id):
        raise CommandError(f"--run-id: {run_id[:60]!r} can be no run id", Exit.USAGE)
    found = await find(client, workflow_id, run_id)
    if found is None and run_id is not None:
        line = f"{workflow_id} has no run {run_id}; `refund list --order` shows those that are"
        raise CommandError(line, Exit.NO_SUCH_RUN)
    if found is None:
        raise CommandError(
            f"there is no run {workflow_id}; `refund list` shows those that are", Exit.NO_SUCH_RUN
        )
    return found


async def ask(handle: Handle, seconds: float = QUERY_SECONDS) -> RunStatus | None:
    """What the run says of itself; None where no worker answered in time."""
    try:
        return await _query(handle, seconds)
    except WorkflowQueryFailedError:
        return None
    except RPCError as error:
        if error.status in _NOBODY_ANSWERED:
            return None
        raise


async def _query(handle: Handle, seconds: float) -> RunStatus:
    """Ask, and ask again, for so many seconds, what may be answered a moment later.

    That is a query that came before a workflow task (`workers.in_step`), and one that went to a
    worker which was killed: that is called cancelled.
    """
    gives_up = time.monotonic() + seconds
    while True:
        left = timedelta(seconds=max(0.1, gives_up - time.monotonic()))
        try:
            status: RunStatus = await handle.query(
                names.QUERY_STATUS, result_type=RunStatus, rpc_timeout=left
            )
        except WorkflowQueryFailedError as error:
            if not _is_refused(error) or time.monotonic() >= gives_up:
                raise
        except RPCError as error:
            if error.status is not RPCStatusCode.CANCELLED or time.monotonic() >= gives_up:
                raise
        else:
            return status
        await asyncio.sleep(_AGAIN_SECONDS)


def _is_refused(error: WorkflowQueryFailedError) -> bool:
    return names.QUERY_REFUSED in error.message


async def last_words(found: Found) -> RunStatus | None:
    """What a run that was ended from outside says of itself.

    Nothing yet where no worker ever took it up; None where today's code cannot follow it.

    Raises:
        CommandError: nobody could be asked.
    """
    if not await _was_taken_up(found.handle):
        return RunStatus()
    try:
        return await _query(found.handle, LAST_WORDS_SECONDS)
    except WorkflowQueryFailedError as error:
        if not _is_refused(error):
            return None
    except RPCError as error:
        if error.status not in _NOBODY_ANSWERED:
            raise
    raise CommandError(
        f"the last run of {found.workflow_id} was ended from outside, and no worker tells what "
        "had been approved in it; nothing is lost: try again once one is there (`refund doctor`)",
        Exit.NOT_TAKEN_UP,
    )


async def _was_taken_up(handle: Handle) -> bool:
    done = EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED
    async for event in handle.fetch_history_events(rpc_timeout=RPC_TIMEOUT):
        if event.event_type == done:
            return True
    return False


async def result(found: Found) -> RunStatus | None:
    """What a closed run left behind, from its history; None where it ended from outside."""
    try:
        status: RunStatus = await found.handle.result(follow_runs=False, rpc_timeout=RPC_TIMEOUT)
    except WorkflowFailureError:
        return None
    return status


async def failure(found: Found) -> str:
    """Why a run ended from outside, in one line."""
    try:
        await found.handle.result(follow_runs=False, rpc_timeout=RPC_TIMEOUT)
    except WorkflowFailureError as error:
        return _message_of(error.cause)
    return ""


def trouble(found: Found) -> str:
    """Why an Activity of the run is tried again, in one line; empty where none is."""
    for info in found.description.raw_description.pending_activities:
        if info.last_failure.message:
            name = info.activity_type.name.replace("_", " ")
            return f"{name}, attempt {info.attempt}: {info.last_failure.message}"
    return ""


async def read(found: Found, seconds: float = QUERY_SECONDS) -> RunStatus | None:
    """The run's own account: a query while it runs, its result afterwards."""
    if found.is_open:
        return await ask(found.handle, seconds)
    return await result(found)


async def follow(
    client: Client,
    found: Found,
    until: Callable[[RunStatus], bool],
    seconds: float | None,
    seen: Callable[[RunStatus], None] = lambda _status: None,
) -> RunStatus | None:
    """Look again and again until the run shows something, or has closed.

    Returns the last account of it; None where it did not show it within `seconds`, or ended from
    outside.
    """
    gives_up = time.monotonic() + seconds if seconds is not None else None
    while True:
        left = QUERY_SECONDS if gives_up is None else gives_up - time.monotonic()
        status = await ask(found.handle, max(0.1, min(QUERY_SECONDS, left)))
        if status is not None:
            seen(status)
            if until(status):
                return status
        if status is None or status.stage is Stage.CLOSED:
            again = await find(client, found.workflow_id, found.run_id)
            if again is not None and not again.is_open:
                ended = await result(again)
                if ended is not None:
                    seen(ended)
                return ended
        if gives_up is not None and time.monotonic() >= gives_up:
            return None
        await asyncio.sleep(POLL_SECONDS)


async def read_request(found: Found) -> RefundRequest | None:
    """The input of a run, from its first event; None where it is none of ours."""
    async for event in found.handle.fetch_history_events(page_size=1, rpc_timeout=RPC_TIMEOUT):
        if event.event_type != EventType.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED:
            return None
        return _decode(event.workflow_execution_started_event_attributes.input.payloads)
    return None


def _is_uuid(text: str) -> bool:
    try:
        return str(uuid.UUID(text)) == text.lower()
    except ValueError:
        return False


def _decode(payloads: Any) -> RefundRequest | None:
    given: list[Payload] = list(payloads)
    if len(given) != 1:
        return None
    try:
        return RefundRequest.model_validate_json(given[0].data)
    except ValidationError:
        return None


def _message_of(error: BaseException | None) -> str:
    """The innermost message of a failure, which is the one that says what happened."""
    while error is not None and error.__cause__ is not None:
        error = error.__cause__
    return str(error) if error is not None else "no reason was given"
