"""What the tests of the adapters share: a clock that they move, and what they ask for."""

from datetime import UTC, datetime, timedelta
from typing import Any

from activities.interfaces import RefundOrder
from domain.agent import ModelRequest, Turn
from domain.money import Money
from domain.names import idempotency_key, request_scope
from domain.request import Proposal

REQUEST = "req-1"
LETTER = "The espresso machine came with a broken boiler. Please give me my money back."


class MovableClock:
    """The real time, moved as far as a test says."""

    def __init__(self) -> None:
        """Start at the real time."""
        self._moved = timedelta()
        self.jump = timedelta()
        """How far the clock leaps ahead each time that somebody looks at it."""

    def __call__(self) -> datetime:
        """Now."""
        self._moved += self.jump
        return datetime.now(UTC) + self._moved

    def advance(self, **duration: float) -> None:
        """Let time go by: `minutes=6` and the like."""
        self._moved += timedelta(**duration)


def usd(minor: int) -> Money:
    """Dollars, in cents."""
    return Money(amount_minor=minor, currency="USD")


def refund_order(order: str = "8890", minor: int = 42000, **changes: Any) -> RefundOrder:
    """The order to refund an order in its first round, on facts of this moment."""
    scope = request_scope("local", order, REQUEST)
    fields = {
        "environment": "local",
        "key": idempotency_key(scope, "refund.r1"),
        "scope": scope,
        "payment": f"pi_{order}",
        "amount": usd(minor),
        "order_id": order,
        "proposal_id": "0123456789abcdef",
        "known_refunds": (),
        "checked_at": datetime.now(UTC),
        **changes,
    }
    return RefundOrder.model_validate(fields)


def proposal(order: str = "8890", minor: int = 42000, **changes: Any) -> Proposal:
    """A proposal that needs one manager."""
    fields = {
        "proposal_id": "0123456789abcdef0123456789abcdef",
        "round": 1,
        "order_id": order,
        "payment": f"pi_{order}",
        "amount": usd(minor),
        "taken_before": usd(0),
        "policy_version": "2026-07",
        "approvals_needed": 1,
        "why_a_person": ("420.00 USD is more than 50.00 USD",),
        **changes,
    }
    return Proposal.model_validate(fields)


def model_request(letter: str = LETTER, turns: tuple[Turn, ...] = ()) -> ModelRequest:
    """What a run for order 8890 asks the model in its next turn."""
    return ModelRequest(
        environment="local",
        key=idempotency_key(request_scope("local", "8890", REQUEST), f"model.{len(turns) + 1}"),
        order_id="8890",
        letter=letter,
        turns=turns,
    )
