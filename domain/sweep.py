"""Refunds that failed after their run had ended: who must hear of it.

Report R5 (woocommerce/woocommerce-gateway-stripe#4405, juspay/hyperswitch#1488). A bank may return
a refund weeks after the provider has said `succeeded`. What the customer was told is then wrong,
and the run that told it is closed. The sweep finds such refunds and corrects what was said. It
never pays: the money goes a second time only by a person's hand.
"""

from collections.abc import Mapping
from datetime import timedelta
from enum import StrEnum

from domain.instants import Instant
from domain.models import Frozen, Identifier, Refund

# How far back a sweep looks, by the day on which a refund was made. A run waits up to 30 days for
# `succeeded` (`workflows.paying`), and Stripe speaks of up to 30 days until a refund comes back.
WINDOW = timedelta(days=60)

# The mails by which the ledger knows what was said, by their purposes under the request's scope.
CONFIRMED = "mail.refunded"
FAILURE_TOLD = "mail.refund_failed"
CORRECTION = "mail.correction"
ALERT = "mail.alert.refund_failed_later"
WATCHED = (CONFIRMED, FAILURE_TOLD, CORRECTION, ALERT)


class Duty(StrEnum):
    """What is left to do about a refund that failed, once its run is closed."""

    NOTHING = "nothing"
    CORRECT = "correct"
    """The customer was told that it was made: correct that, and alert operations."""
    ALERT = "alert"
    """Nobody knows what the customer was told: alert operations alone."""


def duty(mails: Mapping[str, bool]) -> Duty:
    """What is left to do, by the mails that the ledger has a row of.

    A confirmation that is written down and not known to have arrived counts as told: the correction
    is true either way. News of a failure counts only where it is known to have its answer. Where
    the ledger knows neither (it was lost, or the run was ended from outside), operations hear of it
    and the customer gets no guess.

    Args:
        mails: Purposes out of `WATCHED` that have a row, each with whether it is finished.
    """
    if mails.get(FAILURE_TOLD, False):
        return Duty.NOTHING
    alerted = mails.get(ALERT, False)
    if CONFIRMED in mails or CORRECTION in mails:
        return Duty.NOTHING if alerted and mails.get(CORRECTION, False) else Duty.CORRECT
    return Duty.NOTHING if alerted else Duty.ALERT


class SweepOrder(Frozen):
    """The input of a sweep."""

    environment: Identifier


class FailedRefund(Frozen):
    """A refund of ours that failed, and somebody must hear of it."""

    refund: Refund
    failure_reason: str
    """The provider's word for it; empty where it gives none."""
    order_id: Identifier
    request_id: Identifier
    duty: Duty


class SweepOutcome(StrEnum):
    """How a sweep ended. Every one but `complete` is told to operations, once a day."""

    COMPLETE = "complete"
    UNREADABLE = "unreadable"
    """The refunds could not all be read: the next sweep begins again."""
    TOO_MANY_REFUNDS = "too_many_refunds"
    """There are more than a sweep looks at, so the oldest were not looked at."""
    TOO_MANY_FAILED = "too_many_failed"
    """More have failed than one sweep tells of; the next one goes on."""


class SweepReport(Frozen):
    """The result of a sweep."""

    outcome: SweepOutcome
    since: Instant
    """Refunds made before this were not looked at."""
    looked_at: int
    found: tuple[str, ...] = ()
    """The refunds of ours about which somebody was told, or should have been, by id."""
    explanation: str = ""
