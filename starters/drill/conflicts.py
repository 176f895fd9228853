"""What cannot go together in one plan, each with its reason; `draw` and `shrink` leave it out."""

from collections.abc import Callable
from dataclasses import dataclass

from starters.drill.course import (
    APPROVING,
    EXPIRES_AFTER_HOURS,
    ONE_OF_SEVERAL_UP_TO,
    creating,
    due_minor,
    effects,
    hand_refunded_minor,
    passed_hours,
    places,
    places_inside,
    waits,
)
from starters.drill.place import company_place
from starters.drill.plan import AT_END, AT_START, AT_WAIT, Decision, Message, Plan, Process

_REPLACING = ("reset", "terminate")
_AFTER_APPROVAL = ("recheck", "refund.", "verification", "order.")
# For which effect a call is made; calls that are not listed are made by every run.
_CALLED_FOR = {
    "refunds.create": "refund.",
    "refunds.retrieve": "verification",
    "orders.note_refund": "order.",
    "chat": "model",
}
_OF_THE_OUTSIDE = ("hand_refund", "dispute", "lose_right", "pass_time")


@dataclass(frozen=True)
class Conflict:
    """Things that do not go together."""

    name: str
    reason: str
    holds: Callable[[Plan], bool]
    """Whether a plan has them."""


def conflict_in(plan: Plan) -> Conflict | None:
    """The first conflict in a plan, if there is any."""
    return next((conflict for conflict in CONFLICTS if conflict.holds(plan)), None)


def _has(plan: Plan, *what: str) -> bool:
    return any(step.do in what for step in plan.steps)


def _unreached(plan: Plan) -> bool:
    reached = {AT_START, AT_END, *places(plan), *places_inside(plan)} | (
        {AT_WAIT} if waits(plan) else set()
    )
    return any(step.at not in reached for step in plan.steps)


def _never_called(plan: Plan) -> bool:
    passed = effects(plan)
    return any(
        not any(
            effect.startswith(fault.purpose or _CALLED_FOR[fault.operation]) for effect in passed
        )
        for fault in plan.faults
        if fault.purpose or fault.operation in _CALLED_FOR
    )


def _decides_for_nothing(plan: Plan) -> bool:
    return plan.decision is not Decision.APPROVE and not waits(plan)


def _held_for_ever(plan: Plan) -> bool:
    return any(
        not (step.do == "kill" and Process.COMPANY in step.who)
        for step in plan.steps
        if company_place(step.at) is not None
    )


def _held_in_a_faulty_call(plan: Plan) -> bool:
    held = [inside for step in plan.steps if (inside := company_place(step.at)) is not None]
    calls = [(inside.operation, inside.purpose) for inside in held]
    return len(set(calls)) < len(calls) or any(
        (fault.operation, fault.purpose) in calls for fault in plan.faults
    )


def _time_while_held(plan: Plan) -> bool:
    return any(step.do == "pass_time" and step.at != AT_WAIT for step in plan.steps)


def _too_much_time(plan: Plan) -> bool:
    hours = passed_hours(plan)
    return hours >= EXPIRES_AFTER_HOURS or (hours > 0 and plan.decision is Decision.NOBODY)


def _replaced_in_a_moving_world(plan: Plan) -> bool:
    return _has(plan, *_REPLACING) and _has(plan, *_OF_THE_OUTSIDE)


def _replaced_twice(plan: Plan) -> bool:
    return sum(step.do in _REPLACING for step in plan.steps) > 1


def _refund_in_a_dispute(plan: Plan) -> bool:
    return _has(plan, "dispute") and _has(plan, "hand_refund")


def _too_much_by_hand(plan: Plan) -> bool:
    left = plan.total_minor - plan.refunded_before_minor
    return hand_refunded_minor(plan) > left


def _nobody_else(plan: Plan) -> bool:
    total = due_minor(plan) + plan.refunded_before_minor
    one_of_several = total <= ONE_OF_SEVERAL_UP_TO.get(plan.currency, 0)
    return _has(plan, "lose_right") and not (plan.decision in APPROVING and one_of_several)


def _nothing_counted_yet(plan: Plan) -> bool:
    repeats = [step for step in plan.steps if step.message is Message.DUPLICATE]
    return any(not (waits(plan) and step.at.startswith(_AFTER_APPROVAL)) for step in repeats)


def _two_faults_of_the_refund(plan: Plan) -> bool:
    return len([fault for fault in creating(plan) if fault.what != "delay"]) > 1


def _moves_no_refund(plan: Plan) -> bool:
    moves = plan.first_status != "succeeded" or plan.settles != "" or plan.fails_late
    made = any(effect.startswith("refund.") for effect in effects(plan))
    nothing = any(fault.what == "ok_without_effect" for fault in creating(plan))
    return moves and (nothing or not made)


def _fails_without_success(plan: Plan) -> bool:
    return plan.fails_late and (plan.settles or plan.first_status) != "succeeded"


CONFLICTS = (
    Conflict("a step at a place that the run does not come by", "it would not happen", _unreached),
    Conflict("a fault of a call that is not made", "it would not happen", _never_called),
    Conflict(
        "people who decide where nobody is asked",
        "the run would not wait for them, and pay",
        _decides_for_nothing,
    ),
    Conflict(
        "the company held in a call, and not killed",
        "nothing else ends what it is held by",
        _held_for_ever,
    ),
    Conflict(
        "the company held in a call that something else is wrong with",
        "of several faults at one call the company takes the first, and the place is not reached",
        _held_in_a_faulty_call,
    ),
    Conflict(
        "time passed while the worker is held",
        "the server skips no time while an Activity is at work",
        _time_while_held,
    ),
    Conflict(
        "time passed to the deadline or beyond",
        "that is what a plan in which nobody decides is for",
        _too_much_time,
    ),
    Conflict(
        "a run that is replaced while the outside world changes",
        "the new run has a clock of its own, and takes up whatever it finds as known before",
        _replaced_in_a_moving_world,
    ),
    Conflict(
        "a run that is replaced twice",
        "the second time there would be no first run to do it to",
        _replaced_twice,
    ),
    Conflict(
        "a refund by hand on a disputed payment",
        "the provider refuses every refund of it",
        _refund_in_a_dispute,
    ),
    Conflict("more refunded by hand than is left", "the provider refuses it", _too_much_by_hand),
    Conflict(
        "a right lost that nobody else has, or nobody uses",
        "the run would wait for its deadline, or not see it",
        _nobody_else,
    ),
    Conflict(
        "an approval repeated before there is one",
        "there is nothing to send again",
        _nothing_counted_yet,
    ),
    Conflict(
        "two faults of the call that moves the money",
        "of several at one call the company takes the first, and hides the other",
        _two_faults_of_the_refund,
    ),
    Conflict(
        "a refund that changes and is never made", "there is nothing to change", _moves_no_refund
    ),
    Conflict(
        "a late failure of what never succeeded",
        "the customer was not told that it was made",
        _fails_without_success,
    ),
)
