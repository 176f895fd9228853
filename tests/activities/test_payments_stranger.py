"""The same adapter at a provider that nobody here wrote, and that keeps few of Stripe's promises.

The first tests show what localstripe does. Should it learn better, they say so, and those after
them no longer show what our side does alone.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest

from activities.interfaces import AttemptState, RefundOrder, RefundQuery
from activities.payments import StripePayments
from domain.errors import Misconfigured, Unreachable
from tests.activities.stranger import API_KEY, Stranger, running_localstripe, stranger_at
from tests.activities.support import refund_order, usd


@pytest.fixture(scope="module")
def localstripe() -> Iterator[str]:
    """The provider's process, shared: each test makes a payment of its own."""
    with running_localstripe() as url:
        yield url


@pytest.fixture
async def stranger(localstripe: str) -> AsyncIterator[Stranger]:
    """The way to it."""
    async with stranger_at(localstripe) as stranger:
        yield stranger


@pytest.fixture
async def payments(stranger: Stranger) -> AsyncIterator[StripePayments]:
    """The adapter, as for Stripe."""
    async with StripePayments(API_KEY, stranger.url) as payments:
        yield payments


@pytest.fixture
async def payment(stranger: Stranger) -> str:
    """A new payment of $420.00."""
    return await stranger.new_payment(42000)


def order_for(payment: str, minor: int = 42000, known: tuple[str, ...] = ()) -> RefundOrder:
    """The order to refund it."""
    return refund_order(minor=minor, payment=payment, known_refunds=known)


async def refund_by_hand(stranger: Stranger, payment: str, minor: int) -> str:
    """Somebody else's refund; its id."""
    answer = await stranger.post("refunds", payment_intent=payment, amount=minor)
    return str(answer.json()["id"])


async def test_it_ignores_idempotency_keys(stranger: Stranger, payment: str) -> None:
    """One key, two refunds."""
    for _ in range(2):
        answer = await stranger.direct.post(
            "/v1/refunds",
            data={"payment_intent": payment, "amount": "100"},
            headers={"Idempotency-Key": "one"},
        )
        assert answer.is_success
    assert await stranger.amounts(payment) == [100, 100]


async def test_it_refunds_more_than_was_paid(stranger: Stranger, payment: str) -> None:
    """What is left is for us to look at."""
    await refund_by_hand(stranger, payment, 42001)
    assert await stranger.amounts(payment) == [42001]


async def test_it_refuses_a_reason(stranger: Stranger, payment: str) -> None:
    """So none is sent: our metadata says more."""
    answer = await stranger.post(
        "refunds", payment_intent=payment, amount=1, reason="requested_by_customer"
    )
    assert (answer.status_code, await stranger.amounts(payment)) == (400, [])


async def test_it_filters_a_list_before_it_limits_it(stranger: Stranger, payment: str) -> None:
    """A short page is the end of a list, and not one from which others were taken."""
    other = await stranger.new_payment(42000)
    await refund_by_hand(stranger, other, 1)
    ours = await refund_by_hand(stranger, payment, 1)
    await refund_by_hand(stranger, other, 1)
    assert [refund["id"] for refund in await stranger.listed(payment, 1)] == [ours]


async def test_a_refund_is_made_and_read_back(
    payments: StripePayments, stranger: Stranger, payment: str
) -> None:
    """The plain case, by its books and by our reading of them."""
    attempt = await payments.make_refund(order_for(payment, 12000))
    assert (attempt.state, await stranger.amounts(payment)) == (AttemptState.MADE, [12000])
    assert attempt.refund is not None
    query = RefundQuery(environment="local", refund_id=attempt.refund.id)
    assert (await payments.read_refund(query)).refund == attempt.refund
    found = await payments.read_payment(payment)
    assert found is not None
    assert (found.left, found.refunds) == (usd(30000), (attempt.refund,))


async def test_a_lost_answer_is_found_by_a_new_process(
    payments: StripePayments, stranger: Stranger, payment: str
) -> None:
    """P1, P8: the key is worth nothing here; the look-up alone keeps it at one refund."""
    stranger.answers_to_lose = 1
    with pytest.raises(Unreachable):
        await payments.make_refund(order_for(payment, 12000))
    async with StripePayments(API_KEY, stranger.url) as successor:
        attempt = await successor.make_refund(order_for(payment, 12000))
    assert attempt.state is AttemptState.FOUND
    assert (stranger.refunds_asked, await stranger.amounts(payment)) == (1, [12000])


async def test_many_attempts_in_turn_pay_once(
    payments: StripePayments, stranger: Stranger, payment: str
) -> None:
    """However often it is asked for, with room for more on the payment."""
    states = [(await payments.make_refund(order_for(payment, 10000))).state for _ in range(4)]
    assert states == [AttemptState.MADE] + 3 * [AttemptState.FOUND]
    assert (stranger.refunds_asked, await stranger.amounts(payment)) == (1, [10000])


async def test_our_refund_is_found_among_more_than_a_page_and_other_payments(
    payments: StripePayments, stranger: Stranger, payment: str
) -> None:
    """A list is read to its end, and the refunds of another payment are not in the way."""
    other = await stranger.new_payment(42000)
    await payments.make_refund(order_for(payment, 10000))
    for _ in range(101):
        await refund_by_hand(stranger, other, 1)
        await refund_by_hand(stranger, payment, 1)
    attempt = await payments.make_refund(order_for(payment, 10000))
    found = await payments.read_payment(payment)
    assert attempt.state is AttemptState.FOUND
    assert found is not None
    assert (len(found.refunds), found.left) == (102, usd(31899))
    assert stranger.refunds_asked == 1


async def test_no_more_than_is_left_is_asked_for(
    payments: StripePayments, stranger: Stranger, payment: str
) -> None:
    """The provider would pay it; we do not ask."""
    by_hand = await refund_by_hand(stranger, payment, 30000)
    attempt = await payments.make_refund(order_for(payment, 12001, (by_hand,)))
    assert (attempt.state, attempt.code) == (AttemptState.REFUSED, "amount_above_left")
    assert (stranger.refunds_asked, await stranger.amounts(payment)) == (0, [30000])


async def test_a_payment_that_it_does_not_know_gets_no_refund(
    payments: StripePayments, stranger: Stranger
) -> None:
    """Its 404 has no code, so it could be a wrong address as well: it names the setting."""
    with pytest.raises(Misconfigured, match="NORTHWIND_PAYMENTS_URL"):
        await payments.make_refund(order_for("pi_nobody"))
    assert stranger.refunds_asked == 0


async def test_two_attempts_truly_at_once_both_pay_and_are_found_out(
    payments: StripePayments, stranger: Stranger, payment: str
) -> None:
    """The limit: both looked before either paid, and only the provider could refuse one.

    What it did is not adopted: the next look gives both refunds to a person.
    """
    stranger.meeting = asyncio.Barrier(2)
    order = order_for(payment)
    attempts = await asyncio.gather(payments.make_refund(order), payments.make_refund(order))
    assert [attempt.state for attempt in attempts] == 2 * [AttemptState.MADE]
    assert await stranger.amounts(payment) == [42000, 42000]
    stranger.meeting = None
    again = await payments.make_refund(order)
    assert (again.state, again.code) == (AttemptState.CONTRADICTORY, "other_refund_of_ours")
    assert stranger.refunds_asked == 2
