"""The Activities that exist, as abstract classes: what workflows call and what wiring supplies.

Every input names its environment; a worker of another one refuses it. Every effect carries its
idempotency key, so each method may be repeated at any time.
"""

from abc import ABC, abstractmethod
from enum import StrEnum

from pydantic import AwareDatetime
from temporalio import activity

from domain.agent import ModelAnswer, ModelRequest, ToolCall, ToolResult
from domain.case import Case
from domain.mail import MailOrder, MailReceipt
from domain.models import Contact, Customer, Frozen, Identifier, Refund
from domain.money import Money
from domain.request import Proposal, RefundRequest
from domain.statements import StatementKind
from domain.sweep import FailedRefund
from domain.trail import Refusal


class CaseQuery(Frozen):
    """What to read: at the start for the request alone, before the money with its approvals."""

    environment: Identifier
    request: RefundRequest
    proposal: Proposal | None = None
    approvals: tuple[str, ...] = ()
    """The signed decisions that count so far; each is verified again, as of now."""


class CaseActivities(ABC):
    @abstractmethod
    @activity.defn
    async def read_case(self, query: CaseQuery) -> Case:
        """Read order, payment with all its refunds, policy and rights, as they are now."""


class ToolsQuery(Frozen):
    """All tools that one answer of the model asked for, to be run together."""

    environment: Identifier
    order_id: Identifier
    """The run's own order. What the model names in a call changes nothing about it."""
    calls: tuple[ToolCall, ...]


class ToolResults(Frozen):
    """The results, in the order of the calls."""

    results: tuple[ToolResult, ...]


class AgentActivities(ABC):
    @abstractmethod
    @activity.defn
    async def ask_model(self, request: ModelRequest) -> ModelAnswer:
        """Ask the model once; a received answer is kept by key and used again on a repeat."""

    @abstractmethod
    @activity.defn
    async def use_tools(self, query: ToolsQuery) -> ToolResults:
        """Run read-only tools for the model: `look_up_order`, `read_policy`, `past_refunds`."""


class StatementCheck(Frozen):
    """A decision or a withdrawal whose claims fit the run, to be checked with the directory."""

    environment: Identifier
    token: str
    kind: StatementKind
    proposal: Proposal | None = None
    """For a decision: what it decides on."""
    requester: str
    customer: str
    received_at: AwareDatetime
    """The run's time when the message was taken up."""


class StatementVerdict(Frozen):
    refusal: Refusal | None
    person: Contact | None = None
    director: bool = False
    """Whether theirs can be the finance director's approval of this proposal."""
    checked: str = ""
    """What was looked at, in words: when it was signed, by which key, role and limits."""


class StatementActivities(ABC):
    @abstractmethod
    @activity.defn
    async def verify_statement(self, check: StatementCheck) -> StatementVerdict:
        """Check signature, key, person and right against the staff directory."""


class RefundOrder(Frozen):
    """The complete request to the provider, in the history before it is first sent."""

    environment: Identifier
    key: str
    scope: str
    """What all keys of this request begin with: a refund of ours from any round is found by it."""
    payment: str
    amount: Money
    order_id: Identifier
    proposal_id: str
    known_refunds: tuple[str, ...]
    """The refunds on the payment that the proposal was made with: a newer one sends nothing."""
    checked_at: AwareDatetime
    """When the facts that allow this were read; nothing is sent on facts older than 5 minutes."""


class AttemptState(StrEnum):
    MADE = "made"
    FOUND = "found"
    STALE = "stale"
    REFUSED = "refused"
    CONTRADICTORY = "contradictory"


class RefundAttempt(Frozen):
    """What is known after an attempt; an unknown outcome is an error and tried again."""

    state: AttemptState
    attempt: int = 1
    """Which attempt this was; what came of the earlier ones is not known."""
    refund: Refund | None = None
    code: str = ""
    """The provider's word for its no."""
    detail: str = ""


class RefundQuery(Frozen):
    environment: Identifier
    refund_id: str


class RefundReading(Frozen):
    refund: Refund | None
    """None: the provider does not know this refund."""


class PaymentActivities(ABC):
    @abstractmethod
    @activity.defn
    async def make_refund(self, order: RefundOrder) -> RefundAttempt:
        """Look for our refund, adopt an exact match, else make it under the saved key."""

    @abstractmethod
    @activity.defn
    async def read_refund(self, query: RefundQuery) -> RefundReading:
        """Read one refund back from the provider."""


class OrderNotice(Frozen):
    """What the order service is told: a refund that the provider, read back, calls succeeded."""

    environment: Identifier
    key: str
    """Of the request: the same for every attempt, and for a run that is started again."""
    order_id: Identifier
    refund: Refund


class OrderReceipt(Frozen):
    """The order service has it in its books."""

    known_before: bool = False
    """Whether it had been told before: an attempt whose answer was lost, or an earlier run."""


class OrderActivities(ABC):
    @abstractmethod
    @activity.defn
    async def tell_order_service(self, notice: OrderNotice) -> OrderReceipt:
        """Note a refund with its order, once per key; the same again changes nothing."""


class SweepQuery(Frozen):
    """Which of the provider's refunds to look at: one reading of several."""

    environment: Identifier
    since: AwareDatetime
    """Refunds made before this are left out."""
    after: str = ""
    """Go on after the refund of this id, towards older ones; empty begins with the newest."""


class SweepPage(Frozen):
    """What one reading has found."""

    failed: tuple[FailedRefund, ...]
    looked_at: int
    next_after: str = ""
    """Where the next reading goes on; empty where there are no more."""


class AddresseesQuery(Frozen):
    environment: Identifier
    order_id: Identifier


class Addressees(Frozen):
    """Whom to write to about an order."""

    customer: Customer | None
    """None: the order service has no such order."""
    operations: Contact


class SweepActivities(ABC):
    @abstractmethod
    @activity.defn
    async def find_failed_refunds(self, query: SweepQuery) -> SweepPage:
        """Read some pages of the provider's refunds, newest first, and keep what needs telling."""

    @abstractmethod
    @activity.defn
    async def read_addressees(self, query: AddresseesQuery) -> Addressees:
        """Read whom to write to about an order."""


class MailActivities(ABC):
    @abstractmethod
    @activity.defn
    async def send_mail(self, order: MailOrder) -> MailReceipt:
        """Send a mail once per key, whatever happens in between."""
