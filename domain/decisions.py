"""Whether a decision or a withdrawal may count, as far as pure code can tell.

What needs the staff directory (signature, person, right) is the Activity `verify_statement`'s.
"""

from datetime import datetime

from domain.models import Policy
from domain.names import workflow_id
from domain.request import Proposal, RefundRequest
from domain.statements import Claims, DecisionClaims, WithdrawalClaims
from domain.trail import Refusal


def refuse_decision(
    claims: DecisionClaims,
    request: RefundRequest,
    proposal: Proposal,
    policy: Policy,
    deadline: datetime,
    now: datetime,
) -> Refusal | None:
    """Why this decision does not fit this run's proposal; None where the directory must be asked.

    The signed time decides about the deadline, not the moment of arrival: a worker that was down
    over the deadline takes nothing from one who was in time (preloop/preloop#510).
    """
    if (elsewhere := _refuse_place(claims, request)) is not None:
        return elsewhere
    if claims.proposal != proposal.proposal_id:
        return Refusal.OTHER_PROPOSAL
    if claims.iat > now + policy.skew:
        return Refusal.FROM_THE_FUTURE
    if claims.iat > deadline + policy.skew:
        return Refusal.TOO_LATE
    return None


def refuse_withdrawal(claims: WithdrawalClaims, request: RefundRequest) -> Refusal | None:
    """Why this withdrawal is not of this request."""
    if (elsewhere := _refuse_place(claims, request)) is not None:
        return elsewhere
    return Refusal.OTHER_REQUEST if claims.request != request.request_id else None


def _refuse_place(claims: Claims, request: RefundRequest) -> Refusal | None:
    if claims.env != request.environment:
        return Refusal.OTHER_ENVIRONMENT
    return Refusal.OTHER_RUN if claims.sub != workflow_id(request.order_id) else None
