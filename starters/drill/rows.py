"""A plan's faults as rows for the company's fault plan."""

from typing import Any

from domain import names
from starters.drill.messages import MANAGER
from starters.drill.plan import Fault
from workers.settings import LOCAL

_SYSTEMS = {
    "orders": "orders",
    "policy": "policy",
    "staff": "staff",
    "send": "mail",
    "chat": "model",
}


def system_of(operation: str) -> str:
    """Whose operation it is: `payments`, `mail`, `model` and so on."""
    return _SYSTEMS.get(operation.partition(".")[0], "payments")


def row(fault: Fault, order_id: str, request_id: str) -> dict[str, Any]:
    """The row of a fault, for calls about this order alone, and where it says so, for one mail.

    Whoever asks for a person in the staff directory names no order.
    """
    scope = names.request_scope(LOCAL, order_id, request_id)
    about = order_id
    if fault.operation == "staff.get":
        about = MANAGER
    elif fault.purpose:
        about = names.idempotency_key(scope, fault.purpose)
    said = fault.model_dump(exclude_defaults=True, exclude={"operation", "what", "purpose"})
    return {
        "system": system_of(fault.operation),
        "operation": fault.operation,
        "what": fault.what,
        "about": about,
        **said,
    }
