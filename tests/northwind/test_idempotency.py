"""An idempotency key is answered once and then replayed, as Stripe documents it."""

import asyncio
from typing import Any

import httpx
import pytest
import stripe

from tests.northwind.support import (
    books,
    fired,
    refunds,
    set_faults,
    until,
)
from tests.northwind.support import response_header as header

KEY: Any = {"idempotency_key": "local/refund-order-8890/request-1/refund.r1"}
ASKED: Any = {"payment_intent": "pi_8890", "amount": 20000, "metadata": {"a": "1", "b": "2"}}
DAY = 24 * 3600


async def test_a_repeat_is_answered_with_the_first_answer(
    payments: stripe.StripeClient, http: httpx.AsyncClient
) -> None:
    """The same key and parameters give the same refund, and say that they are a replay."""
    first = await payments.v1.refunds.create_async(ASKED, KEY)
    again = await payments.v1.refunds.create_async(ASKED, KEY)
    assert again == first
    assert header(first, "idempotent-replayed") is None
    assert header(again, "idempotent-replayed") == "true"
    assert header(again, "original-request") == header(first, "request-id")
    assert len(await refunds(http, "pi_8890")) == 1


async def test_the_order_of_parameters_does_not_matter(
    payments: stripe.StripeClient, http: httpx.AsyncClient
) -> None:
    """The same parameters in another order are the same request."""
    first = await payments.v1.refunds.create_async(ASKED, KEY)
    turned: Any = dict(reversed(ASKED.items()))
    assert await payments.v1.refunds.create_async(turned, KEY) == first
    assert len(await refunds(http, "pi_8890")) == 1


@pytest.mark.parametrize(
    "other",
    [{"amount": 19999}, {"payment_intent": "pi_8899"}, {"metadata": {"a": "1"}}, {"amount": "x"}],
)
async def test_other_parameters_under_a_used_key_are_refused(
    payments: stripe.StripeClient, http: httpx.AsyncClient, other: Any
) -> None:
    """A key stands for one request: anything else under it is an error, and moves nothing."""
    await payments.v1.refunds.create_async(ASKED, KEY)
    before = (await books(http))["payments"]
    with pytest.raises(stripe.IdempotencyError) as refused:
        await payments.v1.refunds.create_async(ASKED | other, KEY)
    assert refused.value.http_status == 400
    assert (await books(http))["payments"] == before


async def test_a_key_is_in_use_while_its_first_request_is_under_way(
    payments: stripe.StripeClient, http: httpx.AsyncClient
) -> None:
    """The second is told 409 and to come again; others are served; the third is a replay."""
    await set_faults(
        http,
        {"system": "payments", "operation": "refunds.create", "what": "delay", "seconds": 2.0},
    )
    first = asyncio.create_task(payments.v1.refunds.create_async(ASKED, KEY))

    async def under_way() -> bool:
        return await fired(http) == [1]

    await until(under_way)
    with pytest.raises(stripe.APIError) as conflict:
        await payments.v1.refunds.create_async(ASKED, KEY)
    assert conflict.value.http_status == 409
    assert conflict.value.error is not None
    assert conflict.value.error.code == "idempotency_key_in_use"
    assert header(conflict.value, "stripe-should-retry") == "true"
    with pytest.raises(stripe.IdempotencyError):
        await payments.v1.refunds.create_async(ASKED | {"amount": 1}, KEY)
    other = await payments.v1.refunds.create_async({"payment_intent": "pi_8891"})
    assert other.amount == 3500
    assert not first.done()

    made = await first
    replay = await payments.v1.refunds.create_async(ASKED, KEY)
    assert replay == made
    assert header(replay, "idempotent-replayed") == "true"
    assert [kept["id"] for kept in await refunds(http, "pi_8890")] == [made.id]


async def test_a_refund_goes_on_when_its_caller_hangs_up(
    payments: stripe.StripeClient, http: httpx.AsyncClient
) -> None:
    """Who stops waiting has not stopped the refund: the same key finds it."""
    await set_faults(
        http,
        {"system": "payments", "operation": "refunds.create", "what": "delay", "seconds": 0.3},
    )
    caller = asyncio.create_task(payments.v1.refunds.create_async(ASKED, KEY))

    async def under_way() -> bool:
        return await fired(http) == [1]

    await until(under_way)
    caller.cancel()
    await asyncio.gather(caller, return_exceptions=True)

    async def refunded() -> bool:
        return len(await refunds(http, "pi_8890")) == 1

    await until(refunded)
    replay = await payments.v1.refunds.create_async(ASKED, KEY)
    assert header(replay, "idempotent-replayed") == "true"


@pytest.mark.parametrize(("age", "refunds_made"), [(DAY - 60, 1), (DAY, 2)])
async def test_a_key_is_forgotten_after_24_hours(
    payments: stripe.StripeClient, http: httpx.AsyncClient, age: int, refunds_made: int
) -> None:
    """Up to 24 hours by the company's clock a repeat is a replay; then it is a new request."""
    await payments.v1.refunds.create_async(ASKED, KEY)
    await http.post("/control/clock", json={"advance_seconds": age})
    await payments.v1.refunds.create_async(ASKED, KEY)
    assert len(await refunds(http, "pi_8890")) == refunds_made


async def test_a_refusal_by_a_rule_is_replayed_too(
    payments: stripe.StripeClient, http: httpx.AsyncClient
) -> None:
    """A refusal is a result: the key is answered with it even when the rule would now allow it."""
    hand = (await http.post("/control/hand_refund", json={"payment": "pi_8890"})).json()
    for undone in (False, True):
        if undone:
            await http.post(f"/control/refunds/{hand['id']}", json={"status": "failed"})
        with pytest.raises(stripe.InvalidRequestError) as refused:
            await payments.v1.refunds.create_async(ASKED, KEY)
        assert refused.value.code == "charge_already_refunded"
    assert header(refused.value, "idempotent-replayed") == "true"


async def test_a_mistake_in_the_parameters_does_not_use_the_key_up(
    payments: stripe.StripeClient, http: httpx.AsyncClient
) -> None:
    """What fails before it is executed is not stored: the corrected request is taken."""
    with pytest.raises(stripe.InvalidRequestError):
        await payments.v1.refunds.create_async(ASKED | {"amount": 0}, KEY)
    await payments.v1.refunds.create_async(ASKED, KEY)
    assert len(await refunds(http, "pi_8890")) == 1


async def test_a_stored_failure_is_replayed(
    payments: stripe.StripeClient, http: httpx.AsyncClient
) -> None:
    """A 500 that was stored under a key is all that the key will ever give; another key works."""
    await set_faults(
        http,
        {
            "system": "payments",
            "operation": "refunds.create",
            "what": "status",
            "status": 500,
            "stored": True,
        },
    )
    for replayed in (None, "true"):
        with pytest.raises(stripe.APIError) as failed:
            await payments.v1.refunds.create_async(ASKED, KEY)
        assert failed.value.http_status == 500
        assert header(failed.value, "idempotent-replayed") == replayed
        assert header(failed.value, "stripe-should-retry") == "false"
    assert not await refunds(http, "pi_8890")
    await payments.v1.refunds.create_async(ASKED, {"idempotency_key": "another"})
    assert len(await refunds(http, "pi_8890")) == 1


async def test_a_failure_on_the_way_is_not_stored(
    payments: stripe.StripeClient, http: httpx.AsyncClient
) -> None:
    """A 500 and a 429 that were answered before anything began leave the key free."""
    row: dict[str, Any] = {"system": "payments", "operation": "refunds.create"}
    await set_faults(
        http,
        row | {"what": "fail_before"},
        row | {"call": 2, "what": "status", "status": 429, "headers": {"Retry-After": 30}},
    )
    with pytest.raises(stripe.APIError) as failed:
        await payments.v1.refunds.create_async(ASKED, KEY)
    assert failed.value.http_status == 500
    with pytest.raises(stripe.RateLimitError) as limited:
        await payments.v1.refunds.create_async(ASKED, KEY)
    assert header(limited.value, "retry-after") == "30"
    await payments.v1.refunds.create_async(ASKED, KEY)
    assert len(await refunds(http, "pi_8890")) == 1


async def test_a_provider_may_know_no_keys(
    payments: stripe.StripeClient, http: httpx.AsyncClient
) -> None:
    """Told to ignore keys, it refunds again for the same key: its users must look first."""
    assert (await http.post("/control/payments", json={"knows_keys": False})).status_code == 200
    await payments.v1.refunds.create_async(ASKED, KEY)
    await payments.v1.refunds.create_async(ASKED, KEY)
    assert len(await refunds(http, "pi_8890")) == 2


async def test_a_key_that_is_too_long_is_refused(
    payments: stripe.StripeClient, http: httpx.AsyncClient
) -> None:
    """Keys have up to 255 characters."""
    await payments.v1.refunds.create_async(ASKED, {"idempotency_key": "k" * 255})
    with pytest.raises(stripe.InvalidRequestError):
        await payments.v1.refunds.create_async(ASKED, {"idempotency_key": "k" * 256})
    assert len(await refunds(http, "pi_8890")) == 1
