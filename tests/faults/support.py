"""What the tables of faults share: rows for the company's fault plan, and what to wait for."""

from typing import Any

from tests.world import World

STORY_MAILS = {"under_review": 1, "approval_request.r1": 1, "refunded": 1}
PAID = [(42000, "succeeded")]

_SYSTEMS = {
    "orders": "orders",
    "policy": "policy",
    "staff": "staff",
    "send": "mail",
    "chat": "model",
}


def fault(operation: str, what: str, **more: Any) -> dict[str, Any]:
    """A row of the fault plan: at the next call, unless said otherwise."""
    system = _SYSTEMS.get(operation.partition(".")[0], "payments")
    return {"system": system, "operation": operation, "what": what, **more}


async def set_faults(world: World, *rows: dict[str, Any]) -> None:
    """Set rows of the fault plan."""
    await world.control("faults", list(rows))


async def mend(world: World) -> None:
    """Take all faults away."""
    await world.http.delete("/control/faults")


async def fired(world: World, times: int = 1) -> None:
    """Wait until the faults have struck so often, all rows together."""

    async def has_fired() -> bool:
        rows = (await world.http.get("/control/faults")).json()
        return bool(sum(row["fired"] for row in rows) >= times)

    await world.until(has_fired)


async def calls(world: World, operation: str) -> int:
    """How often the company was asked for an operation."""
    counts: dict[str, int] = (await world.books())["calls"]
    return counts.get(operation, 0)


async def by_hand(world: World, minor: int, order: str = "8890", **more: Any) -> None:
    """A colleague refunds in the provider's dashboard."""
    body = {"payment": f"pi_{order}", "amount_minor": minor, **more}
    await world.control("hand_refund", body)
