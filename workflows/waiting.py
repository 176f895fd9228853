"""Step 4: wait for decisions, with reminder, escalation and expiry.

Deadlines are compared with the run's time, not inferred from a timer that fired: after an outage a
timer and a decision arrive in one workflow task, and the decision may have been signed in time.
"""

from collections.abc import Callable
from datetime import datetime, timedelta

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from domain.mail import MailOrder
    from domain.models import Outcome, Policy
    from domain.outcomes import Close, Reason

from workflows import notices
from workflows.clerk import Clerk
from workflows.postbox import Postbox
from workflows.state import RunState

Notice = Callable[[RunState], list[MailOrder]]


async def wait_for_decision(state: RunState, clerk: Clerk, postbox: Postbox) -> Close | None:
    """Wait until the proposal is decided (None) or nobody has decided in time (`expired`)."""
    if state.case is None or state.proposal is None or state.deadline is None:
        raise RuntimeError("the run waits for decisions on a proposal")
    policy, deadline = state.case.policy, state.deadline
    if not state.case.to_ask(state.proposal):
        return Close(
            outcome=Outcome.NEEDS_HUMAN,
            reason=Reason.NOBODY_MAY_APPROVE,
            explanation="There is nobody whom the policy lets approve this.",
        )
    asked_at, begun = deadline - policy.time_to_decide, workflow.now()
    closing = deadline + policy.grace
    steps = _steps(asked_at, policy)
    for index, (at, summary, notice) in enumerate(steps):
        if at <= begun:
            continue  # Back from a re-check, these people have been reminded before.
        if at >= deadline:
            break
        if await _decided_until(state, at, summary):
            return None
        later = steps[index + 1][0] if index + 1 < len(steps) else deadline
        if workflow.now() < later:  # After an outage, only the last of what is due is said.
            postbox.send(state, notice(state))
    if await _decided_until(state, closing, "Close the request as expired"):
        return None
    # What has arrived may have been signed in time.
    await workflow.wait_condition(lambda: clerk.idle)
    if state.decided:
        return None
    return Close(
        outcome=Outcome.EXPIRED,
        reason=Reason.NOBODY_DECIDED,
        explanation=f"Nobody decided until {deadline:%Y-%m-%d %H:%M} UTC.",
    )


def _steps(asked_at: datetime, policy: Policy) -> list[tuple[datetime, str, Notice]]:
    """Who is told while nobody decides, in the order of time, whichever the policy has first."""
    reminder = asked_at + timedelta(hours=policy.reminder_after_hours)
    escalation = asked_at + timedelta(hours=policy.escalate_after_hours)
    steps: list[tuple[datetime, str, Notice]] = [
        (reminder, "Remind the approvers", notices.reminder),
        (escalation, "Ask the next level", notices.escalation),
    ]
    return sorted(steps, key=lambda step: step[0])


async def _decided_until(state: RunState, instant: datetime, summary: str) -> bool:
    """Wait for the decision, at the longest until an instant."""
    while not state.decided and (left := instant - workflow.now()) > timedelta(0):
        try:
            await workflow.wait_condition(
                lambda: state.decided, timeout=left, timeout_summary=summary
            )
        except TimeoutError:
            continue
    return state.decided
