"""The world changes while the run waits, and the re-check sees it."""

import pytest

from domain.models import Outcome, Stage
from domain.outcomes import Reason
from domain.trail import Refusal
from tests.signing import GRACE, MARIA, TOM
from tests.world import BOTH_MODES, World

pytestmark = BOTH_MODES

HOLD_ORDERS = {
    "system": "orders",
    "operation": "orders.get",
    "call": "every",
    "what": "fail_before",
}


async def test_refunded_in_full_by_hand_during_the_wait(world: World) -> None:
    """R7: the colleague's refund stays the only one, and nobody says that it was ours."""
    run = await world.start()
    await run.waiting()
    await world.control("hand_refund", {"payment": "pi_8890", "amount_minor": 42000})
    await run.approve()
    ended = await run.result()

    assert (ended.outcome, ended.reason) == (Outcome.ALREADY_REFUNDED, Reason.REFUNDED_BY_HAND)
    assert await world.refunds() == [(42000, "succeeded")]
    mails = await world.mails()
    assert (mails["already_refunded"], mails["refunded"], mails["notice.requester"]) == (1, 0, 1)
    assert "A refund of $420.00 was made on" in (await world.mail("already_refunded"))["text"]


async def test_refunded_in_part_by_hand_asks_again_for_the_rest(world: World) -> None:
    """R11, R31: a new proposal of what is left; the old approval does not carry over."""
    run = await world.start()
    first = await run.waiting()
    await world.control("hand_refund", {"payment": "pi_8890", "amount_minor": 12000})
    await run.approve()
    await run.until(lambda s: s.round == 2)
    second = await run.waiting()
    late = await run.send(world.signer.decision(first))
    assert (second.amount.amount_minor, late.refusal) == (30000, Refusal.OTHER_PROPOSAL)

    await run.approve(by=TOM)
    ended = await run.result()
    assert ended.outcome is Outcome.REFUNDED
    assert sorted(await world.refunds()) == [(12000, "succeeded"), (30000, "succeeded")]
    mails = await world.mails()
    assert (mails["approval_request.r1"], mails["approval_request.r2"]) == (1, 1)
    assert mails["under_review"] == 1
    assert "120.00" in (await world.mail("approval_request.r2"))["text"]


async def test_an_equal_refund_by_hand_on_a_larger_order_covers_the_request(world: World) -> None:
    """R7: what is left of the order would allow a second one, but the request has been met."""
    run = await world.start("8899", amount="250.00")
    await run.waiting()
    await world.control("hand_refund", {"payment": "pi_8899", "amount_minor": 25000})
    await run.approve()
    ended = await run.result()

    assert (ended.outcome, ended.reason) == (Outcome.ALREADY_REFUNDED, Reason.REFUNDED_BY_HAND)
    assert await world.refunds("8899") == [(25000, "succeeded")]


async def test_a_covering_refund_that_is_still_pending_goes_to_a_person(world: World) -> None:
    """P8: a colleague's refund that has not succeeded is neither ours to repeat nor a success."""
    run = await world.start()
    await run.waiting()
    await world.control(
        "hand_refund", {"payment": "pi_8890", "amount_minor": 42000, "status": "pending"}
    )
    await run.approve()
    ended = await run.result()

    assert (ended.outcome, ended.reason) == (Outcome.NEEDS_HUMAN, Reason.OTHER_REFUND_PENDING)
    assert await world.refunds() == [(42000, "pending")]


async def test_a_dispute_during_the_wait_stops_the_money(world: World) -> None:
    """A refund beside a dispute would pay twice."""
    run = await world.start()
    await run.waiting()
    await world.control("payments/pi_8890", {"disputed": True})
    await run.approve()
    ended = await run.result()

    assert (ended.outcome, ended.reason) == (Outcome.DECLINED, Reason.PAYMENT_DISPUTED)
    assert await world.refunds() == []


async def test_a_world_that_changes_every_round_ends_with_a_person(world: World) -> None:
    """P4: at most three rounds."""
    run = await world.start()
    for number in (1, 2, 3):
        await run.until(lambda s, number=number: s.round == number)  # type: ignore[misc]
        await run.waiting()
        await world.control("hand_refund", {"payment": "pi_8890", "amount_minor": 1000})
        await run.approve()
    ended = await run.result()

    assert (ended.outcome, ended.reason) == (Outcome.NEEDS_HUMAN, Reason.TOO_MANY_ROUNDS)
    assert await world.refunds() == [(1000, "succeeded")] * 3


async def test_an_approver_who_lost_the_right_sends_the_run_back_to_waiting(world: World) -> None:
    """R13: rights are read again right before the money; another approver still can."""
    run = await world.start()
    proposal = await run.waiting()
    deadline = (await run.status()).deadline
    await world.control("faults", [HOLD_ORDERS])
    await run.approve(by=MARIA)
    await world.control(f"staff/{MARIA}", {"active": False})
    await world.http.delete("/control/faults")
    status = await run.until(lambda s: "approval_lost" in [entry.what for entry in s.trail])
    assert (status.proposal, status.deadline) == (proposal, deadline)
    assert await world.refunds() == []

    await run.until(lambda s: s.stage is Stage.AWAITING_APPROVAL)
    assert (await run.approve(by=GRACE)).what == "approved"
    assert (await run.result()).outcome is Outcome.REFUNDED
    assert (await world.mails())["approver_lost.1.r1"] == 1


async def test_a_directory_that_is_down_means_wait(world: World) -> None:
    """R13: unreachable is never allowed; the decision counts once the directory is back."""
    run = await world.start()
    proposal = await run.waiting()
    row = {"system": "staff", "operation": "staff.get", "call": "every", "what": "fail_before"}
    await world.control("faults", [row, {**row, "operation": "staff.list"}])
    await run.handle.signal("decide", world.signer.decision(proposal))
    await world.until(lambda: _fired(world))
    assert (await run.status()).stage is Stage.AWAITING_APPROVAL
    assert await world.refunds() == []

    await world.http.delete("/control/faults")
    assert (await run.result()).outcome is Outcome.REFUNDED


@pytest.mark.parametrize("system", ["orders", "staff", "payments"])
async def test_one_wrong_key_of_a_worker_ends_no_run(world: World, system: str) -> None:
    """P8: a 403 is mended by somebody while the run waits; it is no answer about the money."""
    operation = {"orders": "orders.get", "staff": "staff.list", "payments": "refunds.list"}[system]
    run = await world.start()
    proposal = await run.waiting()
    row = {"system": system, "operation": operation, "call": "every", "times": 2}
    await world.control("faults", [{**row, "what": "status", "status": 403}])
    await run.handle.signal("decide", world.signer.decision(proposal))
    ended = await run.result()

    assert ended.outcome is Outcome.REFUNDED
    assert await world.refunds() == [(42000, "succeeded")]


@pytest.mark.parametrize(
    ("order", "asked"), [("8890", {MARIA, TOM}), ("8899", {MARIA}), ("8894", {GRACE})]
)
async def test_those_are_asked_who_can_approve(world: World, order: str, asked: set[str]) -> None:
    """Tom's limit is $500.00; nobody but Grace has one in dinar, so she is asked at once."""
    run = await world.start(order)
    await run.waiting()
    await world.until(lambda: _asked(world))

    assert set((await world.mail("approval_request.r1"))["to"]) == asked


async def _asked(world: World) -> bool:
    return (await world.mails())["approval_request.r1"] == 1


async def _fired(world: World) -> bool:
    faults = (await world.http.get("/control/faults")).json()
    rows = faults["faults"] if isinstance(faults, dict) else faults
    return any(row["fired"] for row in rows)
