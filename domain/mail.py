"""What mails exist, and what a template may know. Templates themselves live with the adapter."""

from enum import StrEnum

from domain.instants import Instant
from domain.models import Contact, Frozen, Identifier, Refund
from domain.money import Money
from domain.request import Proposal


class MailPurpose(StrEnum):
    """One mail per purpose and request (promise P3); the word is the template's name."""

    UNDER_REVIEW = "under_review"
    APPROVAL_REQUEST = "approval_request"
    REMINDER = "reminder"
    ESCALATION = "escalation"
    REFUNDED = "refunded"
    DECLINED = "declined"
    REJECTED = "rejected"
    EXPIRED = "expired"
    WITHDRAWN = "withdrawn"
    ALREADY_REFUNDED = "already_refunded"
    REFUND_FAILED = "refund_failed"
    DELAYED = "delayed"
    STAFF_NOTICE = "staff_notice"
    ALERT = "alert"
    CORRECTION = "correction"
    SWEEP_ALERT = "sweep_alert"


# Where such a mail names nobody, the adapter knows who operations are: no trouble is silent.
TO_OPERATIONS = frozenset({MailPurpose.ALERT, MailPurpose.SWEEP_ALERT})

TO_STAFF = frozenset(
    {
        MailPurpose.APPROVAL_REQUEST,
        MailPurpose.REMINDER,
        MailPurpose.ESCALATION,
        MailPurpose.STAFF_NOTICE,
        *TO_OPERATIONS,
    }
)


class MailFacts(Frozen):
    """All that a template may use. Text of customers and models in it is data, never markup."""

    order_id: str
    workflow_id: str
    request_id: str = ""
    customer: str = ""
    locale: str = "en_US"
    amount: Money | None = None
    proposal: Proposal | None = None
    approved_by: tuple[str, ...] = ()
    """The names of those whose approval counts so far."""
    waits_for: str = ""
    """Whose approval is missing, in words."""
    deciders: tuple[str, ...] = ()
    """The names of those who are asked to decide; none in what a run of release 1 wrote."""
    deadline: Instant | None = None
    requester: str = ""
    letter: str = ""
    summary: str = ""
    """The model's words for the manager."""
    refund: Refund | None = None
    outcome: str = ""
    reason: str = ""
    explanation: str = ""
    """The code's words for an end or an alert."""
    changed: str = ""
    """In a later round: what changed since the approvers were asked before."""


class MailOrder(Frozen):
    """One mail to send once."""

    environment: Identifier
    key: str
    purpose: MailPurpose
    to: tuple[Contact, ...]
    facts: MailFacts


class MailState(StrEnum):
    SENT = "sent"
    ALREADY_SENT = "already_sent"
    REFUSED = "refused"


class MailReceipt(Frozen):
    """What became of a mail; `refused` is final: the server said no to address or message."""

    state: MailState
    message_id: str
    detail: str = ""
    refused: tuple[str, ...] = ()
    """Addresses that the server does not take, of a mail that it took for the others."""
