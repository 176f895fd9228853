"""When a run sees what happens at a place: before its facts, before the money, or never."""

from enum import Enum, auto

from domain.moments import Moment
from domain.moments import place as place_of
from domain.names import ORDER_PURPOSE
from starters.drill.place import company_place
from starters.drill.plan import AT_END, AT_START, Plan, Step

# Mails that go out before the run has come to an end.
_WHILE_OPEN = (
    "mail.under_review",
    "mail.approv",
    "mail.reminder",
    "mail.escalation",
    "mail.alert.unknown",
)


class Seen(Enum):
    """When the run sees something that happened outside."""

    TAKING_UP = auto()
    """Before the request is held against the facts."""
    BEFORE_MONEY = auto()
    """After that, and before the refund is made."""
    NEVER = auto()
    """The refund was made before it."""


def seen_at(place: str, *, restarts: bool) -> frozenset[Seen]:
    """When the run may see what happens at a place.

    Args:
        place: One of the driver's own or of the worker's.
        restarts: Whether the run may read its first facts again: reset, or started anew.
    """
    place = worker_place(place)
    effect, _, moment = place.partition(":")
    if effect.startswith(("verification", "mail.refund", "order.")):
        return frozenset({Seen.NEVER})
    if place == AT_END or (effect.startswith("mail.") and not effect.startswith(_WHILE_OPEN)):
        # The run has ended; where it begins anew, it may end otherwise.
        return frozenset(Seen) if restarts else frozenset({Seen.NEVER})
    if effect.startswith("refund."):
        # Held before it is sent: the provider takes it beside what came meanwhile, or refuses it.
        before = {Seen.BEFORE_MONEY, Seen.NEVER}
        return frozenset(before if moment == Moment.BEFORE else {Seen.NEVER})
    if (effect, moment) == ("facts", Moment.BEFORE):
        return frozenset({Seen.TAKING_UP})
    if place == AT_START or effect == "facts" or restarts:
        return frozenset({Seen.TAKING_UP, Seen.BEFORE_MONEY})
    return frozenset({Seen.BEFORE_MONEY})


def worker_place(place: str) -> str:
    """Where the worker stands while the company is held; a worker's own place stays as it is."""
    inside = company_place(place)
    if inside is None:
        return place
    effects = {
        "send": inside.purpose,
        "chat": "model",
        "refunds.create": "refund.r1",
        "refunds.retrieve": "verification",
        "orders.note_refund": ORDER_PURPOSE,
    }
    # Who else is read, is read for the first facts, or for the re-check.
    return place_of(effects.get(inside.operation, "facts"), inside.moment)


def steps_of(plan: Plan, *kinds: str) -> list[Step]:
    """The plan's steps of these kinds, in order."""
    return [step for step in plan.steps if step.do in kinds]


def hours_of(plan: Plan, effect: str = "") -> float:
    """How many hours pass at this effect's places; all that pass where none is named."""
    passing = steps_of(plan, "pass_time")
    return sum(step.hours for step in passing if worker_place(step.at).startswith(effect))
