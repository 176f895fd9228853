"""Making a refund: whatever happens on the way, the books show it once (promises P1 and P8)."""

from typing import Any

import httpx
import pytest

from activities.interfaces import AttemptState, RefundQuery
from activities.payments import StripePayments
from domain.errors import (
    BadAnswer,
    KeyInUse,
    Misconfigured,
    OutsideError,
    RateLimited,
    ServerFault,
    Unreachable,
)
from domain.money import Money
from northwind.server import Company
from tests.activities.support import MovableClock, refund_order, usd
from tests.northwind.support import books, refunds, set_faults
from workers.wiring import Activities


@pytest.fixture
def payments(activities: Activities) -> StripePayments:
    """The adapter."""
    return activities.payments


def fault(operation: str, what: str, **more: Any) -> dict[str, Any]:
    """A row of the fault plan."""
    return {"system": "payments", "operation": operation, "what": what, **more}


async def control(http: httpx.AsyncClient, path: str, body: dict[str, Any]) -> None:
    """Be the outside world."""
    answer = await http.post(f"/control/{path}", json=body)
    assert answer.is_success, answer.text


async def test_a_refund_is_made_with_our_key_in_its_metadata(
    payments: StripePayments, http: httpx.AsyncClient
) -> None:
    """The mark by which a later attempt finds it is on it from the first moment."""
    order = refund_order()
    attempt = await payments.make_refund(order)
    assert attempt.state is AttemptState.MADE
    assert attempt.refund is not None
    assert (attempt.refund.amount, attempt.refund.status) == (usd(42000), "succeeded")
    [kept] = await refunds(http, "pi_8890")
    assert kept["metadata"] == {
        "northwind_key": order.key,
        "northwind_order": "8890",
        "northwind_proposal": order.proposal_id,
    }


# Taken for an empty list, each of them would hide a refund that was made.
NO_LISTS: dict[str, dict[str, Any]] = {
    "no list": {},
    "no rows": {"object": "list", "has_more": False},
    "perhaps more rows": {"object": "list", "data": []},
    "an empty page": {"object": "list", "data": [], "has_more": True},
}
UNKNOWN = [
    pytest.param(fault("refunds.create", "drop_after"), Unreachable, id="answer lost"),
    pytest.param(fault("refunds.create", "drop_before"), Unreachable, id="connection lost"),
    pytest.param(fault("refunds.create", "fail_before"), ServerFault, id="500"),
    pytest.param(fault("refunds.list", "drop_before"), Unreachable, id="list lost"),
    pytest.param(
        fault("refunds.list", "status", status=200, body="<html>busy</html>"), BadAnswer, id="HTML"
    ),
    pytest.param(
        fault("refunds.create", "status", status=200, body={"id": "re_1", "object": "refund"}),
        BadAnswer,
        id="fields missing",
    ),
    pytest.param(
        fault("payment_intents.retrieve", "status", status=200, body=None), BadAnswer, id="empty"
    ),
    pytest.param(
        fault("payment_intents.retrieve", "status", status=200, body=[]), BadAnswer, id="no object"
    ),
    pytest.param(
        fault("refunds.create", "status", status=200, body="null"), BadAnswer, id="made null"
    ),
    *(
        pytest.param(fault("refunds.list", "status", status=200, body=body), BadAnswer, id=name)
        for name, body in NO_LISTS.items()
    ),
    pytest.param(
        fault("refunds.create", "status", status=409, body={"error": {"message": "in use"}}),
        KeyInUse,
        id="409",
    ),
    pytest.param(fault("refunds.create", "status", status=429), RateLimited, id="429"),
]


@pytest.mark.parametrize(("row", "error"), UNKNOWN)
async def test_an_unclear_answer_is_an_error_and_the_next_attempt_refunds_once(
    payments: StripePayments,
    http: httpx.AsyncClient,
    row: dict[str, Any],
    error: type[OutsideError],
) -> None:
    """P8: unknown is not failed. R1, R34: same key, one refund (medusajs/medusa#16681)."""
    await set_faults(http, row)
    with pytest.raises(error) as raised:
        await payments.make_refund(refund_order())
    assert raised.value.retry
    attempt = await payments.make_refund(refund_order())
    assert attempt.state in (AttemptState.MADE, AttemptState.FOUND)
    assert [kept["amount_minor"] for kept in await refunds(http, "pi_8890")] == [42000]


async def test_a_refund_is_found_after_its_key_was_forgotten(
    payments: StripePayments, http: httpx.AsyncClient
) -> None:
    """R2: 30 hours later the provider knows no key any more; the metadata still tells."""
    await set_faults(http, fault("refunds.create", "drop_after"))
    with pytest.raises(Unreachable):
        await payments.make_refund(refund_order())
    await control(http, "clock", {"advance_seconds": 30 * 3600})
    assert (await payments.make_refund(refund_order())).state is AttemptState.FOUND
    assert len(await refunds(http, "pi_8890")) == 1


async def test_a_provider_that_ignores_keys_gets_one_request(
    payments: StripePayments, http: httpx.AsyncClient
) -> None:
    """P1: the look-up alone keeps a retry from refunding twice."""
    await control(http, "payments", {"knows_keys": False})
    await set_faults(http, fault("refunds.create", "drop_after"))
    with pytest.raises(Unreachable):
        await payments.make_refund(refund_order("8899", 10000))
    again = await payments.make_refund(refund_order("8899", 10000))
    assert again.state is AttemptState.FOUND
    assert (await books(http))["calls"]["refunds.create"] == 1


async def test_a_wait_that_the_provider_asks_for_is_passed_on(
    payments: StripePayments, http: httpx.AsyncClient
) -> None:
    """R42: one call per attempt, and the next not before 30 seconds."""
    row = fault("refunds.create", "status", status=429, headers={"Retry-After": "30"})
    await set_faults(http, row)
    with pytest.raises(RateLimited) as raised:
        await payments.make_refund(refund_order())
    assert raised.value.retry_after_seconds == 30
    assert (await books(http))["calls"]["refunds.create"] == 1


async def test_a_stored_failure_is_repeated_until_the_key_is_forgotten(
    payments: StripePayments, http: httpx.AsyncClient
) -> None:
    """A remembered 500 stays unknown, not failed; a day later the refund is made, once."""
    await set_faults(http, fault("refunds.create", "status", status=500, stored=True))
    for _ in range(2):
        with pytest.raises(ServerFault):
            await payments.make_refund(refund_order())
    await control(http, "clock", {"advance_seconds": 25 * 3600})
    assert (await payments.make_refund(refund_order())).state is AttemptState.MADE
    assert len(await refunds(http, "pi_8890")) == 1


async def test_a_refund_by_hand_is_never_taken_for_ours(
    payments: StripePayments, http: httpx.AsyncClient
) -> None:
    """R7: same payment, same amount, no mark of ours: it is somebody else's."""
    await control(http, "hand_refund", {"payment": "pi_8899", "amount_minor": 30000})
    by_hand = (await refunds(http, "pi_8899"))[0]["id"]
    attempt = await payments.make_refund(refund_order("8899", 30000, known_refunds=(by_hand,)))
    assert attempt.state is AttemptState.MADE
    assert len(await refunds(http, "pi_8899")) == 2


async def test_a_refund_by_hand_in_the_very_race_sends_nothing(
    payments: StripePayments, http: httpx.AsyncClient
) -> None:
    """R7: made after the re-check and before the attempt: the run must look again."""
    await control(http, "hand_refund", {"payment": "pi_8899", "amount_minor": 30000})
    attempt = await payments.make_refund(refund_order("8899", 30000))
    assert (attempt.state, attempt.code) == (AttemptState.REFUSED, "payment_changed")
    assert len(await refunds(http, "pi_8899")) == 1


async def test_our_refund_is_found_behind_more_than_a_page_of_others(
    payments: StripePayments, http: httpx.AsyncClient
) -> None:
    """The list is read to its end: 101 later refunds push ours to the second page."""
    made = await payments.make_refund(refund_order("8899", 50000))
    for _ in range(101):
        await control(http, "hand_refund", {"payment": "pi_8899", "amount_minor": 1})
    found = await payments.make_refund(refund_order("8899", 50000))
    assert (found.state, found.refund) == (AttemptState.FOUND, made.refund)


async def test_old_facts_send_nothing(
    payments: StripePayments, clock: MovableClock, http: httpx.AsyncClient
) -> None:
    """Facts of more than five minutes ago allow nothing."""
    order = refund_order()
    clock.advance(minutes=5, seconds=1)
    assert (await payments.make_refund(order)).state is AttemptState.STALE
    assert "refunds.create" not in (await books(http))["calls"]


async def test_old_facts_still_find_what_was_made(
    payments: StripePayments, clock: MovableClock
) -> None:
    """Looking costs nothing: a refund that exists is found on facts of any age."""
    order = refund_order()
    await payments.make_refund(order)
    clock.advance(hours=7)
    assert (await payments.make_refund(order)).state is AttemptState.FOUND


async def test_a_refund_of_another_round_is_adopted_where_it_fits(
    payments: StripePayments, http: httpx.AsyncClient
) -> None:
    """All rounds of a request are one request: the second round does not pay again."""
    first = refund_order("8899", 20000)
    await payments.make_refund(first)
    second = first.model_copy(update={"key": f"{first.scope}refund.r2"})
    assert (await payments.make_refund(second)).state is AttemptState.FOUND
    assert len(await refunds(http, "pi_8899")) == 1


async def test_our_mark_on_another_amount_is_a_contradiction(
    payments: StripePayments, http: httpx.AsyncClient
) -> None:
    """A person looks at it; nothing more is sent."""
    await payments.make_refund(refund_order("8899", 20000))
    other = refund_order("8899", 30000)
    attempt = await payments.make_refund(
        other.model_copy(update={"key": f"{other.scope}refund.r2"})
    )
    assert attempt.state is AttemptState.CONTRADICTORY
    assert "200.00 USD" in attempt.detail
    assert len(await refunds(http, "pi_8899")) == 1


async def test_our_key_with_other_parameters_is_a_contradiction(
    payments: StripePayments, http: httpx.AsyncClient
) -> None:
    """The provider refuses a key that it knows for another refund: a person must look."""
    await payments.make_refund(refund_order("8899", 20000))
    stolen = refund_order("8890", 42000, key=refund_order("8899").key)
    attempt = await payments.make_refund(stolen)
    assert (attempt.state, attempt.code) == (AttemptState.CONTRADICTORY, "idempotency_error")
    assert await refunds(http, "pi_8890") == []


REFUSALS = [
    pytest.param(refund_order("8897", 9000), "nothing_left", id="refunded fully"),
    pytest.param(refund_order("8896", 13001), "amount_above_left", id="a cent too much"),
    pytest.param(refund_order("8898", 31000), "charge_disputed", id="in dispute"),
    pytest.param(refund_order("0000", 100), "payment_unknown", id="no such payment"),
    pytest.param(refund_order("8893", 12500), "currency_mismatch", id="dollars of a yen payment"),
]


@pytest.mark.parametrize(("order", "code"), REFUSALS)
async def test_a_refund_that_may_not_be_is_refused_before_it_is_sent(
    payments: StripePayments, http: httpx.AsyncClient, order: Any, code: str
) -> None:
    """P1: never more than captured - refunded - pending, whatever was approved."""
    attempt = await payments.make_refund(
        order.model_copy(update={"checked_at": refund_order().checked_at})
    )
    assert (attempt.state, attempt.code) == (AttemptState.REFUSED, code)
    assert "refunds.create" not in (await books(http))["calls"]


async def test_the_more_cautious_of_sum_and_list_counts(
    payments: StripePayments, http: httpx.AsyncClient
) -> None:
    """A list that lags behind the payment's own sum frees no money."""
    empty = {"object": "list", "url": "/v1/refunds", "has_more": False, "data": []}
    await set_faults(http, fault("refunds.list", "status", status=200, body=empty))
    attempt = await payments.make_refund(refund_order("8896", 13001))
    assert (attempt.state, attempt.code) == (AttemptState.REFUSED, "amount_above_left")


async def test_pending_money_is_not_left(payments: StripePayments, http: httpx.AsyncClient) -> None:
    """R31: a refund that is under way counts as gone."""
    await control(
        http, "hand_refund", {"payment": "pi_8890", "amount_minor": 20000, "status": "pending"}
    )
    payment = await payments.read_payment("pi_8890")
    assert payment is not None
    assert payment.left == usd(22000)


async def test_a_definite_no_of_the_provider_is_its_own_word(
    payments: StripePayments, http: httpx.AsyncClient
) -> None:
    """Between look-up and request somebody was faster: refused with the provider's code."""
    body = {
        "error": {
            "type": "invalid_request_error",
            "code": "charge_already_refunded",
            "message": "Charge ch_1 has already been refunded.",
        }
    }
    await set_faults(http, fault("refunds.create", "status", status=400, body=body))
    attempt = await payments.make_refund(refund_order())
    assert (attempt.state, attempt.code) == (AttemptState.REFUSED, "charge_already_refunded")


@pytest.mark.parametrize(
    ("order", "currency", "minor"), [("8893", "JPY", 12500), ("8894", "KWD", 45500)]
)
async def test_minor_units_are_the_currencys_own(
    payments: StripePayments, http: httpx.AsyncClient, order: str, currency: str, minor: int
) -> None:
    """R29: 12500 yen are 12500 minor units, 45.500 dinars are 45500."""
    amount = Money(amount_minor=minor, currency=currency)
    attempt = await payments.make_refund(refund_order(order, amount=amount))
    assert attempt.refund is not None
    assert attempt.refund.amount == amount
    assert [kept["amount_minor"] for kept in await refunds(http, f"pi_{order}")] == [minor]


async def test_a_wrong_key_names_the_setting_and_not_the_key(company: Company) -> None:
    """R54: not retried, and no part of the key in the message."""
    async with StripePayments("sk_test_wrong", company.http_url) as payments:
        with pytest.raises(Misconfigured, match="STRIPE_API_KEY") as raised:
            await payments.make_refund(refund_order())
    assert "wrong" not in str(raised.value)


async def test_a_refund_that_was_never_made_is_not_read(
    payments: StripePayments, http: httpx.AsyncClient
) -> None:
    """A provider that answers yes and does nothing is found out by reading back."""
    await set_faults(http, fault("refunds.create", "ok_without_effect"))
    attempt = await payments.make_refund(refund_order())
    assert attempt.refund is not None
    query = RefundQuery(environment="local", refund_id=attempt.refund.id)
    assert (await payments.read_refund(query)).refund is None


@pytest.mark.parametrize("status", ["pending", "requires_action", "failed", "canceled", "odd"])
async def test_a_refund_reads_as_the_provider_says(
    payments: StripePayments, http: httpx.AsyncClient, status: str
) -> None:
    """Any word is passed on as it is, known or not."""
    made = (await payments.make_refund(refund_order())).refund
    assert made is not None
    await control(http, f"refunds/{made.id}", {"status": status})
    reading = await payments.read_refund(RefundQuery(environment="local", refund_id=made.id))
    assert reading.refund == made.model_copy(update={"status": status})


async def test_a_provider_that_is_down_is_unreachable(unused_tcp_port: int) -> None:
    """Nobody listens: try again later."""
    async with StripePayments("sk_test_any", f"http://127.0.0.1:{unused_tcp_port}") as payments:
        with pytest.raises(Unreachable):
            await payments.make_refund(refund_order())
