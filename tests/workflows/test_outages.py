"""Outages of the worker and of the server over reminder, escalation, deadline and grace (R14, R51).

A run's time can be moved on only while the server is up and no workflow task waits. So each outage
begins a minute before the moment, the moment passes while no worker is there, and what the server
goes through in between is the whole of a crash: SIGKILL, then a start on the same file and port.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest

from domain.models import Outcome
from domain.names import SIGNAL_DECIDE
from domain.statements import SignedStatement
from domain.trail import Refusal
from tests.temporal_process import TemporalProcess, temporal_process
from tests.world import Run, World, check_history, event_types

BEGINNING = ["under_review", "approval_request.r1"]
REMINDED = [*BEGINNING, "reminder.r1"]
ESCALATED = [*REMINDED, "escalation.r1"]


@dataclass(frozen=True)
class Moment:
    """An instant of the wait at which something is due."""

    at: timedelta
    """After the wait began."""
    timer: int
    """Which timer of the run fires then, 0 where none does."""
    before: list[str]
    """The mails up to it."""
    after: list[str]


MOMENTS = {
    "reminder": Moment(timedelta(hours=24), 1, BEGINNING, REMINDED),
    "escalation": Moment(timedelta(hours=48), 2, REMINDED, ESCALATED),
    "deadline": Moment(timedelta(days=7), 0, ESCALATED, ESCALATED),
    "grace": Moment(timedelta(days=7, minutes=15), 3, ESCALATED, ESCALATED),
}
OVER_EACH = pytest.mark.parametrize("moment", MOMENTS.values(), ids=list(MOMENTS))
MINUTE = timedelta(minutes=1)


@pytest.fixture(scope="module")
async def mortal(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[TemporalProcess]:
    """A server that can be killed."""
    async with temporal_process(tmp_path_factory.mktemp("temporal") / "temporal.db") as server:
        yield server


@pytest.fixture
async def mortal_world(mortal: TemporalProcess, tmp_path: Path) -> AsyncIterator[World]:
    """A world on a server that can be killed."""
    async with World(mortal, tmp_path) as opened:
        yield opened
        for run in opened.runs:
            await check_history(run)


@OVER_EACH
async def test_a_worker_that_is_down_over_a_moment_loses_nothing(
    world: World, moment: Moment
) -> None:
    """R14: one mail of each kind, and who signed in time decides, though it arrives afterwards."""
    run = await world.start()
    decision = await signed_a_minute_before(run, moment)
    await world.stop_worker()
    await decided_after(run, moment, decision)


@OVER_EACH
async def test_a_server_that_is_killed_over_a_moment_loses_nothing(
    mortal: TemporalProcess, mortal_world: World, moment: Moment
) -> None:
    """R14, R51: SIGKILL a minute before the moment, which comes within five minutes all the same.

    So the run's clock, its timers and its history are those of the file.
    """
    run = await mortal_world.start()
    decision = await signed_a_minute_before(run, moment)
    await mortal_world.stop_worker()
    await mortal.kill()
    await mortal.start()
    await decided_after(run, moment, decision)


async def test_a_worker_outlives_its_server(mortal: TemporalProcess, mortal_world: World) -> None:
    """R51: the worker finds the server again by itself, and the run goes on where it stood."""
    run = await mortal_world.start()
    proposal = await run.waiting()
    await mortal.kill()
    await mortal.start()
    assert (await run.send(mortal_world.signer.decision(proposal))).what == "approved"
    assert (await run.result()).outcome is Outcome.REFUNDED
    assert await mortal_world.refunds() == [(42000, "succeeded")]


@pytest.mark.parametrize(
    ("hours", "at", "said"),
    [
        ((24, 24, 168), timedelta(hours=24), ["escalation.r1"]),
        # Nobody is reminded of what is over: the next moment is the end of the grace.
        ((24, 24, 24), timedelta(hours=24, minutes=15), []),
    ],
    ids=["reminder-and-escalation", "all-of-them"],
)
async def test_of_all_that_is_due_only_the_last_is_said(
    world: World, hours: tuple[int, int, int], at: timedelta, said: list[str]
) -> None:
    """Where several steps are due at once, as after an outage over them, people get one mail.

    No outage over several steps can be played: time stands still while a workflow task waits. So
    the policy puts the steps at one moment, and the worker is down over that one.
    """
    names = ("reminder_after_hours", "escalate_after_hours", "expire_after_hours")
    await world.control("policy", dict(zip(names, hours, strict=True)))
    due = Moment(at, 1, BEGINNING, [*BEGINNING, *said])
    run = await world.start()
    decision = await signed_a_minute_before(run, due)
    await world.stop_worker()
    await decided_after(run, due, decision)


async def test_a_decision_signed_too_late_in_the_task_that_expires(world: World) -> None:
    """R14: it is answered in the task in which the closing timer fired, and the run expires."""
    run = await world.start()
    await signed_a_minute_before(run, MOMENTS["grace"])
    status = await run.status()
    assert status.proposal is not None
    assert status.deadline is not None
    late = status.deadline + timedelta(minutes=3)
    decision = world.signer.decision(status.proposal, at=late.timestamp())
    await world.stop_worker()
    await sent_after(run, MOMENTS["grace"], decision)

    ended = await run.result()
    assert (ended.outcome, ended.refused) == (Outcome.EXPIRED, {Refusal.TOO_LATE: 1})
    assert await world.refunds() == []


async def signed_a_minute_before(run: Run, moment: Moment) -> SignedStatement:
    """Bring a run to a minute before a moment, all mails sent; an approval signed in time."""
    proposal = await run.waiting()
    await run.move_on(seconds=(moment.at - MINUTE).total_seconds())
    status = await run.until(
        lambda s: [e.what for e in s.trail].count("mail_sent") == len(moment.before)
    )
    assert await run.world.mails() == Counter(moment.before)
    asked_at = next(e.at for e in status.trail if e.what == "proposed")
    assert status.deadline is not None
    signed = min(asked_at + moment.at, status.deadline) - MINUTE
    return run.world.signer.decision(proposal, at=signed.timestamp())


async def decided_after(run: Run, moment: Moment, decision: SignedStatement) -> None:
    """The approval comes after the moment, without a worker, and is held to when it was signed."""
    await sent_after(run, moment, decision)

    assert (await run.result()).outcome is Outcome.REFUNDED
    assert await run.world.mails() == Counter([*moment.after, "refunded"])
    assert await run.world.refunds() == [(42000, "succeeded")]


async def sent_after(run: Run, moment: Moment, decision: SignedStatement) -> None:
    """Let the moment pass without a worker; then the decision comes, and then a worker."""
    # By more than the skew: judged by its arrival, the decision would come too late.
    moving = asyncio.create_task(run.move_on(minutes=5))
    if moment.timer:
        # Its workflow task waits for a worker, and until then time stands still.
        await run.world.until(lambda: fired(run, moment.timer))
    else:
        await moving
    await run.handle.signal(SIGNAL_DECIDE, decision)
    await run.world.start_worker()
    await moving


async def fired(run: Run, timers: int) -> bool:
    """Whether so many timers of a run have fired."""
    return event_types(await run.history())["TIMER_FIRED"] == timers
