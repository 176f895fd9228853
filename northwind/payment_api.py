"""The payment provider over HTTP, as the official `stripe` SDK speaks to it."""

import json
import re
import secrets
import sqlite3
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qsl

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from northwind.faults import FaultRow, status_answer, suffer
from northwind.idempotency import KeyedRequest, fingerprint, once
from northwind.payment_objects import (
    Answer,
    PaymentError,
    charge_object,
    dispute_object,
    list_object,
    missing,
    payment_object,
    refund_object,
)
from northwind.payments import (
    create_refund,
    find_payment,
    find_payment_by_charge,
    find_refund,
    positive_integer,
    pretend_refund,
    read_refund_request,
)
from northwind.systems import Systems

API_KEY = "sk_test_northwind"
DEFAULT_PAGE = 10
LARGEST_PAGE = 100
COMPARISONS = {"gt": ">", "gte": ">=", "lt": "<", "lte": "<="}


def payment_error(status: int) -> Response:
    """The provider's usual words for an error status that the fault plan asks for."""
    if status == 429:
        error = PaymentError(
            429,
            "Request rate limit exceeded. You can learn more about rate limits here "
            "https://stripe.com/docs/rate-limits.",
            code="rate_limit",
        )
    elif status >= 500:
        error = PaymentError(status, "An unknown error occurred", kind="api_error")
    else:
        error = PaymentError(status, "The request was refused.")
    return JSONResponse(error.body, status)


class PaymentApi:
    """Checks the API key, counts the call, suffers the fault plan, answers in Stripe's shapes."""

    def __init__(self, systems: Systems) -> None:
        """Serve the payments that are kept in the company's database."""
        self._systems = systems

    def routes(self) -> list[Route]:
        """What is served under /v1."""
        return [
            Route("/v1/payment_intents/{id}", self._payment),
            Route("/v1/charges/{id}", self._charge),
            Route("/v1/disputes", self._disputes),
            Route("/v1/refunds", self._refunds, methods=["GET"]),
            Route("/v1/refunds", self._create, methods=["POST"]),
            Route("/v1/refunds/{id}", self._refund),
        ]

    async def _payment(self, request: Request) -> Response:
        def read(db: sqlite3.Connection) -> dict[str, Any]:
            identifier = request.path_params["id"]
            payment = find_payment(db, identifier)
            if payment is None:
                raise missing("payment_intent", identifier, "intent")
            wanted = {
                value
                for name, value in request.query_params.multi_items()
                if re.fullmatch(r"expand\[\d*\]", name)
            }
            for name in wanted - {"latest_charge"}:
                raise PaymentError(400, f"This property cannot be expanded ({name}).")
            return payment_object(db, payment, expand_charge=bool(wanted))

        return await self._read("payment_intents.retrieve", request, read)

    async def _charge(self, request: Request) -> Response:
        def read(db: sqlite3.Connection) -> dict[str, Any]:
            identifier = request.path_params["id"]
            payment = find_payment_by_charge(db, identifier)
            if payment is None:
                raise missing("charge", identifier, "id")
            return charge_object(db, payment)

        return await self._read("charges.retrieve", request, read)

    async def _disputes(self, request: Request) -> Response:
        def read(db: sqlite3.Connection) -> dict[str, Any]:
            rows = db.execute(
                "select * from payments where disputed_at is not null order by disputed_at desc"
            ).fetchall()
            for name, column in (("payment_intent", "id"), ("charge", "charge")):
                if name in request.query_params:
                    rows = [row for row in rows if row[column] == request.query_params[name]]
            limit = _page_size(request)
            data = [dispute_object(row) for row in rows[:limit]]
            return list_object("/v1/disputes", data, has_more=len(rows) > limit)

        return await self._read("disputes.list", request, read)

    async def _refund(self, request: Request) -> Response:
        def read(db: sqlite3.Connection) -> dict[str, Any]:
            refund = find_refund(db, request.path_params["id"])
            if refund is None:
                raise missing("refund", request.path_params["id"], "id")
            return _shown(db, refund)

        return await self._read("refunds.retrieve", request, read)

    async def _refunds(self, request: Request) -> Response:
        return await self._read("refunds.list", request, lambda db: _page_of_refunds(db, request))

    async def _create(self, request: Request) -> Response:
        pairs = parse_qsl((await request.body()).decode(errors="replace"), keep_blank_values=True)
        keyed = KeyedRequest(
            request.headers.get("Idempotency-Key"),
            fingerprint(request.url.path, pairs),
            _new_request_id(),
        )
        plan = self._systems.faults.take("refunds.create", " ".join(value for _, value in pairs))

        def execute(db: sqlite3.Connection) -> Answer:
            now = self._systems.clock.now().timestamp()
            if plan.fault is not None and plan.fault.stored:
                failure = _stored_failure(plan.fault)
                return once(db, now, keyed, lambda: failure)
            # A form that is wrong is refused inside: it raises, and so the key stays unused.
            return once(db, now, keyed, lambda: create_refund(db, read_refund_request(pairs), now))

        def pretend(db: sqlite3.Connection) -> Answer:
            return pretend_refund(
                db, read_refund_request(pairs), self._systems.clock.now().timestamp()
            )

        try:
            _check_api_key(request)
            # The key is held through a delay: a second request meets a first that is in flight.
            with self._systems.held.hold(keyed):
                return await suffer(
                    self._systems.faults,
                    plan,
                    lambda: self._respond(execute, keyed),
                    error=payment_error,
                    pretend=lambda: self._respond(pretend, keyed),
                )
        except PaymentError as refused:
            return _respond_error(refused, keyed)

    async def _read(
        self,
        operation: str,
        request: Request,
        read: Callable[[sqlite3.Connection], dict[str, Any]],
    ) -> Response:
        keyed = KeyedRequest(None, "", _new_request_id())
        plan = self._systems.faults.take(operation, self._mentions(request))
        try:
            _check_api_key(request)
        except PaymentError as refused:
            return _respond_error(refused, keyed)
        return await suffer(
            self._systems.faults,
            plan,
            lambda: self._respond(lambda db: Answer(200, read(db)), keyed),
            error=payment_error,
        )

    def _mentions(self, request: Request) -> str:
        """The ids in a reading, and the payment of a refund that it names."""
        named = [*request.path_params.values(), *request.query_params.values()]
        with self._systems.store.transaction(forced=False) as db:
            refunds = [found for name in named if (found := find_refund(db, name)) is not None]
        return " ".join([*named, *(refund["payment"] for refund in refunds)])

    def _respond(
        self, act: Callable[[sqlite3.Connection], Answer], keyed: KeyedRequest
    ) -> Response:
        try:
            with self._systems.store.transaction() as db:
                answer = act(db)
        except PaymentError as refused:
            return _respond_error(refused, keyed)
        headers = {"Request-Id": keyed.request_id, **answer.headers}
        if keyed.key is not None:
            headers["Idempotency-Key"] = keyed.key
            headers["Original-Request"] = answer.replay_of or keyed.request_id
        if answer.replay_of is not None:
            headers["Idempotent-Replayed"] = "true"
        if answer.status >= 500:
            # A stored failure is all that this key will ever be answered: a retry is of no use.
            headers["Stripe-Should-Retry"] = "false"
        return JSONResponse(answer.body, answer.status, headers)


def _respond_error(refused: PaymentError, keyed: KeyedRequest) -> Response:
    headers = {"Request-Id": keyed.request_id, **refused.headers}
    return JSONResponse(refused.body, refused.status, headers)


def _stored_failure(fault: FaultRow) -> Answer:
    response = status_answer(fault, payment_error)
    return Answer(response.status_code, json.loads(bytes(response.body)), headers=fault.headers)


def _check_api_key(request: Request) -> None:
    scheme, _, key = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not key:
        raise PaymentError(
            401,
            "You did not provide an API key. You need to provide your API key in the "
            "Authorization header, using Bearer auth (e.g. 'Authorization: Bearer "
            "YOUR_SECRET_KEY').",
        )
    if not secrets.compare_digest(key.encode(), API_KEY.encode()):
        raise PaymentError(401, f"Invalid API Key provided: {key[:8]}{'*' * 8}{key[-4:]}")


def _new_request_id() -> str:
    return f"req_{secrets.token_hex(7)}"


def _shown(db: sqlite3.Connection, refund: sqlite3.Row) -> dict[str, Any]:
    payment = find_payment(db, refund["payment"])
    if payment is None:
        raise missing("payment_intent", refund["payment"], "payment_intent")
    return refund_object({**dict(refund), "metadata": json.loads(refund["metadata"])}, payment)


def _page_size(request: Request) -> int:
    limit = positive_integer(request.query_params.get("limit", str(DEFAULT_PAGE)), "limit")
    if limit > LARGEST_PAGE:
        raise PaymentError(
            400,
            f"This value must be less than or equal to {LARGEST_PAGE}.",
            code="parameter_invalid_integer",
            param="limit",
        )
    return limit


def _page_of_refunds(db: sqlite3.Connection, request: Request) -> dict[str, Any]:
    """Newest first, after the refund `starting_after` or before `ending_before`."""
    conditions: list[str] = []
    values: dict[str, str | int] = {"limit": _page_size(request) + 1}
    for name, value in request.query_params.multi_items():
        created = re.fullmatch(r"created\[(gte?|lte?)\]", name)
        if created is not None:
            conditions.append(f"refunds.created {COMPARISONS[created[1]]} :{created[1]}")
            values[created[1]] = positive_integer(value, name)
        elif name in ("payment_intent", "charge"):
            column = "id" if name == "payment_intent" else "charge"
            conditions.append(f"payments.{column} = :{name}")
            values[name] = value
        elif name in ("starting_after", "ending_before"):
            cursor = find_refund(db, value)
            if cursor is None:
                raise PaymentError(
                    400, f"No such refund: '{value}'", code="resource_missing", param=name
                )
            comparison = "<" if name == "starting_after" else ">"
            conditions.append(f"refunds.number {comparison} :{name}")
            values[name] = cursor["number"]
    backwards = "ending_before" in values
    rows = db.execute(
        # Only column names and comparisons of this module are put into the text.
        "select refunds.* from refunds join payments on payments.id = refunds.payment"  # noqa: S608
        f" where {' and '.join(conditions) or 'true'}"
        f" order by refunds.number {'asc' if backwards else 'desc'} limit :limit",
        values,
    ).fetchall()
    has_more = len(rows) == values["limit"]
    page = rows[:-1] if has_more else rows
    data = [_shown(db, row) for row in (reversed(page) if backwards else page)]
    return list_object("/v1/refunds", data, has_more=has_more)
