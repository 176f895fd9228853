"""What is left of a run in which everything went right, for each outcome, with any part replaced.

A test takes one of these and breaks exactly one thing in it.
"""

import base64
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from temporalio.api.common.v1 import ActivityType, Payload, Payloads
from temporalio.api.enums.v1 import EventType, WorkflowTaskFailedCause
from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import WorkflowHistory

from domain.models import Outcome
from domain.models import Refund as ReadRefund
from domain.money import Money
from domain.names import SIGNAL_DECIDE, SIGNAL_WITHDRAW
from domain.outcomes import Reason
from domain.request import Proposal
from domain.statements import StatementKind
from domain.trail import Entry, Refusal, RunStatus
from starters.drill.evidence import Evidence, Mail, Noted, Refund, Sent
from starters.drill.plan import AT_WAIT, Decision, Plan, Step

NOW = datetime(2026, 11, 29, 18, 0, tzinfo=UTC)
ORDER, REQUEST = "d-1", "r-1"
SCOPE = f"local/refund-order-{ORDER}/{REQUEST}/"
CUSTOMER = f"{ORDER}@customers.example"
SAM = "sam.okafor@northwind.example"
MARIA = "maria.silva@northwind.example"
TOM = "tom.becker@northwind.example"
GRACE = "grace.lin@northwind.example"
OPERATIONS = "refund-operations@northwind.example"
PROPOSAL = "a" * 32
TOTAL = 42_000
SIGNALLED = EventType.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED
TERMINATED = EventType.EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED
COMPLETED = EventType.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED
TASK_FAILED = EventType.EVENT_TYPE_WORKFLOW_TASK_FAILED
Cause = WorkflowTaskFailedCause

_KINDS = {
    "decision": (SIGNAL_DECIDE, StatementKind.DECISION),
    "withdrawal": (SIGNAL_WITHDRAW, StatementKind.WITHDRAWAL),
}


def plan(**changes: Any) -> Plan:
    """$420.00, approved by one manager."""
    fields: dict[str, Any] = {"name": "a test", "order_id": ORDER, "total_minor": TOTAL}
    return Plan.model_validate(fields | changes)


def step(do: str, at: str = AT_WAIT, **how: Any) -> Step:
    """Something that happens, while the run waits unless said otherwise."""
    return Step.model_validate({"do": do, "at": at, **how})


def mail(purpose: str, *to: str, text: str = "", **changes: Any) -> Mail:
    """A message that arrived once."""
    name = f"mail.{purpose}"
    fields: dict[str, Any] = {
        "key": f"{SCOPE}{name}",
        "purpose": name,
        "to": to or (CUSTOMER,),
        "subject": f"About {ORDER}",
        "text": text,
        "message_id": f"<{name}@northwind.example>",
        "deliveries": 1,
    }
    return Mail(**(fields | changes))


def refund(minor: int = TOTAL, **changes: Any) -> Refund:
    """The refund that we made."""
    fields: dict[str, Any] = {
        "refund_id": "re_1",
        "amount_minor": minor,
        "status": "succeeded",
        "key": f"{SCOPE}refund.r1",
        "proposal_id": PROPOSAL,
        "order_id": ORDER,
    }
    return Refund(**(fields | changes))


def noted(minor: int = TOTAL, **changes: Any) -> Noted:
    """What the order service was told of it."""
    key = f"{SCOPE}order.refunded"
    fields: dict[str, Any] = {"key": key, "refund_id": "re_1", "amount_minor": minor, "times": 1}
    return Noted(**(fields | changes))


def by_hand(minor: int) -> Refund:
    """A refund that a colleague made."""
    return refund(minor, refund_id="re_hand", key="", proposal_id="", order_id="")


def sent(message_id: str = "m-1", **changes: Any) -> Sent:
    """Maria's approval."""
    fields: dict[str, Any] = {
        "message_id": message_id,
        "kind": "decision",
        "by": MARIA,
        "verdict": "approve",
        "proposal_id": PROPOSAL,
    }
    return Sent(**(fields | changes))


def row(what: str, detail: str = "", message_id: str = "", **changes: Any) -> Entry:
    """A row of the trail."""
    return Entry(at=NOW, what=what, detail=detail, message_id=message_id, **changes)


def history(
    status: RunStatus | None,
    messages: Sequence[Sent] = (),
    *,
    end: EventType.ValueType = COMPLETED,
    resumed: int = 0,
    more: Sequence[HistoryEvent] = (),
) -> WorkflowHistory:
    """The events of a run, as far as the checkers look at them."""
    request = {"resumes": {"decisions": ["token"] * resumed}} if resumed else {}
    first = HistoryEvent(event_type=EventType.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED)
    first.workflow_execution_started_event_attributes.input.CopyFrom(_payloads(request))
    last = HistoryEvent(event_type=end)
    if status is not None and end == COMPLETED:
        result = json.loads(status.model_dump_json())
        last.workflow_execution_completed_event_attributes.result.CopyFrom(_payloads(result))
    events = [first, *more, *(signal(message) for message in messages), last]
    return WorkflowHistory(f"refund-order-{ORDER}", events)


def signal(message: Sent) -> HistoryEvent:
    """How a message that was sent lies in the history."""
    if message.kind == "cancel":
        return HistoryEvent(event_type=EventType.EVENT_TYPE_WORKFLOW_EXECUTION_CANCEL_REQUESTED)
    name, kind = _KINDS.get(message.kind, _KINDS["decision"])
    event = HistoryEvent(event_type=SIGNALLED)
    given = event.workflow_execution_signaled_event_attributes
    given.signal_name = name
    token = _token(message, kind) if message.message_id else "garbage"
    given.input.CopyFrom(_payloads({"token": token}))
    return event


def mail_order(key: str) -> HistoryEvent:
    """A run hands a mail to a worker."""
    event = HistoryEvent(event_type=EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED)
    task = event.activity_task_scheduled_event_attributes
    task.activity_type.CopyFrom(ActivityType(name="send_mail"))
    task.input.CopyFrom(_payloads({"key": key}))
    return event


def task_failed(cause: WorkflowTaskFailedCause.ValueType) -> HistoryEvent:
    """A workflow task that came to nothing."""
    event = HistoryEvent(event_type=TASK_FAILED)
    event.workflow_task_failed_event_attributes.cause = cause
    return event


def _payloads(value: Any) -> Payloads:
    return Payloads(payloads=[Payload(data=json.dumps(value).encode())])


def _token(message: Sent, kind: StatementKind) -> str:
    """A statement whose claims can be read; nobody looks at its signature here."""
    claims: dict[str, Any] = {
        "iss": message.by or SAM,
        "iat": int(NOW.timestamp()),
        "jti": message.message_id,
        "env": "local",
        "sub": f"refund-order-{ORDER}",
    }
    if kind is StatementKind.DECISION:
        claims |= {"proposal": message.proposal_id, "verdict": message.verdict or "approve"}
    else:
        claims |= {"request": REQUEST}
    header = {"alg": "EdDSA", "typ": kind.value, "kid": "someone.1"}
    parts = [json.dumps(part).encode() for part in (header, claims)]
    encoded = [base64.urlsafe_b64encode(part).rstrip(b"=").decode() for part in parts]
    return ".".join([*encoded, "c2lnbmVk"])


def proposal(amount: int, taken: int, needed: int) -> Proposal:
    """What the run says that it proposed."""
    return Proposal(
        proposal_id=PROPOSAL,
        round=1,
        order_id=ORDER,
        payment=f"pi_{ORDER}",
        amount=Money(amount_minor=amount, currency="USD"),
        taken_before=Money(amount_minor=taken, currency="USD"),
        policy_version="2026-07",
        approvals_needed=needed,
    )


def evidence(
    outcome: Outcome,
    reason: Reason,
    *,
    planned: Plan,
    mails: Sequence[Mail],
    refunds: Sequence[Refund] = (),
    messages: Sequence[Sent] = (),
    rows: Sequence[Entry] = (),
    refused: dict[str, int] | None = None,
    proposed: Proposal | None = None,
) -> Evidence:
    """An Evidence that agrees with itself: the trail has every mail, the history every message."""
    ours = next((made for made in refunds if made.key), None)
    said = None
    if ours is not None:
        said = ReadRefund(
            id=ours.refund_id,
            payment=f"pi_{ORDER}",
            amount=Money(amount_minor=ours.amount_minor, currency="USD"),
            status="succeeded" if planned.fails_late else ours.status,
            created_at=NOW,
        )
    by_run = [m for m in mails if m.purpose not in ("mail.correction", LATE_ALERT)]
    status = RunStatus(
        order_id=ORDER,
        request_id=REQUEST,
        accepted=True,
        outcome=outcome,
        reason=reason.value,
        proposal=proposed,
        refund=said,
        trail=(*rows, *(row("mail_sent", _word(m)) for m in by_run)),
        refused=refused or {},
    )
    return Evidence(
        plan=planned,
        request_id=REQUEST,
        sent=list(messages),
        histories=[history(status, messages)],
        status=status,
        refunds=list(refunds),
        noted=[noted(ours.amount_minor)] if ours and outcome is Outcome.REFUNDED else [],
        captured_minor=planned.total_minor,
        currency="USD",
        mails=list(mails),
    )


def retold(given: Evidence, **changes: Any) -> Evidence:
    """The same with another word of the run, in its history too."""
    assert given.status is not None
    status = given.status.model_copy(update=changes)
    histories = [*given.histories[:-1], _with_result(given.histories[-1], status)]
    return replace(given, status=status, histories=histories)


def with_row(given: Evidence, *rows: Entry) -> Evidence:
    """The same with more rows at the end of the trail."""
    assert given.status is not None
    return retold(given, trail=(*given.status.trail, *rows))


def without_rows(given: Evidence, drop: Callable[[Entry], bool]) -> Evidence:
    """The same without some rows of the trail."""
    assert given.status is not None
    return retold(given, trail=tuple(entry for entry in given.status.trail if not drop(entry)))


def _with_result(old: WorkflowHistory, status: RunStatus) -> WorkflowHistory:
    fresh = history(status).events[-1]
    return WorkflowHistory(old.workflow_id, [*list(old.events)[:-1], fresh])


def _word(message: Mail) -> str:
    name = message.purpose.removeprefix("mail.").partition(".")[0]
    return {"notice": "staff_notice"}.get(name, name)


LATE_ALERT = "mail.alert.refund_failed_later"
_REVIEW = mail("under_review")
_ASKED = mail("approval_request.r1", MARIA, TOM)
_TOLD_SAM = mail("notice.requester", SAM)
_TOLD_APPROVERS = mail("notice.approvers", MARIA, TOM)
_REFUNDED = mail("refunded", text="We have refunded $420.00 for your order.")
_APPROVED = (row("proposed"), row("approved", message_id="m-1"))
_ONE = proposal(TOTAL, 0, 1)


def refunded(**changes: Any) -> Evidence:
    """Approved by Maria, paid and confirmed."""
    fields: dict[str, Any] = {
        "planned": plan(),
        "mails": [_REVIEW, _ASKED, _REFUNDED],
        "refunds": [refund()],
        "messages": [sent()],
        "rows": _APPROVED,
        "proposed": _ONE,
    }
    return evidence(Outcome.REFUNDED, Reason.VERIFIED, **(fields | changes))


def declined() -> Evidence:
    """Delivered too long ago."""
    return evidence(
        Outcome.DECLINED,
        Reason.OUTSIDE_RETURN_WINDOW,
        planned=plan(delivered_days_ago=75),
        mails=[mail("declined")],
    )


def mistaken() -> Evidence:
    """More asked for than there is: a mistake of the requester, of which no customer hears."""
    return evidence(
        Outcome.DECLINED,
        Reason.AMOUNT_ABOVE_REFUNDABLE,
        planned=plan(asked="420.01"),
        mails=[_TOLD_SAM],
    )


def rejected() -> Evidence:
    """Maria said no."""
    return evidence(
        Outcome.REJECTED,
        Reason.REJECTED_BY_APPROVER,
        planned=plan(decision=Decision.REJECT),
        mails=[_REVIEW, _ASKED, mail("rejected"), _TOLD_SAM],
        messages=[sent(verdict="reject")],
        rows=[row("proposed"), row("rejected", message_id="m-1")],
        proposed=_ONE,
    )


def expired() -> Evidence:
    """Nobody decided."""
    return evidence(
        Outcome.EXPIRED,
        Reason.NOBODY_DECIDED,
        planned=plan(decision=Decision.NOBODY),
        mails=[_REVIEW, _ASKED, mail("expired"), _TOLD_SAM, _TOLD_APPROVERS],
        rows=[row("proposed")],
        proposed=_ONE,
    )


def withdrawn() -> Evidence:
    """Sam took it back."""
    return evidence(
        Outcome.WITHDRAWN,
        Reason.WITHDRAWN_BY_STAFF,
        planned=plan(decision=Decision.WITHDRAW),
        mails=[_REVIEW, _ASKED, mail("withdrawn"), _TOLD_APPROVERS],
        messages=[sent(kind="withdrawal", by=SAM, verdict="", proposal_id="")],
        rows=[row("proposed"), row("withdrawn", message_id="m-1")],
        proposed=_ONE,
    )


def cancelled() -> Evidence:
    """Somebody cancelled the run in Temporal."""
    return evidence(
        Outcome.WITHDRAWN,
        Reason.CANCELLED_IN_TEMPORAL,
        planned=plan(decision=Decision.CANCEL),
        mails=[_REVIEW, _ASKED, mail("withdrawn"), _TOLD_APPROVERS],
        messages=[Sent(message_id="", kind="cancel")],
        rows=[row("proposed"), row("withdrawn")],
        proposed=_ONE,
    )


def already_refunded() -> Evidence:
    """A colleague refunded all of it during the wait."""
    return evidence(
        Outcome.ALREADY_REFUNDED,
        Reason.REFUNDED_BY_HAND,
        planned=plan(steps=[step("hand_refund", minor=TOTAL)]),
        mails=[_REVIEW, _ASKED, mail("already_refunded"), _TOLD_SAM],
        refunds=[by_hand(TOTAL)],
        messages=[sent()],
        rows=_APPROVED,
        proposed=_ONE,
    )


def refund_failed() -> Evidence:
    """The provider took the refund, and the bank did not."""
    return evidence(
        Outcome.REFUND_FAILED,
        Reason.REFUND_FAILED,
        planned=plan(first_status="pending", settles="failed"),
        mails=[_REVIEW, _ASKED, mail("refund_failed"), mail("alert.refund_failed", OPERATIONS)],
        refunds=[refund(status="failed")],
        messages=[sent()],
        rows=_APPROVED,
        proposed=_ONE,
    )


def needs_human() -> Evidence:
    """The provider speaks of a state that nobody knows."""
    return evidence(
        Outcome.NEEDS_HUMAN,
        Reason.STATUS_UNKNOWN,
        planned=plan(first_status="on_hold"),
        mails=[_REVIEW, _ASKED, mail("delayed"), mail("alert.status_unknown", OPERATIONS)],
        refunds=[refund(status="on_hold")],
        messages=[sent()],
        rows=_APPROVED,
        proposed=_ONE,
    )


def without_approval() -> Evidence:
    """A small amount, for which nobody is asked."""
    return refunded(
        planned=plan(total_minor=3_500),
        mails=[mail("refunded", text="We have refunded $35.00.")],
        refunds=[refund(3_500)],
        messages=[],
        rows=[row("proposed")],
        proposed=proposal(3_500, 0, 0),
    )


def by_two() -> Evidence:
    """A large amount, for which a manager and the finance director were needed."""
    rows = (*_APPROVED, row("approved", message_id="m-2"))
    return refunded(
        planned=plan(total_minor=185_000),
        mails=[_REVIEW, _ASKED, mail("refunded", text="We have refunded $1,850.00.")],
        refunds=[refund(185_000)],
        messages=[sent(), sent("m-2", by=GRACE)],
        rows=rows,
        proposed=proposal(185_000, 0, 2),
    )


def corrected() -> Evidence:
    """A refund that failed after it had been confirmed, and was found by the sweep."""
    return refunded(
        planned=plan(fails_late=True),
        mails=[
            _REVIEW,
            _ASKED,
            _REFUNDED,
            mail("correction"),
            mail("alert.refund_failed_later", OPERATIONS),
        ],
        refunds=[refund(status="failed")],
    )


def with_garbage() -> Evidence:
    """Approved, with a message that nobody can read and one that does not count."""
    foreign = sent("m-9", kind="foreign", proposal_id="b" * 32)
    return refunded(
        messages=[sent(), Sent(message_id="", kind="garbage"), foreign],
        rows=[
            *_APPROVED,
            row("refused", refusal=Refusal.MALFORMED),
            row("refused", message_id="m-9", refusal=Refusal.OTHER_PROPOSAL),
        ],
        refused={"malformed": 1, "other_proposal": 1},
    )


def reset() -> Evidence:
    """Reset during the wait: the second run has all that the first one had."""
    given = refunded(planned=plan(steps=[step("reset")]))
    more = [task_failed(Cause.WORKFLOW_TASK_FAILED_CAUSE_RESET_WORKFLOW)]
    keys = [mail_order(m.key) for m in (_REVIEW, _ASKED)]
    before = history(None, given.sent, end=TERMINATED, more=keys)
    after = history(given.status, given.sent, more=[*more, *keys])
    return replace(given, histories=[before, after])


def started_again() -> Evidence:
    """Terminated after the approval and started again: the approval is taken over."""
    given = refunded(planned=plan(steps=[step("terminate")]))
    before = history(None, given.sent, end=TERMINATED)
    return replace(given, histories=[before, history(given.status, resumed=1)])


RIGHT: tuple[Callable[[], Evidence], ...] = (
    refunded,
    declined,
    mistaken,
    rejected,
    expired,
    withdrawn,
    cancelled,
    already_refunded,
    refund_failed,
    needs_human,
    without_approval,
    by_two,
    corrected,
    with_garbage,
    reset,
    started_again,
)
