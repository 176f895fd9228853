"""Fetches the histories of many runs from the server, and goes on where one cannot be had."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass

from temporalio.client import Client, WorkflowExecution, WorkflowHistory
from temporalio.service import RPCError

from domain.names import REFUND_WORKFLOW, SWEEP_WORKFLOW, TASK_QUEUE
from starters.connect import RPC_TIMEOUT
from starters.errors import CommandError, in_one_line

# Enough to hide the way to the server, and no burden for it.
_AT_ONCE = 8
_OURS = f'TaskQueue = "{TASK_QUEUE}" AND WorkflowType IN ("{REFUND_WORKFLOW}", "{SWEEP_WORKFLOW}")'
OPEN = 'ExecutionStatus = "Running"'


@dataclass(frozen=True)
class Fetched:
    """One run, with its events or with the reason why they are not there."""

    workflow_id: str
    run_id: str
    history: WorkflowHistory | None
    problem: CommandError | None = None


def select(query: str | None) -> str:
    """The server's query for our runs, or for some of them.

    Args:
        query: What is typed in the Web UI's filter, such as `ExecutionStatus = "Running"`.
    """
    return f"{_OURS} AND ({query})" if query else _OURS


async def count(client: Client, selected: str) -> int:
    """How many runs there are to fetch.

    Raises:
        RPCError: the server does not understand the query, or does not answer.
    """
    return (await client.count_workflows(selected, rpc_timeout=RPC_TIMEOUT)).count


async def fetch_all(client: Client, selected: str) -> AsyncIterator[Fetched]:
    """Fetch the history of each run, some at once, newest first.

    Raises:
        RPCError: the list of the runs cannot be read.
    """
    batch: list[WorkflowExecution] = []
    async for execution in client.list_workflows(selected, rpc_timeout=RPC_TIMEOUT):
        batch.append(execution)
        if len(batch) == _AT_ONCE:
            for fetched in await _fetch_batch(client, batch):
                yield fetched
            batch.clear()
    for fetched in await _fetch_batch(client, batch):
        yield fetched


async def _fetch_batch(client: Client, batch: list[WorkflowExecution]) -> list[Fetched]:
    return await asyncio.gather(*(_fetch(client, run.id, run.run_id) for run in batch))


async def _fetch(client: Client, workflow_id: str, run_id: str) -> Fetched:
    handle = client.get_workflow_handle(workflow_id, run_id=run_id)
    try:
        history = await handle.fetch_history(rpc_timeout=RPC_TIMEOUT)
    except RPCError as error:
        return Fetched(workflow_id, run_id, None, in_one_line(error))
    return Fetched(workflow_id, run_id, history)
