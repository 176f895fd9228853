"""How a run is asked what it says of itself."""

import asyncio
from typing import Any

import pytest
from temporalio.client import Client, Interceptor, OutboundInterceptor, QueryWorkflowInput

from domain.models import Stage
from domain.names import SIGNAL_DECIDE
from starters import runs
from tests.world import World


class Queries(Interceptor):
    """Counts the queries that a client sends."""

    def __init__(self) -> None:
        """None yet."""
        self.count = 0

    def intercept_client(self, next: OutboundInterceptor) -> OutboundInterceptor:  # noqa: A002 - the SDK's name
        """Stand between the client and the server."""
        outer = self

        class Counting(OutboundInterceptor):
            async def query_workflow(self, input: QueryWorkflowInput) -> Any:  # noqa: A002 - the SDK's name
                outer.count += 1
                return await super().query_workflow(input)

        return Counting(next)


async def test_nothing_is_asked_while_a_workflow_task_waits(world: World) -> None:
    """P7: such a query can move a cached run ahead of its history (docs/decisions/0011)."""
    queries = Queries()
    client = Client(
        world.client.service_client,
        data_converter=world.client.data_converter,
        interceptors=[queries],
    )
    run = await world.start()
    await run.waiting()
    found = await runs.find_or_fail(client, run.handle.id)
    await world.stop_worker()
    await run.handle.signal(SIGNAL_DECIDE, "nobody takes this up")
    assert await runs.ask(found.handle, 1.0) is None
    assert queries.count == 0

    await world.start_worker()
    await run.until(lambda status: sum(status.refused.values()) == 1)
    status = await runs.ask(found.handle)
    assert status is not None
    assert (status.stage, queries.count) == (Stage.AWAITING_APPROVAL, 1)


async def test_a_signal_goes_into_no_task_that_waits(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P7: beside what a query has moved a run on by, it would be replayed in another order."""
    run = await world.start()
    await run.waiting()
    await world.stop_worker()
    await run.handle.signal(SIGNAL_DECIDE, "nobody takes this up")
    sending = asyncio.create_task(runs.signal(run.handle, SIGNAL_DECIDE, "another"))
    done, _ = await asyncio.wait({sending}, timeout=0.5)
    assert not done
    await world.start_worker()
    await run.until(lambda status: sum(status.refused.values()) == 2)
    await sending

    # Without a worker nobody is moved, and nobody waits for long.
    await world.stop_worker()
    await run.handle.signal(SIGNAL_DECIDE, "nobody takes this up")
    monkeypatch.setattr(runs, "SIGNAL_SECONDS", 0.1)
    await runs.signal(run.handle, SIGNAL_DECIDE, "another")
    await world.start_worker()
    await run.until(lambda status: sum(status.refused.values()) == 4)
