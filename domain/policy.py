"""What the policy says of a request: a proposal, or an end with a named reason (promises P2, P5).

Pure functions. The model's assessment can add a person to the decision; it can neither remove one,
nor raise an amount, nor refuse anybody.
"""

import hashlib
import json
from datetime import datetime, timedelta

from domain.case import Case, Ours
from domain.models import (
    Assessment,
    Frozen,
    Order,
    Outcome,
    Payment,
    Policy,
    Recommendation,
    Refund,
)
from domain.money import Money, MoneyError, parse_amount
from domain.names import request_scope, workflow_id
from domain.outcomes import Close, Reason, told_before
from domain.request import Proposal, RefundRequest


class Claim(Frozen):
    """A request that holds against the facts: which money it asks for."""

    amount: Money
    known_refunds: tuple[str, ...]
    """Refunds on the payment when the request was taken up; later ones count against it."""


def take_up(request: RefundRequest, case: Case, now: datetime) -> Claim | Ours | Close:
    """Hold a request against order, payment and the policy's rules, before all else."""
    order = case.order
    if case.requester_refusal is not None:
        words = f"The request is not signed by a member of staff who may: {case.requester_refusal}."
        return Close(
            outcome=Outcome.NEEDS_HUMAN, reason=Reason.REQUEST_NOT_AUTHENTIC, explanation=words
        )
    if order is None:
        return _declined(Reason.ORDER_UNKNOWN, f"There is no order {request.order_id}.")
    if order.id != request.order_id:
        words = f"The order service spells this order {order.id!r}, not {request.order_id!r}."
        return _declined(Reason.ORDER_SPELLED_DIFFERENTLY, words)
    payment = case.payment
    if payment is None or not payment.all_in(order.total.currency):
        words = (
            f"The payment {order.payment} of order {order.id} cannot be read as the order tells it."
        )
        return Close(outcome=Outcome.NEEDS_HUMAN, reason=Reason.PAYMENT_UNKNOWN, explanation=words)
    made = case.find_ours(request_scope(request.environment, request.order_id, request.request_id))
    if made is not None:
        return _earlier(request, order, made)
    if case.told:
        return told_before(case.told[0])
    if payment.disputed:
        return disputed(payment)
    if _outside_window(order, case.policy, now):
        words = (
            f"Order {order.id} was delivered more than {case.policy.return_window_days} days ago."
        )
        return _declined(Reason.OUTSIDE_RETURN_WINDOW, words)
    return _claim(request, order, payment)


def _claim(request: RefundRequest, order: Order, payment: Payment) -> Claim | Close:
    counted = [refund for refund in payment.refunds if refund.takes_money]
    refundable = min(
        payment.left, left_of_order(order, payment), key=lambda money: money.amount_minor
    )
    try:
        amount = (
            refundable
            if request.amount is None
            else parse_amount(request.amount).in_currency(order.total.currency)
        )
    except MoneyError as error:
        return _declined(Reason.AMOUNT_INVALID, f"The amount is wrong: {error}.")
    if refundable.amount_minor == 0:
        return _nothing_left(order, counted)
    if request.amount is not None and (since := _since_last(request, payment)) is not None:
        # A part that somebody refunded by hand since this request needed a person is not paid
        # again, as in a run that waits (`domain.recheck`).
        last, others = since
        covering = [refund for refund in others if refund.may_cover(order.id)]
        open_minor = min(amount.amount_minor, last.amount.amount_minor) - sum_minor(covering)
        if open_minor <= 0:
            return covered_by_others(covering)
        amount = amount.with_minor(open_minor)
    if amount.amount_minor > refundable.amount_minor:
        words = f"{amount} was asked for, and {refundable} can be refunded."
        return _declined(Reason.AMOUNT_ABOVE_REFUNDABLE, words)
    return Claim(amount=amount, known_refunds=tuple(refund.id for refund in payment.refunds))


def _since_last(request: RefundRequest, payment: Payment) -> tuple[Proposal, list[Refund]] | None:
    """The last proposal of a retried request, and what others took from the payment since then.

    None where there is none on this payment. It may be forged, so it can only lower an amount.
    """
    last = request.resumes.proposal if request.resumes is not None else None
    if last is None or (last.payment, last.amount.currency) != (
        payment.id,
        payment.captured.currency,
    ):
        return None
    return last, payment.taken_since(last.known_refunds)


def covered_by_others(covering: list[Refund]) -> Close:
    """The end where refunds that others made since the request came cover it."""
    if all(refund.succeeded for refund in covering):
        words = f"Somebody else refunded {list_refunds(covering)} while this request waited."
        return Close(
            outcome=Outcome.ALREADY_REFUNDED,
            reason=Reason.REFUNDED_BY_HAND,
            explanation=words,
            refund=covering[0] if len(covering) == 1 else None,
        )
    listed = list_refunds(covering)
    words = f"Somebody else's refund would cover the request and has not succeeded: {listed}."
    return Close(outcome=Outcome.NEEDS_HUMAN, reason=Reason.OTHER_REFUND_PENDING, explanation=words)


def left_of_order(order: Order, payment: Payment) -> Money:
    """What of an order's total is not refunded, or about to be.

    One payment may have paid for several orders: none is refunded at another's expense.
    """
    covering = [r for r in payment.refunds if r.takes_money and r.may_cover(order.id)]
    return order.total.with_minor(max(0, order.total.amount_minor - sum_minor(covering)))


def _earlier(request: RefundRequest, order: Order, made: Ours | Close) -> Ours | Close:
    """A refund that an earlier run of this request made: it may not be more than was asked for."""
    if isinstance(made, Close) or request.amount is None:
        return made
    try:
        asked = parse_amount(request.amount).in_currency(order.total.currency)
    except MoneyError as error:
        return _declined(Reason.AMOUNT_INVALID, f"The amount is wrong: {error}.")
    if made.refund.amount.amount_minor <= asked.amount_minor:
        return made
    words = f"This request made refund {made.refund.id} of {made.refund.amount}, more than {asked}."
    return Close(outcome=Outcome.NEEDS_HUMAN, reason=Reason.REFUND_CONTRADICTORY, explanation=words)


def _nothing_left(order: Order, counted: list[Refund]) -> Close:
    covering = [refund for refund in counted if refund.may_cover(order.id)]
    by_others = len(covering) < len(counted)
    covered = sum_minor(covering)
    if by_others and covered < order.total.amount_minor:
        words = f"Nothing is left of the payment, and other orders had a part: {_list(counted)}."
        return Close(
            outcome=Outcome.NEEDS_HUMAN, reason=Reason.REFUND_CONTRADICTORY, explanation=words
        )
    if covered > order.total.amount_minor:
        words = f"More than order {order.id} cost was refunded by hand: {_list(covering)}."
        return Close(
            outcome=Outcome.NEEDS_HUMAN, reason=Reason.REFUND_CONTRADICTORY, explanation=words
        )
    if covering and all(refund.succeeded for refund in covering):
        words = f"All of order {order.id} was refunded before: {_list(covering)}."
        return Close(
            outcome=Outcome.ALREADY_REFUNDED,
            reason=Reason.REFUNDED_BEFORE,
            explanation=words,
            refund=covering[0] if len(covering) == 1 else None,
        )
    words = f"Nothing is left of order {order.id}, and not all of its refunds have succeeded."
    return Close(outcome=Outcome.NEEDS_HUMAN, reason=Reason.OTHER_REFUND_PENDING, explanation=words)


def propose(
    request: RefundRequest,
    case: Case,
    claim: Claim,
    assessment: Assessment | None,
    round_number: int,
) -> Proposal | Close:
    """What would be paid for a claim that holds, and whether a person must approve it.

    The tier looks at this amount plus earlier refunds on the order, so that slices add up.
    """
    order, payment, policy = case.order, case.payment, case.policy
    if order is None or payment is None:
        raise ValueError("a claim holds only where order and payment were read")
    if claim.amount.amount_minor > payment.left.amount_minor:
        words = f"{claim.amount} is claimed, and {payment.left} of the payment is left."
        return Close(
            outcome=Outcome.NEEDS_HUMAN, reason=Reason.REFUND_CONTRADICTORY, explanation=words
        )
    taken = claim.amount.with_minor(payment.taken_minor)
    total = claim.amount.amount_minor + taken.amount_minor
    currency = claim.amount.currency
    why = _why_a_person(order, total, currency, policy, assessment)
    each_up_to = _end_of_one_manager(total, currency, policy)
    proposal = Proposal(
        proposal_id="",
        round=round_number,
        order_id=order.id,
        payment=payment.id,
        amount=claim.amount,
        taken_before=taken,
        known_refunds=tuple(sorted(refund.id for refund in payment.refunds)),
        policy_version=policy.version,
        approvals_needed=2 if each_up_to else 1 if why else 0,
        director_needed=each_up_to is not None,
        each_up_to=each_up_to,
        why_a_person=why,
    )
    return proposal.model_copy(update={"proposal_id": proposal_digest(request, proposal)})


def propose_first(
    request: RefundRequest, case: Case, claim: Claim, assessment: Assessment | None
) -> Proposal | Close:
    """The first proposal of a run: round 1, or where a retried request left off.

    The same world makes the same proposal again, so that its approvals and its key still fit;
    another one makes the next round.
    """
    last = request.resumes.proposal if request.resumes is not None else None
    if last is None:
        return propose(request, case, claim, assessment, round_number=1)
    again = propose(request, case, claim, assessment, last.round)
    if isinstance(again, Close) or again.proposal_id == last.proposal_id:
        return again
    return propose(request, case, claim, assessment, last.round + 1)


def _why_a_person(
    order: Order, total_minor: int, currency: str, policy: Policy, assessment: Assessment | None
) -> tuple[str, ...]:
    why = []
    limit = policy.auto_approve_up_to.get(currency)
    if (one_manager := _end_of_one_manager(total_minor, currency, policy)) is not None:
        why.append(f"more than {one_manager} in all")
    elif limit is None:
        why.append(f"the policy has no limits in {currency}")
    elif total_minor > limit:
        why.append(f"more than {Money(amount_minor=limit, currency=currency)} in all")
    if order.delivered_at is None:
        why.append("the order is not known to be delivered")
    if assessment is None:
        why.append("the model gave no assessment")
    elif assessment.recommendation is not Recommendation.REFUND:
        why.append(f"the model says {assessment.recommendation.value}")
    return tuple(why)


def _end_of_one_manager(total_minor: int, currency: str, policy: Policy) -> Money | None:
    """How much one manager may approve, where this is more; None where it is not."""
    limit = policy.one_manager_up_to.get(currency)
    if limit is None or total_minor <= limit:
        return None
    return Money(amount_minor=limit, currency=currency)


def proposal_digest(request: RefundRequest, proposal: Proposal) -> str:
    """The proposal's id: 32 hex digits over all that an approval must not be carried across."""
    bound = [
        request.environment,
        workflow_id(request.order_id),
        request.request_id,
        proposal.round,
        proposal.order_id,
        proposal.payment,
        proposal.amount.amount_minor,
        proposal.amount.currency,
        proposal.taken_before.amount_minor,
        list(proposal.known_refunds),
        proposal.policy_version,
    ]
    text = json.dumps(bound, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def disputed(payment: Payment) -> Close:
    """The end for a payment in dispute: a refund beside it would pay the customer twice."""
    words = f"The payment {payment.id} is in dispute, and the dispute decides about the money."
    return _declined(Reason.PAYMENT_DISPUTED, words)


def _outside_window(order: Order, policy: Policy, now: datetime) -> bool:
    if order.delivered_at is None:
        return False
    return now - order.delivered_at > timedelta(days=policy.return_window_days)


def _declined(reason: Reason, words: str) -> Close:
    return Close(outcome=Outcome.DECLINED, reason=reason, explanation=words)


def sum_minor(refunds: list[Refund]) -> int:
    """What these refunds come to, in minor units."""
    return sum(refund.amount.amount_minor for refund in refunds)


def _list(refunds: list[Refund]) -> str:
    return ", ".join(f"{refund.amount} ({refund.id})" for refund in refunds)


def list_refunds(refunds: list[Refund]) -> str:
    """Refunds in words, each with its state."""
    return ", ".join(f"{r.amount} ({r.id}, {r.status})" for r in refunds)
