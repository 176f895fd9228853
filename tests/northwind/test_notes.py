"""The order service notes each refund that it is told of once, whatever is lost on the way."""

from typing import Any

import httpx
import pytest

from tests.northwind.support import books, set_faults

KEY = "local/refund-order-8890/req-1/order.refunded"
PATH = f"/orders/8890/refunds/{KEY.replace('/', '%2F')}"
REFUND: dict[str, Any] = {
    "refund": "re_1",
    "amount": {"amount_minor": 42000, "currency": "USD"},
    "refunded_at": "2026-07-31T09:00:00Z",
}


async def test_the_same_again_changes_nothing(http: httpx.AsyncClient) -> None:
    """Both answers show the refund, the status tells them apart, and the books count them."""
    answers = [await http.put(PATH, json=REFUND) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [201, 200, 200]
    assert [answer.json() for answer in answers] == [REFUND] * 3
    assert (await books(http))["orders"] == {"8890": [{"key": KEY, **REFUND, "times": 3}]}


@pytest.mark.parametrize(
    ("path", "change", "answer"),
    [
        (PATH, {"refund": "re_2"}, (409, "another_refund_under_this_key")),
        (PATH, {"amount": {"amount_minor": 1, "currency": "USD"}}, (409, "another_refund")),
        (PATH.replace("8890", "8891", 1), {}, (409, "another_refund_under_this_key")),
        (PATH.replace("8890", "1234"), {}, (404, "no_such_order")),
        (PATH.replace("8890", "08890", 1), {}, (404, "no_such_order")),
        (PATH, {"amount": 420.0}, (400, "bad_refund")),
        (PATH, {"more": "fields"}, (400, "bad_refund")),
    ],
)
async def test_what_does_not_fit_is_refused(
    http: httpx.AsyncClient, path: str, change: dict[str, Any], answer: tuple[int, str]
) -> None:
    """Another refund under a key that is taken, an unknown order, or no refund at all."""
    await http.put(PATH, json=REFUND)
    refused = await http.put(path, json=REFUND | change)
    assert refused.status_code == answer[0]
    assert refused.json()["error"].startswith(answer[1])
    assert (await books(http))["orders"] == {"8890": [{"key": KEY, **REFUND, "times": 1}]}


@pytest.mark.parametrize(
    ("what", "noted"), [("drop_before", 0), ("drop_after", 1), ("ok_without_effect", 0)]
)
async def test_the_books_say_what_really_happened(
    http: httpx.AsyncClient, what: str, noted: int
) -> None:
    """Whatever the caller was answered."""
    row = {"system": "orders", "operation": "orders.note_refund", "what": what, "about": KEY}
    await set_faults(http, row)
    try:
        assert (await http.put(PATH, json=REFUND)).status_code == 201
        assert what == "ok_without_effect"
    except httpx.RemoteProtocolError:
        assert what != "ok_without_effect"
    assert len((await books(http))["orders"].get("8890", [])) == noted
