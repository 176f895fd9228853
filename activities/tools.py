"""What the model may read: the run's own order, the policy, and earlier refunds.

Whatever order the model names, only the run's is read (traceloop/openllmetry#4322), and nobody's
address is told.
"""

import asyncio
import json
from typing import Any

from activities.interfaces import ToolQuery
from activities.orders import Orders
from activities.payments import StripePayments
from domain.agent import TOOL_RESULT_LIMIT, ToolResult
from domain.errors import Unreachable
from domain.models import Order

# Tools are local Activities of 5 seconds in total.
TOOL_SECONDS = 4.0
_CUT = " [cut here]"


class Tools:
    """Reads for the model."""

    def __init__(self, orders: Orders, payments: StripePayments) -> None:
        """Read from these systems."""
        self._orders = orders
        self._payments = payments

    async def look_up_order(self, query: ToolQuery) -> ToolResult:
        """The order without the customer.

        Raises:
            OutsideError: the order service cannot be read.
        """
        if (no := _refuse(query)) is not None:
            return no
        order = await self._orders.read_order(query.order_id)
        if order is None:
            return _result(query, "There is no such order.")
        return _result(query, _order_text(order))

    async def read_policy(self, query: ToolQuery) -> ToolResult:
        """The policy's text with its version.

        Raises:
            OutsideError: the policy cannot be read.
        """
        policy = await self._orders.read_policy()
        head = f"Version {policy.version}. return_window_days: {policy.return_window_days}"
        return _result(query, f"{head}\n\n{policy.text}")

    async def past_refunds(self, query: ToolQuery) -> ToolResult:
        """What was paid for the order, what was refunded, and what is left.

        Raises:
            OutsideError: the order service or the payment provider cannot be read.
        """
        if (no := _refuse(query)) is not None:
            return no
        try:
            async with asyncio.timeout(TOOL_SECONDS):
                order = await self._orders.read_order(query.order_id)
                payment = await self._payments.read_payment(order.payment) if order else None
        except TimeoutError:
            raise Unreachable("earlier refunds: no answer in time") from None
        if payment is None:
            return _result(query, "There is no payment for this order.")
        told = {
            "captured": str(payment.captured),
            "left": str(payment.left),
            "in_dispute": payment.disputed,
            "refunds": [
                {
                    "id": refund.id,
                    "amount": str(refund.amount),
                    "status": refund.status,
                    "created_at": refund.created_at.isoformat(),
                }
                for refund in payment.refunds
            ],
        }
        return _result(query, _json(told))


def _refuse(query: ToolQuery) -> ToolResult | None:
    """A sentence for a call that names another order; None for one that names the run's."""
    try:
        named = json.loads(query.call.arguments).get("order_id", query.order_id)
    except (ValueError, AttributeError):
        return _result(query, "The arguments are no JSON object.")
    if named == query.order_id:
        return None
    return _result(query, f"Only order {query.order_id} can be read in this case.")


def _order_text(order: Order) -> str:
    return _json(
        {
            "id": order.id,
            "total": str(order.total),
            "placed_at": order.placed_at.isoformat(),
            "delivered_at": order.delivered_at.isoformat() if order.delivered_at else None,
            "items": [{"name": item.name, "quantity": item.quantity} for item in order.items],
        }
    )


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _result(query: ToolQuery, content: str) -> ToolResult:
    if len(content) > TOOL_RESULT_LIMIT:
        content = content[: TOOL_RESULT_LIMIT - len(_CUT)] + _CUT
    return ToolResult(call_id=query.call.call_id, content=content)
