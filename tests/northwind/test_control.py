"""The outside world's hand: the clock, refunds by hand, and changes to what the company holds."""

from datetime import datetime, timedelta
from typing import Any

import httpx
import pytest
import stripe

from tests.northwind.support import books, refunds

MARIA = "/control/staff/maria.silva@northwind.example"


async def now(http: httpx.AsyncClient) -> datetime:
    """The company's time."""
    return datetime.fromisoformat((await http.get("/control/clock")).json()["now"])


async def test_the_clock_moves_everything(
    payments: stripe.StripeClient, http: httpx.AsyncClient
) -> None:
    """The clock can be set and moved on; what happens then bears its time."""
    await http.post("/control/clock", json={"now": "2030-01-01T09:00:00Z"})
    await http.post("/control/clock", json={"advance_seconds": 3600})
    shown = await now(http)
    expected = datetime.fromisoformat("2030-01-01T10:00:00Z")
    assert timedelta() <= shown - expected < timedelta(minutes=1)
    made = await payments.v1.refunds.create_async({"payment_intent": "pi_8890"})
    assert made.created >= expected.timestamp()


async def test_a_colleagues_refund_has_no_metadata(
    payments: stripe.StripeClient, http: httpx.AsyncClient
) -> None:
    """A refund in the dashboard counts as any other, and bears no mark of ours."""
    part = {"payment": "pi_8890", "amount_minor": 12000, "status": "pending"}
    assert (await http.post("/control/hand_refund", json=part)).status_code == 200
    assert (await http.post("/control/hand_refund", json={"payment": "pi_8890"})).status_code == 200
    first, rest = await refunds(http, "pi_8890")
    assert (first["amount_minor"], first["status"], first["metadata"]) == (12000, "pending", {})
    assert (rest["amount_minor"], rest["status"]) == (30000, "succeeded")
    payment = (await books(http))["payments"]["pi_8890"]
    assert (payment["refunded_minor"], payment["pending_minor"]) == (30000, 12000)
    assert (await payments.v1.charges.retrieve_async("ch_8890")).refunded


async def test_a_colleague_may_copy_metadata(
    payments: stripe.StripeClient, http: httpx.AsyncClient
) -> None:
    """The dashboard takes metadata, and the provider shows it as that of any refund."""
    metadata = {"northwind_key": "local/refund-order-8890/req-1/refund.r1"}
    body = {"payment": "pi_8890", "metadata": metadata}
    made = (await http.post("/control/hand_refund", json=body)).json()
    read = await payments.v1.refunds.retrieve_async(made["id"])
    assert read.metadata is not None
    assert read.metadata.to_dict() == metadata


async def test_one_payment_may_pay_for_two_orders(http: httpx.AsyncClient) -> None:
    """An order can be said to be paid by another order's payment."""
    await http.post("/control/orders/8896", json={"payment": "pi_8899"})
    shown = [(await http.get(f"/orders/{number}")).json() for number in ("8896", "8899")]
    assert [order["payment"] for order in shown] == ["pi_8899", "pi_8899"]


async def test_an_order_can_change(http: httpx.AsyncClient) -> None:
    """Only the named fields change."""
    before = (await http.get("/orders/8890")).json()
    await http.post("/control/orders/8890", json={"delivered_at": None})
    assert (await http.get("/orders/8890")).json() == before | {"delivered_at": None}


async def test_an_order_can_be_added(
    payments: stripe.StripeClient, http: httpx.AsyncClient
) -> None:
    """A new order comes with a captured payment, which can be refunded."""
    order = (await http.get("/orders/8890")).json()
    new = order | {
        "id": "N-1",
        "payment": "pi_N-1",
        "total": {"amount_minor": 7, "currency": "EUR"},
    }
    assert (await http.post("/control/orders", json=new)).status_code == 200
    assert (await http.get("/orders/N-1")).json() == new
    made = await payments.v1.refunds.create_async({"payment_intent": "pi_N-1"})
    assert (made.amount, made.currency) == (7, "eur")
    assert (await http.post("/control/orders", json=new)).status_code == 409
    assert (await http.post("/control/orders", json=new | {"id": "N-2"})).status_code == 409
    assert (await http.get("/orders/N-2")).status_code == 404


async def test_a_person_can_lose_a_right(http: httpx.AsyncClient) -> None:
    """Limits, roles and activity change as a directory's do."""
    limits = [{"amount_minor": 1000, "currency": "USD"}]
    await http.post(MARIA, json={"active": False, "limits": limits, "roles": []})
    person = (await http.get("/staff/maria.silva@northwind.example")).json()
    assert (person["active"], person["limits"], person["roles"]) == (False, limits, [])


async def test_the_policy_can_change(http: httpx.AsyncClient) -> None:
    """A new version with other numbers is what is read from then on."""
    await http.post("/control/policy", json={"version": "2026-08", "return_window_days": 14})
    policy = (await http.get("/policy")).json()
    assert (policy["version"], policy["return_window_days"]) == ("2026-08", 14)


REFUSED: list[tuple[str, Any, int]] = [
    ("/control/clock", {"now": "yesterday"}, 400),
    ("/control/clock", {"now": "2030-01-01T09:00:00"}, 400),
    ("/control/clock", {"advance_seconds": 1e15}, 400),
    ("/control/clock", {"ahead": 3}, 400),
    ("/control/mail", {"knows_keys": "maybe"}, 400),
    ("/control/refunds/re_none", {"status": "failed"}, 404),
    ("/control/payments/pi_none", {"disputed": True}, 404),
    ("/control/payments/pi_8890", {"next_refund_status": ""}, 400),
    ("/control/hand_refund", {"payment": "pi_8890", "amount_minor": 42001}, 400),
    ("/control/hand_refund", {"payment": "pi_8890", "amount_minor": 0}, 400),
    ("/control/hand_refund", {"payment": "pi_8897"}, 400),
    ("/control/hand_refund", {"payment": "pi_none"}, 404),
    ("/control/orders/none", {"delivered_at": None}, 404),
    ("/control/orders/8890", {"id": "1"}, 400),
    ("/control/orders/8890", {"delivered": None}, 400),
    ("/control/orders/8890", {"total": {"amount_minor": 4.2, "currency": "USD"}}, 400),
    ("/control/orders/8890", [], 400),
    ("/control/orders", {"id": "9"}, 400),
    ("/control/staff/nobody@northwind.example", {"active": False}, 404),
    (MARIA, {"limits": "all"}, 400),
    ("/control/policy", {"auto_approve_up_to": {"usd": 1}}, 400),
]


async def test_a_change_that_makes_no_sense_is_refused(
    http: httpx.AsyncClient, subtests: pytest.Subtests
) -> None:
    """A refused change says why, and changes nothing."""

    async def everything() -> list[Any]:
        documents = [(await http.get(p)).json() for p in ("/orders", "/staff", "/policy")]
        return [*documents, (await books(http))["payments"]]

    before = await everything()
    for path, body, status in REFUSED:
        with subtests.test(path=path, body=body):
            answer = await http.post(path, json=body)
            assert answer.status_code == status, answer.text
            assert answer.json()["error"]
            assert await everything() == before


async def test_a_body_that_is_no_json_is_refused(
    http: httpx.AsyncClient, subtests: pytest.Subtests
) -> None:
    """The answer is 400 with a reason, never a traceback."""
    for path in ("clock", "faults", "orders/8890", "hand_refund"):
        for content in (b"", b"{", b"\xff"):
            with subtests.test(path=path, content=content):
                answer = await http.post(f"/control/{path}", content=content)
                assert answer.status_code == 400
                assert answer.json()["error"]
