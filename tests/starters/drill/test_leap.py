"""How the drill lets time go by: no more of it than was meant, and not later."""

from datetime import UTC, datetime, timedelta

from starters.drill.leap import LEAP_SECONDS, leap
from tests.world import Run, World

HOURS = timedelta(hours=12)


async def ahead(run: Run) -> timedelta:
    """How far the run's clock is before ours, once no Activity of it is at work."""

    async def idle() -> bool:
        return not (await run.handle.describe()).raw_description.pending_activities

    await run.waiting()
    await run.world.until(idle)
    described = (await run.handle.describe()).raw_description
    clock = described.workflow_extended_info.time_skipping_info.current_time
    return clock.ToDatetime(UTC) - datetime.now(UTC)


async def test_time_goes_by_for_a_run_that_waits(world: World) -> None:
    """A leap that is made says so, and the run's clock shows it."""
    run = await world.start()
    await run.waiting()
    assert await leap(world.server, run.handle, HOURS, LEAP_SECONDS)
    assert HOURS * 0.9 < await ahead(run) < HOURS * 1.1


async def test_a_leap_that_could_not_be_made_is_given_up(world: World) -> None:
    """Found by seed 18029, run 226: a day of it went by when nobody meant it to any more.

    It came on top of the days that the plan let go by, and the request expired unanswered.
    """
    await world.stop_worker()
    run = await world.start()
    assert not await leap(world.server, run.handle, HOURS, seconds=0.5)
    await world.start_worker()
    assert await ahead(run) < HOURS * 0.1


async def test_a_run_that_has_ended_makes_no_leap(world: World) -> None:
    """Nobody waits for it, and nothing is raised."""
    run = await world.start()
    await run.approve()
    await run.result()
    assert not await leap(world.server, run.handle, HOURS, LEAP_SECONDS)
