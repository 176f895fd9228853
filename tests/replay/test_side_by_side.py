"""Two releases at once: workers of both, as processes, on one server (P6, docs/runbook.md)."""

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
from temporalio.api.enums.v1 import EventType, WorkflowTaskFailedCause

from tests.deploying import (
    DEPLOYMENT,
    make_current,
    temporal,
    under_review,
    versioned,
    worked_on,
    world_to_deploy,
)
from tests.faults.support import PAID, STORY_MAILS, fault, mend, set_faults
from tests.replay.releases import release_1
from tests.worker_process import real_worker
from tests.world import Run, World, check_history

OLD_WORDS, NEW_WORDS = "a member of our team is looking at it", "will decide on it"


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    """A world on a server of its own."""
    async with world_to_deploy(tmp_path / "world") as opened:
        yield opened


async def noted(world: World, order: str) -> int:
    """How many refunds of an order its service has in its books."""
    return len((await world.books())["orders"].get(order, []))


async def test_a_run_that_waits_is_finished_by_the_release_that_comes(
    world: World, tmp_path: Path
) -> None:
    """It stays on the old path before its wait and takes the new one after it; new runs are new."""
    async with versioned(world, 1, release_1(tmp_path / "one")), versioned(world, 2):
        await make_current(world, 1)
        old = await world.start("8890")
        await old.waiting()
        await make_current(world, 2)
        new = await world.start("8893")
        await new.waiting()
        for run in (old, new):
            await run.approve()
            await run.result()
    assert worked_on(await old.history()) == ["1", "2"]
    assert worked_on(await new.history()) == ["2"]
    assert OLD_WORDS in await under_review(world, old)
    assert NEW_WORDS in await under_review(world, new)
    for run in (old, new):
        await check_history(run)
        assert len(await world.refunds(run.request.order_id)) == 1
        assert await noted(world, run.request.order_id) == 1
    assert set((await world.mails()).values()) == {2}


async def test_rolled_back_a_run_with_a_new_marker_stands_still_unless_it_is_kept_on_its_release(
    world: World, tmp_path: Path
) -> None:
    """Nothing is lost and nothing is done twice: it goes on when the new release comes back."""
    async with versioned(world, 1, release_1(tmp_path / "one")), versioned(world, 2):
        await make_current(world, 2)
        stands, kept = await world.start("8890"), await world.start("8893")
        approvals = {run: world.signer.decision(await run.waiting()) for run in (stands, kept)}
        await temporal(
            *(world, "workflow", "update-options", "--workflow-id", kept.handle.id),
            *("--versioning-override-behavior", "pinned"),
            *("--versioning-override-deployment-name", DEPLOYMENT),
            *("--versioning-override-build-id", "2"),
        )
        await make_current(world, 1)
        for run, approval in approvals.items():
            await run.handle.signal("decide", approval)
        await kept.result()
        fresh = await world.start("8899")
        await fresh.approve()
        await fresh.result()
        await world.until(lambda: stands_still(stands))
        assert await world.refunds("8890") == []
        assert (await world.mails())["refunded"] == 2
        await make_current(world, 2)
        await stands.result()
    assert worked_on(await kept.history()) == ["2"]
    assert worked_on(await stands.history()) == ["2"]
    assert worked_on(await fresh.history()) == ["1"]
    assert [await noted(world, order) for order in ("8890", "8893", "8899")] == [1, 1, 0]
    for order in ("8890", "8893", "8899"):
        assert len(await world.refunds(order)) == 1
    assert set((await world.mails()).values()) == {3}


async def stands_still(run: Run) -> bool:
    """Whether a step of the run has failed since its history has what the code does not ask for."""
    failed = EventType.EVENT_TYPE_WORKFLOW_TASK_FAILED
    causes = [
        event.workflow_task_failed_event_attributes.cause
        for event in (await run.history()).events
        if event.event_type == failed
    ]
    return WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_NON_DETERMINISTIC_ERROR in causes


async def test_a_step_that_the_current_release_lacks_waits_for_the_new_one(
    world: World, tmp_path: Path
) -> None:
    """Rolled back in the middle of it: the server gives it to no worker that does not know it."""
    async with versioned(world, 1, release_1(tmp_path / "one")), versioned(world, 2):
        await make_current(world, 2)
        run = await _telling_the_order_service(world)
        await make_current(world, 1)
        await world.until(lambda: _is_soon(run, stands_still))
        assert not await _is_not_known(run)
        await mend(world)
        assert await noted(world, "8890") == 0
        await make_current(world, 2)
        await world.until(lambda: _is_soon(run, _is_noted))
        await run.result()
    assert worked_on(await run.history()) == ["2"]
    await _all_is_done_once(world)


async def test_without_versions_too_an_old_worker_leaves_a_new_activity_to_a_new_one(
    world: World, tmp_path: Path
) -> None:
    """R48: both poll one queue, and each try goes to either; what the old one gets comes again."""
    async with real_worker(world) as new:
        run = await _telling_the_order_service(world)
        new.terminate()
        await new.wait()
    async with real_worker(world, release_1(tmp_path / "one")) as old:
        await world.until(lambda: _is_soon(run, _is_not_known))
        await mend(world)
        assert await noted(world, "8890") == 0
        async with real_worker(world):
            await world.until(lambda: _is_soon(run, _is_noted))
            old.terminate()
            await old.wait()
            await run.result()
    await _all_is_done_once(world)


async def _telling_the_order_service(world: World) -> Run:
    """A run that has paid and said so, and has nothing left but an order service that is down."""
    run = await world.start()
    await run.waiting()
    await set_faults(world, fault("orders.note_refund", "fail_before", call="every"))
    await run.approve()
    await world.until(lambda: _only_tells(run))
    return run


async def _only_tells(run: Run) -> bool:
    found = (await run.handle.describe()).raw_description
    pending = [(one.activity_type.name, one.attempt > 1) for one in found.pending_activities]
    only = pending == [("tell_order_service", True)]
    return only and not found.HasField("pending_workflow_task")


async def _is_not_known(run: Run) -> bool:
    """Whether a worker has said that it does not have the Activity."""
    pending = (await run.handle.describe()).raw_description.pending_activities
    words = "Activity function tell_order_service for workflow refund-order-8890 is not registered"
    return any(words in one.last_failure.message for one in pending)


async def _is_soon(run: Run, happened: Callable[[Run], Awaitable[bool]]) -> bool:
    """Whether it has happened; if not, time goes by for the run to its next try of an Activity."""
    if await happened(run):
        return True
    pending = (await run.handle.describe()).raw_description.pending_activities
    if (pause := max((one.current_retry_interval.ToSeconds() for one in pending), default=0)) > 0:
        await run.move_on(seconds=pause)
    return False


async def _is_noted(run: Run) -> bool:
    return await noted(run.world, "8890") == 1


async def _all_is_done_once(world: World) -> None:
    assert await world.refunds() == PAID
    assert await world.mails() == STORY_MAILS
    [note] = (await world.books())["orders"]["8890"]
    assert note["times"] == 1
