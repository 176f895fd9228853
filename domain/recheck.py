"""What the world says right before the money, after a wait that may have lasted a week.

Reports that this module answers: vm0-ai/vm0#32132 (refunded by hand during the wait),
juspay/hyperswitch#13182 (two refunds at one moment), wso2/product-is#25308 (right withdrawn).
"""

from domain.case import Case, Ours
from domain.models import Frozen, Outcome, Payment, Proposal, Refund
from domain.outcomes import Close, Reason
from domain.policy import Claim, disputed
from domain.trail import Refusal


class Clear(Frozen):
    """The proposal still holds: pay it."""


class Changed(Frozen):
    """The world changed: what is left of the claim must be proposed anew."""

    claim: Claim
    what: str


class RightLost(Frozen):
    """An approver may not approve this any more: wait for another one."""

    refusals: tuple[Refusal, ...]


def recheck(
    proposal: Proposal, claim: Claim, case: Case, scope: str
) -> Clear | Ours | Changed | RightLost | Close:
    """Hold an approved proposal against the facts of now."""
    made = case.find_ours(scope, proposal)
    if made is not None:
        return made
    order, payment = case.order, case.payment
    if order is None or payment is None or payment.captured.currency != proposal.amount.currency:
        words = f"Order {proposal.order_id} or its payment cannot be read any more."
        return Close(outcome=Outcome.NEEDS_HUMAN, reason=Reason.PAYMENT_UNKNOWN, explanation=words)
    if payment.disputed:
        return disputed(payment)
    if payment.id != proposal.payment:
        what = f"the order is now paid by {payment.id}"
        return Changed(claim=claim, what=what)
    by_others = _new_refunds(payment, proposal)
    if by_others:
        return _after_others(claim, payment)
    if proposal.amount.amount_minor > payment.left.amount_minor:
        words = f"{proposal.amount} was approved, and {payment.left} is left, with no refund to show for it."
        return Close(
            outcome=Outcome.NEEDS_HUMAN, reason=Reason.REFUND_CONTRADICTORY, explanation=words
        )
    if case.approval_refusals:
        return RightLost(refusals=case.approval_refusals)
    return Clear()


def _new_refunds(payment: Payment, proposal: Proposal) -> list[Refund]:
    return [r for r in payment.refunds if r.takes_money and r.id not in proposal.known_refunds]


def _after_others(claim: Claim, payment: Payment) -> Changed | Close:
    """Others refunded while we waited: their money counts against the claim.

    What is left of the claim goes into the next round, so that refunds by hand add up over rounds.
    """
    since_claim = [r for r in payment.refunds if r.takes_money and r.id not in claim.known_refunds]
    given = sum(r.amount.amount_minor for r in since_claim)
    listed = ", ".join(f"{r.amount} ({r.id}, {r.status})" for r in since_claim)
    open_minor = claim.amount.amount_minor - given
    if open_minor > 0:
        remaining = min(open_minor, payment.left.amount_minor)
        if remaining > 0:
            rest = Claim(
                amount=claim.amount.with_minor(remaining),
                known_refunds=tuple(r.id for r in payment.refunds),
            )
            return Changed(claim=rest, what=f"somebody else refunded {listed}")
    if all(r.succeeded for r in since_claim):
        words = f"Somebody else refunded {listed} while this request waited."
        return Close(
            outcome=Outcome.ALREADY_REFUNDED, reason=Reason.REFUNDED_BY_HAND, explanation=words
        )
    words = f"Somebody else's refund would cover the request and has not succeeded: {listed}."
    return Close(outcome=Outcome.NEEDS_HUMAN, reason=Reason.OTHER_REFUND_PENDING, explanation=words)
