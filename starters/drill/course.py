"""What a plan's run comes by where each fault is overcome: the places at which steps can strike.

A drawn plan whose steps stood elsewhere would test nothing. The numbers are those of the stand-in
company's policy; what an outcome must be is held against `expect`, not against this.
"""

from domain.moments import Moment, place
from domain.money import MoneyError, parse_amount
from domain.names import ORDER_PURPOSE
from starters.drill.place import Company
from starters.drill.plan import AT_WAIT, Decision, Fault, Plan

RETURN_WINDOW_DAYS = 30
# Minor units that need nobody. A currency that is not listed always needs a person.
NOBODY_NEEDED_UP_TO = {"USD": 5_000, "EUR": 5_000, "JPY": 7_500}
# Minor units for which one manager is enough, and more than one person may be that manager.
ONE_OF_SEVERAL_UP_TO = {"USD": 100_000, "EUR": 100_000, "JPY": 150_000}
EXPIRES_AFTER_HOURS = 168
REMINDER_AFTER_HOURS, ESCALATION_AFTER_HOURS = 24, 48

APPROVING = (Decision.APPROVE, Decision.APPROVE_AT_ONCE)

_BEFORE_ANY_PROPOSAL = ("facts", "model")
_ASKED = ("mail.under_review", "mail.approval_request.r1")
_REMINDED, _ESCALATED = "mail.reminder.r1", "mail.escalation.r1"
# What comes after the wait where nobody approves. Of a yes and a no at one moment, either may win.
_WITHOUT_APPROVAL = {
    Decision.REJECT: ("decision", "mail.rejected"),
    Decision.BOTH: ("decision",),
    Decision.WITHDRAW: ("withdrawal", "mail.withdrawn"),
    Decision.CANCEL: ("mail.withdrawn",),
    Decision.NOBODY: (_REMINDED, _ESCALATED, "mail.expired"),
}
_END_MAILS = {
    "succeeded": "mail.refunded",
    "failed": "mail.refund_failed",
    "canceled": "mail.refund_failed",
}
# The call that makes an effect.
_CALLS = {
    "model": "chat",
    "mail.": "send",
    "refund.": "refunds.create",
    "verification": "refunds.retrieve",
    "order.": "orders.note_refund",
}
_RECORDED_IN_THE_LEDGER = ("model", "mail")


def due_minor(plan: Plan) -> int:
    """What a refund would be at first, in minor units; 0 where a rule refuses the request."""
    left = plan.total_minor - plan.refunded_before_minor
    asked = _asked_minor(plan, left)
    return asked if asked is not None and asked <= left else 0


def _asked_minor(plan: Plan, left: int) -> int | None:
    """What is asked for, in minor units; None where that is nonsense, or comes too late."""
    if plan.delivered_days_ago > RETURN_WINDOW_DAYS:
        return None
    if plan.asked is None:
        return left
    try:
        return parse_amount(plan.asked).in_currency(plan.currency).amount_minor
    except MoneyError:
        return None


def waits(plan: Plan) -> bool:
    """Whether people are asked for certain; a doubt of the model may ask them for less."""
    due = due_minor(plan)
    alone = NOBODY_NEEDED_UP_TO.get(plan.currency, 0)
    return due > 0 and due + plan.refunded_before_minor > alone


def effects(plan: Plan) -> tuple[str, ...]:
    """The effects that the run passes, in order, by the names that the worker's watch has."""
    if due_minor(plan) == 0:
        left = plan.total_minor - plan.refunded_before_minor
        covered = left == 0 and _asked_minor(plan, left) is not None
        return ("facts", "mail.already_refunded" if covered else "mail.declined")
    if not waits(plan):
        return (*_BEFORE_ANY_PROPOSAL, "recheck", *_after(plan))
    asked = (*_BEFORE_ANY_PROPOSAL, *_ASKED, *_said_in_time(plan))
    return asked + (_WITHOUT_APPROVAL.get(plan.decision) or ("decision", "recheck", *_after(plan)))


def places(plan: Plan) -> tuple[str, ...]:
    """Every moment of these effects at which the worker can be held."""
    return tuple(
        place(effect, moment)
        for effect in effects(plan)
        for moment in Moment
        if moment is not Moment.RECORDED or effect.startswith(_RECORDED_IN_THE_LEDGER)
    )


def places_inside(plan: Plan) -> tuple[str, ...]:
    """The places at which the company can be held itself, in the middle of a call."""
    return tuple(
        Company(call, effect if call == "send" else "", moment).place
        for effect in effects(plan)
        for begins, call in _CALLS.items()
        if effect.startswith(begins)
        for moment in (Moment.BEFORE, Moment.DONE)
    )


def hand_refunded_minor(plan: Plan) -> int:
    """What colleagues refund by hand during the wait, in minor units."""
    return sum(step.minor for step in plan.steps if step.do == "hand_refund")


def passed_hours(plan: Plan) -> float:
    """How long the people take to decide."""
    return sum(step.hours for step in plan.steps if step.at == AT_WAIT)


def _said_in_time(plan: Plan) -> tuple[str, ...]:
    """The notice during the wait that is certain: a long jump in time may leave out the first."""
    hours = passed_hours(plan)
    if hours > ESCALATION_AFTER_HOURS:
        return (_ESCALATED,)
    return (_REMINDED,) if hours > REMINDER_AFTER_HOURS else ()


def _after(plan: Plan) -> tuple[str, ...]:
    """What follows the look at the world before the money."""
    if any(step.do == "dispute" for step in plan.steps):
        return ("mail.declined",)
    by_hand = hand_refunded_minor(plan)
    if by_hand >= due_minor(plan):
        return ("mail.already_refunded",)
    if by_hand:
        return ("mail.approval_request.r2", *_paid(plan, 2))
    return _paid(plan, 1)


def _paid(plan: Plan, round_number: int) -> tuple[str, ...]:
    if any(fault.what == "ok_without_effect" for fault in creating(plan)):
        end = "mail.delayed"
    else:
        end = _END_MAILS.get(plan.settles or plan.first_status, "mail.delayed")
    told = (ORDER_PURPOSE,) if end == "mail.refunded" else ()
    return (f"refund.r{round_number}", "verification", *told, end)


def creating(plan: Plan) -> list[Fault]:
    """The faults of the call that moves the money."""
    return [fault for fault in plan.faults if fault.operation == "refunds.create"]
