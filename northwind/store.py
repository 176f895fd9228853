"""The company's one database: SQLite, so that what was answered survives a SIGKILL."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SCHEMA = """
create table if not exists settings (
    name text primary key,
    value text not null
) strict;
create table if not exists documents (
    kind text not null,
    id text not null,
    body text not null,
    primary key (kind, id)
) strict;
create table if not exists payments (
    id text primary key,
    charge text not null unique,
    order_id text not null,
    amount_minor integer not null check (amount_minor > 0),
    currency text not null,
    created integer not null,
    disputed_at integer,
    next_refund_status text
) strict;
create table if not exists refunds (
    number integer primary key autoincrement,
    id text not null unique,
    payment text not null references payments (id),
    amount_minor integer not null check (amount_minor > 0),
    status text not null,
    reason text,
    metadata text not null,
    failure_reason text,
    created integer not null
) strict;
create index if not exists refunds_by_payment on refunds (payment);
create table if not exists idempotency_keys (
    key text primary key,
    fingerprint text not null,
    status integer not null,
    body text not null,
    request_id text not null,
    created real not null
) strict;
create table if not exists mails (
    id integer primary key autoincrement,
    received real not null,
    key text,
    deliveries integer not null,
    message_id text not null,
    sender text not null,
    recipients text not null,
    subject text not null,
    body_text text not null,
    body_html text,
    headers text not null
) strict;
create index if not exists mails_by_key on mails (key);
create table if not exists noted_refunds (
    key text primary key,
    order_id text not null,
    body text not null,
    times integer not null default 1
) strict;
create table if not exists faults (
    id integer primary key autoincrement,
    body text not null,
    operation text not null,
    seen integer not null default 0,
    fired integer not null default 0
) strict;
create table if not exists calls (
    operation text primary key,
    count integer not null
) strict;
"""


class Store:
    """One connection, used from one event loop; a transaction never awaits."""

    def __init__(self, path: Path) -> None:
        """Open the database, and create its tables if they are not there."""
        self._connection = sqlite3.connect(path, isolation_level=None)
        self._connection.row_factory = sqlite3.Row
        self._connection.execute("pragma journal_mode = wal")
        self._connection.execute("pragma foreign_keys = on")
        self._connection.executescript(f"begin immediate; {SCHEMA} commit;")

    @contextmanager
    def transaction(self, *, forced: bool = True) -> Iterator[sqlite3.Connection]:
        """All or nothing: commit at the end of the block, roll back when it raises.

        A commit outlives even a power cut, as a provider promises of what it has answered. One
        that is not `forced` to the disk outlives any end of the process: enough for a count.
        """
        self._connection.execute(f"pragma synchronous = {'full' if forced else 'normal'}")
        self._connection.execute("begin immediate")
        try:
            yield self._connection
        except BaseException:
            self._connection.execute("rollback")
            raise
        self._connection.execute("commit")

    def close(self) -> None:
        """Close the database; its write-ahead log is folded in."""
        self._connection.close()


def read_setting(db: sqlite3.Connection, name: str) -> str | None:
    """The value of a named setting, or None if it was never written."""
    row = db.execute("select value from settings where name = ?", (name,)).fetchone()
    return None if row is None else str(row["value"])


def write_setting(db: sqlite3.Connection, name: str, value: str) -> None:
    """Write a named setting over what it was."""
    db.execute("insert or replace into settings (name, value) values (?, ?)", (name, value))
