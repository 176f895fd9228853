"""The ledger: one claimant at a time, and what was written first stays."""

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest

from activities.ledger import EntryState, Ledger
from domain.errors import Misconfigured, Unreachable
from tests.activities.support import MovableClock

HOLD = timedelta(seconds=30)


def url(folder: Path) -> str:
    """A ledger in a folder that does not exist yet."""
    return f"sqlite:///{folder / 'worker' / 'ledger.db'}"


async def test_of_many_claimants_one_gets_the_key(tmp_path: Path) -> None:
    """Two workers with one ledger, ten attempts at the same moment: one sends."""
    async with Ledger(url(tmp_path)) as one, Ledger(url(tmp_path)) as two:
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
    tmp_path: Path, clock: MovableClock
) -> None:
    """The successor of a killed attempt sends what that one had prepared."""
    async with Ledger(url(tmp_path), clock) as ledger:
        await ledger.claim("key", "digest", "first", HOLD)
        assert (await ledger.claim("key", "digest", "second", HOLD)).state is EntryState.HELD
        clock.advance(seconds=31)
        taken = await ledger.claim("key", "other digest", "third", HOLD)
    assert (taken.state, taken.prepared, taken.digest) == (EntryState.CLAIMED, "first", "digest")


async def test_a_released_claim_is_free_at_once(tmp_path: Path) -> None:
    """An attempt that ended need not be waited out."""
    async with Ledger(url(tmp_path)) as ledger:
        await ledger.release(await ledger.claim("key", "digest", "first", HOLD))
        again = await ledger.claim("key", "digest", "second", HOLD)
    assert again.state is EntryState.CLAIMED


async def test_a_late_release_takes_nobodys_claim(tmp_path: Path, clock: MovableClock) -> None:
    """An attempt that was thought dead ends after its successor has begun."""
    async with Ledger(url(tmp_path), clock) as ledger:
        late = await ledger.claim("key", "digest", "first", HOLD)
        clock.advance(seconds=31)
        await ledger.claim("key", "digest", "second", HOLD)
        await ledger.release(late)
        third = await ledger.claim("key", "digest", "third", HOLD)
    assert third.state is EntryState.HELD


async def test_a_result_outlives_the_process_and_is_never_replaced(tmp_path: Path) -> None:
    """What happened, happened: the first result stays, also for a new process."""
    async with Ledger(url(tmp_path)) as ledger:
        await ledger.claim("key", "digest", "text", HOLD)
        await ledger.finish("key", "sent")
        await ledger.finish("key", "sent again")
    async with Ledger(url(tmp_path)) as reopened:
        entry = await reopened.claim("key", "digest", "text", HOLD)
    assert (entry.state, entry.result) == (EntryState.FINISHED, "sent")


async def test_a_kept_result_belongs_to_its_request(tmp_path: Path) -> None:
    """Another request under the same key is not answered with it, and may take its place."""
    async with Ledger(url(tmp_path)) as ledger:
        assert await ledger.find_result("key", "one") is None
        await ledger.keep_result("key", "one", "answer")
        assert await ledger.find_result("key", "one") == "answer"
        assert await ledger.find_result("key", "two") is None
        await ledger.keep_result("key", "two", "other")
        assert await ledger.find_result("key", "two") == "other"


async def test_a_ledger_that_cannot_be_opened_says_so_without_its_text(tmp_path: Path) -> None:
    """A file where the folder should be: one line, no statement, no path of a secret."""
    (tmp_path / "worker").write_text("in the way")
    with pytest.raises(Unreachable, match="the ledger cannot be used"):
        async with Ledger(url(tmp_path)):
            pass


@pytest.mark.parametrize("wrong", ["nothing", "mysql://host/db", "sqlite"])
def test_a_url_of_another_kind_names_the_setting(wrong: str) -> None:
    """SQLite or PostgreSQL, and nothing else is guessed."""
    with pytest.raises(Misconfigured, match="NORTHWIND_LEDGER_URL"):
        Ledger(wrong)


def test_postgresql_is_a_matter_of_the_url() -> None:
    """Several machines can share a ledger; nothing is connected before it is opened."""
    Ledger("postgresql://user:secret@db.example/ledger")
