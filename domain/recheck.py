"""What the world says right before the money, after a wait that may have lasted a week.

Reports that this module answers: vm0-ai/vm0#32132 (refunded by hand during the wait),
juspay/hyperswitch#13182 (two refunds at one moment), wso2/product-is#25308 (right withdrawn).
"""

from domain.approvals import Standing, stand
from domain.case import Case, Ours
from domain.models import Frozen, Order, Outcome, Payment
from domain.money import Money
from domain.outcomes import Close, Reason, told_before
from domain.policy import (
    Claim,
    covered_by_others,
    disputed,
    left_of_order,
    list_refunds,
    sum_minor,
)
from domain.request import Proposal


class Clear(Frozen):
    """The proposal still holds: pay it."""


class Changed(Frozen):
    """The world changed: what is left of the claim must be proposed anew."""

    claim: Claim
    what: str


class RightLost(Frozen):
    """An approver may not approve this any more: wait for another one."""

    standings: tuple[Standing, ...]


def recheck(
    proposal: Proposal, claim: Claim, case: Case, scope: str
) -> Clear | Ours | Changed | RightLost | Close:
    """Hold an approved proposal against the facts of now."""
    made = case.find_ours(scope, proposal)
    if made is not None:
        return made
    if case.told:
        # A run that was reset, or started again beside the command: one no is no.
        return told_before(case.told[0])
    order, payment = case.order, case.payment
    currency = proposal.amount.currency
    if (
        order is None
        or payment is None
        or order.total.currency != currency
        or not payment.all_in(currency)
    ):
        words = f"Order {proposal.order_id} or its payment cannot be read any more."
        return _to_a_person(Reason.PAYMENT_UNKNOWN, words)
    if payment.id != proposal.payment:
        # Refunds on the old payment, ours among them, are out of sight.
        words = f"The order is now paid by {payment.id}, not by {proposal.payment}."
        return _to_a_person(Reason.PAYMENT_CHANGED, words)
    if payment.disputed:
        return disputed(payment)
    by_others = payment.taken_since(proposal.known_refunds)
    if payment.taken_minor > proposal.taken_before.amount_minor + sum_minor(by_others):
        words = f"More of {payment.id} is refunded than the provider has refunds to show for."
        return _to_a_person(Reason.REFUND_CONTRADICTORY, words)
    if by_others:
        return _after_others(claim, payment, proposal.order_id)
    if proposal.amount.amount_minor > payment.left.amount_minor:
        return _too_little_left(proposal.amount, payment)
    left = left_of_order(order, payment)
    if proposal.amount.amount_minor > left.amount_minor:
        return _order_shrank(order, payment, left)
    if not stand(proposal, case.standings):
        return RightLost(standings=case.standings)
    return Clear()


def _after_others(claim: Claim, payment: Payment, order_id: str) -> Changed | Close:
    """Others refunded while we waited: their money counts against the claim.

    What is left of the claim goes into the next round, so that refunds by hand add up over rounds.
    A refund of another order that the same payment paid for takes money and covers nothing.
    """
    since_claim = payment.taken_since(claim.known_refunds)
    covering = [r for r in since_claim if r.may_cover(order_id)]
    open_minor = claim.amount.amount_minor - sum_minor(covering)
    if open_minor > 0:
        amount = claim.amount.with_minor(open_minor)
        if open_minor > payment.left.amount_minor:
            return _too_little_left(amount, payment)
        rest = Claim(amount=amount, known_refunds=tuple(r.id for r in payment.refunds))
        return Changed(claim=rest, what=f"somebody else refunded {list_refunds(since_claim)}")
    return covered_by_others(covering)


def _order_shrank(order: Order, payment: Payment, left: Money) -> Changed | Close:
    """The order costs less than when it was proposed: what is left of it is decided anew."""
    what = f"order {order.id} now comes to {order.total}, of which {left} can be refunded"
    if left.amount_minor == 0:
        return _to_a_person(Reason.REFUND_CONTRADICTORY, f"{what[0].upper()}{what[1:]}.")
    known = tuple(refund.id for refund in payment.refunds)
    return Changed(claim=Claim(amount=left, known_refunds=known), what=what)


def _too_little_left(amount: Money, payment: Payment) -> Close:
    words = f"{amount} is still due, and {payment.left} of the payment is left, unexplained."
    return _to_a_person(Reason.REFUND_CONTRADICTORY, words)


def _to_a_person(reason: Reason, words: str) -> Close:
    return Close(outcome=Outcome.NEEDS_HUMAN, reason=reason, explanation=words)
