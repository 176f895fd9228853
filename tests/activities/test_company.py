"""Answers of the company's services: validated, or an error that says what is wrong (P8)."""

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from activities.company import CompanyClient
from activities.orders import Orders
from activities.staff import StaffDirectory
from domain.errors import (
    BadAnswer,
    Misconfigured,
    OutsideError,
    RateLimited,
    ServerFault,
    Unreachable,
)
from northwind.server import Company
from tests.northwind.support import set_faults
from tests.signing import MARIA


@pytest.fixture
async def client(company: Company) -> AsyncIterator[CompanyClient]:
    """A client of the running company."""
    async with CompanyClient(company.http_url) as opened:
        yield opened


@pytest.fixture
def orders(client: CompanyClient) -> Orders:
    """The order service."""
    return Orders(client)


ANSWERS: list[Any] = [
    pytest.param({"what": "drop_after"}, Unreachable, id="dropped"),
    pytest.param({"what": "status", "status": 503}, ServerFault, id="503"),
    pytest.param({"what": "status", "status": 429}, RateLimited, id="429"),
    pytest.param({"what": "status", "status": 401}, Misconfigured, id="401"),
    pytest.param({"what": "status", "status": 302}, BadAnswer, id="302"),
    pytest.param({"what": "status", "status": 200, "body": "<html>"}, BadAnswer, id="HTML"),
    pytest.param({"what": "status", "status": 200, "body": None}, BadAnswer, id="null"),
    pytest.param({"what": "status", "status": 200, "body": {"id": "8890"}}, BadAnswer, id="fields"),
    pytest.param(
        {"what": "status", "status": 404, "body": "<html>Not found</html>"},
        BadAnswer,
        id="HTML 404",
    ),
    pytest.param(
        {"what": "status", "status": 404, "body": {"detail": "Not Found"}}, BadAnswer, id="no word"
    ),
]


@pytest.mark.parametrize(("row", "error"), ANSWERS)
async def test_an_answer_that_cannot_be_used_is_an_error(
    orders: Orders, http: httpx.AsyncClient, row: dict[str, Any], error: type[OutsideError]
) -> None:
    """A 404 of something else than the order service makes no order unknown."""
    await set_faults(http, {"system": "orders", "operation": "orders.get", **row})
    with pytest.raises(error):
        await orders.read_order("8890")
    assert await orders.read_order("8890") is not None


async def test_money_as_a_float_is_no_answer(orders: Orders, http: httpx.AsyncClient) -> None:
    """R28: 420.0 is refused, and so is an amount as text."""
    order = (await http.get("/orders/8890")).json()
    for amount in (420.0, "42000", -1, None):
        body = order | {"total": {"amount_minor": amount, "currency": "USD"}}
        row = {"system": "orders", "operation": "orders.get", "what": "status", "status": 200}
        await set_faults(http, row | {"body": body})
        with pytest.raises(BadAnswer, match=r"total\.amount_minor"):
            await orders.read_order("8890")


async def test_a_wait_that_was_asked_for_is_passed_on(
    orders: Orders, http: httpx.AsyncClient
) -> None:
    """R42, for the company's own services."""
    row = {"what": "status", "status": 503, "headers": {"Retry-After": "12"}}
    await set_faults(http, {"system": "policy", "operation": "policy.get", **row})
    with pytest.raises(ServerFault) as raised:
        await orders.read_policy()
    assert raised.value.retry_after_seconds == 12


async def test_a_policy_that_is_missing_is_no_policy(
    orders: Orders, http: httpx.AsyncClient
) -> None:
    """Nothing is refunded by no rules."""
    row = {"what": "status", "status": 404, "body": {"error": "no_policy"}}
    await set_faults(http, {"system": "policy", "operation": "policy.get", **row})
    with pytest.raises(BadAnswer, match="policy"):
        await orders.read_policy()


@pytest.mark.parametrize("order_id", ["1234", "..", ".", "8890/../../staff", "8890?x", ""])
async def test_what_is_no_order_is_none(orders: Orders, order_id: str) -> None:
    """An id is never a path."""
    assert await orders.read_order(order_id) is None


async def test_the_directory_answers_for_whom_it_was_asked(
    client: CompanyClient, http: httpx.AsyncClient
) -> None:
    """Somebody else's record is not taken for the signer's."""
    staff = StaffDirectory(client)
    person = await staff.find_person(MARIA)
    assert person is not None
    other = person.model_dump(mode="json") | {"address": "tom.becker@northwind.example"}
    row = {"what": "status", "status": 200, "body": other}
    await set_faults(http, {"system": "staff", "operation": "staff.get", **row})
    with pytest.raises(BadAnswer):
        await staff.find_person(MARIA)


async def test_a_service_that_is_down_is_unreachable(unused_tcp_port: int) -> None:
    """Nobody listens: try again later."""
    async with CompanyClient(f"http://127.0.0.1:{unused_tcp_port}") as client:
        with pytest.raises(Unreachable):
            await Orders(client).read_policy()
