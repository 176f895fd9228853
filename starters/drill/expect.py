"""How a plan may end, by a plain model of the rules that shares no rule with the code it judges.

The model knows neither Activities nor time-outs. It looks at what happens in the outside world and
when: before the facts are taken up, before the money, or after it. Where two things race, it allows
each order of them, and nothing else.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product

from domain.models import Outcome
from starters.drill.plan import AT_START, Decision, Fault, Plan
from starters.drill.rules import (
    HOURS_TO_DECIDE,
    MOST_ROUNDS,
    RETURN_WINDOW_DAYS,
    are_enough,
    minor_of,
    people_needed,
    who_may_approve,
)
from starters.drill.timing import Seen, hours_of, seen_at, steps_of

# Answers of a provider that mean "later" or "not you", never "no" to this very refund.
_LATER = frozenset({401, 403, 404, 408, 409, 425, 429})
# More failures in a row than this may outlast the run's patience.
_MANY_FAILURES = 20
_DAYS_OF_PENDING = 30
_DAYS_OF_FACTS = 1
_DAYS_OF_RECHECK = 7


@dataclass(frozen=True)
class Offer:
    """What may be refunded for a request, in minor units, and what the tier looks at."""

    amount_minor: int
    total_minor: int
    """With all earlier refunds on the order."""


@dataclass(frozen=True)
class Expected:
    """What the rules allow a plan to come to."""

    outcomes: frozenset[Outcome]
    offers: frozenset[Offer]
    """What our one refund may have been of, if there is one; empty where there may be none."""
    needed: int
    """How many people must have approved, at least, whatever was offered."""

    def offers_of(self, amount_minor: int) -> tuple[Offer, ...]:
        """Every offer of this amount."""
        return tuple(offer for offer in self.offers if offer.amount_minor == amount_minor)


@dataclass(frozen=True)
class _Ends:
    outcomes: frozenset[Outcome] = frozenset()
    offer: Offer | None = None
    needed: int | None = None


def expect(plan: Plan) -> Expected:
    """All ends that the rules allow this plan, over every order of what races in it."""
    ends = [_ends(plan, *when) for when in _interleavings(plan)]
    needed = [end.needed for end in ends if end.needed is not None]
    outcomes = frozenset().union(*(end.outcomes for end in ends)) | _ends_of_reading(plan)
    return Expected(
        outcomes=outcomes,
        offers=frozenset(end.offer for end in ends if end.offer is not None),
        needed=min(needed, default=0),
    )


def _restarts(plan: Plan) -> bool:
    return bool(steps_of(plan, "reset", "terminate"))


def _interleavings(plan: Plan) -> Iterable[tuple[list[int], list[int], Seen]]:
    """Hand refunds by the time they are seen, and when a dispute is, in every order."""
    by_hand = steps_of(plan, "hand_refund")
    restarts = _restarts(plan)
    whens = [sorted(seen_at(s.at, restarts=restarts), key=lambda s: s.value) for s in by_hand]
    disputes = {Seen.NEVER}
    for step in steps_of(plan, "dispute"):
        # Unlike a refund by hand, a dispute stops a refund that has not been made.
        seen = seen_at(step.at, restarts=restarts)
        disputes = {Seen.BEFORE_MONEY} if seen >= {Seen.BEFORE_MONEY, Seen.NEVER} else set(seen)
    for dispute in sorted(disputes, key=lambda s: s.value):
        for when in product(*whens):
            pairs = list(zip(by_hand, when, strict=True))
            yield (
                [step.minor for step, seen in pairs if seen is Seen.TAKING_UP],
                [step.minor for step, seen in pairs if seen is Seen.BEFORE_MONEY],
                dispute,
            )


def _ends(plan: Plan, at_first: list[int], meanwhile: list[int], dispute: Seen) -> _Ends:
    """How the plan may end where the outside did these things in this order."""
    taken = plan.refunded_before_minor + sum(at_first)
    if (refused := _refused_at_once(plan, taken, dispute)) is not None:
        return _Ends(refused)
    left = plan.total_minor - taken
    claim = left if plan.asked is None else minor_of(plan.asked, plan.currency)
    if claim is None or claim > left:
        return _Ends(frozenset({Outcome.DECLINED}))
    total = claim + taken
    needed = people_needed(total, plan.currency)
    amount = claim - sum(meanwhile)
    ends: set[Outcome] = set()
    paid = False
    # A model in doubt adds a person where nobody would be needed, and changes nothing else.
    for people in {needed, max(needed, 1)} if _may_doubt(plan) else {needed}:
        decided, agreed = _decided(plan, total, people)
        ends |= decided
        paid |= agreed
    if not paid:
        return _Ends(frozenset(ends), needed=needed)
    if len(meanwhile) >= MOST_ROUNDS:
        ends.add(Outcome.NEEDS_HUMAN)
    if dispute is Seen.BEFORE_MONEY:
        # What covers the request may have been seen in a round before the dispute was.
        more = {Outcome.ALREADY_REFUNDED} if amount <= 0 else set()
        return _Ends(frozenset(ends | more | {Outcome.DECLINED}), needed=needed)
    if amount <= 0:
        return _Ends(frozenset(ends | {Outcome.ALREADY_REFUNDED}), needed=needed)
    return _Ends(frozenset(ends | _paid(plan)), Offer(amount, total), needed)


def _refused_at_once(plan: Plan, taken: int, dispute: Seen) -> frozenset[Outcome] | None:
    """The end of a request that does not hold against the facts; None where it does."""
    declined = frozenset({Outcome.DECLINED})
    if dispute is Seen.TAKING_UP or plan.delivered_days_ago >= RETURN_WINDOW_DAYS:
        return declined
    if plan.asked is not None and minor_of(plan.asked, plan.currency) is None:
        return declined
    if taken >= plan.total_minor:
        return frozenset({Outcome.ALREADY_REFUNDED})
    return None


def _decided(plan: Plan, total: int, needed: int) -> tuple[set[Outcome], bool]:
    """How it ends without money, and whether it may be agreed that money moves."""
    if needed == 0:
        return set(), True
    currency = plan.currency
    able = who_may_approve(total, currency, needed)
    if not are_enough(able, total, currency, needed):
        return {Outcome.NEEDS_HUMAN}, False
    ends = set()
    cancelled = plan.decision is Decision.CANCEL
    if (
        hours_of(plan) >= HOURS_TO_DECIDE
        # Only approvals that have counted are carried over; nobody may say anew what has not.
        or steps_of(plan, "terminate")
        or (cancelled and steps_of(plan, "reset"))
    ):
        ends.add(Outcome.EXPIRED)
    match plan.decision:
        case Decision.REJECT:
            return ends | {Outcome.REJECTED}, False
        case Decision.WITHDRAW | Decision.CANCEL:
            return ends | {Outcome.WITHDRAWN}, False
        case Decision.NOBODY:
            return {Outcome.EXPIRED}, False
        case Decision.BOTH if needed > 1:
            # One approval is not enough, and one rejection is.
            return ends | {Outcome.REJECTED}, False
        case Decision.BOTH:
            ends.add(Outcome.REJECTED)
    return ends | _after_lost_rights(plan, able, total, needed), True


def _after_lost_rights(plan: Plan, able: tuple[str, ...], total: int, needed: int) -> set[Outcome]:
    """What else it may come to where one of those who can agree loses their right."""
    if not steps_of(plan, "lose_right"):
        return set()
    # Whose right it was, and whether it has come back in time, the plan does not say.
    others_can = all(
        are_enough([a for a in able if a != one], total, plan.currency, needed) for one in able
    )
    # Asked again there is nobody; or the one who was asked could not decide any more.
    return set() if others_can else {Outcome.NEEDS_HUMAN, Outcome.EXPIRED}


def _paid(plan: Plan) -> set[Outcome]:
    """How it may end once the refund may be made."""
    ends, hopeless = _provider_troubles(plan)
    if hopeless:
        return ends
    last = plan.first_status
    if last in ("pending", "requires_action"):
        last = plan.settles
        if not last or hours_of(plan) >= 24 * _DAYS_OF_PENDING:
            ends.add(Outcome.NEEDS_HUMAN)
    if last == "succeeded":
        ends.add(Outcome.REFUNDED)
    elif last in ("failed", "canceled"):
        ends.add(Outcome.REFUND_FAILED)
    else:
        ends.add(Outcome.NEEDS_HUMAN)
    return ends


def _provider_troubles(plan: Plan) -> tuple[set[Outcome], bool]:
    """What faults at the refund itself lead to, and whether the refund cannot succeed beside it."""
    ends: set[Outcome] = set()
    hopeless = False
    # A process that is killed, or a run that begins anew, asks once more.
    once = not steps_of(plan, "kill", "stop", "deploy", "reset", "terminate")
    for fault in plan.faults:
        if fault.operation != "refunds.create":
            continue
        says_no = fault.status is not None and fault.status < 500 and fault.status not in _LATER
        if fault.what == "ok_without_effect" or says_no:
            ends.add(Outcome.NEEDS_HUMAN)
            hopeless |= once and fault.call in (1, "every")
        elif fault.stored or _is_endless(fault):
            ends.add(Outcome.NEEDS_HUMAN)
    return ends, hopeless


def _ends_of_reading(plan: Plan) -> frozenset[Outcome]:
    """Further ends where order, payment, staff or policy are not to be read, or read wrong.

    What the order service is told in the end changes no outcome.
    """
    ends: set[Outcome] = set()
    for fault in plan.faults:
        if fault.operation in ("send", "chat", "refunds.create", "orders.note_refund"):
            continue
        odd = fault.status is not None and fault.status < 500 and fault.status not in _LATER
        if fault.status == 404 or odd or _is_endless(fault):
            ends.add(Outcome.NEEDS_HUMAN)
            if fault.operation == "orders.get":
                ends.add(Outcome.DECLINED)
            if fault.operation.startswith("staff."):
                ends.add(Outcome.EXPIRED)
    held = [("facts", _DAYS_OF_FACTS), ("recheck", _DAYS_OF_RECHECK), ("refund.", _DAYS_OF_RECHECK)]
    for effect, days in held:
        if hours_of(plan, effect) >= 24 * days:
            ends.add(Outcome.NEEDS_HUMAN)
    if plan.delivered_days_ago + hours_of(plan) / 24 >= RETURN_WINDOW_DAYS and (
        _restarts(plan) or hours_of(plan, AT_START) or hours_of(plan, "facts")
    ):
        ends.add(Outcome.DECLINED)
    return frozenset(ends)


def _is_endless(fault: Fault) -> bool:
    times = fault.times if fault.call == "every" else fault.times or 1
    return times is None or times > _MANY_FAILURES


def _may_doubt(plan: Plan) -> bool:
    """Whether the model may not say "refund": another letter than the usual one, or no answer."""
    usual = plan.letter == Plan.model_fields["letter"].default
    late = any(hours_of(plan, effect) for effect in (AT_START, "facts", "model"))
    # The stand-in looks an order up by an id with a digit in it, and is in doubt without its facts.
    readable = any(char.isdigit() for char in plan.order_id)
    return (
        not (usual and readable) or late or any(fault.operation == "chat" for fault in plan.faults)
    )
