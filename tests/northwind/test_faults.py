"""The fault plan does what its rows say, where they say, and as often as they say."""

from pathlib import Path
from typing import Any

import httpx
import pytest
import stripe

from northwind.faults import OPERATIONS, FaultRow
from northwind.model_api import MODEL
from northwind.server import Company
from tests.northwind.support import books, client_of, fired, refunds, set_faults

AUTHORISED = {"Authorization": "Bearer sk_test_northwind"}
CHAT = {"model": MODEL, "messages": [{"role": "user", "content": "My cup is broken."}]}
NOTED = {
    "refund": "re_1",
    "amount": {"amount_minor": 42000, "currency": "USD"},
    "refunded_at": "2026-07-31T09:00:00Z",
}
REQUESTS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "refunds.create": ("POST", "/v1/refunds", {"data": {"payment_intent": "pi_8890"}}),
    "refunds.list": ("GET", "/v1/refunds", {}),
    "refunds.retrieve": ("GET", "/v1/refunds/{refund}", {}),
    "payment_intents.retrieve": ("GET", "/v1/payment_intents/pi_8890", {}),
    "charges.retrieve": ("GET", "/v1/charges/ch_8890", {}),
    "disputes.list": ("GET", "/v1/disputes", {}),
    "orders.get": ("GET", "/orders/8890", {}),
    "orders.note_refund": ("PUT", "/orders/8890/refunds/a/b", {"json": NOTED}),
    "staff.list": ("GET", "/staff", {}),
    "staff.get": ("GET", "/staff/maria.silva@northwind.example", {}),
    "policy.get": ("GET", "/policy", {}),
    "chat": ("POST", "/v1/chat/completions", {"json": CHAT}),
}
OVER_HTTP = [
    (system, operation)
    for system, operations in OPERATIONS.items()
    for operation in operations
    if system != "mail"
]


async def call(http: httpx.AsyncClient, operation: str) -> httpx.Response:
    """Call an operation once, in the ordinary way."""
    method, path, body = REQUESTS[operation]
    if "{refund}" in path:
        [refund] = await refunds(http, "pi_8897")
        path = path.format(refund=refund["id"])
    return await http.request(method, path, headers=AUTHORISED, **body)


@pytest.mark.parametrize(("system", "operation"), OVER_HTTP)
async def test_every_operation_fails_in_every_way(
    http: httpx.AsyncClient, system: str, operation: str
) -> None:
    """Each fault strikes the one call that it is for, and the call after the last one works."""
    row = {"system": system, "operation": operation}
    await set_faults(
        http,
        row | {"call": 1, "what": "fail_before"},
        row | {"call": 2, "what": "drop_before"},
        row | {"call": 3, "what": "status", "status": 429, "headers": {"Retry-After": "30"}},
        row | {"call": 4, "what": "status", "status": 503, "body": "<html>Sorry</html>"},
        row | {"call": 5, "what": "status", "status": 200, "body": {"odd": True}},
        row | {"call": 6, "what": "delay", "seconds": 0.01},
        row | {"call": 7, "what": "drop_after"},
    )
    failed = await call(http, operation)
    assert failed.status_code == 500
    assert "error" in failed.json()
    with pytest.raises(httpx.RemoteProtocolError):
        await call(http, operation)
    limited = await call(http, operation)
    assert (limited.status_code, limited.headers["Retry-After"]) == (429, "30")
    assert "error" in limited.json()
    broken = await call(http, operation)
    assert (broken.status_code, broken.text) == (503, "<html>Sorry</html>")
    assert (await call(http, operation)).json() == {"odd": True}
    delayed = await call(http, operation)
    assert delayed.is_success
    assert delayed.json().keys() != {"odd"}
    with pytest.raises(httpx.RemoteProtocolError):
        await call(http, operation)
    assert await fired(http) == [1] * 7
    assert (await books(http))["calls"] == {operation: 7}


REFUND_FAULTS = [
    ({"what": "fail_before"}, stripe.APIError, 0),
    ({"what": "drop_before"}, stripe.APIConnectionError, 0),
    ({"what": "drop_after"}, stripe.APIConnectionError, 1),
    ({"what": "status", "status": 503}, stripe.APIError, 0),
    ({"what": "status", "status": 429}, stripe.RateLimitError, 0),
    ({"what": "status", "status": 402}, stripe.CardError, 0),
    ({"what": "status", "status": 500, "stored": True}, stripe.APIError, 0),
    ({"what": "ok_without_effect"}, None, 0),
    ({"what": "delay", "seconds": 0.01}, None, 1),
]


@pytest.mark.parametrize(("fault", "error", "made"), REFUND_FAULTS)
async def test_the_books_say_what_really_happened(
    payments: stripe.StripeClient,
    http: httpx.AsyncClient,
    fault: dict[str, Any],
    error: type[stripe.StripeError] | None,
    made: int,
) -> None:
    """Whatever the caller of a faulty refund was told, the books hold exactly what was done."""
    await set_faults(http, {"system": "payments", "operation": "refunds.create"} | fault)
    asked: Any = {"payment_intent": "pi_8890", "amount": 100}
    if error is None:
        answered = await payments.v1.refunds.create_async(asked)
        assert (answered.amount, answered.status) == (100, "succeeded")
    else:
        with pytest.raises(error):
            await payments.v1.refunds.create_async(asked)
    assert len(await refunds(http, "pi_8890")) == made


async def test_a_lost_answer_is_found_under_its_key(
    payments: stripe.StripeClient, http: httpx.AsyncClient
) -> None:
    """After the connection dropped, the same key gives the refund that was made."""
    await set_faults(
        http, {"system": "payments", "operation": "refunds.create", "what": "drop_after"}
    )
    key: Any = {"idempotency_key": "one"}
    with pytest.raises(stripe.APIConnectionError):
        await payments.v1.refunds.create_async({"payment_intent": "pi_8890"}, key)
    found = await payments.v1.refunds.create_async({"payment_intent": "pi_8890"}, key)
    assert [kept["id"] for kept in await refunds(http, "pi_8890")] == [found.id]


async def test_an_answer_without_effect_leaves_the_key_free(
    payments: stripe.StripeClient, http: httpx.AsyncClient
) -> None:
    """The refund that was never made cannot be read, and its key still makes it."""
    await set_faults(
        http, {"system": "payments", "operation": "refunds.create", "what": "ok_without_effect"}
    )
    key: Any = {"idempotency_key": "one"}
    pretended = await payments.v1.refunds.create_async({"payment_intent": "pi_8890"}, key)
    with pytest.raises(stripe.InvalidRequestError):
        await payments.v1.refunds.retrieve_async(pretended.id)
    made = await payments.v1.refunds.create_async({"payment_intent": "pi_8890"}, key)
    assert [kept["id"] for kept in await refunds(http, "pi_8890")] == [made.id]


COUNTS = [
    ({}, "x...."),
    ({"call": 3}, "..x.."),
    ({"call": 2, "times": 3}, ".xxx."),
    ({"call": "every"}, "xxxxx"),
    ({"call": "every", "times": 2}, "xx..."),
]


@pytest.mark.parametrize(("when", "struck"), COUNTS)
async def test_a_row_strikes_the_calls_that_it_names(
    http: httpx.AsyncClient, when: dict[str, Any], struck: str
) -> None:
    """Calls are counted from when the row was set: those before it do not matter."""
    await call(http, "orders.get")
    row = {"system": "orders", "operation": "orders.get", "what": "fail_before"}
    await set_faults(http, row | when)
    await call(http, "policy.get")
    statuses = [(await call(http, "orders.get")).status_code for _ in struck]
    assert "".join("x" if status == 500 else "." for status in statuses) == struck
    assert await fired(http) == [struck.count("x")]


async def test_a_delay_goes_with_another_fault(http: httpx.AsyncClient) -> None:
    """Two rows for one call: it is delayed and then fails. Of two failures the first one counts."""
    row = {"system": "orders", "operation": "orders.get"}
    await set_faults(
        http,
        row | {"what": "status", "status": 418},
        row | {"what": "delay", "seconds": 0.01},
        row | {"what": "fail_before"},
    )
    assert (await call(http, "orders.get")).status_code == 418
    assert await fired(http) == [1, 1, 0]


async def test_rows_can_be_taken_away(http: httpx.AsyncClient) -> None:
    """After DELETE nothing fails any more."""
    row = {"system": "orders", "operation": "orders.get", "what": "fail_before", "call": "every"}
    await set_faults(http, row)
    assert (await call(http, "orders.get")).status_code == 500
    assert (await http.delete("/control/faults")).json() == []
    assert (await call(http, "orders.get")).status_code == 200


BAD_ROWS: list[Any] = [
    {"system": "weather", "operation": "get", "what": "fail_before"},
    {"system": "orders", "operation": "refunds.create", "what": "fail_before"},
    {"system": "orders", "operation": "orders.get", "what": "explode"},
    {"system": "orders", "operation": "orders.get", "what": "delay"},
    {"system": "orders", "operation": "orders.get", "what": "fail_before", "seconds": 1},
    {"system": "orders", "operation": "orders.get", "what": "status"},
    {"system": "orders", "operation": "orders.get", "what": "status", "status": 999},
    {"system": "orders", "operation": "orders.get", "what": "ok_without_effect"},
    {"system": "orders", "operation": "orders.get", "what": "fail_before", "call": 0},
    {"system": "orders", "operation": "orders.get", "what": "fail_before", "cal": 1},
    {"system": "orders", "operation": "orders.get", "what": "drop_after", "stage": "rcpt"},
    {"system": "mail", "operation": "send", "what": "drop_after", "recipient": "a@b.example"},
    {
        "system": "payments",
        "operation": "refunds.create",
        "what": "status",
        "status": 500,
        "stored": True,
        "body": "text",
    },
    "fail",
    7,
]


async def test_a_row_that_makes_no_sense_is_refused(
    http: httpx.AsyncClient, subtests: pytest.Subtests
) -> None:
    """A slip in a plan must not become a test in which nothing fails: none of the rows is set."""
    good = {"system": "orders", "operation": "orders.get", "what": "fail_before"}
    for row in BAD_ROWS:
        with subtests.test(row=row):
            answer = await http.post("/control/faults", json=[good, row])
            assert answer.status_code == 400
            assert answer.json()["error"]
            assert await fired(http) == []


async def test_rows_and_their_counts_outlive_the_process(tmp_path: Path) -> None:
    """A plan that is given again at the next start goes on where it was."""
    plan = [FaultRow(system="orders", operation="orders.get", call=2, what="fail_before")]
    statuses = []
    for _ in range(3):
        async with (
            Company(tmp_path, faults=plan) as company,
            client_of(company.http_url) as http,
        ):
            statuses.append((await call(http, "orders.get")).status_code)
            assert len(await fired(http)) == 1
    assert statuses == [200, 500, 200]
