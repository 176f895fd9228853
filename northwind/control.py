"""The outside world's hand, for tests and demos: faults, the clock, and what others do."""

import json
from collections.abc import Awaitable, Callable
from typing import Annotated, Any, TypeVar

from pydantic import (
    AwareDatetime,
    BaseModel,
    ConfigDict,
    Field,
    StrictBool,
    StrictInt,
    TypeAdapter,
    ValidationError,
)
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from northwind import idempotency, mail
from northwind.books import read_books
from northwind.clock import instant_text
from northwind.documents import (
    ONLY_POLICY,
    Kept,
    Order,
    Person,
    Policy,
    changed,
    find,
    keep,
)
from northwind.faults import FaultRow
from northwind.orders import find_order
from northwind.payment_objects import PaymentError
from northwind.payments import (
    RefundRequest,
    find_payment,
    insert_refund,
    move_refund,
    payment_to_refund,
)
from northwind.seed import add_order
from northwind.systems import Systems

Status = Annotated[str, Field(min_length=1, max_length=64)]
ROWS: TypeAdapter[list[FaultRow]] = TypeAdapter(list[FaultRow])


class Body(BaseModel):
    """A request body; a field that it does not know is refused."""

    model_config = ConfigDict(extra="forbid")


class ClockChange(Body):
    """Where to move the clock: to an instant, or on by a number of seconds."""

    now: AwareDatetime | None = None
    advance_seconds: float | None = None


class KeysChange(Body):
    """Whether a system heeds idempotency keys."""

    knows_keys: StrictBool


class ForgottenKeys(Body):
    """Which of the payment provider's idempotency keys to forget: those that mention a text."""

    about: Annotated[str, Field(min_length=1)]


class RefundChange(Body):
    """A refund's new status: any word, for a provider may invent one."""

    status: Status
    failure_reason: str | None = None


class PaymentChange(Body):
    """What the next refund's first status will be, and whether the payment is disputed."""

    next_refund_status: Status | None = None
    disputed: StrictBool | None = None


class HandRefund(Body):
    """A refund that a colleague makes in the provider's dashboard; without amount, all of it.

    A colleague may copy the metadata of another refund on it.
    """

    payment: str
    amount_minor: Annotated[StrictInt, Field(gt=0)] | None = None
    status: Status = "succeeded"
    metadata: dict[str, str] = {}


class Refused(Exception):
    """A control request that cannot be done: an HTTP status and the reason."""

    def __init__(self, status: int, reason: str) -> None:
        """Say why."""
        super().__init__(reason)
        self.status = status


Handler = Callable[[Request], Awaitable[Any]]
AnyBody = TypeVar("AnyBody", bound=Body)


class Control:
    """Everything under /control, and the books."""

    def __init__(self, systems: Systems) -> None:
        """Act on the company's database and clock."""
        self._systems = systems

    def routes(self) -> list[Route]:
        """The control surface."""

        def post(path: str, handler: Handler) -> Route:
            return Route(f"/control/{path}", _plainly(handler), methods=["POST"])

        def get(path: str, handler: Handler) -> Route:
            return Route(path, _plainly(handler), methods=["GET"])

        return [
            get("/books", self._books),
            get("/control/faults", self._faults),
            post("faults", self._add_faults),
            Route("/control/faults", _plainly(self._clear_faults), methods=["DELETE"]),
            get("/control/clock", self._clock),
            post("clock", self._set_clock),
            post("mail", self._mail),
            post("payments", self._payments),
            post("forgotten_keys", self._forget_keys),
            post("refunds/{id}", self._move_refund),
            post("payments/{id}", self._change_payment),
            post("hand_refund", self._hand_refund),
            post("orders", self._add_order),
            post("orders/{id}", self._change_order),
            post("staff/{id}", self._change_person),
            post("policy", self._change_policy),
        ]

    async def _books(self, request: Request) -> Any:
        with self._systems.store.transaction() as db:
            return read_books(db)

    async def _faults(self, request: Request) -> Any:
        return self._systems.faults.rows()

    async def _add_faults(self, request: Request) -> Any:
        rows = json.loads(await request.body())
        self._systems.faults.add(ROWS.validate_python(rows if isinstance(rows, list) else [rows]))
        return self._systems.faults.rows()

    async def _clear_faults(self, request: Request) -> Any:
        asked = request.query_params
        self._systems.faults.clear(asked.get("operation"), asked.get("about"))
        return self._systems.faults.rows()

    async def _clock(self, request: Request) -> Any:
        return {"now": instant_text(self._systems.clock.now())}

    async def _set_clock(self, request: Request) -> Any:
        change = ClockChange.model_validate_json(await request.body())
        if change.now is not None:
            self._systems.clock.set(change.now)
        if change.advance_seconds is not None:
            self._systems.clock.advance(change.advance_seconds)
        return {"now": instant_text(self._systems.clock.now())}

    async def _mail(self, request: Request) -> Any:
        change = KeysChange.model_validate_json(await request.body())
        with self._systems.store.transaction() as db:
            mail.set_knows_keys(db, change.knows_keys)
        return change.model_dump()

    async def _payments(self, request: Request) -> Any:
        change = KeysChange.model_validate_json(await request.body())
        with self._systems.store.transaction() as db:
            idempotency.set_knows_keys(db, change.knows_keys)
        return change.model_dump()

    async def _forget_keys(self, request: Request) -> Any:
        asked = ForgottenKeys.model_validate_json(await request.body())
        with self._systems.store.transaction() as db:
            return {"forgotten": idempotency.forget(db, asked.about)}

    async def _move_refund(self, request: Request) -> Any:
        change = RefundChange.model_validate_json(await request.body())
        with self._systems.store.transaction() as db:
            refund = move_refund(
                db, request.path_params["id"], change.status, change.failure_reason
            )
            return dict(refund) | {"metadata": json.loads(refund["metadata"])}

    async def _change_payment(self, request: Request) -> Any:
        change = PaymentChange.model_validate_json(await request.body())
        identifier = request.path_params["id"]
        now = int(self._systems.clock.now().timestamp())
        with self._systems.store.transaction() as db:
            if find_payment(db, identifier) is None:
                raise Refused(404, f"no payment {identifier}")
            if "next_refund_status" in change.model_fields_set:
                db.execute(
                    "update payments set next_refund_status = ? where id = ?",
                    (change.next_refund_status, identifier),
                )
            if change.disputed is not None:
                db.execute(
                    "update payments set disputed_at = ? where id = ?",
                    (now if change.disputed else None, identifier),
                )
            return read_books(db)["payments"][identifier]

    async def _hand_refund(self, request: Request) -> Any:
        asked = HandRefund.model_validate_json(await request.body())
        with self._systems.store.transaction() as db:
            payment, amount = payment_to_refund(
                db, RefundRequest(asked.payment, None, asked.amount_minor, None, asked.metadata)
            )
            return insert_refund(
                db,
                payment,
                amount,
                asked.status,
                reason="requested_by_customer",
                metadata=asked.metadata,
                now=self._systems.clock.now().timestamp(),
            )

    async def _add_order(self, request: Request) -> Any:
        order = Order.model_validate_json(await request.body())
        with self._systems.store.transaction() as db:
            if find_order(db, order.id) is not None:
                raise Refused(409, f"order {order.id} is there already")
            if find_payment(db, order.payment) is not None:
                raise Refused(409, f"payment {order.payment} is there already")
            add_order(db, order, self._systems.clock.now())
        return order.model_dump(mode="json")

    async def _change_order(self, request: Request) -> Any:
        return await self._change(request, Order, request.path_params["id"])

    async def _change_person(self, request: Request) -> Any:
        return await self._change(request, Person, request.path_params["id"])

    async def _change_policy(self, request: Request) -> Any:
        return await self._change(request, Policy, ONLY_POLICY)

    async def _change(self, request: Request, kind: type[Kept], identifier: str) -> Any:
        change = json.loads(await request.body())
        if not isinstance(change, dict):
            raise Refused(400, "the body must be a JSON object")
        if change.keys() & {"id", "address"}:
            raise Refused(400, "an id cannot be changed")
        with self._systems.store.transaction() as db:
            document = find(db, kind, identifier)
            if document is None:
                raise Refused(404, f"no {kind.__name__.lower()} {identifier}")
            new = changed(document, change)
            keep(db, identifier, new)
        return new.model_dump(mode="json")


def _plainly(handler: Handler) -> Callable[[Request], Awaitable[Response]]:
    """Answer with the handler's result as JSON, or say in one line what is wrong."""

    async def answer(request: Request) -> Response:
        try:
            return JSONResponse(await handler(request))
        except ValidationError as invalid:
            reasons = "; ".join(
                f"{'.'.join(str(part) for part in error['loc']) or 'body'}: {error['msg']}"
                for error in invalid.errors()
            )
            return JSONResponse({"error": reasons}, 400)
        except (json.JSONDecodeError, UnicodeDecodeError) as invalid:
            return JSONResponse({"error": f"the body is not JSON: {invalid}"}, 400)
        except OverflowError as invalid:
            return JSONResponse({"error": f"the clock cannot show that: {invalid}"}, 400)
        except Refused as refused:
            return JSONResponse({"error": str(refused)}, refused.status)
        except PaymentError as refused:
            return JSONResponse({"error": str(refused)}, refused.status)

    return answer
