"""Telling the order service: once for a key, never taken for done without its word (P8)."""

from datetime import UTC, datetime
from typing import Any

import httpx
import pytest

from activities.interfaces import OrderNotice, OrderReceipt
from activities.orders import Orders
from domain.errors import (
    BadAnswer,
    Misconfigured,
    OutsideError,
    RateLimited,
    Refused,
    ServerFault,
    Unreachable,
)
from domain.models import Refund
from tests.activities.support import usd
from tests.northwind.support import books, set_faults
from workers.wiring import Activities

KEY = "local/refund-order-8890/req-1/order.refunded"
REFUND = Refund(
    id="re_1",
    payment="pi_8890",
    amount=usd(42000),
    status="succeeded",
    created_at=datetime(2026, 7, 31, 9, tzinfo=UTC),
)


@pytest.fixture
def orders(activities: Activities) -> Orders:
    """The adapter, as wired."""
    return activities.orders


def notice(**changes: Any) -> OrderNotice:
    """What the run hands over."""
    fields = {"environment": "local", "key": KEY, "order_id": "8890", "refund": REFUND, **changes}
    return OrderNotice.model_validate(fields)


async def noted(http: httpx.AsyncClient) -> list[tuple[str, str, int, int]]:
    """What the order service has of order 8890."""
    rows = (await books(http))["orders"].get("8890", [])
    return [(r["key"], r["refund"], r["amount"]["amount_minor"], r["times"]) for r in rows]


async def test_a_repeat_says_the_same_again(orders: Orders, http: httpx.AsyncClient) -> None:
    """Also where the provider has another word for the refund by then: that is not told."""
    first = await orders.tell_order_service(notice())
    later = REFUND.model_copy(update={"status": "in_review"})
    again = await orders.tell_order_service(notice(refund=later))
    assert (first, again) == (OrderReceipt(known_before=False), OrderReceipt(known_before=True))
    assert await noted(http) == [(KEY, "re_1", 42000, 2)]


async def test_a_lost_answer_is_unknown_and_the_repeat_finds_it(
    orders: Orders, http: httpx.AsyncClient
) -> None:
    """P8: it was noted, and nobody heard so."""
    row = {"system": "orders", "operation": "orders.note_refund", "what": "drop_after"}
    await set_faults(http, row)
    with pytest.raises(Unreachable):
        await orders.tell_order_service(notice())
    assert (await orders.tell_order_service(notice())).known_before
    assert await noted(http) == [(KEY, "re_1", 42000, 2)]


ANSWERS: list[Any] = [
    pytest.param({"what": "drop_before"}, Unreachable, id="dropped"),
    pytest.param({"what": "status", "status": 503}, ServerFault, id="503"),
    pytest.param({"what": "status", "status": 429}, RateLimited, id="429"),
    pytest.param({"what": "status", "status": 401}, Misconfigured, id="401"),
    pytest.param({"what": "status", "status": 405}, Misconfigured, id="405"),
    pytest.param({"what": "status", "status": 302}, BadAnswer, id="302"),
    pytest.param({"what": "status", "status": 200, "body": "<html>"}, BadAnswer, id="HTML"),
    pytest.param({"what": "status", "status": 201, "body": {}}, BadAnswer, id="nothing"),
    pytest.param({"what": "status", "status": 404, "body": "<html>"}, BadAnswer, id="HTML 404"),
    pytest.param(
        {
            "what": "status",
            "status": 200,
            "body": {
                "refund": "re_2",
                "amount": {"amount_minor": 42000, "currency": "USD"},
                "refunded_at": "2026-07-31T09:00:00Z",
            },
        },
        BadAnswer,
        id="another refund",
    ),
]


@pytest.mark.parametrize(("row", "error"), ANSWERS)
async def test_an_answer_that_says_nothing_is_tried_again(
    orders: Orders, http: httpx.AsyncClient, row: dict[str, Any], error: type[OutsideError]
) -> None:
    """A page of a proxy is no yes, and no no either: the next attempt says the same."""
    await set_faults(http, {"system": "orders", "operation": "orders.note_refund", **row})
    with pytest.raises(error) as raised:
        await orders.tell_order_service(notice())
    assert raised.value.retry
    assert await noted(http) == []
    assert not (await orders.tell_order_service(notice())).known_before


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"order_id": "1234"}, "no_such_order"),
        (
            {"refund": REFUND.model_copy(update={"amount": usd(41999)})},
            "another_refund_under_this_key",
        ),
    ],
)
async def test_a_definite_no_is_not_tried_again(
    orders: Orders, http: httpx.AsyncClient, change: dict[str, Any], code: str
) -> None:
    """The service's own word is kept for people, and what it has stays as it was."""
    await orders.tell_order_service(notice())
    with pytest.raises(Refused, match=code) as raised:
        await orders.tell_order_service(notice(**change))
    assert raised.value.code == code
    assert await noted(http) == [(KEY, "re_1", 42000, 1)]
