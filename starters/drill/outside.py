"""The outside world of one plan: its order and payment, its faults, what colleagues do by hand."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

from domain.moments import Moment
from starters.drill.place import Company
from starters.drill.plan import Fault, Plan, Step
from starters.drill.rows import row
from starters.drill.site import Site
from starters.errors import CommandError

_LOCALES = {"USD": "en_US", "EUR": "de_DE", "JPY": "ja_JP", "KWD": "en_US"}
# Longer than any drill: only the end of the process ends it.
_HELD_SECONDS = 3600.0
_PAUSE_SECONDS = 0.1


def customer_of(order_id: str) -> str:
    """The address of the customer of a drill's order."""
    return f"{order_id}@customers.example".lower()


def payment_of(order_id: str) -> str:
    """The payment of a drill's order."""
    return f"pi_{order_id}"


class Outside:
    """What the company knows of one plan."""

    def __init__(self, site: Site, plan: Plan) -> None:
        """Nothing is there yet."""
        self._site, self._plan = site, plan
        self._payment = payment_of(plan.order_id)

    async def prepare(self, request_id: str) -> None:
        """Make the order with its payment, and set the plan's faults.

        Raises:
            CommandError: the company refused it.
        """
        plan = self._plan
        await self._site.control("orders", self._order())
        if plan.refunded_before_minor:
            await self._hand_refund(plan.refunded_before_minor)
        if plan.first_status != "succeeded":
            change = {"next_refund_status": plan.first_status}
            await self._site.control(f"payments/{self._payment}", change)
        rows = [row(fault, self._plan.order_id, request_id) for fault in plan.faults]
        if rows:
            await self._site.control("faults", rows)

    async def do(self, step: Step) -> bool:
        """What a step does outside; whether the company took it."""
        try:
            match step.do:
                case "hand_refund":
                    await self._hand_refund(step.minor)
                case "forget_keys":
                    await self._site.control("forgotten_keys", {"about": self._plan.order_id})
                case "dispute":
                    await self._site.control(f"payments/{self._payment}", {"disputed": True})
                case "lose_right":
                    await self._site.rights.lose()
                case _:
                    raise ValueError(f"nobody outside does {step.do}")
        except CommandError:
            return False
        return True

    async def settle(self) -> bool:
        """Give our refunds that are not final their last status; whether there was one."""
        ours = [r for r in await self._refunds() if r["metadata"]]
        for refund in ours:
            await self._site.control(f"refunds/{refund['id']}", {"status": self._plan.settles})
        return bool(ours)

    async def fail_refunds(self) -> None:
        """The bank returns what was refunded by us."""
        for refund in await self._refunds():
            if refund["metadata"] and refund["status"] == "succeeded":
                body = {"status": "failed", "failure_reason": "lost_or_stolen_card"}
                await self._site.control(f"refunds/{refund['id']}", body)

    async def hold_company(self, where: Company, request_id: str) -> None:
        """Have the company stand still inside a call, and wait until it does."""
        before = where.moment is Moment.BEFORE
        fault = Fault(
            operation=where.operation,
            what="delay" if before else "hang_after",
            seconds=_HELD_SECONDS if before else None,
            purpose=where.purpose,
        )
        hold = row(fault, self._plan.order_id, request_id)
        rows: list[dict[str, Any]] = await self._site.control("faults", [hold])
        mine = max(row["id"] for row in rows)
        while not await self._has_fired(mine):  # noqa: ASYNC110 - it happens in another process
            await asyncio.sleep(_PAUSE_SECONDS)

    async def _has_fired(self, fault_id: int) -> bool:
        rows: list[dict[str, Any]] = await self._site.read("/control/faults")
        return any(row["id"] == fault_id and row["fired"] for row in rows)

    async def _hand_refund(self, minor: int) -> None:
        await self._site.control("hand_refund", {"payment": self._payment, "amount_minor": minor})

    async def _refunds(self) -> list[dict[str, Any]]:
        books = await self._site.read("/books")
        refunds: list[dict[str, Any]] = books["payments"][self._payment]["refunds"]
        return refunds

    def _order(self) -> dict[str, Any]:
        plan = self._plan
        delivered = datetime.now(UTC) - timedelta(days=plan.delivered_days_ago)
        placed = delivered - timedelta(days=4)
        return {
            "id": plan.order_id,
            "customer": {
                "name": "Dora Drill",
                "email": customer_of(plan.order_id),
                "locale": _LOCALES[plan.currency],
            },
            "payment": self._payment,
            "total": {"amount_minor": plan.total_minor, "currency": plan.currency},
            "items": [{"name": "Coffee grinder"}],
            "placed_at": placed.isoformat(),
            "delivered_at": delivered.isoformat(),
        }
