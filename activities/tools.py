"""What the model may read: the run's own order, the policy, and earlier refunds.

Whatever order the model names, only the run's is read (traceloop/openllmetry#4322), and nobody's
address is told.
"""

import asyncio
import json
from typing import Any

from activities.interfaces import ToolResults, ToolsQuery
from activities.orders import Orders
from activities.payments import StripePayments
from domain.agent import TOOL_RESULT_LIMIT, ToolCall, ToolResult
from domain.errors import OutsideError
from domain.models import Order

# For one tool; less than the start-to-close time of their Activity (10 s).
TOOL_SECONDS = 4.0
_CUT = " [cut here]"


class Tools:
    """Reads for the model."""

    def __init__(self, orders: Orders, payments: StripePayments) -> None:
        """Read from these systems."""
        self._orders = orders
        self._payments = payments

    async def use(self, query: ToolsQuery) -> ToolResults:
        """Run the tools of one answer together; one that cannot be had tells the model so."""
        results = await asyncio.gather(*(self._use(query.order_id, call) for call in query.calls))
        return ToolResults(results=tuple(results))

    async def _use(self, order_id: str, call: ToolCall) -> ToolResult:
        try:
            async with asyncio.timeout(TOOL_SECONDS):
                content = await self._run(order_id, call)
        except (OutsideError, TimeoutError):
            content = "Not available right now."
        if len(content) > TOOL_RESULT_LIMIT:
            content = content[: TOOL_RESULT_LIMIT - len(_CUT)] + _CUT
        return ToolResult(call_id=call.call_id, content=content)

    async def _run(self, order_id: str, call: ToolCall) -> str:
        if not call.fits(order_id):
            return f"Only order {order_id} can be read in this case."
        match call.tool:
            case "look_up_order":
                return await self._look_up_order(order_id)
            case "read_policy":
                return await self._read_policy()
            case "past_refunds":
                return await self._past_refunds(order_id)
            case _:
                return "There is no such tool."

    async def _look_up_order(self, order_id: str) -> str:
        """The order without the customer."""
        order = await self._orders.read_order(order_id)
        return "There is no such order." if order is None else _order_text(order)

    async def _read_policy(self) -> str:
        policy = await self._orders.read_policy()
        head = f"Version {policy.version}. return_window_days: {policy.return_window_days}"
        return f"{head}\n\n{policy.text}"

    async def _past_refunds(self, order_id: str) -> str:
        """What was paid for the order, what was refunded, and what is left."""
        order = await self._orders.read_order(order_id)
        payment = await self._payments.read_payment(order.payment) if order else None
        if payment is None:
            return "There is no payment for this order."
        return _json(
            {
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
        )


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
