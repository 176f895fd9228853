"""No query moves a run ahead of its workflow tasks (P6, P7; docs/decisions/0011-queries.md)."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest
from temporalio.client import (
    Client,
    Interceptor,
    OutboundInterceptor,
    QueryWorkflowInput,
    WorkflowQueryFailedError,
)
from temporalio.service import RPCError, RPCStatusCode

from domain.models import Stage
from domain.names import QUERY_REFUSED, QUERY_STATUS, SIGNAL_DECIDE
from domain.trail import RunStatus
from starters import runs
from tests.world import PATIENCE, Run, World, check_history

# Which of the two a worker gets first is the server's choice: the query or the workflow task.
TRIES = 60
GARBAGE = "not a decision"


class Lost(Interceptor):
    """Loses the first queries of a client, as a worker does that is killed over them."""

    def __init__(self, status: RPCStatusCode, times: int) -> None:
        """What the server says of them, and how many they are."""
        self.status, self.times = status, times

    def intercept_client(self, next: OutboundInterceptor) -> OutboundInterceptor:  # noqa: A002 - the SDK's name
        """Stand between the client and the server."""
        outer = self

        class Losing(OutboundInterceptor):
            async def query_workflow(self, input: QueryWorkflowInput) -> Any:  # noqa: A002 - the SDK's name
                outer.times -= 1
                if outer.times >= 0:
                    raise RPCError("lost", outer.status, b"")
                return await super().query_workflow(input)

        return Losing(next)


@asynccontextmanager
async def worker(world: World) -> AsyncIterator[None]:
    """The one worker there is."""
    await world.start_worker()
    try:
        yield
    finally:
        await world.stop_worker()


async def waiting_run(world: World) -> Run:
    """A run that waits for a decision, and whose worker has gone."""
    run = await world.start()
    await run.waiting()
    await world.stop_worker()
    return run


async def ask(run: Run) -> RunStatus | None:
    """What the run says to a query; None where it was refused."""
    try:
        status: RunStatus = await run.handle.query(
            QUERY_STATUS, result_type=RunStatus, rpc_timeout=timedelta(seconds=PATIENCE)
        )
    except WorkflowQueryFailedError as error:
        assert error.message == QUERY_REFUSED  # noqa: PT017 - the exception is one answer of two
        return None
    return status


async def test_a_query_that_comes_before_a_workflow_task_is_refused(world: World) -> None:
    """As when one looks at a run at 02:00: the query is under way when something happens to it.

    The worker that comes gets the query first, now and then. What has happened is taken up in the
    workflow task for it all the same, and every replay does the same.
    """
    run = await waiting_run(world)
    refused = False
    sent: list[str] = []
    while not refused:
        assert len(sent) < TRIES, f"the worker got the task first, {len(sent)} times"
        asking = asyncio.create_task(ask(run))
        await until_under_way(run)
        await run.handle.signal(SIGNAL_DECIDE, GARBAGE)
        sent.append(GARBAGE)
        async with worker(world):
            refused = await asking is None
            await run.until(lambda status: sum(status.refused.values()) == len(sent))
    async with worker(world):
        await run.approve()
        await run.result()
    await check_history(run)
    assert len(await world.refunds()) == 1


async def until_under_way(run: Run) -> None:
    """Let the query reach the server: later calls of this client arrive after it."""
    for _ in range(3):
        await run.handle.describe()


async def test_what_a_run_was_ended_with_can_be_shown(world: World) -> None:
    """It gets no workflow task any more: a query is the only one to show its last events."""
    run = await waiting_run(world)
    await run.handle.signal(SIGNAL_DECIDE, GARBAGE)
    await run.handle.terminate("by hand")
    async with worker(world):
        status = await ask(run)
    assert status is not None
    assert sum(status.refused.values()) == 1


@pytest.mark.parametrize("ask_for", ["ask", "last words"])
async def test_our_commands_ask_again(world: World, ask_for: str) -> None:
    """A query that went to a worker which was killed is lost, and the next worker answers."""
    run = await world.start()
    await run.waiting()
    lost = Lost(RPCStatusCode.CANCELLED, times=2)
    client = Client(
        world.client.service_client,
        data_converter=world.client.data_converter,
        interceptors=[lost],
    )
    if ask_for == "last words":
        await run.handle.terminate("by hand")
    found = await runs.find_or_fail(client, run.handle.id)
    asking = runs.ask(found.handle) if ask_for == "ask" else runs.last_words(found)
    status = await asking
    assert status is not None
    assert status.stage is Stage.AWAITING_APPROVAL
    assert lost.times < 0


async def test_a_query_that_nobody_answers_is_told_as_such(world: World) -> None:
    """What else may go wrong with a query is asked once: `ask` knows nothing then."""
    run = await waiting_run(world)
    lost = Lost(RPCStatusCode.DEADLINE_EXCEEDED, times=1)
    client = Client(world.client.service_client, interceptors=[lost])
    found = await runs.find_or_fail(client, run.handle.id)
    assert await runs.ask(found.handle) is None
    assert lost.times == 0
