"""Order service, staff directory and policy book: JSON over HTTP.

All is for reading, but for one thing: the order service notes the refunds that it is told of.
"""

import json
import sqlite3
from collections.abc import Callable
from typing import Any

from pydantic import ValidationError
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from northwind.documents import (
    ONLY_POLICY,
    NotedRefund,
    Order,
    Person,
    Policy,
    find,
    find_all,
)
from northwind.faults import suffer
from northwind.systems import Systems

Read = Callable[[sqlite3.Connection], tuple[Any, int]]


def find_order(db: sqlite3.Connection, identifier: str) -> Order | None:
    """The order with this id; leading zeros are ignored, as real order services do."""
    return find(db, Order, identifier) or find(db, Order, identifier.lstrip("0"))


def noted_refunds(db: sqlite3.Connection) -> dict[str, list[dict[str, Any]]]:
    """The refunds that the order service was told of, by order, and how often it was told each."""
    noted: dict[str, list[dict[str, Any]]] = {}
    for row in db.execute("select * from noted_refunds order by rowid"):
        refund = {"key": row["key"], **json.loads(row["body"]), "times": row["times"]}
        noted.setdefault(row["order_id"], []).append(refund)
    return noted


class RecordsApi:
    """What the company knows of its orders, its people and its rules."""

    def __init__(self, systems: Systems) -> None:
        """Serve what is kept in the company's database."""
        self._systems = systems

    def routes(self) -> list[Route]:
        """What is served at the top level."""
        return [
            Route("/orders", self._orders),
            Route("/orders/{id}", self._order),
            Route("/orders/{id}/refunds/{key:path}", self._note_refund, methods=["PUT"]),
            Route("/staff", self._staff),
            Route("/staff/{address}", self._person),
            Route("/policy", self._policy),
        ]

    async def _orders(self, request: Request) -> Response:
        with self._systems.store.transaction() as db:
            orders = find_all(db, Order)
        return JSONResponse({"orders": [order.model_dump(mode="json") for order in orders]})

    async def _order(self, request: Request) -> Response:
        def read(db: sqlite3.Connection) -> tuple[Any, int]:
            order = find_order(db, request.path_params["id"])
            if order is None:
                return {"error": "no_such_order"}, 404
            return order.model_dump(mode="json"), 200

        return await self._answer("orders.get", read, request.path_params["id"])

    async def _note_refund(self, request: Request) -> Response:
        order_id, key = request.path_params["id"], request.path_params["key"]
        try:
            noted = NotedRefund.model_validate_json(await request.body())
        except ValidationError:
            return JSONResponse({"error": "bad_refund"}, 400)

        def act() -> Response:
            with self._systems.store.transaction() as db:
                return JSONResponse(*_note(db, order_id, key, noted))

        faults = self._systems.faults
        return await suffer(
            faults,
            faults.take("orders.note_refund", f"{order_id} {key}"),
            act,
            pretend=lambda: JSONResponse(noted.model_dump(mode="json"), 201),
        )

    async def _staff(self, request: Request) -> Response:
        def read(db: sqlite3.Connection) -> tuple[Any, int]:
            people = find_all(db, Person)
            return {"people": [person.model_dump(mode="json") for person in people]}, 200

        return await self._answer("staff.list", read)

    async def _person(self, request: Request) -> Response:
        def read(db: sqlite3.Connection) -> tuple[Any, int]:
            person = find(db, Person, request.path_params["address"])
            if person is None:
                return {"error": "no_such_person"}, 404
            return person.model_dump(mode="json"), 200

        return await self._answer("staff.get", read, request.path_params["address"])

    async def _policy(self, request: Request) -> Response:
        def read(db: sqlite3.Connection) -> tuple[Any, int]:
            policy = find(db, Policy, ONLY_POLICY)
            if policy is None:
                return {"error": "no_policy"}, 404
            return policy.model_dump(mode="json"), 200

        return await self._answer("policy.get", read)

    async def _answer(self, operation: str, read: Read, about: str = "") -> Response:
        def act() -> Response:
            with self._systems.store.transaction() as db:
                body, status = read(db)
            return JSONResponse(body, status)

        faults = self._systems.faults
        return await suffer(faults, faults.take(operation, about), act)


def _note(db: sqlite3.Connection, order_id: str, key: str, noted: NotedRefund) -> tuple[Any, int]:
    """Note a refund once: the same again changes nothing, and another one under its key is refused.

    The body and the status of the answer.
    """
    # A note is for exactly this order: another spelling is another one.
    if find(db, Order, order_id) is None:
        return {"error": "no_such_order"}, 404
    body = noted.model_dump_json()
    row = db.execute("select * from noted_refunds where key = ?", (key,)).fetchone()
    if row is None:
        db.execute(
            "insert into noted_refunds (key, order_id, body) values (?, ?, ?)",
            (key, order_id, body),
        )
        return json.loads(body), 201
    if (row["order_id"], row["body"]) != (order_id, body):
        return {"error": "another_refund_under_this_key"}, 409
    db.execute("update noted_refunds set times = times + 1 where key = ?", (key,))
    return json.loads(body), 200
