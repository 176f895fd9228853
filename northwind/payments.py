"""The payment provider's rules: what may be refunded, and what becomes of a refund."""

import json
import re
import secrets
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from northwind.payment_objects import (
    UNDONE,
    Answer,
    PaymentError,
    held_minor,
    missing,
    money_text,
    refund_object,
)

REASONS = ("duplicate", "fraudulent", "requested_by_customer")
MAX_METADATA_KEYS = 50
MAX_METADATA_KEY_LENGTH = 40
MAX_METADATA_VALUE_LENGTH = 500
KNOWN_PARAMETERS = ("payment_intent", "charge", "amount", "reason")
INTEGER = re.compile(r"[+-]?\d{1,18}")


@dataclass(frozen=True)
class RefundRequest:
    """What a caller asks for; without an amount, all that is left."""

    payment_intent: str | None
    charge: str | None
    amount: int | None
    reason: str | None
    metadata: dict[str, str]


def read_refund_request(pairs: Sequence[tuple[str, str]]) -> RefundRequest:
    """Check the form's shape. Raises PaymentError before anything is executed."""
    plain: dict[str, str] = {}
    metadata: dict[str, str] = {}
    for name, value in pairs:
        in_metadata = re.fullmatch(r"metadata\[([^\[\]]+)\]", name)
        if in_metadata is not None:
            metadata[in_metadata[1]] = value
        elif name in KNOWN_PARAMETERS:
            plain[name] = value
        elif not re.fullmatch(r"expand\[\d*\]", name):
            raise PaymentError(
                400, f"Received unknown parameter: {name}", code="parameter_unknown", param=name
            )
    _check_metadata(metadata)
    if "payment_intent" not in plain and "charge" not in plain:
        raise PaymentError(
            400,
            "One of the following params should be provided for this request: "
            "payment_intent or charge.",
            code="parameter_missing",
        )
    reason = plain.get("reason")
    if reason is not None and reason not in REASONS:
        raise PaymentError(
            400, f"Invalid reason: must be one of {', '.join(REASONS)}", param="reason"
        )
    amount = None if "amount" not in plain else positive_integer(plain["amount"], "amount")
    return RefundRequest(plain.get("payment_intent"), plain.get("charge"), amount, reason, metadata)


def positive_integer(text: str, param: str) -> int:
    """A parameter that must be a whole number of 1 or more. Raises PaymentError."""
    if INTEGER.fullmatch(text) is None:
        raise PaymentError(
            400, f"Invalid integer: {text}", code="parameter_invalid_integer", param=param
        )
    if int(text) < 1:
        raise PaymentError(
            400, "Invalid positive integer", code="parameter_invalid_integer", param=param
        )
    return int(text)


def _check_metadata(metadata: dict[str, str]) -> None:
    if len(metadata) > MAX_METADATA_KEYS:
        raise PaymentError(
            400, f"Metadata can have up to {MAX_METADATA_KEYS} keys.", param="metadata"
        )
    for key, value in metadata.items():
        if len(key) > MAX_METADATA_KEY_LENGTH:
            raise PaymentError(
                400,
                f"Metadata keys can have up to {MAX_METADATA_KEY_LENGTH} characters, but you "
                f"passed in a key that is {len(key)} characters.",
                param=f"metadata[{key}]",
            )
        if len(value) > MAX_METADATA_VALUE_LENGTH:
            raise PaymentError(
                400,
                f"Metadata values can have up to {MAX_METADATA_VALUE_LENGTH} characters, but you "
                f"passed in a value that is {len(value)} characters.",
                param=f"metadata[{key}]",
            )


def find_payment(db: sqlite3.Connection, identifier: str) -> sqlite3.Row | None:
    """The payment with this payment intent id, or None."""
    row = db.execute("select * from payments where id = ?", (identifier,)).fetchone()
    return row if isinstance(row, sqlite3.Row) else None


def find_payment_by_charge(db: sqlite3.Connection, charge: str) -> sqlite3.Row | None:
    """The payment with this charge id, or None."""
    row = db.execute("select * from payments where charge = ?", (charge,)).fetchone()
    return row if isinstance(row, sqlite3.Row) else None


def find_refund(db: sqlite3.Connection, identifier: str) -> sqlite3.Row | None:
    """The refund with this id, or None."""
    row = db.execute("select * from refunds where id = ?", (identifier,)).fetchone()
    return row if isinstance(row, sqlite3.Row) else None


def payment_to_refund(db: sqlite3.Connection, request: RefundRequest) -> tuple[sqlite3.Row, int]:
    """The payment and the amount to refund. Raises PaymentError where a rule forbids it."""
    if request.payment_intent is not None:
        payment = find_payment(db, request.payment_intent)
        unknown = missing("payment_intent", request.payment_intent, "payment_intent")
    else:
        payment = find_payment_by_charge(db, request.charge or "")
        unknown = missing("charge", request.charge or "", "charge")
    if payment is None:
        raise unknown
    charge, currency = payment["charge"], payment["currency"]
    if payment["disputed_at"] is not None:
        raise PaymentError(
            400,
            f"Charge {charge} has been charged back; cannot issue a refund.",
            code="charge_disputed",
        )
    left = payment["amount_minor"] - held_minor(db, payment["id"])
    if left <= 0:
        raise PaymentError(
            400, f"Charge {charge} has already been refunded.", code="charge_already_refunded"
        )
    amount = left if request.amount is None else request.amount
    if amount > left:
        # Stripe's answer to this one has no code: the parameter and the words are all there is.
        raise PaymentError(
            400,
            f"Refund amount ({money_text(amount, currency)}) is greater than unrefunded amount "
            f"on charge ({money_text(left, currency)})",
            param="amount",
        )
    return payment, amount


def create_refund(db: sqlite3.Connection, request: RefundRequest, now: float) -> Answer:
    """Refund, or refuse by a rule; both are results that an idempotency key remembers."""
    try:
        payment, amount = payment_to_refund(db, request)
    except PaymentError as refused:
        return Answer(refused.status, refused.body)
    status = payment["next_refund_status"] or "succeeded"
    db.execute("update payments set next_refund_status = null where id = ?", (payment["id"],))
    refund = insert_refund(
        db, payment, amount, status, reason=request.reason, metadata=request.metadata, now=now
    )
    return Answer(200, refund)


def pretend_refund(db: sqlite3.Connection, request: RefundRequest, now: float) -> Answer:
    """What a refund would have been answered, with nothing done."""
    try:
        payment, amount = payment_to_refund(db, request)
    except PaymentError as refused:
        return Answer(refused.status, refused.body)
    return Answer(
        200,
        refund_object(
            {
                "id": new_refund_id(),
                "amount_minor": amount,
                "status": "succeeded",
                "reason": request.reason,
                "metadata": request.metadata,
                "failure_reason": None,
                "created": int(now),
            },
            payment,
        ),
    )


def new_refund_id() -> str:
    """A refund id that nobody has seen."""
    return f"re_{secrets.token_hex(12)}"


def insert_refund(
    db: sqlite3.Connection,
    payment: sqlite3.Row,
    amount_minor: int,
    status: str,
    *,
    reason: str | None,
    metadata: dict[str, str],
    now: float,
) -> dict[str, Any]:
    """Write a refund down, and show it as the provider does."""
    refund = {
        "id": new_refund_id(),
        "payment": payment["id"],
        "amount_minor": amount_minor,
        "status": status,
        "reason": reason,
        "metadata": metadata,
        "failure_reason": None,
        "created": int(now),
    }
    db.execute(
        "insert into refunds (id, payment, amount_minor, status, reason, metadata, failure_reason,"
        " created) values (:id, :payment, :amount_minor, :status, :reason, :metadata,"
        " :failure_reason, :created)",
        refund | {"metadata": json.dumps(metadata)},
    )
    return refund_object(refund, payment)


def move_refund(
    db: sqlite3.Connection, identifier: str, status: str, failure_reason: str | None
) -> sqlite3.Row:
    """Give a refund another status, as card networks and banks do.

    Raises PaymentError when there is no such refund, or when it would come back to life after its
    money has gone to another refund.
    """
    refund = find_refund(db, identifier)
    if refund is None:
        raise missing("refund", identifier, "id")
    payment = find_payment(db, refund["payment"])
    if payment is None:
        raise missing("payment_intent", refund["payment"], "payment_intent")
    if refund["status"] in UNDONE and status not in UNDONE:
        left = payment["amount_minor"] - held_minor(db, payment["id"])
        if refund["amount_minor"] > left:
            raise PaymentError(409, "That would refund more than was captured.", param="status")
    db.execute(
        "update refunds set status = ?, failure_reason = ? where id = ?",
        (status, failure_reason if status == "failed" else None, identifier),
    )
    moved = find_refund(db, identifier)
    return refund if moved is None else moved
