"""The parts that the company's systems share, put together once per process."""

from dataclasses import dataclass, field
from pathlib import Path

from northwind.clock import Clock
from northwind.faults import Faults
from northwind.idempotency import HeldKeys
from northwind.store import Store

DATABASE = "company.sqlite"
KEYS = "keys"


@dataclass(frozen=True)
class Systems:
    """Database, clock, fault plan, and the idempotency keys of requests that are under way."""

    store: Store
    clock: Clock
    faults: Faults
    held: HeldKeys = field(default_factory=HeldKeys)


def open_systems(database: Path) -> Systems:
    """Open the company's database, which is made if it is not there."""
    store = Store(database)
    return Systems(store, Clock(store), Faults(store))
