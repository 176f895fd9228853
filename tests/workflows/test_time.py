"""Days of waiting: reminder, escalation, deadline."""

import pytest

from domain.models import Outcome, Stage
from domain.outcomes import Reason
from domain.trail import Refusal
from tests.signing import GRACE, MARIA, TOM
from tests.world import World, event_types


async def test_reminder_and_escalation_come_once_and_to_the_right_people(world: World) -> None:
    """After 24 hours the approvers are reminded, after 48 the finance director is asked as well."""
    run = await world.start()
    await run.waiting()
    await run.move_on(hours=25)
    reminded = await world.mails()
    assert (reminded["reminder.r1"], reminded["escalation.r1"]) == (1, 0)
    await run.move_on(hours=24)

    assert (await world.mails())["escalation.r1"] == 1
    assert GRACE in (await world.mail("escalation.r1"))["to"]
    assert GRACE not in (await world.mail("reminder.r1"))["to"]
    assert {MARIA, TOM} <= set((await world.mail("reminder.r1"))["to"])


async def test_the_deadline_passes_with_nobody_there(world: World) -> None:
    """R18: seven days and a grace, then `expired` is told, and never called a rejection."""
    run = await world.start()
    await run.waiting()
    # Into the grace: were it over, no time would go by before the mails about the end are sent.
    await run.move_on(days=7, minutes=5)
    assert (await run.status()).stage is Stage.AWAITING_APPROVAL
    await run.move_on(minutes=11)
    ended = await run.result()

    assert (ended.outcome, ended.reason) == (Outcome.EXPIRED, Reason.NOBODY_DECIDED)
    assert "reject" not in (await world.mail("expired"))["text"].lower()
    assert await world.refunds() == []


@pytest.mark.parametrize(
    ("signed", "refusal"), [(-60, None), (60, None), (180, Refusal.TOO_LATE)],
    ids=["before-the-deadline", "within-the-skew", "after-the-skew"],
)  # fmt: skip
async def test_signed_time_decides_about_the_deadline(
    world: World, signed: int, refusal: Refusal | None
) -> None:
    """R14: a decision that arrives in the grace counts by when it was signed, give or take skew."""
    run = await world.start()
    proposal = await run.waiting()
    deadline = (await run.status()).deadline
    assert deadline is not None
    await run.move_on(days=7, minutes=5)
    decision = world.signer.decision(proposal, at=deadline.timestamp() + signed)
    answer = await run.send(decision)

    assert answer.refusal is refusal


async def test_the_whole_wait_stays_short_in_history(world: World) -> None:
    """Reminder, escalation and expiry take fewer than 60 events from the start of the wait on."""
    run = await world.start()
    await run.waiting()
    await world.until(lambda: _mails(world, 2))
    before = len((await run.history()).events)
    await run.move_on(days=8)
    await run.result()
    history = await run.history()

    assert len(history.events) - before < 60
    assert event_types(history)["TIMER_FIRED"] == 3


async def _mails(world: World, count: int) -> bool:
    return (await world.mails()).total() >= count


async def test_a_policy_that_expires_before_it_reminds_is_kept(world: World) -> None:
    """R18: a reminder that would come after the deadline keeps no run open, and is not sent."""
    await world.control("policy", {"expire_after_hours": 1})
    run = await world.start()
    await run.waiting()
    await run.move_on(hours=1, minutes=16)
    assert (await run.result()).outcome is Outcome.EXPIRED
    assert (await world.mails())["reminder.r1"] == 0


async def test_a_policy_that_escalates_before_it_reminds_does_both(world: World) -> None:
    """P4: whoever should hear of it does, in the order of the policy's hours."""
    await world.control("policy", {"reminder_after_hours": 48, "escalate_after_hours": 24})
    run = await world.start()
    await run.waiting()
    await run.move_on(hours=25)
    mails = await world.mails()
    assert (mails["escalation.r1"], mails["reminder.r1"]) == (1, 0)
    await run.move_on(hours=24)
    assert (await world.mails())["reminder.r1"] == 1
