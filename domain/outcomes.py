"""How a run may end, with the reason of each end."""

from enum import StrEnum

from domain.models import Frozen, Outcome, Refund


class Reason(StrEnum):
    """Why a run ended, beside its outcome. Part of the interface: scripts match on these."""

    REQUEST_NOT_AUTHENTIC = "request_not_authentic"
    ORDER_UNKNOWN = "order_unknown"
    ORDER_SPELLED_DIFFERENTLY = "order_spelled_differently"
    AMOUNT_INVALID = "amount_invalid"
    AMOUNT_ABOVE_REFUNDABLE = "amount_above_refundable"
    PAYMENT_UNKNOWN = "payment_unknown"
    PAYMENT_CHANGED = "payment_changed"
    PAYMENT_DISPUTED = "payment_disputed"
    OUTSIDE_RETURN_WINDOW = "outside_return_window"
    REFUNDED_BEFORE = "refunded_before"
    REFUNDED_BY_HAND = "refunded_by_hand"
    OTHER_REFUND_PENDING = "other_refund_pending"
    NOBODY_MAY_APPROVE = "nobody_may_approve"
    FACTS_UNAVAILABLE = "facts_unavailable"
    REJECTED_BY_APPROVER = "rejected_by_approver"
    NOBODY_DECIDED = "nobody_decided"
    TOLD_BEFORE = "told_before"
    WITHDRAWN_BY_STAFF = "withdrawn_by_staff"
    CANCELLED_IN_TEMPORAL = "cancelled_in_temporal"
    TOO_MANY_ROUNDS = "too_many_rounds"
    PROVIDER_REFUSED = "provider_refused"
    REFUND_CONTRADICTORY = "refund_contradictory"
    REFUND_UNKNOWN = "refund_unknown"
    STATUS_UNKNOWN = "status_unknown"
    REFUND_FAILED = "refund_failed"
    REFUND_PENDING_TOO_LONG = "refund_pending_too_long"
    VERIFIED = "verified"


# Mistakes of the member of staff who handed the request in: the customer hears nothing of them.
MISTAKES_OF_THE_REQUESTER = frozenset(
    {
        Reason.ORDER_UNKNOWN,
        Reason.ORDER_SPELLED_DIFFERENTLY,
        Reason.AMOUNT_INVALID,
        Reason.AMOUNT_ABOVE_REFUNDABLE,
    }
)


# What a request cannot come back from, once the customer has been told.
FINAL_FOR_THE_CUSTOMER = (Outcome.REJECTED, Outcome.EXPIRED, Outcome.WITHDRAWN)


class Close(Frozen):
    """The run ends here."""

    outcome: Outcome
    reason: Reason
    explanation: str
    """One or two sentences for people."""
    refund: Refund | None = None
    """The one refund that this end speaks of, if it is one: for the mail about it."""


def told_before(outcome: Outcome) -> Close:
    """The end of a run whose request has ended before, and its customer knows how."""
    words = f"The customer was told before that this request was {outcome}; it takes a new one."
    return Close(outcome=outcome, reason=Reason.TOLD_BEFORE, explanation=words)
