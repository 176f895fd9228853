"""Order 8890 and everything around it, with any field replaced.

Builders go through validation, so that a test cannot speak of a world that the models refuse.
"""

from datetime import UTC, datetime, timedelta
from typing import Any

from domain.case import Case
from domain.models import (
    Assessment,
    Category,
    Order,
    Payment,
    Person,
    Policy,
    Recommendation,
    Refund,
    RefundStatus,
)
from domain.money import Money
from domain.names import request_scope
from domain.policy import Claim, propose, take_up
from domain.request import Proposal, RefundRequest

NOW = datetime(2026, 11, 29, 18, 0, tzinfo=UTC)
CUSTOMER = "ada.park@customers.example"
REQUESTER = "sam.okafor@northwind.example"
MANAGER = "maria.silva@northwind.example"
SCOPE = request_scope("local", "8890", "r-1")


def usd(minor: int) -> Money:
    """Cents of a dollar."""
    return Money(amount_minor=minor, currency="USD")


def request(**changes: Any) -> RefundRequest:
    """The request for all of order 8890."""
    fields: dict[str, Any] = {
        "environment": "local",
        "order_id": "8890",
        "request_id": "r-1",
        "message": "The lamp came in pieces.",
        "requester": REQUESTER,
        "statement": "signed",
    }
    return RefundRequest.model_validate(fields | changes)


def order(total: Money | None = None, **changes: Any) -> Order:
    """Order 8890, $420.00, delivered six days ago."""
    fields: dict[str, Any] = {
        "id": "8890",
        "customer": {"name": "Ada Park", "email": CUSTOMER},
        "payment": "pi_8890",
        "total": total or usd(42_000),
        "placed_at": NOW - timedelta(days=10),
        "delivered_at": NOW - timedelta(days=6),
    }
    return Order.model_validate(fields | changes)


def refund(
    refund_id: str, minor: int, status: str = RefundStatus.SUCCEEDED, **changes: Any
) -> Refund:
    """A refund on the payment of order 8890, by somebody else unless it has a key."""
    fields: dict[str, Any] = {
        "id": refund_id,
        "payment": "pi_8890",
        "amount": usd(minor),
        "status": status,
        "created_at": NOW,
    }
    return Refund.model_validate(fields | changes)


def payment(*refunds: Refund, captured: Money | None = None, **changes: Any) -> Payment:
    """The payment of order 8890; the provider's own sum agrees with the refunds that succeeded."""
    done = sum(r.amount.amount_minor for r in refunds if r.succeeded)
    fields: dict[str, Any] = {
        "id": "pi_8890",
        "captured": captured or usd(42_000),
        "refunded_minor": done,
        "refunds": refunds,
    }
    return Payment.model_validate(fields | changes)


def policy(**changes: Any) -> Policy:
    """Nobody up to $50.00, one manager up to $1,000.00."""
    fields: dict[str, Any] = {
        "version": "2026-07",
        "text": "§1 Goods may be returned within 30 days.",
        "return_window_days": 30,
        "auto_approve_up_to": {"USD": 5_000, "JPY": 7_500},
        "one_manager_up_to": {"USD": 100_000, "JPY": 150_000},
        "reminder_after_hours": 24,
        "escalate_after_hours": 48,
        "expire_after_hours": 168,
        "grace_minutes": 15,
        "skew_minutes": 2,
        "max_rounds": 3,
        "model_patience_minutes": 30,
        "max_model_turns": 8,
        "operations": "refund-operations@northwind.example",
    }
    return Policy.model_validate(fields | changes)


def case(*refunds: Refund, **changes: Any) -> Case:
    """What the outside says about order 8890, with these refunds on its payment."""
    fields: dict[str, Any] = {
        "order": order(),
        "payment": payment(*refunds),
        "policy": policy(),
        "read_at": NOW,
    }
    return Case.model_validate(fields | changes)


def assessment(recommendation: str = Recommendation.REFUND, **changes: Any) -> Assessment:
    """A model that is sure, unless told otherwise."""
    fields: dict[str, Any] = {
        "category": Category.DAMAGED,
        "recommendation": recommendation,
        "summary": "The lamp was broken on arrival.",
    }
    return Assessment.model_validate(fields | changes)


def claim(taken_up: RefundRequest, facts: Case) -> Claim:
    """The claim of a request that holds."""
    held = take_up(taken_up, facts, NOW)
    assert isinstance(held, Claim), held
    return held


def proposal(facts: Case | None = None, taken_up: RefundRequest | None = None) -> Proposal:
    """The first proposal for a request."""
    facts, taken_up = facts or case(), taken_up or request()
    proposed = propose(taken_up, facts, claim(taken_up, facts), assessment(), 1)
    assert isinstance(proposed, Proposal), proposed
    return proposed


def person(address: str = MANAGER, **changes: Any) -> Person:
    """Maria Silva, a manager who may approve up to $1,000.00."""
    fields: dict[str, Any] = {
        "address": address,
        "name": "Maria Silva",
        "roles": ("manager",),
        "limits": (usd(100_000),),
    }
    return Person.model_validate(fields | changes)
