"""Order service, staff directory and policy book: JSON over HTTP, for reading."""

import sqlite3
from collections.abc import Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from northwind.documents import ONLY_POLICY, Order, Person, Policy, find, find_all
from northwind.faults import suffer
from northwind.systems import Systems

Read = Callable[[sqlite3.Connection], tuple[Any, int]]


def find_order(db: sqlite3.Connection, identifier: str) -> Order | None:
    """The order with this id; leading zeros are ignored, as real order services do."""
    return find(db, Order, identifier) or find(db, Order, identifier.lstrip("0"))


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
