"""No query moves a run ahead of its workflow tasks (P6, P7; docs/decisions/0011-queries.md)."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import timedelta

import pytest
from temporalio.client import WorkflowQueryFailedError

from domain.names import QUERY_REFUSED, QUERY_STATUS, SIGNAL_DECIDE
from domain.trail import RunStatus
from starters import runs
from tests.world import PATIENCE, Run, World, check_history
from workers.in_step import SECONDS_TO_TAKE_A_TASK, InStep
from workers.sandbox import build_runner
from workers.wiring import build_activities, build_worker

# Which of the two a worker gets first is the server's choice: the query or the workflow task.
TRIES = 60
GARBAGE = "not a decision"

Worker = Callable[[], AbstractAsyncContextManager[None]]


class Clock:
    """Seconds that pass when a test says so."""

    now = 0.0

    def __call__(self) -> float:
        """How many have passed."""
        return self.now


@pytest.fixture
def clock() -> Clock:
    """It stands still."""
    return Clock()


@pytest.fixture
async def worker(world: World, clock: Clock) -> Worker:
    """Starts the one worker there is, with that clock."""
    await world.stop_worker()

    @asynccontextmanager
    async def started() -> AsyncIterator[None]:
        runner = InStep(build_runner(), clock)
        async with (
            build_activities(world.settings, world.clock) as activities,
            build_worker(world.client, world.settings, activities, workflow_runner=runner),
        ):
            yield

    return started


async def waiting_run(world: World, worker: Worker) -> Run:
    """A run that waits for a decision, and whose worker has gone."""
    async with worker():
        run = await world.start()
        await run.waiting()
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


async def test_a_query_that_comes_before_a_workflow_task_is_refused(
    world: World, worker: Worker
) -> None:
    """As when one looks at a run at 02:00: the query is under way when something happens to it.

    The worker that comes gets the query first, now and then. What has happened is taken up in the
    workflow task for it all the same, and every replay does the same.
    """
    run = await waiting_run(world, worker)
    refused = False
    sent: list[str] = []
    while not refused:
        assert len(sent) < TRIES, f"the worker got the task first, {len(sent)} times"
        asking = asyncio.create_task(ask(run))
        await until_under_way(run)
        await run.handle.signal(SIGNAL_DECIDE, GARBAGE)
        sent.append(GARBAGE)
        async with worker():
            refused = await asking is None
            await run.until(lambda status: sum(status.refused.values()) == len(sent))
    async with worker():
        await run.approve()
        await run.result()
    await check_history(run)
    assert len(await world.refunds()) == 1


async def until_under_way(run: Run) -> None:
    """Let the query reach the server: later calls of this client arrive after it."""
    for _ in range(3):
        await run.handle.describe()


async def test_what_a_run_was_ended_with_can_be_shown_after_a_while(
    world: World, worker: Worker, clock: Clock
) -> None:
    """It gets no workflow task any more: then the query is the only one to show its last events."""
    run = await waiting_run(world, worker)
    await run.handle.signal(SIGNAL_DECIDE, GARBAGE)
    await run.handle.terminate("by hand")
    async with worker():
        assert await ask(run) is None
        clock.now += SECONDS_TO_TAKE_A_TASK / 2
        assert await ask(run) is None
        clock.now += SECONDS_TO_TAKE_A_TASK / 2
        status = await ask(run)
    assert status is not None
    assert sum(status.refused.values()) == 1


async def test_our_commands_ask_again(world: World, worker: Worker, clock: Clock) -> None:
    """A query that is refused is asked again, and what ends refusals is known to last words."""
    assert runs.LAST_WORDS_SECONDS > 2 * SECONDS_TO_TAKE_A_TASK
    run = await waiting_run(world, worker)
    await run.handle.signal(SIGNAL_DECIDE, GARBAGE)
    await run.handle.terminate("by hand")
    found = await runs.find_or_fail(world.client, run.handle.id)
    async with worker():
        assert await runs.ask(found.handle, 1.0) is None
        telling = asyncio.create_task(runs.last_words(found))
        done, _ = await asyncio.wait({telling}, timeout=1.0)
        assert not done
        clock.now += SECONDS_TO_TAKE_A_TASK
        status = await telling
    assert status is not None
    assert sum(status.refused.values()) == 1
