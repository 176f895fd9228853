"""The payment provider's objects and errors, in the shapes of Stripe's API."""

import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from babel.core import get_global
from babel.numbers import format_currency, get_currency_precision

# A refund in one of these has given its money back to the payment: it counts no more.
UNDONE = ("failed", "canceled")


class PaymentError(Exception):
    """An error answer: HTTP status, the provider's error type (`kind`), code and parameter."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        kind: str = "invalid_request_error",
        code: str | None = None,
        param: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """Name what is wrong, in the provider's words."""
        super().__init__(message)
        self.status = status
        self.headers = dict(headers or {})
        error: dict[str, Any] = {"message": message, "type": kind}
        if code is not None:
            error |= {
                "code": code,
                "doc_url": f"https://stripe.com/docs/error-codes/{code.replace('_', '-')}",
            }
        if param is not None:
            error["param"] = param
        self.body: dict[str, Any] = {"error": error}


def missing(what: str, identifier: str, param: str) -> PaymentError:
    """The answer for an id that the provider does not know."""
    return PaymentError(
        404, f"No such {what}: '{identifier}'", code="resource_missing", param=param
    )


@dataclass(frozen=True)
class Answer:
    """An answer as it is stored under an idempotency key; a replay names the first request."""

    status: int
    body: dict[str, Any]
    replay_of: str | None = None
    headers: dict[str, str] = field(default_factory=dict)


def money_text(amount_minor: int, currency: str) -> str:
    """An amount of minor units for people to read, such as $420.00, ¥12,500 or KWD 45.500."""
    exponent = currency_exponent(currency)
    return format_currency(Decimal(amount_minor).scaleb(-exponent), currency, locale="en_US")


def currency_exponent(currency: str) -> int:
    """How many decimals the currency has. Raises ValueError if there is no such currency."""
    if currency not in get_global("all_currencies"):
        raise ValueError(f"no such currency: {currency}")
    return get_currency_precision(currency)


def refunds_of(db: sqlite3.Connection, payment: str) -> list[sqlite3.Row]:
    """All refunds of a payment, oldest first."""
    return db.execute(
        "select * from refunds where payment = ? order by number", (payment,)
    ).fetchall()


def held_minor(db: sqlite3.Connection, payment: str) -> int:
    """What refunds hold of a payment, in minor units: all that have not failed or been canceled."""
    return sum(
        row["amount_minor"] for row in refunds_of(db, payment) if row["status"] not in UNDONE
    )


def refund_object(refund: Mapping[str, Any] | sqlite3.Row, payment: sqlite3.Row) -> dict[str, Any]:
    """A refund; `metadata` is a dict already, or JSON text as the database keeps it."""
    status = refund["status"]
    shown = {
        "id": refund["id"],
        "object": "refund",
        "amount": refund["amount_minor"],
        "balance_transaction": None,
        "charge": payment["charge"],
        "created": refund["created"],
        "currency": payment["currency"].lower(),
        "destination_details": {"type": "card", "card": {"type": "refund"}},
        "metadata": refund["metadata"],
        "payment_intent": payment["id"],
        "reason": refund["reason"],
        "receipt_number": None,
        "source_transfer_reversal": None,
        "status": status,
        "transfer_reversal": None,
    }
    if status == "pending":
        shown["pending_reason"] = "processing"
    if status == "failed":
        shown["failure_reason"] = refund["failure_reason"] or "unknown"
    return shown


def charge_object(db: sqlite3.Connection, payment: sqlite3.Row) -> dict[str, Any]:
    """The one charge of a payment. `amount_refunded` counts pending refunds too."""
    amount, held = payment["amount_minor"], held_minor(db, payment["id"])
    return {
        "id": payment["charge"],
        "object": "charge",
        "amount": amount,
        "amount_captured": amount,
        "amount_refunded": held,
        "balance_transaction": None,
        "captured": True,
        "created": payment["created"],
        "currency": payment["currency"].lower(),
        "customer": None,
        "description": f"Order {payment['order_id']}",
        "disputed": payment["disputed_at"] is not None,
        "livemode": False,
        "metadata": {"order_id": payment["order_id"]},
        "paid": True,
        "payment_intent": payment["id"],
        "refunded": held >= amount,
        "status": "succeeded",
    }


def payment_object(
    db: sqlite3.Connection, payment: sqlite3.Row, *, expand_charge: bool
) -> dict[str, Any]:
    """A payment intent that has succeeded, with its latest charge as an id or as an object."""
    amount = payment["amount_minor"]
    return {
        "id": payment["id"],
        "object": "payment_intent",
        "amount": amount,
        "amount_capturable": 0,
        "amount_received": amount,
        "canceled_at": None,
        "capture_method": "automatic",
        "confirmation_method": "automatic",
        "created": payment["created"],
        "currency": payment["currency"].lower(),
        "customer": None,
        "description": f"Order {payment['order_id']}",
        "latest_charge": charge_object(db, payment) if expand_charge else payment["charge"],
        "livemode": False,
        "metadata": {"order_id": payment["order_id"]},
        "payment_method_types": ["card"],
        "status": "succeeded",
    }


def dispute_object(payment: sqlite3.Row) -> dict[str, Any]:
    """The open dispute of a disputed payment."""
    return {
        "id": f"dp_{payment['charge'].removeprefix('ch_')}",
        "object": "dispute",
        "amount": payment["amount_minor"],
        "balance_transactions": [],
        "charge": payment["charge"],
        "created": payment["disputed_at"],
        "currency": payment["currency"].lower(),
        "evidence_details": {"due_by": None, "has_evidence": False, "past_due": False},
        "is_charge_refundable": False,
        "livemode": False,
        "metadata": {},
        "payment_intent": payment["id"],
        "reason": "product_not_received",
        "status": "needs_response",
    }


def list_object(url: str, data: list[dict[str, Any]], *, has_more: bool) -> dict[str, Any]:
    """One page of a list."""
    return {"object": "list", "data": data, "has_more": has_more, "url": url}
