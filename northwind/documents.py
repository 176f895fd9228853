"""What the order service, the staff directory and the policy book hold, and how it is kept."""

import sqlite3
from datetime import UTC, datetime
from typing import Annotated, Literal, TypeVar

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, PlainSerializer, StrictInt

from northwind.clock import instant_text

Instant = Annotated[AwareDatetime, PlainSerializer(instant_text, return_type=str, when_used="json")]
Identifier = Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,64}$")]
Currency = Annotated[str, Field(pattern=r"^[A-Z]{3}$")]
PositiveInt = Annotated[StrictInt, Field(gt=0)]
Amounts = dict[Currency, PositiveInt]


class Document(BaseModel):
    """Something that is kept whole, as JSON; a field that it does not know is refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Money(Document):
    """An amount in minor units (cents for USD, yen for JPY, fils for KWD)."""

    amount_minor: PositiveInt
    currency: Currency


class Customer(Document):
    """Who ordered, and the language for mail to them."""

    name: str
    email: str
    locale: str = "en_US"


class Item(Document):
    """One line of an order."""

    name: str
    quantity: PositiveInt = 1


class Order(Document):
    """An order, with the payment that paid for it."""

    id: Identifier
    customer: Customer
    payment: Identifier
    total: Money
    items: list[Item]
    placed_at: Instant
    delivered_at: Instant | None


class NotedRefund(Document):
    """A refund of an order, as somebody has told the order service."""

    refund: Identifier
    amount: Money
    refunded_at: Instant


class Key(Document):
    """The public half of a signing key (base64url of its 32 raw bytes) and its validity."""

    kid: str
    algorithm: Literal["Ed25519"]
    public: str
    valid_from: Instant
    valid_until: Instant | None
    signs_for: list[str]


class Person(Document):
    """A member of staff; `limits` is what one approval of theirs may cover, by currency."""

    address: str
    name: str
    roles: list[Literal["support", "manager", "finance_director"]]
    limits: list[Money]
    active: bool
    time_zone: str = "UTC"
    keys: list[Key]


class Policy(Document):
    """The refund policy: text for readers and the same numbers for code (minor units)."""

    version: str
    text: str
    return_window_days: PositiveInt
    auto_approve_up_to: Amounts
    one_manager_up_to: Amounts
    reminder_after_hours: PositiveInt
    escalate_after_hours: PositiveInt
    expire_after_hours: PositiveInt
    grace_minutes: Annotated[StrictInt, Field(ge=0)]
    skew_minutes: Annotated[StrictInt, Field(ge=0)]
    max_rounds: PositiveInt
    model_patience_minutes: PositiveInt
    max_model_turns: PositiveInt
    operations: str


Kept = TypeVar("Kept", Order, Person, Policy)
ONLY_POLICY = "current"


def find(db: sqlite3.Connection, kind: type[Kept], identifier: str) -> Kept | None:
    """The document of that kind and id, or None."""
    row = db.execute(
        "select body from documents where kind = ? and id = ?", (kind.__name__, identifier)
    ).fetchone()
    return None if row is None else kind.model_validate_json(row["body"])


def find_all(db: sqlite3.Connection, kind: type[Kept]) -> list[Kept]:
    """All documents of a kind, by id."""
    rows = db.execute("select body from documents where kind = ? order by id", (kind.__name__,))
    return [kind.model_validate_json(row["body"]) for row in rows]


def keep(db: sqlite3.Connection, identifier: str, document: Order | Person | Policy) -> None:
    """Write a document over the one of that kind and id."""
    db.execute(
        "insert or replace into documents (kind, id, body) values (?, ?, ?)",
        (type(document).__name__, identifier, document.model_dump_json()),
    )


def changed(document: Kept, change: dict[str, object]) -> Kept:
    """The document with the named fields replaced. Raises pydantic's ValidationError."""
    fields = document.model_dump(mode="json") | change
    return type(document).model_validate(fields)


def instant_of(seconds: float) -> datetime:
    """The instant of a Unix time in seconds."""
    return datetime.fromtimestamp(seconds, UTC)
