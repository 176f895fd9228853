"""A row that is about one thing leaves all others alone, and counts none of their calls."""

import asyncio
from pathlib import Path
from typing import Any

import aiosmtplib
import httpx
import pytest
import stripe

from northwind.model_api import MODEL
from northwind.server import Company
from tests.northwind.support import (
    books,
    client_of,
    clients_of,
    fired,
    letter,
    payments_at,
    refunds,
    send,
    set_faults,
    until,
)

AUTHORISED = {"Authorization": "Bearer sk_test_northwind"}
OURS, OTHER = "8890", "8891"
UNDER_REVIEW = "local/refund-order-8890/request-1/mail.under_review"
REFUNDED = "local/refund-order-8890/request-1/mail.refunded"


def asks(operation: str, order: str, refund: str = "") -> dict[str, Any]:
    """A request about an order, as `httpx` takes it."""
    words = [{"role": "user", "content": f"My cup of order {order} is broken."}]
    payment = f"pi_{order}"
    requests: dict[str, dict[str, Any]] = {
        "refunds.create": {
            "method": "POST",
            "url": "/v1/refunds",
            "data": {"payment_intent": payment, "amount": "100"},
        },
        "refunds.list": {
            "method": "GET",
            "url": "/v1/refunds",
            "params": {"payment_intent": payment},
        },
        "refunds.retrieve": {"method": "GET", "url": f"/v1/refunds/{refund}"},
        "orders.get": {"method": "GET", "url": f"/orders/{order}"},
        "orders.note_refund": {
            "method": "PUT",
            "url": f"/orders/{order}/refunds/local/refund-order-{order}/r-1/order.refunded",
            "json": {
                "refund": "re_1",
                "amount": {"amount_minor": 1, "currency": "USD"},
                "refunded_at": "2026-07-31T09:00:00Z",
            },
        },
        "chat": {
            "method": "POST",
            "url": "/v1/chat/completions",
            "json": {"model": MODEL, "messages": words},
        },
    }
    return {**requests[operation], "headers": AUTHORISED}


@pytest.mark.parametrize(
    ("system", "operation"),
    [
        ("payments", "refunds.create"),
        ("payments", "refunds.list"),
        ("payments", "refunds.retrieve"),
        ("orders", "orders.get"),
        ("orders", "orders.note_refund"),
        ("model", "chat"),
    ],
)
async def test_a_row_about_one_order_sees_its_calls_alone(
    http: httpx.AsyncClient, system: str, operation: str
) -> None:
    """The second call about the order fails, however many about another come in between."""
    made = {}
    for order in (OURS, OTHER):
        answer = await http.request(**asks("refunds.create", order))
        made[order] = answer.json()["id"]
    row = {"system": system, "operation": operation, "call": 2, "what": "fail_before"}
    await set_faults(http, row | {"about": OURS})
    good = []
    for order in (OTHER, OURS, OTHER, OTHER, OURS, OTHER, OURS):
        answer = await http.request(**asks(operation, order, made[order]))
        good.append(answer.is_success)
    assert good == [True, True, True, True, False, True, True]
    [kept] = (await http.get("/control/faults")).json()
    assert (kept["seen"], kept["fired"]) == (3, 1)


async def test_a_row_about_a_mail_sees_this_mail_alone(
    company: Company, http: httpx.AsyncClient
) -> None:
    """A mail is told by its key: another one, and one without a key, arrive and do not count."""
    row = {"system": "mail", "operation": "send", "call": 2, "what": "ok_without_effect"}
    await set_faults(http, row | {"about": "/mail.refunded"})
    for key in (UNDER_REVIEW, REFUNDED, None, f"{REFUNDED}.2", UNDER_REVIEW + ".2"):
        await send(company.smtp_url, letter(key))
    arrived = [mail["key"] for mail in (await books(http))["mails"]]
    assert arrived == [UNDER_REVIEW, REFUNDED, None, f"{UNDER_REVIEW}.2"]
    assert await fired(http) == [1]


@pytest.mark.parametrize(
    ("which", "left"),
    [
        ({"about": OURS}, [("orders.get", OTHER), ("orders.get", None)]),
        (
            {"operation": "refunds.list"},
            [("orders.get", OURS), ("orders.get", OTHER), ("orders.get", None)],
        ),
        (
            {"about": OURS, "operation": "orders.get"},
            [("orders.get", OTHER), ("refunds.list", OURS), ("orders.get", None)],
        ),
        ({}, []),
    ],
    ids=["about-one", "of-an-operation", "both", "all"],
)
async def test_those_rows_are_taken_away_that_are_named(
    http: httpx.AsyncClient, which: dict[str, str], left: list[tuple[str, str | None]]
) -> None:
    """What holds one order up ends without letting others go on."""
    orders = {"system": "orders", "operation": "orders.get", "what": "fail_before"}
    payments = {"system": "payments", "operation": "refunds.list", "what": "fail_before"}
    rows = [orders | {"about": OURS}, orders | {"about": OTHER}, payments | {"about": OURS}]
    await set_faults(http, *rows, orders)
    answer = (await http.delete("/control/faults", params=which)).json()
    assert [(row["operation"], row["about"]) for row in answer] == left
    assert (await http.get("/control/faults")).json() == answer


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"system": "staff", "operation": "staff.list"}, "about nothing in particular"),
        ({"system": "policy", "operation": "policy.get"}, "about nothing in particular"),
        ({"system": "mail", "operation": "send", "stage": "rcpt"}, "not known yet"),
        ({"system": "orders", "operation": "orders.get", "about": ""}, "about"),
    ],
)
async def test_a_row_that_could_never_strike_is_refused(
    http: httpx.AsyncClient, row: dict[str, Any], reason: str
) -> None:
    """A call that mentions nothing, or not yet, would make a test in which nothing fails."""
    answer = await http.post("/control/faults", json=[{"what": "fail_before", "about": OURS} | row])
    assert answer.status_code == 400
    assert reason in answer.json()["error"]
    assert await fired(http) == []


async def test_a_refund_that_hangs_is_made_and_answered_by_the_end_of_the_company(
    tmp_path: Path,
) -> None:
    """The caller hears nothing until the company ends, and the refund is in the books."""
    async with Company(tmp_path) as company, clients_of(company.http_url) as (payments, http):
        row = {"system": "payments", "operation": "refunds.create", "what": "hang_after"}
        await set_faults(http, row)
        asked: Any = {"payment_intent": "pi_8890", "amount": 100}
        asking = asyncio.create_task(payments.v1.refunds.create_async(asked))

        async def made() -> bool:
            return bool(await refunds(http, "pi_8890"))

        await until(made)
        # In this time it would have been answered.
        await payments.v1.refunds.create_async({"payment_intent": "pi_8891", "amount": 100})
        assert not asking.done()
    with pytest.raises(stripe.APIConnectionError):
        await asking
    async with Company(tmp_path) as company, client_of(company.http_url) as http:
        assert [kept["amount_minor"] for kept in await refunds(http, "pi_8890")] == [100]


async def test_a_mail_that_hangs_has_arrived_and_is_answered_by_the_end_of_the_company(
    tmp_path: Path,
) -> None:
    """The sender hears nothing until the company ends, and the mail lies in the mailbox once."""
    async with Company(tmp_path) as company, client_of(company.http_url) as http:
        await set_faults(http, {"system": "mail", "operation": "send", "what": "hang_after"})
        sending = asyncio.create_task(send(company.smtp_url, letter(REFUNDED)))

        async def arrived() -> bool:
            return bool((await books(http))["mails"])

        await until(arrived)
        # In this time it would have been answered.
        await send(company.smtp_url, letter(UNDER_REVIEW))
        assert not sending.done()
    with pytest.raises(aiosmtplib.SMTPException) as raised:
        await sending
    assert not isinstance(raised.value, TimeoutError)
    async with Company(tmp_path) as company, client_of(company.http_url) as http:
        mails = (await books(http))["mails"]
        arrivals = [(mail["key"], mail["deliveries"]) for mail in mails]
        assert arrivals == [(REFUNDED, 1), (UNDER_REVIEW, 1)]


async def test_only_the_keys_that_mention_a_text_are_forgotten(company: Company) -> None:
    """As after a day: a second create under a forgotten key is a second refund."""
    keys = {order: f"local/refund-order-{order}/request-1/refund.r1" for order in (OURS, OTHER)}
    async with payments_at(company.http_url) as payments, client_of(company.http_url) as http:

        async def create(order: str) -> None:
            asked: Any = {"payment_intent": f"pi_{order}", "amount": 100}
            await payments.v1.refunds.create_async(asked, {"idempotency_key": keys[order]})

        for order in (OURS, OTHER):
            await create(order)
        answer = await http.post("/control/forgotten_keys", json={"about": f"-{OURS}/"})
        assert answer.json() == {"forgotten": 1}
        for order in (OURS, OTHER):
            await create(order)
        made = {order: len(await refunds(http, f"pi_{order}")) for order in (OURS, OTHER)}
        assert made == {OURS: 2, OTHER: 1}
        assert (await http.post("/control/forgotten_keys", json={"about": ""})).status_code == 400
