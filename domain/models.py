"""The world as the run sees it: orders, payments, refunds, people, the policy.

All models are frozen and tolerate fields that they do not know, so that a service which grows does
not break a refund that waits. All instants are aware and in UTC.
"""

from datetime import datetime, timedelta
from enum import StrEnum
from typing import Annotated

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StrictInt,
    StringConstraints,
)

from domain.instants import Instant
from domain.money import LARGEST_MINOR, Money
from domain.names import IDENTIFIER_PATTERN, is_identifier, read_refund_key


def _no_path(text: str) -> str:
    if not is_identifier(text):
        raise ValueError("'.' and '..' are no ids")
    return text


Identifier = Annotated[str, StringConstraints(pattern=IDENTIFIER_PATTERN), AfterValidator(_no_path)]
Address = Annotated[
    str, StringConstraints(min_length=3, max_length=254, pattern=r"^[^@\s]+@[^@\s]+$")
]

UTC_ZONE = "UTC"
TimeZone = Annotated[str, StringConstraints(max_length=64)]


class Frozen(BaseModel):
    """Base of every model that crosses a boundary."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class Stage(StrEnum):
    """Where a run is; also the search attribute `RefundStage`."""

    INVESTIGATING = "investigating"
    AWAITING_APPROVAL = "awaiting_approval"
    RECHECKING = "rechecking"
    REFUNDING = "refunding"
    VERIFYING = "verifying"
    CLOSED = "closed"


class Outcome(StrEnum):
    """How a run ended; every one but `refunded` tells somebody."""

    REFUNDED = "refunded"
    DECLINED = "declined"
    REJECTED = "rejected"
    EXPIRED = "expired"
    WITHDRAWN = "withdrawn"
    ALREADY_REFUNDED = "already_refunded"
    REFUND_FAILED = "refund_failed"
    NEEDS_HUMAN = "needs_human"


class Customer(Frozen):
    name: Annotated[str, StringConstraints(max_length=200)]
    email: Address
    locale: str = "en_US"


class Item(Frozen):
    name: Annotated[str, StringConstraints(max_length=300)]
    quantity: StrictInt


class Order(Frozen):
    """An order as the order service tells it."""

    id: Identifier
    customer: Customer
    payment: Annotated[str, StringConstraints(min_length=1, max_length=255)]
    total: Money
    items: tuple[Item, ...] = ()
    placed_at: Instant
    delivered_at: Instant | None = None


class RefundStatus(StrEnum):
    """The provider's words for the state of a refund; it may say others, so models keep text."""

    PENDING = "pending"
    REQUIRES_ACTION = "requires_action"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELED = "canceled"


# Ends that bring no money to the customer.
UNDONE = (RefundStatus.FAILED, RefundStatus.CANCELED)


class Refund(Frozen):
    """A refund in the provider's books, ours or not."""

    id: str
    payment: str
    amount: Money
    status: str
    created_at: Instant
    key: str | None = None
    """Our idempotency key from the metadata; None where somebody else made the refund."""

    @property
    def takes_money(self) -> bool:
        """Whether its amount is gone or may yet go: a status nobody knows counts as gone."""
        return self.status not in UNDONE

    @property
    def succeeded(self) -> bool:
        return self.status == RefundStatus.SUCCEEDED

    def may_cover(self, order_id: str) -> bool:
        """Whether it may have refunded this order: one payment may have paid for several.

        Our mark on it tells; one by hand carries none, and counts for the order that asks.
        """
        key = read_refund_key(self.key) if self.key is not None else None
        return key is None or key.order_id == order_id


class Payment(Frozen):
    """A payment with every refund made on it, as the provider tells it."""

    id: str
    captured: Money
    refunded_minor: StrictInt = Field(ge=0)
    """The provider's own sum. Compared with the list below, since either may lag behind."""
    disputed: bool = False
    refunds: tuple[Refund, ...] = ()

    @property
    def taken_minor(self) -> int:
        """Minor units refunded or about to be, by the more cautious of the two sources."""
        return max(
            self.refunded_minor, sum(r.amount.amount_minor for r in self.refunds if r.takes_money)
        )

    def taken_since(self, known: tuple[str, ...]) -> list[Refund]:
        """The refunds that take money and are not among the known ones."""
        return [r for r in self.refunds if r.takes_money and r.id not in known]

    def all_in(self, currency: str) -> bool:
        """Whether it was captured and refunded in this currency alone; else sums mean nothing."""
        used = (self.captured, *(refund.amount for refund in self.refunds))
        return all(money.currency == currency for money in used)

    @property
    def left(self) -> Money:
        """What may still be refunded: captured - refunded - pending."""
        return self.captured.with_minor(max(0, self.captured.amount_minor - self.taken_minor))


class Role(StrEnum):
    SUPPORT = "support"
    MANAGER = "manager"
    FINANCE_DIRECTOR = "finance_director"


APPROVER_ROLES = (Role.MANAGER, Role.FINANCE_DIRECTOR)


class PublicKey(Frozen):
    """A person's public key with the time in which it signs."""

    kid: Annotated[str, StringConstraints(min_length=1, max_length=128)]
    algorithm: str
    public: Annotated[str, StringConstraints(max_length=128)]
    """The 32 bytes of an Ed25519 key in base64url, without padding."""
    valid_from: Instant
    valid_until: Instant | None = None
    signs_for: tuple[str, ...] = ()

    def valid_at(self, instant: datetime) -> bool:
        return self.valid_from <= instant and (
            self.valid_until is None or instant < self.valid_until
        )


class Person(Frozen):
    """A member of staff as the directory tells it."""

    address: Address
    name: str
    roles: tuple[str, ...] = ()
    """Roles as text: a role that this code does not know gives no right."""
    limits: tuple[Money, ...] = ()
    """What one approval of theirs may cover, per currency; none means nothing."""
    active: bool = True
    time_zone: TimeZone = UTC_ZONE
    """Where they read their mail."""
    keys: tuple[PublicKey, ...] = ()


class Contact(Frozen):
    """Whom to write to."""

    name: str
    address: str
    time_zone: str = UTC_ZONE
    """A name of the IANA time zone database: deadlines are told in it."""


class Approver(Contact):
    """Somebody who may approve by role, and how much."""

    limits: tuple[Money, ...] = ()


# Minor units per currency, under the same bounds as money itself.
Limits = dict[str, Annotated[StrictInt, Field(ge=0, le=LARGEST_MINOR)]]
# Ten years. A longer time is a mistake, and one that is long enough overflows the run's clock.
_LONGEST_HOURS = 10 * 366 * 24


class Policy(Frozen):
    """The refund policy: one versioned document, text for the model and numbers for the code."""

    version: Annotated[str, StringConstraints(min_length=1, max_length=64)]
    text: Annotated[str, StringConstraints(max_length=8_000)]
    return_window_days: int = Field(ge=0, le=_LONGEST_HOURS // 24)
    auto_approve_up_to: Limits
    """Minor units per currency up to which nobody needs to approve."""
    one_manager_up_to: Limits
    reminder_after_hours: int = Field(gt=0, le=_LONGEST_HOURS)
    escalate_after_hours: int = Field(gt=0, le=_LONGEST_HOURS)
    expire_after_hours: int = Field(gt=0, le=_LONGEST_HOURS)
    grace_minutes: int = Field(ge=0, le=_LONGEST_HOURS)
    skew_minutes: int = Field(ge=0, le=_LONGEST_HOURS)
    max_rounds: int = Field(gt=0)
    model_patience_minutes: int = Field(gt=0, le=_LONGEST_HOURS)
    max_model_turns: int = Field(gt=0, le=20)
    operations: Address

    @property
    def time_to_decide(self) -> timedelta:
        """How long a proposal waits for its decisions."""
        return timedelta(hours=self.expire_after_hours)

    @property
    def grace(self) -> timedelta:
        """How long after the deadline a decision signed in time may still arrive."""
        return timedelta(minutes=self.grace_minutes)

    @property
    def skew(self) -> timedelta:
        """How far a signer's clock may be off."""
        return timedelta(minutes=self.skew_minutes)


class Category(StrEnum):
    DAMAGED = "damaged"
    NOT_RECEIVED = "not_received"
    WRONG_ITEM = "wrong_item"
    CHANGED_MIND = "changed_mind"
    OTHER = "other"


class Recommendation(StrEnum):
    REFUND = "refund"
    REFUSE = "refuse"
    UNSURE = "unsure"


class Assessment(Frozen):
    """What the model thinks. It may send a case to a person and has no other effect."""

    category: Category
    recommendation: Recommendation
    cited_clauses: Annotated[
        tuple[Annotated[str, StringConstraints(max_length=20)], ...], Field(max_length=10)
    ] = ()
    summary: Annotated[str, StringConstraints(min_length=1, max_length=1_500)]


class TokenUsage(Frozen):
    """Tokens paid for, summed over the run's model requests."""

    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0

    def plus(self, other: "TokenUsage") -> "TokenUsage":
        return TokenUsage(
            requests=self.requests + other.requests,
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
        )
