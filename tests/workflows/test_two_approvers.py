"""Above $1,000.00: two different people, one of them a finance director (P2, issue 4)."""

import json
from typing import Any

from temporalio.client import WorkflowHistory

from domain.models import Outcome, Stage
from domain.outcomes import Reason
from domain.request import Resumed
from domain.trail import Refusal
from tests.signing import GRACE, MARIA, TOM
from tests.world import World

DESK = "8892"
PRICE = (185_000, "succeeded")


async def change(world: World, address: str, **changes: Any) -> None:
    """Change somebody in the staff directory."""
    await world.control(f"staff/{address}", changes)


async def test_a_manager_and_a_director_approve_and_it_is_paid_once(world: World) -> None:
    """P1, P2: one approval pays nothing; the second one does, and the trail names both."""
    run = await world.start(DESK)
    first = await run.approve(by=MARIA)
    status = await run.status()
    assert first.what == "approved"
    assert (status.stage, status.waits_for) == (Stage.AWAITING_APPROVAL, "a finance director")
    assert await world.refunds(DESK) == []

    assert (await run.approve(by=GRACE)).what == "approved"
    ended = await run.result()
    assert ended.outcome is Outcome.REFUNDED
    assert [e.who for e in ended.trail if e.what == "approved"] == [MARIA, GRACE]
    assert await world.refunds(DESK) == [PRICE]


async def test_two_managers_are_no_pair(world: World) -> None:
    """P2: with limits for all of it, the second manager is refused and a director still can."""
    limit = [{"amount_minor": 1_000_000, "currency": "USD"}]
    await change(world, MARIA, limits=limit)
    await change(world, TOM, limits=limit)
    run = await world.start(DESK)
    await run.approve(by=MARIA)
    assert (await run.approve(by=TOM)).refusal is Refusal.NEEDS_DIRECTOR
    assert await world.refunds(DESK) == []
    assert (await run.approve(by=GRACE)).what == "approved"
    assert (await run.result()).outcome is Outcome.REFUNDED


async def test_one_person_is_not_two(world: World) -> None:
    """P2: a director's second yes, with another id, adds nothing."""
    run = await world.start(DESK)
    await run.approve(by=GRACE)
    again = await run.approve(by=GRACE, iss="Grace.Lin@Northwind.Example")
    assert again.refusal is Refusal.ALREADY_APPROVED
    assert (await run.status()).waits_for == "one more person"
    assert (await run.approve(by=TOM)).refusal is Refusal.OVER_LIMIT
    assert (await run.approve(by=MARIA)).what == "approved"
    assert (await run.result()).outcome is Outcome.REFUNDED


async def test_one_no_ends_it_after_a_yes(world: World) -> None:
    """A rejection by whoever may decide counts more than one approval of two."""
    run = await world.start(DESK)
    await run.approve(by=GRACE)
    await run.approve(verdict="reject", by=TOM)
    ended = await run.result()
    assert (ended.outcome, ended.reason) == (Outcome.REJECTED, Reason.REJECTED_BY_APPROVER)
    assert await world.refunds(DESK) == []


async def test_only_those_are_reminded_whose_approval_is_missing(world: World) -> None:
    """After a manager's yes the reminder goes to the director alone, and says who approved."""
    run = await world.start(DESK)
    await run.approve(by=MARIA)
    await run.move_on(hours=25)
    await run.until(
        lambda s: any(e.what == "mail_sent" and "reminder" in e.detail for e in s.trail)
    )
    asked, reminded = await world.mail("approval_request.r1"), await world.mail("reminder.r1")
    assert sorted(asked["to"]) == [GRACE, MARIA]
    assert reminded["to"] == [GRACE]
    assert "Approved so far by: Maria Silva" in reminded["text"]
    assert "Needed: a finance director" in reminded["text"]


async def test_a_director_who_lost_the_limit_is_asked_for_again_and_the_manager_is_not(
    world: World,
) -> None:
    """R13: the manager's approval stays; the director's place is free under the same deadline."""
    run = await world.start(DESK)
    await run.approve(by=GRACE)
    deadline = (await run.status()).deadline
    million = [{"amount_minor": 1_000_000, "currency": "USD"}]
    await change(world, TOM, roles=["finance_director"], limits=million)
    await change(world, GRACE, limits=[{"amount_minor": 100_000, "currency": "USD"}])
    await run.approve(by=MARIA)
    status = await run.until(lambda s: "approval_lost" in [e.what for e in s.trail])
    await run.until(lambda s: [e.detail for e in s.trail].count("approval_request") == 2)

    assert (status.stage, status.waits_for) == (Stage.AWAITING_APPROVAL, "a finance director")
    assert [person.address for person in status.approved_by] == [MARIA]
    assert status.deadline == deadline
    assert await world.refunds(DESK) == []
    asked = await world.mail("approver_lost.1.r1")
    assert asked["to"] == [TOM]
    assert "Grace Lin (needs_director)" in asked["text"]
    assert (await run.approve(by=TOM)).what == "approved"
    assert (await run.result()).outcome is Outcome.REFUNDED
    assert await world.refunds(DESK) == [PRICE]


async def test_where_no_pair_can_be_made_a_person_hears_at_once(world: World) -> None:
    """P4: without a director whose limit reaches, nobody is asked in vain for a week."""
    await change(world, GRACE, limits=[{"amount_minor": 184_999, "currency": "USD"}])
    ended = await (await world.start(DESK)).result()
    assert (ended.outcome, ended.reason) == (Outcome.NEEDS_HUMAN, Reason.NOBODY_MAY_APPROVE)
    mails = await world.mails()
    # Nobody will decide, so no customer is told that somebody will.
    assert mails == {"alert.nobody_may_approve": 1, "delayed": 1}


async def test_the_customer_reads_who_is_left_to_decide_where_one_has_decided_early(
    world: World,
) -> None:
    """A request that is started again with a manager's approval: only the director is named."""
    run = await world.start(DESK)
    approval = world.signer.decision(await run.waiting(), by=MARIA)
    await run.send(approval)
    proposal, before = (await run.status()).proposal, await run.history()
    await run.handle.terminate("to be started again")
    resumes = Resumed(retry=0, proposal=proposal, decisions=(approval.token,))
    again = await world.start_with(run.request.model_copy(update={"resumes": resumes}))
    await again.until(lambda s: "under_review" in [entry.detail for entry in s.trail])

    assert _deciders(before) == ["Maria Silva", "Grace Lin"]
    assert _deciders(await again.history()) == ["Grace Lin"]
    # The customer has the letter that was written first, and no second one.
    assert "Maria Silva and Grace Lin will decide" in (await world.mail("under_review"))["text"]


def _deciders(history: WorkflowHistory) -> Any:
    """Whom a run has named in the one "under review" mail that it handed to a worker."""
    scheduled = [event.activity_task_scheduled_event_attributes for event in history.events]
    mails = [
        json.loads(task.input.payloads[0].data)
        for task in scheduled
        if task.activity_type.name == "send_mail"
    ]
    [review] = [mail for mail in mails if mail["purpose"] == "under_review"]
    return review["facts"]["deciders"]


async def test_earlier_refunds_lift_a_small_amount_into_the_tier_of_two(world: World) -> None:
    """P2: after $950.00 by hand, $100.00 more is a matter for two."""
    await world.control(
        "hand_refund", {"payment": f"pi_{DESK}", "amount_minor": 95_000, "status": "succeeded"}
    )
    run = await world.start(DESK, amount="100.00")
    proposal = await run.waiting()
    assert (proposal.approvals_needed, proposal.director_needed) == (2, True)
    await run.approve(by=MARIA)
    assert (await run.approve(by=GRACE)).what == "approved"
    assert (await run.result()).outcome is Outcome.REFUNDED
