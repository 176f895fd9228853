"""The data of a new company: orders that tell the stories, staff with fresh keys, the policy."""

import base64
import os
import sqlite3
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from northwind.documents import (
    ONLY_POLICY,
    Customer,
    Item,
    Key,
    Money,
    Order,
    Person,
    keep,
)
from northwind.payments import find_payment, insert_refund
from northwind.policy import seeded_policy
from northwind.store import read_setting, write_setting
from northwind.systems import KEYS, Systems

SEEDED = "seeded_at"


@dataclass(frozen=True)
class Story:
    """An order to seed: what was bought for how much, when it came, what was refunded since."""

    order_id: str
    customer: str
    item: str
    amount_minor: int
    currency: str = "USD"
    locale: str = "en_US"
    delivered_days_ago: int = 6
    refunded_minor: int = 0
    disputed: bool = False


STORIES = (
    Story("8890", "Ada Park", "Espresso machine", 42000),
    Story("8891", "Ben Ortiz", "Milk jug", 3500),
    Story("8892", "Chloe Martin", "Standing desk", 185000),
    Story("8893", "Daichi Mori", "Rice cooker", 12500, currency="JPY", locale="ja_JP"),
    Story("8894", "Eman Saleh", "Incense burner", 45500, currency="KWD", locale="en_US"),
    Story("8895", "Felix Brandt", "Desk lamp", 18000, delivered_days_ago=75),
    Story("8896", "Gita Rao", "Set of six chairs' covers", 25000, refunded_minor=12000),
    Story("8897", "Hugo Silva", "Bread knife", 9000, refunded_minor=9000),
    Story("8898", "Ines Costa", "Road bicycle helmet", 31000, disputed=True),
    Story("8899", "Jonas Weber", "Bookcase, four parts", 100000),
)


@dataclass(frozen=True)
class Hire:
    """A member of staff to seed, and what one approval of theirs may cover, in minor units."""

    address: str
    name: str
    role: str
    limits: tuple[tuple[str, int], ...] = ()
    has_left: bool = False
    time_zone: str = "Europe/Lisbon"


STAFF = (
    Hire("sam.okafor@northwind.example", "Sam Okafor", "support"),
    Hire(
        "maria.silva@northwind.example",
        "Maria Silva",
        "manager",
        (("USD", 100_000), ("EUR", 100_000), ("JPY", 150_000)),
    ),
    Hire(
        "tom.becker@northwind.example",
        "Tom Becker",
        "manager",
        (("USD", 50_000),),
        time_zone="Europe/Berlin",
    ),
    Hire(
        "grace.lin@northwind.example",
        "Grace Lin",
        "finance_director",
        (("USD", 5_000_000), ("EUR", 5_000_000), ("JPY", 7_500_000), ("KWD", 1_500_000)),
        time_zone="America/New_York",
    ),
    Hire(
        "victor.hale@northwind.example",
        "Victor Hale",
        "manager",
        (("USD", 100_000),),
        has_left=True,
    ),
)


def seed_once(systems: Systems, data: Path) -> None:
    """Fill a new company's database and key folder; a company that has data is left alone."""
    now = systems.clock.now()
    with systems.store.transaction() as db:
        if read_setting(db, SEEDED) is not None:
            return
        for story in STORIES:
            seed_order(db, story, now)
        for hire in STAFF:
            keep(db, hire.address, seed_person(hire, data / KEYS, now))
        keep(db, ONLY_POLICY, seeded_policy())
        write_setting(db, SEEDED, now.isoformat())


def seed_order(db: sqlite3.Connection, story: Story, now: datetime) -> Order:
    """Write an order and its payment, placed four days before it was delivered."""
    delivered = now - timedelta(days=story.delivered_days_ago)
    placed = delivered - timedelta(days=4)
    order = Order(
        id=story.order_id,
        customer=Customer(
            name=story.customer,
            email=f"{story.customer.lower().replace(' ', '.')}@customers.example",
            locale=story.locale,
        ),
        payment=f"pi_{story.order_id}",
        total=Money(amount_minor=story.amount_minor, currency=story.currency),
        items=[Item(name=story.item)],
        placed_at=placed,
        delivered_at=delivered,
    )
    add_order(db, order, now)
    payment = find_payment(db, order.payment)
    if payment is not None and story.refunded_minor:
        insert_refund(
            db,
            payment,
            story.refunded_minor,
            "succeeded",
            reason="requested_by_customer",
            metadata={},
            now=(now - timedelta(days=2)).timestamp(),
        )
    if story.disputed:
        db.execute(
            "update payments set disputed_at = ? where id = ?",
            (int((now - timedelta(days=1)).timestamp()), order.payment),
        )
    return order


def add_order(db: sqlite3.Connection, order: Order, now: datetime) -> None:
    """Write an order and the payment that was captured for it.

    Raises sqlite3.IntegrityError when the payment is another order's.
    """
    keep(db, order.id, order)
    db.execute(
        "insert into payments (id, charge, order_id, amount_minor, currency, created)"
        " values (?, ?, ?, ?, ?, ?)",
        (
            order.payment,
            f"ch_{order.payment.removeprefix('pi_')}",
            order.id,
            order.total.amount_minor,
            order.total.currency,
            int(min(order.placed_at, now).timestamp()),
        ),
    )


def seed_person(hire: Hire, keys: Path, now: datetime) -> Person:
    """A person with a new key pair: the private half in the key folder, the public one here."""
    private = Ed25519PrivateKey.generate()
    write_private_key(keys / f"{hire.address}.pem", private)
    public = private.public_key().public_bytes_raw()
    return Person.model_validate(
        {
            "address": hire.address,
            "name": hire.name,
            "roles": [hire.role],
            "limits": [
                {"amount_minor": minor, "currency": currency} for currency, minor in hire.limits
            ],
            "active": not hire.has_left,
            "time_zone": hire.time_zone,
            "keys": [
                Key(
                    kid=f"{hire.address.partition('@')[0]}.1",
                    algorithm="Ed25519",
                    public=base64.urlsafe_b64encode(public).rstrip(b"=").decode(),
                    valid_from=now - timedelta(days=400),
                    valid_until=now - timedelta(days=14) if hire.has_left else None,
                    signs_for=[hire.address],
                )
            ],
        }
    )


def write_private_key(path: Path, key: Ed25519PrivateKey) -> None:
    """Write a private key (PKCS8 PEM) that only the owner of the folder can read."""
    path.parent.mkdir(mode=0o700, exist_ok=True)
    pem = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    # The mode is given at creation: there is no moment at which others could read it. A file that
    # a killed first start left behind is replaced, so that it fits the directory's public key.
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(pem)
