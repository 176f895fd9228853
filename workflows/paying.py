"""Steps 5 to 7: look at the world again, pay once, and read back what the provider says.

Whatever happens here, the key stays the same: it and the complete request are in the history before
anything is sent (promises P1 and P8).
"""

from collections.abc import Iterator
from datetime import timedelta

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from activities.interfaces import AttemptState, CaseQuery, RefundAttempt, RefundOrder
    from domain.case import Case, Ours
    from domain.models import Outcome, Refund, RefundStatus, Stage
    from domain.names import refund_purpose
    from domain.outcomes import Close, Reason
    from domain.recheck import Changed, Clear, RightLost, recheck

from workflows import calls, notices
from workflows.postbox import Postbox
from workflows.state import RunState

Finding = Clear | Ours | Changed | RightLost | Close
_FOUND = {
    Clear: "all holds",
    Ours: "the refund is made",
    Changed: "the order changed",
    RightLost: "an approval lost its right",
    Close: "it ends here",
}

# An unknown refund stays unknown for so long before it is a person's.
_UNKNOWN_PATIENCE = timedelta(days=7)
# A refund may be pending for weeks at some banks; Stripe speaks of up to 30 days for bank debits.
_PENDING_PATIENCE = timedelta(days=30)
# A provider may be a little behind its own answers, so "no such refund" is believed after an hour.
_MISSING_PATIENCE = timedelta(hours=1)


async def recheck_now(state: RunState) -> Finding:
    """Read everything again and hold the proposal against it; remembers the new facts."""
    if state.claim is None or state.proposal is None:
        raise RuntimeError("a re-check needs a proposal")
    query = CaseQuery(
        environment=state.request.environment,
        request=state.request,
        proposal=state.proposal,
        approvals=tuple(approval.token for approval in state.approvals),
    )
    case = await calls.read_case(
        query,
        f"Look again before {state.proposal.amount} is paid",
        calls.RECHECK_PATIENCE,
        lambda why: state.note("recheck_unavailable", why),
    )
    if case is None:
        words = "Order, payment or staff could not be read again for a week."
        return Close(
            outcome=Outcome.NEEDS_HUMAN, reason=Reason.FACTS_UNAVAILABLE, explanation=words
        )
    state.case = case
    finding = recheck(state.proposal, state.claim, case, state.scope)
    state.note("rechecked", _FOUND[type(finding)])
    if isinstance(finding, Changed) and state.unresolved:
        # An attempt that was cut off may still arrive; a new round would pay under another key.
        words = f"{finding.what}, while it is not known whether our refund was made."
        return _needs_human(Reason.REFUND_UNKNOWN, words)
    return finding


async def pay(state: RunState, postbox: Postbox) -> Ours | Changed | RightLost | Close:
    """Make the refund. Ends with the refund, with a changed world, or with a person."""
    began = workflow.now()
    patience = calls.REFUND_PATIENCE
    for pause in _growing(timedelta(seconds=1), timedelta(hours=12)):
        attempt = await calls.make_refund(
            _order(state, _facts(state)),
            patience,
            lambda why: state.note("refund_unknown", why),
        )
        patience = calls.REFUND_PATIENCE_LATER
        if attempt is None or attempt.attempt > 1:
            state.unresolved = True
        if attempt is not None and (end := _end_of_attempt(state, attempt)) is not None:
            return end
        waited = workflow.now() - began
        if waited >= _UNKNOWN_PATIENCE:
            break
        # The server gives an attempt up before a pause that would reach beyond its time.
        if attempt is None or waited >= calls.REFUND_PATIENCE:
            words = "It is not known whether the refund was made; the run keeps looking."
            postbox.send(state, notices.alert(state, f"unknown.r{_round(state)}", words))
        # A worker whose clock is off calls all facts stale: do not run in circles. The pause comes
        # before the look at the world, so that the next attempt has fresh facts.
        await workflow.sleep(pause, summary="Wait before the refund is tried again")
        finding = await recheck_now(state)
        if not isinstance(finding, Clear):
            return finding
        if attempt is not None and attempt.state is AttemptState.REFUSED:
            words = f"The provider says no to the refund ({attempt.code}). {attempt.detail}".strip()
            return _needs_human(Reason.PROVIDER_REFUSED, words)
    return _needs_human(
        Reason.REFUND_UNKNOWN, "For a week it could not be found out whether the refund was made."
    )


def _end_of_attempt(state: RunState, attempt: RefundAttempt) -> Ours | Close | None:
    """What an attempt settles; None where the world must be looked at again."""
    if attempt.state in (AttemptState.MADE, AttemptState.FOUND) and attempt.refund is not None:
        state.note(f"refund_{attempt.state.value}", _words(attempt.refund))
        return Ours(refund=attempt.refund)
    state.note(f"refund_{attempt.state.value}", f"{attempt.code} {attempt.detail}".strip())
    if attempt.state is AttemptState.CONTRADICTORY:
        return _needs_human(Reason.REFUND_CONTRADICTORY, attempt.detail)
    return None


async def verify(state: RunState, refund: Refund) -> Close:
    """Step 7: read the refund back until its state is final, on timers that grow."""
    state.refund = refund
    state.enter(Stage.VERIFYING)
    began = workflow.now()
    for pause in _growing(timedelta(seconds=5), timedelta(hours=24)):
        reading = await calls.read_refund(
            state.request.environment, refund, lambda why: state.note("refund_unreadable", why)
        )
        waited = workflow.now() - began
        if reading is not None and reading.refund is not None:
            state.refund = reading.refund
            state.note("refund_read", _words(reading.refund))
            if (end := _end_of(reading.refund, refund)) is not None:
                return end
        elif reading is not None and waited >= _MISSING_PATIENCE:
            words = f"The provider answered with refund {refund.id} and does not know it."
            return _needs_human(Reason.REFUND_UNKNOWN, words)
        if waited >= _PENDING_PATIENCE:
            break
        await workflow.sleep(pause, summary="Wait before the refund is read again")
    words = f"The refund {refund.id} has not come to an end in {_PENDING_PATIENCE.days} days."
    return _needs_human(Reason.REFUND_PENDING_TOO_LONG, words)


def _end_of(now: Refund, made: Refund) -> Close | None:
    """What the provider's word means; None while it says neither yes nor no."""
    if (now.amount, now.payment) != (made.amount, made.payment):
        return _needs_human(
            Reason.REFUND_CONTRADICTORY, f"{_words(now)} is not what was made: {_words(made)}."
        )
    match now.status:
        case RefundStatus.SUCCEEDED:
            return Close(
                outcome=Outcome.REFUNDED,
                reason=Reason.VERIFIED,
                explanation=f"{now.amount} was refunded ({now.id}).",
            )
        case RefundStatus.FAILED | RefundStatus.CANCELED:
            return Close(
                outcome=Outcome.REFUND_FAILED,
                reason=Reason.REFUND_FAILED,
                explanation=f"The provider says that refund {now.id} {now.status}.",
            )
        case RefundStatus.PENDING | RefundStatus.REQUIRES_ACTION:
            return None
        case word:
            return _needs_human(
                Reason.STATUS_UNKNOWN, f"Refund {now.id} is in a state nobody knows: {word[:60]!r}."
            )


def _order(state: RunState, case: Case) -> RefundOrder:
    if state.proposal is None:
        raise RuntimeError("only a proposal is paid")
    return RefundOrder(
        environment=state.request.environment,
        key=state.key(refund_purpose(state.proposal.round)),
        scope=state.scope,
        payment=state.proposal.payment,
        amount=state.proposal.amount,
        order_id=state.request.order_id,
        proposal_id=state.proposal.proposal_id,
        known_refunds=state.proposal.known_refunds,
        checked_at=case.read_at,
    )


def _facts(state: RunState) -> Case:
    if state.case is None:
        raise RuntimeError("nothing is paid without facts")
    return state.case


def _round(state: RunState) -> int:
    return state.proposal.round if state.proposal is not None else 0


def _words(refund: Refund) -> str:
    return f"{refund.id}: {refund.amount}, {refund.status}"


def _needs_human(reason: Reason, words: str) -> Close:
    return Close(outcome=Outcome.NEEDS_HUMAN, reason=reason, explanation=words)


def _growing(first: timedelta, longest: timedelta) -> Iterator[timedelta]:
    """Pauses that grow threefold up to the longest; the caller's own bound ends them.

    Each round of looking costs billed Actions: some forty in the thirty days of a pending refund.
    """
    pause = first
    while True:
        yield pause
        pause = min(3 * pause, longest)
