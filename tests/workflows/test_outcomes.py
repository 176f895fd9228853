"""Every way in which a run ends, by what the outside sees of it."""

from collections.abc import Awaitable, Callable

import pytest

from domain.models import Outcome
from domain.outcomes import Reason
from tests.world import Run, World

Act = Callable[[World, Run], Awaitable[None]]


async def _nothing(world: World, run: Run) -> None:
    """The run needs nobody to come to its end."""


async def _reject(world: World, run: Run) -> None:
    await run.approve(verdict="reject")


async def _let_it_expire(world: World, run: Run) -> None:
    await run.waiting()
    await run.move_on(days=8)


async def _withdraw(world: World, run: Run) -> None:
    await run.waiting()
    await run.send(world.signer.withdrawal(run.request), "withdraw")


async def _cancel(world: World, run: Run) -> None:
    await run.waiting()
    await run.handle.cancel()


ENDS: dict[str, tuple[str, str | None, Act, Outcome, Reason, dict[str, int]]] = {
    "outside the return window": (
        "8895", None, _nothing, Outcome.DECLINED, Reason.OUTSIDE_RETURN_WINDOW, {"declined": 1},
    ),
    "a payment in dispute": (
        "8898", None, _nothing, Outcome.DECLINED, Reason.PAYMENT_DISPUTED, {"declined": 1},
    ),
    "no such order": (
        "7777", None, _nothing, Outcome.DECLINED, Reason.ORDER_UNKNOWN, {"notice.requester": 1},
    ),
    "an order spelled otherwise": (
        "08890", None, _nothing, Outcome.DECLINED, Reason.ORDER_SPELLED_DIFFERENTLY,
        {"notice.requester": 1},
    ),
    "more than was paid": (
        "8890", "420.01", _nothing, Outcome.DECLINED, Reason.AMOUNT_ABOVE_REFUNDABLE,
        {"notice.requester": 1},
    ),
    "more than earlier refunds leave": (
        "8896", "130.01", _nothing, Outcome.DECLINED, Reason.AMOUNT_ABOVE_REFUNDABLE,
        {"notice.requester": 1},
    ),
    "a third of a cent": (
        "8890", "0.333", _nothing, Outcome.DECLINED, Reason.AMOUNT_INVALID, {"notice.requester": 1},
    ),
    "sen of a yen": (
        "8893", "100.50", _nothing, Outcome.DECLINED, Reason.AMOUNT_INVALID,
        {"notice.requester": 1},
    ),
    "another currency than the order's": (
        "8890", "420.00 EUR", _nothing, Outcome.DECLINED, Reason.AMOUNT_INVALID,
        {"notice.requester": 1},
    ),
    "refunded fully before": (
        "8897", None, _nothing, Outcome.ALREADY_REFUNDED, Reason.REFUNDED_BEFORE,
        {"already_refunded": 1, "notice.requester": 1},
    ),
    "a person says no": (
        "8890", None, _reject, Outcome.REJECTED, Reason.REJECTED_BY_APPROVER,
        {"under_review": 1, "approval_request.r1": 1, "rejected": 1, "notice.requester": 1},
    ),
    "nobody decides": (
        "8890", None, _let_it_expire, Outcome.EXPIRED, Reason.NOBODY_DECIDED,
        {
            "under_review": 1, "approval_request.r1": 1, "reminder.r1": 1, "escalation.r1": 1,
            "expired": 1, "notice.requester": 1, "notice.approvers": 1,
        },
    ),
    "withdrawn by staff": (
        "8890", None, _withdraw, Outcome.WITHDRAWN, Reason.WITHDRAWN_BY_STAFF,
        {"under_review": 1, "approval_request.r1": 1, "withdrawn": 1, "notice.approvers": 1},
    ),
    "cancelled in Temporal": (
        "8890", None, _cancel, Outcome.WITHDRAWN, Reason.CANCELLED_IN_TEMPORAL,
        {"under_review": 1, "approval_request.r1": 1, "withdrawn": 1, "notice.approvers": 1},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ENDS, ids=[name.replace(" ", "-") for name in ENDS])
async def test_an_end_without_money_is_told_to_those_it_concerns(world: World, name: str) -> None:
    """P1, P4: the provider makes no refund, and exactly the named mails are written."""
    order, amount, act, outcome, reason, mails = ENDS[name]
    before = (await world.books())["payments"]
    run = await world.start(order, amount=amount)
    await act(world, run)
    ended = await run.result()

    assert (ended.outcome, ended.reason) == (outcome, reason)
    assert (await world.books())["payments"] == before
    assert await world.mails() == mails


async def test_a_request_that_nobody_signed_reaches_no_customer(world: World) -> None:
    """P2: an unsigned start ends with operations and pays nothing."""
    run = await world.start(statement="a.b.c")
    ended = await run.result()

    assert (ended.outcome, ended.reason) == (Outcome.NEEDS_HUMAN, Reason.REQUEST_NOT_AUTHENTIC)
    assert await world.mails() == {"alert.request_not_authentic": 1}
    assert await world.refunds() == []


async def test_a_signed_request_cannot_be_changed_afterwards(world: World) -> None:
    """P2: the signature covers amount and letter."""
    signed = world.request("8899", amount="60.00")
    run = await world.start_with(signed.model_copy(update={"amount": "600.00"}))

    assert (await run.result()).reason == Reason.REQUEST_NOT_AUTHENTIC


@pytest.mark.parametrize("status", ["failed", "canceled"])
async def test_a_refund_that_the_provider_fails_is_said_to_have_failed(
    world: World, status: str
) -> None:
    """R6: failed and canceled are failures, `refunded` is never said, operations is alerted."""
    await world.control("payments/pi_8890", {"next_refund_status": status})
    run = await world.start()
    await run.approve()
    ended = await run.result()

    assert (ended.outcome, ended.reason) == (Outcome.REFUND_FAILED, Reason.REFUND_FAILED)
    mails = await world.mails()
    assert mails["refunded"] == 0
    assert (mails["refund_failed"], mails["alert.refund_failed"]) == (1, 1)


@pytest.mark.parametrize("end", ["succeeded", "failed", "canceled"])
async def test_a_pending_refund_is_confirmed_only_when_it_has_succeeded(
    world: World, end: str
) -> None:
    """R6: two days of pending say nothing; the provider's last word does."""
    await world.control("payments/pi_8890", {"next_refund_status": "pending"})
    run = await world.start()
    await run.approve()
    await run.until(lambda s: s.refund is not None and s.refund.status == "pending")
    await run.move_on(days=2)
    assert (await world.mails())["refunded"] == 0
    refund = (await run.status()).refund
    assert refund is not None
    await world.control(f"refunds/{refund.id}", {"status": end})
    await run.move_on(days=1)
    ended = await run.result()

    assert ended.outcome is (Outcome.REFUNDED if end == "succeeded" else Outcome.REFUND_FAILED)
    assert (await world.mails())["refunded"] == (1 if end == "succeeded" else 0)
    assert len(await world.refunds()) == 1


async def test_a_refund_in_a_state_nobody_knows_goes_to_a_person(world: World) -> None:
    """R6: a word that is not the provider's documented one is neither success nor failure."""
    await world.control("payments/pi_8890", {"next_refund_status": "bamboozled"})
    run = await world.start()
    await run.approve()
    ended = await run.result()

    assert (ended.outcome, ended.reason) == (Outcome.NEEDS_HUMAN, Reason.STATUS_UNKNOWN)
    assert (await world.mails())["refunded"] == 0


async def test_pending_for_more_than_thirty_days_goes_to_a_person(world: World) -> None:
    """P4: even a refund that never ends has an outcome."""
    await world.control("payments/pi_8890", {"next_refund_status": "requires_action"})
    run = await world.start()
    await run.approve()
    await run.until(lambda s: s.refund is not None)
    await run.move_on(days=32)
    ended = await run.result()

    assert (ended.outcome, ended.reason) == (Outcome.NEEDS_HUMAN, Reason.REFUND_PENDING_TOO_LONG)
