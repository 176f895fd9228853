"""Make a plan that failed smaller, as long as it still fails."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import Any

from starters.drill.conflicts import conflict_in
from starters.drill.kinds import kinds
from starters.drill.plan import Plan

ATTEMPTS = 60
# What an ordinary run is: each is tried on its own, money that belongs together at one time.
_ORDINARY: tuple[dict[str, Any], ...] = (
    {"letter": Plan.model_fields["letter"].default},
    {"asked": None, "refunded_before_minor": 0},
    {"total_minor": 42_000, "currency": "USD", "asked": None, "refunded_before_minor": 0},
    {"delivered_days_ago": Plan.model_fields["delivered_days_ago"].default},
    {"decision": Plan.model_fields["decision"].default},
    {"first_status": "succeeded", "settles": ""},
    {"fails_late": False},
)


@dataclass(frozen=True)
class Attempt:
    """A smaller plan that was tried."""

    number: int
    """From 1 to `ATTEMPTS`, or to the bound that was given."""
    still_fails: bool
    smallest: Plan
    """The smallest plan that is known to fail, this one included."""


async def shrink(
    plan: Plan, fails: Callable[[Plan], Awaitable[bool]], attempts: int = ATTEMPTS
) -> AsyncIterator[Attempt]:
    """Leave things out of a plan one after the other, and keep to what still fails.

    It ends when nothing more can be left out, or after so many attempts; the last one's `smallest`
    is the result. Where nothing comes, the plan is as small as it can be.

    Args:
        plan: A plan that failed.
        fails: Carries a plan through. The order's id is the same each time: it sees to another one.
        attempts: How often it may be called.
    """
    smallest, tried, number = plan, [plan], 0
    while (smaller := _next(smallest, tried)) is not None and number < attempts:
        number += 1
        tried.append(smaller)
        still_fails = await fails(smaller)
        smallest = smaller if still_fails else smallest
        yield Attempt(number, still_fails, smallest)


def _next(plan: Plan, tried: list[Plan]) -> Plan | None:
    """The next smaller plan that makes sense and was not tried."""
    for change in _changes(plan):
        smaller = plan.model_copy(update=change)
        smaller = smaller.model_copy(update={"name": f"shrunk: {', '.join(kinds(smaller))}"})
        known = any(_but_for_name(smaller) == _but_for_name(other) for other in tried)
        if not known and conflict_in(smaller) is None:
            return smaller
    return None


def _but_for_name(plan: Plan) -> Plan:
    return plan.model_copy(update={"name": ""})


def _changes(plan: Plan) -> Iterator[dict[str, Any]]:
    """What can be left out, the most at one time first."""
    for steps in _with_less(plan.steps):
        yield {"steps": steps}
    for faults in _with_less(plan.faults):
        yield {"faults": faults}
    for number, step in enumerate(plan.steps):
        for process in step.who if len(step.who) > 1 else ():
            alone = step.model_copy(update={"who": (process,)})
            yield {"steps": (*plan.steps[:number], alone, *plan.steps[number + 1 :])}
    yield from _ORDINARY


def _with_less(things: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    """All left out, each half, and each single one: a flood would take long one by one."""
    if not things:
        return
    yield ()
    half = len(things) // 2
    if half > 1:
        yield things[:half]
        yield things[half:]
    for number in range(len(things)):
        yield (*things[:number], *things[number + 1 :])
