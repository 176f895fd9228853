"""How the checkers look at an Evidence: whose refund it is, what a mail is, what a history says."""

import json
from collections.abc import Iterator
from functools import cached_property

from pydantic import ValidationError
from temporalio.api.enums.v1 import EventType, WorkflowTaskFailedCause
from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import WorkflowHistory

from domain import names
from domain.mail import MailPurpose
from domain.statements import SignedStatement, StatementError, StatementKind, read_claims
from domain.trail import RunStatus
from starters.drill.evidence import Evidence, Mail, Refund
from starters.drill.expect import Expected, expect
from starters.drill.plan import AT_WAIT, Plan, Process, Step
from workers.release import RELEASE

UNDONE = ("failed", "canceled")
# Of these a customer gets at most one kind for a request.
FINAL = (
    "mail.refunded",
    "mail.declined",
    "mail.rejected",
    "mail.expired",
    "mail.withdrawn",
    "mail.already_refunded",
    "mail.refund_failed",
)
TO_CUSTOMER = (*FINAL, "mail.under_review", "mail.delayed", "mail.correction")
BY_THE_SWEEP = ("mail.correction", "mail.alert.refund_failed_later")
# The names in keys that are not the purpose's own word.
_PURPOSE_OF = {"notice": MailPurpose.STAFF_NOTICE, "approver_lost": MailPurpose.APPROVAL_REQUEST}
_KINDS = {
    names.SIGNAL_DECIDE: StatementKind.DECISION,
    names.SIGNAL_WITHDRAW: StatementKind.WITHDRAWAL,
}
_TASK_FAILED = EventType.EVENT_TYPE_WORKFLOW_TASK_FAILED
_TASK_COMPLETED = EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED
# Ends of a task that are nobody's fault: somebody reset or ended the run in the middle of it, or a
# message came at the very moment of its end and the run must look at it first.
_NO_FAULT = (
    WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_RESET_WORKFLOW,
    WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_FORCE_CLOSE_COMMAND,
    WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_UNHANDLED_COMMAND,
)


class Story:
    """An Evidence with what the checkers ask it again and again."""

    def __init__(self, evidence: Evidence) -> None:
        """Look at this evidence; nothing in it is changed."""
        self.evidence = evidence

    @cached_property
    def plan(self) -> Plan:
        """The plan as it went: without the steps that had no effect."""
        plan, missed = self.evidence.plan, self.evidence.missed
        by_hand = [refund.amount_minor for refund in self.by_hand]
        if plan.refunded_before_minor in by_hand:
            by_hand.remove(plan.refunded_before_minor)
        steps = []
        for number, step in enumerate(plan.steps):
            if step.do == "hand_refund":
                # The provider may have refused it: more than was left.
                if step.minor not in by_hand:
                    continue
                by_hand.remove(step.minor)
            if number not in missed:
                steps.append(step)
        return plan.model_copy(update={"steps": tuple(steps)})

    @cached_property
    def expected(self) -> Expected:
        """What the rules allow, with what other plans have done to this one."""
        beside = []
        if self.evidence.right_lost_beside:
            beside.append(Step(at=AT_WAIT, do="lose_right"))
        if self.evidence.cut_off_beside:
            beside.append(Step(at=AT_WAIT, do="kill", who=(Process.WORKER,)))
        return expect(self.plan.model_copy(update={"steps": (*self.plan.steps, *beside)}))

    @property
    def customer(self) -> str:
        """The address of the order's customer: a drill makes it of the order id."""
        return f"{self.plan.order_id}@customers.example".lower()

    @cached_property
    def ours(self) -> list[Refund]:
        """Refunds on the payment that carry our mark."""
        return [refund for refund in self.evidence.refunds if refund.key]

    @cached_property
    def by_hand(self) -> list[Refund]:
        """Refunds on the payment that others made."""
        return [refund for refund in self.evidence.refunds if not refund.key]

    def mails(self, purpose: str) -> list[Mail]:
        """The messages of one purpose, such as `mail.refunded`; a retry's are among them."""
        return [m for m in self.evidence.mails if _without_retry(m.purpose) == purpose]


def kind_of(purpose: str) -> str:
    """The word by which the trail speaks of a mail: `staff_notice` of `mail.notice.requester`."""
    name = purpose.removeprefix("mail.").partition(".")[0]
    return str(_PURPOSE_OF.get(name, name))


def _without_retry(purpose: str) -> str:
    name, _, last = purpose.rpartition(".")
    return name if last.startswith("retry") and last[5:].isdigit() else purpose


def failed_tasks(history: WorkflowHistory) -> Iterator[HistoryEvent]:
    """Workflow tasks that failed, but for those that nobody is to blame for."""
    for event in history.events:
        cause = event.workflow_task_failed_event_attributes.cause
        if event.event_type == _TASK_FAILED and cause not in _NO_FAULT:
            yield event


def is_reset(history: WorkflowHistory) -> bool:
    """Whether this run goes on where another one was reset."""
    reset = WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_RESET_WORKFLOW
    return any(
        event.event_type == _TASK_FAILED
        and event.workflow_task_failed_event_attributes.cause == reset
        for event in history.events
    )


def end_of(history: WorkflowHistory) -> str:
    """The type of the last event, such as `WORKFLOW_EXECUTION_COMPLETED`."""
    if not history.events:
        return "no events"
    return EventType.Name(history.events[-1].event_type).removeprefix("EVENT_TYPE_")


def result_of(history: WorkflowHistory) -> RunStatus | None:
    """The result in the close event; None where there is none that can be read."""
    if not history.events:
        return None
    closed = history.events[-1].workflow_execution_completed_event_attributes
    try:
        return RunStatus.model_validate_json(closed.result.payloads[0].data)
    except (IndexError, ValidationError):
        return None


def signalled(history: WorkflowHistory) -> list[str]:
    """The ids of the messages that a run has got, in order; empty where one has none to read."""
    return [
        _message_id(event)
        for event in history.events
        if event.event_type == EventType.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED
    ]


def was_cancelled(history: WorkflowHistory) -> bool:
    """Whether somebody cancelled the run in Temporal."""
    wanted = EventType.EVENT_TYPE_WORKFLOW_EXECUTION_CANCEL_REQUESTED
    return any(event.event_type == wanted for event in history.events)


def taken_over(history: WorkflowHistory) -> int:
    """How many decisions a run has taken over from the one before it."""
    if not history.events:
        return 0
    given = history.events[0].workflow_execution_started_event_attributes.input.payloads
    request = json.loads(given[0].data) if given else {}
    return len((request.get("resumes") or {}).get("decisions", ()))


def build_at(history: WorkflowHistory, event_id: int) -> str:
    """By which release's code the first workflow task after an event was done; empty: not told."""
    for event in history.events:
        if event.event_type == _TASK_COMPLETED and event.event_id > event_id:
            return event.workflow_task_completed_event_attributes.worker_version.build_id
    return ""


def ordered_under(history: WorkflowHistory, purpose: str) -> str:
    """By which release's code a run has handed a mail to a worker; empty: it has not."""
    for event in history.events:
        key = _mail_ordered(event)
        if key and names.purpose_of(key) == purpose:
            task = event.activity_task_scheduled_event_attributes
            return build_at(history, task.workflow_task_completed_event_id - 1)
    return ""


def ended_before_the_deploy(history: WorkflowHistory) -> bool:
    """Whether older code came to the end of a verified refund, and knew nothing more to do.

    The order service is told by newer code alone: beside the mails, from that moment on.
    """
    scheduled, last = {}, 0
    for event in history.events:
        name = event.activity_task_scheduled_event_attributes.activity_type.name
        if name == "tell_order_service":
            return False
        scheduled[event.event_id] = name
        done = event.activity_task_completed_event_attributes.scheduled_event_id
        if scheduled.get(done) == "read_refund":
            last = event.event_id
    return build_at(history, last) not in ("", RELEASE)


def mails_ordered(history: WorkflowHistory) -> set[str]:
    """The keys of the mails that a run has handed to a worker."""
    return set(filter(None, map(_mail_ordered, history.events)))


def _mail_ordered(event: HistoryEvent) -> str:
    """The key of the mail that an event hands to a worker; empty where it hands none."""
    task = event.activity_task_scheduled_event_attributes
    if task.activity_type.name != "send_mail" or not task.input.payloads:
        return ""
    return str(json.loads(task.input.payloads[0].data)["key"])


def _message_id(event: HistoryEvent) -> str:
    signal = event.workflow_execution_signaled_event_attributes
    kind, payloads = _KINDS.get(signal.signal_name), signal.input.payloads
    if kind is None or len(payloads) != 1:
        return ""
    try:
        token = SignedStatement.model_validate_json(payloads[0].data).token
        return read_claims(token, kind).jti
    except (ValidationError, StatementError):
        return ""
