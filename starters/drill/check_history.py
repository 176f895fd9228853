"""Messages and runs: everything that was accepted has its answer, and every run its end (P4)."""

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

from domain.models import Outcome
from domain.trail import REFUSED_IN_DETAIL, Refusal, RunStatus
from starters.drill.evidence import Finding
from starters.drill.look import (
    Story,
    end_of,
    failed_tasks,
    is_reset,
    result_of,
    signalled,
    taken_over,
    was_cancelled,
)
from starters.drill.rules import people_needed

COMPLETED = "WORKFLOW_EXECUTION_COMPLETED"
_TERMINATED = "WORKFLOW_EXECUTION_TERMINATED"
# What a counted message is called in the trail.
_COUNTED = ("approved", "rejected", "withdrawn")
# They have no id that a run could read, so they only count.
_WITHOUT_ID = ("garbage", "nothing", "unknown_signal", "unsigned", "cancel")


def lost(story: Story) -> Iterator[Finding]:
    """A request without an outcome, a message without an answer, a decision without effect."""
    evidence = story.evidence
    if not evidence.histories:
        yield _lost(f"request {evidence.request_id} was accepted, and there is no run of it")
        return
    if evidence.status is None or evidence.status.outcome is None:
        yield _lost(f"request {evidence.request_id} was accepted and has no outcome")
        return
    yield from _never_arrived(story)
    yield from _not_carried_over(story)
    yield from _not_answered(story, evidence.status)
    yield from _without_effect(story, evidence.status)


def stuck(story: Story) -> Iterator[Finding]:
    """A driver that came to no end, a workflow task that failed, a run that did not complete."""
    evidence = story.evidence
    if evidence.driver_trouble:
        yield _stuck(evidence.driver_trouble)
    ended_by_plan = {step.do for step in story.plan.steps} & {"reset", "terminate"}
    for number, history in enumerate(evidence.histories, 1):
        for event in failed_tasks(history):
            failure = event.workflow_task_failed_event_attributes.failure.message
            yield _stuck(f"a workflow task of run {number} failed: {failure or 'no reason given'}")
        is_last = number == len(evidence.histories)
        end = end_of(history)
        if end != COMPLETED and (is_last or end != _TERMINATED or not ended_by_plan):
            yield _stuck(f"run {number} of {len(evidence.histories)} ended with {end}")
        elif end == COMPLETED and (result := result_of(history)) is None:
            yield _stuck(f"the result of run {number} cannot be read")
        elif (
            end == COMPLETED
            and is_last
            and result is not None
            and not _same(result, evidence.status)
        ):
            yield _stuck(f"the result of run {number} is not what the run said at its end")


def _same(result: RunStatus, said: RunStatus | None) -> bool:
    """Whether two words of a run differ in nothing but the moment at which they were said."""
    return said is not None and result.model_copy(update={"now": said.now}) == said


def _never_arrived(story: Story) -> Iterator[Finding]:
    """The server took it, and no history has it."""
    histories = story.evidence.histories
    arrived = Counter(id_ for history in histories for id_ in signalled(history))
    without_id = 0
    for sent in story.evidence.sent:
        if sent.kind == "cancel":
            if not any(was_cancelled(history) for history in histories):
                yield _lost("the run was cancelled in Temporal, and no history says so")
        elif sent.kind in _WITHOUT_ID or not sent.message_id:
            without_id += 1
        elif not arrived[sent.message_id]:
            yield _lost(f"{sent.kind} {sent.message_id} was taken, and no history has it")
    if without_id > arrived[""]:
        yield _lost(f"{without_id} messages without an id were taken, {arrived['']} arrived")


def _not_carried_over(story: Story) -> Iterator[Finding]:
    """A run that goes on after a reset has every message of the one before."""
    histories = story.evidence.histories
    for before, after in pairwise(histories):
        if is_reset(after):
            for message_id, count in (
                Counter(signalled(before)) - Counter(signalled(after))
            ).items():
                named = message_id or "without an id"
                yield _lost(f"{count} message(s) {named} did not come along with a reset")


def _not_answered(story: Story, status: RunStatus) -> Iterator[Finding]:
    """Every message that the last run has got is counted or refused, each once."""
    last = story.evidence.histories[-1]
    arrived = signalled(last)
    counted = sum(1 for row in status.trail if row.what in _COUNTED and row.message_id)
    refused = sum(status.refused.values())
    came = len(arrived) + taken_over(last)
    if counted + refused != came:
        yield _lost(f"{came} messages came, {counted} count and {refused} are refused")
    unreadable = sum(
        status.refused.get(word, 0) for word in (Refusal.MALFORMED, Refusal.UNKNOWN_SIGNAL)
    )
    if unreadable > arrived.count(""):
        yield _lost(f"{unreadable} messages were unreadable, {arrived.count('')} came like that")
    if refused <= REFUSED_IN_DETAIL:
        for message_id in sorted(set(arrived) - {""}):
            if status.answer_to(message_id) is None:
                yield _lost(f"message {message_id} has no answer in the trail")
    rows = {row.what for row in status.trail}
    if was_cancelled(last) and not rows & {"withdrawn", "cancel_refused"}:
        yield _lost("a cancel in Temporal has no answer in the trail")


def _without_effect(story: Story, status: RunStatus) -> Iterator[Finding]:
    """What counted must show in the outcome."""
    rows = [row.what for row in status.trail]
    outcome = status.outcome
    # Where an approver lost their right after an attempt, the refund may be made all the same.
    unsure = "approval_lost" in rows or "refund_unknown" in rows
    ends = {Outcome.REJECTED, Outcome.WITHDRAWN}
    if "rejected" in rows and outcome not in ends and not unsure:
        yield _lost(f"a rejection counted, and the outcome is {outcome}")
    # A refund that an earlier run has made cannot be withdrawn.
    stopped = "withdrawn" in rows and "refund_found" not in rows
    if stopped and (outcome is Outcome.REFUNDED or story.ours):
        yield _lost(
            f"a withdrawal counted, and the outcome is {outcome}, {len(story.ours)} refunds"
        )
    if outcome is Outcome.REJECTED and not _said(story, "decision", "reject"):
        yield _lost("rejected, and nobody has rejected it")
    if outcome is Outcome.WITHDRAWN and not (_said(story, "withdrawal") or _said(story, "cancel")):
        yield _lost("withdrawn, and nobody has withdrawn it")
    last_round = rows[_last(rows, ("proposed", "approval_lost")) :]
    needed = max(people_needed(_total(status), story.plan.currency), 1)
    if outcome is Outcome.EXPIRED and last_round.count("approved") >= needed and not unsure:
        yield _lost("all approvals that it takes counted, and it expired")


def _said(story: Story, kind: str, verdict: str = "") -> bool:
    return any(sent.kind == kind and verdict in ("", sent.verdict) for sent in story.evidence.sent)


def _last(rows: list[str], words: tuple[str, ...]) -> int:
    return max((n for n, row in enumerate(rows) if row in words), default=0)


def _total(status: RunStatus) -> int:
    return status.proposal.total.amount_minor if status.proposal is not None else 0


def _lost(what: str) -> Finding:
    return Finding("lost", what)


def _stuck(what: str) -> Finding:
    return Finding("stuck", what)
