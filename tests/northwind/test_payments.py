"""The payment provider keeps Stripe's rules, as the official SDK sees them."""

from typing import Any

import httpx
import pytest
import stripe

from northwind.server import Company
from tests.northwind.support import books, payments_at, refunds


async def test_a_payment_is_read_with_its_charge(payments: stripe.StripeClient) -> None:
    """A payment intent shows what was captured, and its charge what was refunded of it."""
    payment = await payments.v1.payment_intents.retrieve_async(
        "pi_8896", {"expand": ["latest_charge"]}
    )
    assert (payment.status, payment.amount_received, payment.currency) == (
        "succeeded",
        25000,
        "usd",
    )
    charge = payment.latest_charge
    assert isinstance(charge, stripe.Charge)
    assert (charge.amount_captured, charge.amount_refunded) == (25000, 12000)
    assert (charge.refunded, charge.disputed) == (False, False)
    unexpanded = await payments.v1.payment_intents.retrieve_async("pi_8896")
    assert unexpanded.latest_charge == charge.id
    assert await payments.v1.charges.retrieve_async(charge.id) == charge


async def test_a_refund_keeps_amount_reason_and_metadata(
    payments: stripe.StripeClient, http: httpx.AsyncClient
) -> None:
    """What was asked for is what is in the books, and what is read back."""
    made = await payments.v1.refunds.create_async(
        {
            "payment_intent": "pi_8890",
            "amount": 42000,
            "reason": "requested_by_customer",
            "metadata": {"key": "local/refund-order-8890/r/refund.r1"},
        }
    )
    assert (made.amount, made.currency, made.status) == (42000, "usd", "succeeded")
    assert await payments.v1.refunds.retrieve_async(made.id) == made
    [kept] = await refunds(http, "pi_8890")
    assert kept["metadata"] == {"key": "local/refund-order-8890/r/refund.r1"}
    assert (kept["id"], kept["amount_minor"], kept["status"]) == (made.id, 42000, "succeeded")


async def test_a_refund_without_an_amount_takes_all_that_is_left(
    payments: stripe.StripeClient,
) -> None:
    """Of $250.00 with $120.00 refunded before, $130.00 are left; then the charge is refunded."""
    made = await payments.v1.refunds.create_async({"charge": "ch_8896"})
    assert made.amount == 13000
    assert (await payments.v1.charges.retrieve_async("ch_8896")).refunded


REFUSALS: list[tuple[Any, int, str | None, str | None]] = [
    ({"payment_intent": "pi_8897"}, 400, "charge_already_refunded", None),
    ({"payment_intent": "pi_8898"}, 400, "charge_disputed", None),
    ({"payment_intent": "pi_8890", "amount": 42001}, 400, None, "amount"),
    ({"payment_intent": "pi_8896", "amount": 13001}, 400, None, "amount"),
    ({"payment_intent": "pi_8890", "amount": 0}, 400, "parameter_invalid_integer", "amount"),
    ({"payment_intent": "pi_8890", "amount": -1}, 400, "parameter_invalid_integer", "amount"),
    ({"payment_intent": "pi_8890", "amount": "4.20"}, 400, "parameter_invalid_integer", "amount"),
    ({"payment_intent": "pi_8890", "amount": "9" * 40}, 400, "parameter_invalid_integer", "amount"),
    ({"payment_intent": "pi_8890", "reason": "because"}, 400, None, "reason"),
    ({"payment_intent": "pi_8890", "colour": "red"}, 400, "parameter_unknown", "colour"),
    ({"amount": 100}, 400, "parameter_missing", None),
    ({"payment_intent": "pi_none"}, 404, "resource_missing", "payment_intent"),
    ({"payment_intent": "ch_8890"}, 404, "resource_missing", "payment_intent"),
    ({"charge": "ch_none"}, 404, "resource_missing", "charge"),
    (
        {"payment_intent": "pi_8890", "metadata": {"k" * 41: "v"}},
        400,
        None,
        f"metadata[{'k' * 41}]",
    ),
    ({"payment_intent": "pi_8890", "metadata": {"k": "v" * 501}}, 400, None, "metadata[k]"),
    (
        {"payment_intent": "pi_8890", "metadata": {f"k{n}": "v" for n in range(51)}},
        400,
        None,
        "metadata",
    ),
]


async def test_a_refund_against_the_rules_is_refused(
    payments: stripe.StripeClient, http: httpx.AsyncClient, subtests: pytest.Subtests
) -> None:
    """Each refusal has its status, code and parameter, and no money moves."""
    before = (await books(http))["payments"]
    for asked, status, code, param in REFUSALS:
        with subtests.test(asked=asked):
            with pytest.raises(stripe.InvalidRequestError) as refused:
                await payments.v1.refunds.create_async(asked)
            error = refused.value
            assert (error.http_status, error.code, error.param) == (status, code, param)
            assert error.request_id
            assert (await books(http))["payments"] == before


async def test_what_is_left_is_named_when_more_is_asked_for(payments: stripe.StripeClient) -> None:
    """Amounts in messages have the decimals of their currency: none for JPY, three for KWD."""
    for payment, message in (
        (
            "pi_8896",
            "($130.01) is greater than unrefunded amount on charge ($130.00)",
        ),
        (
            "pi_8893",
            "(¥12,501) is greater than unrefunded amount on charge (¥12,500)",
        ),
        ("pi_8894", "(KWD45.501) is greater than unrefunded amount on charge (KWD45.500)"),
    ):
        found = await payments.v1.payment_intents.retrieve_async(payment)
        too_much = 13001 if payment == "pi_8896" else found.amount + 1
        with pytest.raises(stripe.InvalidRequestError) as refused:
            await payments.v1.refunds.create_async({"payment_intent": payment, "amount": too_much})
        assert message in str(refused.value)


@pytest.mark.parametrize("first", ["pending", "requires_action", "succeeded", "a_new_word"])
@pytest.mark.parametrize(
    ("later", "is_left"), [("succeeded", False), ("failed", True), ("canceled", True)]
)
async def test_a_refund_that_is_undone_gives_its_money_back(
    payments: stripe.StripeClient,
    http: httpx.AsyncClient,
    first: str,
    later: str,
    is_left: bool,
) -> None:
    """Any status but failed and canceled holds the money; those two free it, even after success."""
    await http.post("/control/payments/pi_8890", json={"next_refund_status": first})
    made = await payments.v1.refunds.create_async({"payment_intent": "pi_8890"})
    assert made.status == first
    with pytest.raises(stripe.InvalidRequestError) as refused:
        await payments.v1.refunds.create_async({"payment_intent": "pi_8890", "amount": 1})
    assert refused.value.code == "charge_already_refunded"

    await http.post(f"/control/refunds/{made.id}", json={"status": later})
    assert (await payments.v1.refunds.retrieve_async(made.id)).status == later
    charge = await payments.v1.charges.retrieve_async("ch_8890")
    assert charge.amount_refunded == (0 if is_left else 42000)


async def test_a_failed_refund_says_why(
    payments: stripe.StripeClient, http: httpx.AsyncClient
) -> None:
    """The reason that the bank gave is read back."""
    made = await payments.v1.refunds.create_async({"payment_intent": "pi_8890"})
    change = {"status": "failed", "failure_reason": "lost_or_stolen_card"}
    await http.post(f"/control/refunds/{made.id}", json=change)
    found = await payments.v1.refunds.retrieve_async(made.id)
    assert (found.status, found.failure_reason) == ("failed", "lost_or_stolen_card")


async def test_a_dispute_is_seen_and_stops_refunds(
    payments: stripe.StripeClient, http: httpx.AsyncClient
) -> None:
    """A payment that becomes disputed says so, has a dispute, and is not refunded."""
    assert not (await payments.v1.disputes.list_async({"payment_intent": "pi_8890"})).data
    await http.post("/control/payments/pi_8890", json={"disputed": True})
    [dispute] = (await payments.v1.disputes.list_async({"payment_intent": "pi_8890"})).data
    assert (dispute.status, dispute.payment_intent) == ("needs_response", "pi_8890")
    assert (await payments.v1.charges.retrieve_async("ch_8890")).disputed
    with pytest.raises(stripe.InvalidRequestError) as refused:
        await payments.v1.refunds.create_async({"payment_intent": "pi_8890"})
    assert refused.value.code == "charge_disputed"


async def test_unknown_objects_are_missing(payments: stripe.StripeClient) -> None:
    """Reading what is not there is a 404 that names the parameter."""
    for read, param in (
        (payments.v1.payment_intents.retrieve_async("ch_8890"), "intent"),
        (payments.v1.charges.retrieve_async("pi_8890"), "id"),
        (payments.v1.refunds.retrieve_async("re_none"), "id"),
    ):
        with pytest.raises(stripe.InvalidRequestError) as refused:
            await read
        error = refused.value
        assert (error.http_status, error.code, error.param) == (404, "resource_missing", param)


async def test_another_api_key_is_refused(company: Company, http: httpx.AsyncClient) -> None:
    """A wrong key and no key are 401, the key is not repeated in full, and nothing is done."""
    wrong = "sk_test_a_key_of_somebody_else"
    async with payments_at(company.http_url, wrong) as stranger:
        with pytest.raises(stripe.AuthenticationError) as refused:
            await stranger.v1.refunds.create_async({"payment_intent": "pi_8890"})
    assert wrong not in str(refused.value)
    assert (await http.get("/v1/refunds")).status_code == 401
    assert not await refunds(http, "pi_8890")


async def test_refunds_are_listed_in_pages(payments: stripe.StripeClient) -> None:
    """Ten to a page unless said, newest first, and the pages together hold each refund once."""
    made = [
        await payments.v1.refunds.create_async({"payment_intent": "pi_8899", "amount": amount})
        for amount in range(1, 13)
    ]
    newest_first = [refund.id for refund in reversed(made)]
    first = await payments.v1.refunds.list_async({"payment_intent": "pi_8899"})
    assert [refund.id for refund in first.data] == newest_first[:10]
    assert first.has_more
    walked = await payments.v1.refunds.list_async({"payment_intent": "pi_8899", "limit": 5})
    assert [refund.id async for refund in walked.auto_paging_iter()] == newest_first
    last = await payments.v1.refunds.list_async(
        {"payment_intent": "pi_8899", "starting_after": newest_first[9], "limit": 2}
    )
    assert [refund.id for refund in last.data] == newest_first[10:]
    assert not last.has_more
    before = await payments.v1.refunds.list_async(
        {"payment_intent": "pi_8899", "ending_before": newest_first[3], "limit": 2}
    )
    assert [refund.id for refund in before.data] == newest_first[1:3]


async def test_refunds_are_listed_by_time_and_charge(
    payments: stripe.StripeClient, http: httpx.AsyncClient
) -> None:
    """Only what was created since is listed, over all payments or for one charge."""
    clock = await http.post("/control/clock", json={"advance_seconds": 3600})
    assert clock.status_code == 200
    made = await payments.v1.refunds.create_async({"payment_intent": "pi_8891"})
    recent = await payments.v1.refunds.list_async({"created": {"gte": made.created}})
    assert [refund.id for refund in recent.data] == [made.id]
    older = await payments.v1.refunds.list_async({"created": {"lt": made.created}})
    assert len(older.data) == 2
    [of_charge] = (await payments.v1.refunds.list_async({"charge": "ch_8897"})).data
    assert of_charge.amount == 9000


async def test_a_page_that_cannot_be_is_refused(payments: stripe.StripeClient) -> None:
    """Limits are 1 to 100, and a page begins after a refund that exists."""
    pages: list[Any] = [{"limit": 0}, {"limit": 101}, {"starting_after": "re_none"}]
    for page in pages:
        with pytest.raises(stripe.InvalidRequestError) as refused:
            await payments.v1.refunds.list_async(page)
        assert (refused.value.http_status, refused.value.param) == (400, *page)
