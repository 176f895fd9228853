"""The ledger: what was prepared for an effect and what came of it, by idempotency key.

One row for each key. It is claimed before the effect with all that will be sent, and finished with
the result. A claim holds for the time of one attempt, so that two attempts at once send once, and
an attempt that was killed is taken over with what it had prepared.

SQLite serves the workers of one machine. The statements are the same for PostgreSQL, where several
machines share a ledger: there each rests on the row's lock instead of on SQLite's single writer.
"""

import asyncio
import secrets
import sqlite3
import time
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from typing import Any, Self

import aiosqlite
from sqlalchemy import Column, Float, MetaData, String, Table, Text, event, func, select, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from sqlalchemy.schema import CreateTable

from activities.clock import Clock, system_clock
from domain.errors import Misconfigured, Unreachable

_DRIVERS = {"sqlite": "sqlite+aiosqlite", "postgresql": "postgresql+asyncpg"}
# How long a write waits for another process's write, in seconds.
BUSY_SECONDS = 10
_LOCKED_PAUSE_SECONDS = 0.02
# PostgreSQL's advisory lock of whoever makes the table; any number that nobody else uses.
_TABLE_LOCK = 7_236_104_882

_tables = MetaData()
_entries = Table(
    "ledger",
    _tables,
    Column("key", String(512), primary_key=True),
    Column("digest", String(64), nullable=False),
    Column("prepared", Text, nullable=False),
    Column("result", Text),
    Column("holder", String(32)),
    # Instants as seconds since 1970: they are compared, and never shown to people.
    Column("held_until", Float, nullable=False),
    Column("created_at", Float, nullable=False),
    Column("finished_at", Float),
)


class EntryState(StrEnum):
    """Whose turn it is."""

    CLAIMED = "claimed"
    """Ours, until the claim runs out."""
    HELD = "held"
    """Another attempt's, which may still be at work."""
    FINISHED = "finished"


@dataclass(frozen=True)
class Entry:
    """A row as it stands after a claim."""

    key: str
    state: EntryState
    prepared: str
    """What the first claim prepared; a later claim sends this and not its own."""
    result: str | None
    digest: str
    holder: str | None
    held_for: timedelta
    """For how long the claim still holds."""


class Ledger:
    """The rows, in a database that every worker of the environment shares."""

    def __init__(self, url: str, clock: Clock = system_clock) -> None:
        """Prepare a ledger; nothing is opened before the `async with` block.

        Raises:
            Misconfigured: the URL is none of SQLite or PostgreSQL.
        """
        self._url = _parse_url(url)
        self._clock = clock
        # Statements in messages would carry the words of customers.
        self._engine = create_async_engine(self._url, hide_parameters=True)
        if self._engine.dialect.name == "sqlite":
            event.listen(self._engine.sync_engine, "connect", _set_up_sqlite)
        self._insert: Any = sqlite.insert if self._on_sqlite else postgresql.insert

    @property
    def _on_sqlite(self) -> bool:
        return self._engine.dialect.name == "sqlite"

    async def __aenter__(self) -> Self:
        """Make the table where there is none.

        Raises:
            Unreachable: the database cannot be used.
        """
        if self._on_sqlite and self._url.database:
            _make_folder(Path(self._url.database).parent)
        async with _transaction(self._engine) as connection:
            if not self._on_sqlite:
                # Two that make it at once would both find none, and the second one would fail.
                await connection.execute(select(func.pg_advisory_xact_lock(_TABLE_LOCK)))
            await connection.execute(CreateTable(_entries, if_not_exists=True))
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._engine.dispose()

    async def claim(self, key: str, digest: str, prepared: str, hold: timedelta) -> Entry:
        """Take the row of a key for one attempt, or see why not.

        Args:
            key: The idempotency key.
            digest: Of what was asked for; kept from the first claim.
            prepared: What would be sent; kept from the first claim.
            hold: For how long an attempt may take.

        Raises:
            Unreachable: the database cannot be used now.
        """
        now, holder = self._clock().timestamp(), secrets.token_hex(16)
        first = self._insert(_entries).values(
            key=key, digest=digest, prepared=prepared, held_until=0.0, created_at=now
        )
        take = (
            update(_entries)
            .where(_entries.c.key == key, _entries.c.result.is_(None), _entries.c.held_until <= now)
            .values(holder=holder, held_until=now + hold.total_seconds())
        )
        async with _transaction(self._engine) as connection:
            await connection.execute(first.on_conflict_do_nothing())
            await connection.execute(take)
            row = (await connection.execute(select(_entries).where(_entries.c.key == key))).one()
        if row.result is not None:
            state = EntryState.FINISHED
        else:
            state = EntryState.CLAIMED if row.holder == holder else EntryState.HELD
        return Entry(
            key=row.key,
            state=state,
            prepared=row.prepared,
            result=row.result,
            digest=row.digest,
            holder=row.holder,
            held_for=timedelta(seconds=max(0.0, row.held_until - now)),
        )

    async def finish(self, key: str, result: str) -> None:
        """Write down what came of it, for good. The first result stays.

        An attempt whose claim has run out may do this too: what happened, happened.

        Raises:
            Unreachable: the database cannot be used now.
        """
        async with _transaction(self._engine) as connection:
            await connection.execute(
                update(_entries)
                .where(_entries.c.key == key, _entries.c.result.is_(None))
                .values(result=result, finished_at=self._clock().timestamp())
            )

    async def release(self, entry: Entry) -> None:
        """Give up our claim at the end of an attempt, so that the next one need not wait it out.

        Raises:
            Unreachable: the database cannot be used now.
        """
        async with _transaction(self._engine) as connection:
            await connection.execute(
                update(_entries)
                .where(_entries.c.key == entry.key, _entries.c.holder == entry.holder)
                .values(held_until=0.0)
            )

    async def look_up(self, keys: Collection[str]) -> dict[str, bool]:
        """Those of the keys that have a row, each with whether it is finished.

        Raises:
            Unreachable: the database cannot be used now.
        """
        wanted = select(_entries.c.key, _entries.c.result).where(_entries.c.key.in_(keys))
        async with _transaction(self._engine) as connection:
            rows = (await connection.execute(wanted)).all()
        return {row.key: row.result is not None for row in rows}

    async def find_result(self, key: str, digest: str) -> str | None:
        """The result that was kept for this key and this very request; None where there is none.

        Raises:
            Unreachable: the database cannot be used now.
        """
        async with _transaction(self._engine) as connection:
            row = (
                await connection.execute(
                    select(_entries.c.result).where(
                        _entries.c.key == key, _entries.c.digest == digest
                    )
                )
            ).one_or_none()
        return row.result if row is not None else None

    async def keep_result(self, key: str, digest: str, result: str) -> None:
        """Keep the result of a request that needs no claim; a later request's takes its place.

        Raises:
            Unreachable: the database cannot be used now.
        """
        now = self._clock().timestamp()
        values = {"digest": digest, "result": result, "finished_at": now}
        row = self._insert(_entries).values(
            key=key, prepared="", held_until=0.0, created_at=now, **values
        )
        async with _transaction(self._engine) as connection:
            await connection.execute(row.on_conflict_do_update(index_elements=["key"], set_=values))


def _parse_url(url: str) -> URL:
    try:
        parsed = make_url(url)
    except ArgumentError:
        raise Misconfigured("NORTHWIND_LEDGER_URL: not a database URL") from None
    driver = _DRIVERS.get(parsed.get_backend_name())
    if driver is None:
        raise Misconfigured("NORTHWIND_LEDGER_URL: needs sqlite:///… or postgresql://…")
    return parsed.set(drivername=driver)


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise _unusable(error) from None


def _unusable(error: Exception) -> Unreachable:
    """The error without the database's own words, which may quote what was to be written."""
    return Unreachable(f"the ledger cannot be used ({type(error).__name__})")


def _set_up_sqlite(connection: Any, _record: Any) -> None:
    """Readers beside a writer, and no answer before the disk has it."""
    cursor = connection.cursor()
    cursor.execute(f"PRAGMA busy_timeout = {BUSY_SECONDS * 1000}")
    connection.run_async(_switch_to_wal)
    cursor.execute("PRAGMA synchronous = FULL")
    cursor.close()


async def _switch_to_wal(connection: aiosqlite.Connection) -> None:
    """Wait for whoever opens a new file at the same moment: for this, SQLite itself does not wait.

    Whatever its time-out, it answers at once that the database is locked.
    """
    gives_up = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            await connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() >= gives_up:
                raise
            await asyncio.sleep(_LOCKED_PAUSE_SECONDS)
        else:
            return


@asynccontextmanager
async def _transaction(engine: AsyncEngine) -> AsyncIterator[AsyncConnection]:
    """One transaction, with the database's errors as ours."""
    try:
        async with engine.begin() as connection:
            yield connection
    except (SQLAlchemyError, OSError) as error:
        raise _unusable(error) from None
