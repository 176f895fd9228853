"""Faults of the provider, and of the way to it: the books show one refund (promises P1 and P8)."""

import asyncio

import pytest

from activities import payments
from domain.models import Outcome
from domain.outcomes import Reason
from tests.faults.support import (
    PAID,
    STORY_MAILS,
    by_hand,
    calls,
    fault,
    fired,
    set_faults,
)
from tests.signing import GRACE, MARIA
from tests.world import World


@pytest.mark.parametrize(
    ("hours", "knows_keys"),
    [(0, True), (0, False), (30, True), (30, False)],
    ids=["at-once", "at-once-keys-ignored", "30-hours-later", "30-hours-later-keys-ignored"],
)
async def test_a_lost_answer_is_looked_up_by_a_new_worker(
    world: World, hours: int, knows_keys: bool
) -> None:
    """R1, R2: the worker is gone after the effect, and the key forgotten: nothing is sent again."""
    await world.control("payments", {"knows_keys": knows_keys})
    run = await world.start()
    await run.waiting()
    await set_faults(world, fault("refunds.create", "drop_after"))
    await run.approve()
    await fired(world)
    await world.stop_worker()
    await world.control("clock", {"advance_seconds": hours * 3600})
    world.clock.advance(hours=hours)
    passing = asyncio.create_task(run.move_on(hours=hours)) if hours else None
    await world.start_worker()

    assert (await run.result()).outcome is Outcome.REFUNDED
    assert await world.refunds() == PAID
    assert await calls(world, "refunds.create") == 1
    if passing:
        await passing


async def test_our_refund_is_found_behind_a_page_of_others(world: World) -> None:
    """A lost answer, forgotten keys, and 101 later refunds: the list is read to its end."""
    await world.control("payments", {"knows_keys": False})
    run = await world.start("8899", amount="500.00")
    await run.waiting()
    await set_faults(world, fault("refunds.create", "drop_after"))
    await run.approve()
    await fired(world)
    await world.stop_worker()
    for _ in range(101):
        await by_hand(world, 1, "8899")
    await world.start_worker()

    assert (await run.result()).outcome is Outcome.REFUNDED
    amounts = [minor for minor, _ in await world.refunds("8899")]
    assert sorted(amounts) == [1] * 101 + [50000]


async def test_a_wait_that_the_provider_asks_for_is_kept(world: World) -> None:
    """R42: after a 429 with `Retry-After: 600` the next call comes then, and not before."""
    run = await world.start()
    await run.waiting()
    busy = fault("refunds.create", "status", status=429, headers={"Retry-After": "600"})
    await set_faults(world, busy)
    await run.approve()
    await fired(world)
    await run.move_on(seconds=590)
    assert await calls(world, "refunds.create") == 1
    await run.move_on(seconds=15)

    assert (await run.result()).outcome is Outcome.REFUNDED
    assert await world.refunds() == PAID


async def test_a_stored_failure_is_waited_out(world: World) -> None:
    """The key answers 500 for a day: operations hears of it, then the refund is made, once."""
    run = await world.start()
    await run.waiting()
    await set_faults(world, fault("refunds.create", "status", status=500, stored=True))
    await run.approve()
    await fired(world)
    await run.move_on(minutes=65)
    await world.until(lambda: _is_told(world, "alert.unknown.r1"))
    assert await world.refunds() == []
    assert await calls(world, "refunds.create") > 10
    await world.control("clock", {"advance_seconds": 25 * 3600})
    await run.move_on(minutes=15)

    assert (await run.result()).outcome is Outcome.REFUNDED
    assert await world.refunds() == PAID
    assert await world.mails() == STORY_MAILS | {"alert.unknown.r1": 1}


async def _is_told(world: World, purpose: str) -> bool:
    return (await world.mails())[purpose] == 1


async def test_a_key_that_was_used_for_something_else_is_for_a_person(world: World) -> None:
    """The provider refuses our parameters under our key: nothing says what was done with it."""
    run = await world.start()
    await run.waiting()
    key = f"local/refund-order-8890/{run.request.request_id}/refund.r1"
    stolen = await world.http.post(
        "/v1/refunds",
        data={"payment_intent": "pi_8899", "amount": "1"},
        headers={"Idempotency-Key": key, "Authorization": "Bearer sk_test_northwind"},
    )
    assert stolen.is_success
    await run.approve()
    ended = await run.result()

    assert (ended.outcome, ended.reason) == (Outcome.NEEDS_HUMAN, Reason.REFUND_CONTRADICTORY)
    assert await world.refunds() == []
    assert (await world.mails())["alert.refund_contradictory"] == 1


async def test_a_client_that_gave_up_finds_what_the_provider_still_did(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R34: the first attempt runs on behind our time-out, on a payment with room for two.

    The provider's 409 to the same key means later.
    """
    await world.stop_worker()
    monkeypatch.setattr(payments, "REQUEST_SECONDS", 0.5)
    await world.start_worker()
    run = await world.start("8899", amount="300.00")
    await run.waiting()
    await set_faults(world, fault("refunds.create", "delay", seconds=3))
    await run.approve()
    ended = await run.result()

    assert ended.outcome is Outcome.REFUNDED
    assert "refund_found" in [entry.what for entry in ended.trail]
    assert await world.refunds("8899") == [(30000, "succeeded")]


ENDINGS = {
    ("pending", "odd"): (Outcome.NEEDS_HUMAN, Reason.STATUS_UNKNOWN, "alert.status_unknown"),
    ("requires_action", "succeeded"): (Outcome.REFUNDED, Reason.VERIFIED, "refunded"),
    ("requires_action", "failed"): (
        Outcome.REFUND_FAILED, Reason.REFUND_FAILED, "alert.refund_failed",
    ),
    ("requires_action", "canceled"): (
        Outcome.REFUND_FAILED, Reason.REFUND_FAILED, "alert.refund_failed",
    ),
    ("requires_action", "odd"): (
        Outcome.NEEDS_HUMAN, Reason.STATUS_UNKNOWN, "alert.status_unknown",
    ),
}  # fmt: skip


@pytest.mark.parametrize("words", ENDINGS, ids=["-then-".join(words) for words in ENDINGS])
async def test_days_without_a_word_end_with_the_providers_last(
    world: World, words: tuple[str, str]
) -> None:
    """R6: neither word says yes or no; two days later another one does, and one refund stands."""
    outcome, reason, mail = ENDINGS[words]
    await world.control("payments/pi_8890", {"next_refund_status": words[0]})
    run = await world.start()
    await run.approve()
    status = await run.until(lambda s: s.refund is not None and s.refund.status == words[0])
    assert status.refund is not None
    await run.move_on(days=2)
    assert await world.mails() == {"under_review": 1, "approval_request.r1": 1}
    await world.control(f"refunds/{status.refund.id}", {"status": words[1]})
    await run.move_on(days=1)
    ended = await run.result()

    assert (ended.outcome, ended.reason) == (outcome, reason)
    assert (await world.mails())[mail] == 1
    assert (await world.mails())["refunded"] == (1 if outcome is Outcome.REFUNDED else 0)
    assert await world.refunds() == [(42000, words[1])]


async def test_a_second_rightful_refund_of_the_same_amount_is_paid(world: World) -> None:
    """Two requests for $100.00 of an order of $1,000.00 are two refunds, and neither is a third."""
    for paid in (1, 2):
        run = await world.start("8899", amount="100.00")
        await run.approve()
        assert (await run.result()).outcome is Outcome.REFUNDED
        assert await world.refunds("8899") == [(10000, "succeeded")] * paid


async def test_earlier_refunds_that_are_pending_are_gone(world: World) -> None:
    """R31: $120.00 refunded and $50.00 pending leave $250.00, which is what is paid."""
    await by_hand(world, 12000)
    await by_hand(world, 5000, status="pending")
    run = await world.start()
    await run.approve()

    assert (await run.result()).outcome is Outcome.REFUNDED
    assert sorted(await world.refunds()) == [
        (5000, "pending"), (12000, "succeeded"), (25000, "succeeded"),
    ]  # fmt: skip


async def test_a_refund_that_failed_after_its_confirmation_is_not_made_again(world: World) -> None:
    """R5: the same request, started again, finds its refund and says that it failed."""
    request = world.request()
    run = await world.start_with(request)
    await run.approve()
    refund = (await run.result()).refund
    assert refund is not None
    await world.control(f"refunds/{refund.id}", {"status": "failed"})
    again = await (await world.start_with(request)).result()

    assert (again.outcome, again.refund) == (
        Outcome.REFUND_FAILED, refund.model_copy(update={"status": "failed"}),
    )  # fmt: skip
    assert await world.refunds() == [(42000, "failed")]


CURRENCIES = {
    "8890": ("145.05", 14505, MARIA, "$145.05", "$145.05"),
    "8893": ("9999", 9999, MARIA, "¥9,999", "￥9,999"),
    "8894": ("1.234", 1234, GRACE, "KWD1.234", "KWD1.234"),
}


@pytest.mark.parametrize("order", CURRENCIES, ids=["2-decimals", "0-decimals", "3-decimals"])
async def test_decimals_are_the_currencys_own_from_order_to_mail(world: World, order: str) -> None:
    """R28, R29: what is typed is approved, paid and confirmed, each by the currency's decimals."""
    typed, minor, approver, to_staff, to_customer = CURRENCIES[order]
    run = await world.start(order, amount=typed)
    assert (await run.waiting()).amount.amount_minor == minor
    await run.approve(by=approver)

    assert (await run.result()).outcome is Outcome.REFUNDED
    assert await world.refunds(order) == [(minor, "succeeded")]
    assert to_staff in (await world.mail("approval_request.r1"))["text"].replace("\xa0", "")
    assert to_customer in (await world.mail("refunded"))["text"].replace("\xa0", "")
