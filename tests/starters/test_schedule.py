"""The sweep's Schedule: made once, brought up to date, looked at and mended by the doctor."""

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import (
    Schedule,
    ScheduleActionExecutionStartWorkflow,
    ScheduleActionStartWorkflow,
    ScheduleHandle,
    ScheduleIntervalSpec,
    SchedulePolicy,
    ScheduleSpec,
    ScheduleUpdate,
    ScheduleUpdateInput,
    WorkflowFailureError,
)
from temporalio.service import RPCError, RPCStatusCode

from domain import names
from domain.models import Outcome
from domain.sweep import SweepOutcome, SweepReport
from starters import schedule
from tests.starters.conftest import Typed, use
from tests.starters.test_doctor import findings
from tests.world import World, temporal_server

ID = names.sweep_id("local")


@pytest.fixture
async def handle(world: World) -> AsyncIterator[ScheduleHandle]:
    """The Schedule of the shared server, which no other test shall meet."""
    handle = world.client.get_schedule_handle(ID)
    yield handle
    await forget(handle)


async def forget(handle: ScheduleHandle) -> None:
    """Take the Schedule away, where a test has made it."""
    try:
        await handle.delete()
    except RPCError as error:
        if error.status is not RPCStatusCode.NOT_FOUND:
            raise


async def change(handle: ScheduleHandle, **fields: Any) -> None:
    """Have somebody change parts of the Schedule by hand."""

    def update(found: ScheduleUpdateInput) -> ScheduleUpdate:
        changed: Schedule = found.description.schedule
        for name, value in fields.items():
            setattr(changed, name, value)
        return ScheduleUpdate(schedule=changed)

    await handle.update(update)


async def sweep_check(typed: Typed) -> dict[str, Any]:
    """What the doctor finds of the sweep, whatever else it finds of the shared server."""
    found = (await typed("doctor", "--json")).data
    check: dict[str, Any] = next(finding for finding in found if finding["check"] == "sweep")
    return check


async def test_the_schedule_is_made_once(world: World, handle: ScheduleHandle) -> None:
    """Made twice it is one, and the second time says that nothing was to be done."""
    assert "made" in await schedule.ensure(world.client, "local")
    assert await schedule.ensure(world.client, "local") == ""
    found = [row.id async for row in await world.client.list_schedules()]
    assert found.count(ID) <= 1
    assert schedule.differs((await handle.describe()).schedule, "local") == ""


async def test_the_schedule_sweeps(world: World, handle: ScheduleHandle) -> None:
    """R5: a real trigger of the Schedule finds a refund that failed later, and corrects it."""
    ended = await (await world.start("8891")).result()
    assert ended.outcome is Outcome.REFUNDED
    assert ended.refund is not None
    await world.control(f"refunds/{ended.refund.id}", {"status": "failed"})
    await schedule.ensure(world.client, "local")
    report = await triggered(world, handle)

    assert (report.outcome, report.found) == (SweepOutcome.COMPLETE, (ended.refund.id,))
    mails = await world.mails()
    assert mails == {"refunded": 1, "correction": 1, "alert.refund_failed_later": 1}


async def triggered(world: World, handle: ScheduleHandle) -> SweepReport:
    """Trigger the Schedule; the report of the sweep that it starts."""
    await handle.trigger()

    async def has_started() -> bool:
        return bool((await handle.describe()).info.recent_actions)

    await world.until(has_started)
    started = (await handle.describe()).info.recent_actions[-1].action
    assert isinstance(started, ScheduleActionExecutionStartWorkflow)
    sweep = world.client.get_workflow_handle(started.workflow_id, result_type=SweepReport)
    assert sweep.id.startswith(f"{ID}-")
    return SweepReport.model_validate(await sweep.result())


async def test_sweeps_do_not_overlap(world: World, handle: ScheduleHandle) -> None:
    """One that is due while another one still runs is left out: they would meet at each mail."""
    await schedule.ensure(world.client, "local")
    await world.stop_worker()
    await handle.trigger()

    async def has_acted() -> bool:
        info = (await handle.describe()).info
        return info.num_actions + info.num_actions_skipped_overlap == expected

    expected = 1
    await world.until(has_acted)
    await handle.trigger()
    expected = 2
    await world.until(has_acted)
    info = (await handle.describe()).info
    await world.start_worker()
    assert (info.num_actions, info.num_actions_skipped_overlap) == (1, 1)
    [running] = info.running_actions
    assert isinstance(running, ScheduleActionExecutionStartWorkflow)
    await world.client.get_workflow_handle(running.workflow_id).result()


async def test_one_late_sweep_does_the_work_of_all_that_were_missed(
    world: World, handle: ScheduleHandle
) -> None:
    """As the server has it: after an outage it goes back by one sweep, however long it was."""
    await schedule.ensure(world.client, "local")
    found = (await handle.describe()).schedule
    [rhythm] = found.spec.intervals
    assert found.policy.catchup_window == rhythm.every


async def test_sweeps_are_no_refunds(typed: Typed, world: World, handle: ScheduleHandle) -> None:
    """`refund list` shows refunds; the sweep has its page in the Web UI, with a summary."""
    await schedule.ensure(world.client, "local")
    await triggered(world, handle)
    done = await typed("list", "--json", "--limit", "500")
    assert all("sweep" not in row["workflow_id"] for row in done.data)


async def test_the_doctor_makes_the_schedule(
    typed: Typed, world: World, handle: ScheduleHandle
) -> None:
    """Missing, it is found and told how to mend; `--fix` mends it and says so, once."""
    missing = await sweep_check(typed)
    assert (missing["ok"], missing["mend"]) == (False, "refund doctor --fix")
    fixed = await typed("doctor", "--fix")
    assert f"fixed: schedule {ID} made" in fixed.out
    again = await typed("doctor", "--fix")
    assert "fixed" not in again.out
    assert (await sweep_check(typed))["ok"]


CHANGES: dict[str, Any] = {
    "rhythm": {"spec": ScheduleSpec(intervals=[ScheduleIntervalSpec(timedelta(days=9))])},
    "action": {
        "action": ScheduleActionStartWorkflow(
            names.SWEEP_WORKFLOW, {"environment": "other"}, id=ID, task_queue=names.TASK_QUEUE
        )
    },
    "policy": {"policy": SchedulePolicy(pause_on_failure=True)},
}


@pytest.mark.parametrize("what", CHANGES)
async def test_a_changed_schedule_is_brought_up_to_date(
    typed: Typed, world: World, handle: ScheduleHandle, what: str
) -> None:
    """What somebody, or an older version, made otherwise is found by its part and mended."""
    await schedule.ensure(world.client, "local")
    await change(handle, **CHANGES[what])
    found = await sweep_check(typed)
    assert not found["ok"]
    assert what in found["detail"]
    assert (await typed("doctor", "--fix", "--json")).data
    assert (await sweep_check(typed))["ok"]


async def test_a_pause_is_found_and_kept(
    typed: Typed, world: World, handle: ScheduleHandle
) -> None:
    """Whoever paused it had a reason: the doctor tells it, and lifts nothing by itself."""
    await schedule.ensure(world.client, "local")
    await handle.pause(note="The provider asked us to.")
    await change(handle, policy=SchedulePolicy(pause_on_failure=True))
    await typed("doctor", "--fix")
    found = await sweep_check(typed)
    assert not found["ok"]
    assert "paused: The provider asked us to." in found["detail"]
    assert "--unpause" in found["mend"]
    assert (await handle.describe()).schedule.policy.pause_on_failure is False


async def test_a_sweep_that_failed_is_found(
    typed: Typed, world: World, handle: ScheduleHandle
) -> None:
    """A sweep that could not even say what went wrong shows at the doctor's, until one succeeds."""
    await schedule.ensure(world.client, "local")
    good = schedule.wanted("local").action
    bad = ScheduleActionStartWorkflow(
        names.SWEEP_WORKFLOW, "nonsense", id=ID, task_queue=names.TASK_QUEUE
    )
    await change(handle, action=bad)
    with pytest.raises(WorkflowFailureError):
        await triggered(world, handle)
    await change(handle, action=good)
    found = await sweep_check(typed)
    assert not found["ok"]
    assert "failed" in found["detail"]
    assert "schedule trigger" in found["mend"]


async def test_a_bare_server_is_made_ready(
    typed: Typed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`doctor --fix` registers, keeps and makes what is missing; afterwards all is well."""
    async with temporal_server(search_attributes=False) as bare, World(bare, tmp_path) as world:
        use(world, monkeypatch)

        async def is_polled() -> bool:
            return bool((await findings(typed))["worker"]["ok"])

        await world.until(is_polled)
        fixed = await typed("doctor", "--fix", "--json")
        well = await findings(typed)
    assert (fixed.code, fixed.err) == (0, "")
    done = {finding["check"]: finding["fixed"] for finding in fixed.data if finding["fixed"]}
    assert done == {
        "retention": "closed runs are kept for 90 days",
        "search attributes": f"registered {', '.join(names.ATTRIBUTE_TYPES)}",
        "sweep": f"schedule {ID} made",
    }
    assert {finding["fixed"] for finding in well.values()} == {""}
