"""Faults of the mail server and of the ledger: one mail per purpose, and the money goes on (P3)."""

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jinja2
import pytest

from activities import ledger, mail_text, smtp
from domain.models import Outcome
from tests.faults.support import (
    PAID,
    STORY_MAILS,
    calls,
    fault,
    fired,
    mend,
    set_faults,
)
from tests.signing import MARIA, TOM
from tests.world import Run, World

ADA = "ada.park@customers.example"
OPERATIONS = "refund-operations@northwind.example"


async def _mailbox(world: World, purpose: str) -> list[dict[str, Any]]:
    """All messages of a purpose: a server that knows no keys may have two."""
    messages = (await world.http.get("/mailbox.json")).json()["messages"]
    return [m for m in messages if (m["key"] or "").endswith(f"/mail.{purpose}")]


async def _story(world: World) -> Run:
    """A run that is approved, and has been paid."""
    run = await world.start()
    await run.approve()
    await world.until(lambda: _is_paid(world))
    return run


async def _is_paid(world: World) -> bool:
    return await world.refunds() == PAID


async def test_a_mail_that_was_taken_before_the_time_out_arrives_once(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R38: the server takes the message after we gave up; the repeat is known by its key."""
    monkeypatch.setattr(smtp, "COMMAND_SECONDS", 0.5)
    await set_faults(world, fault("send", "delay", seconds=1))
    run = await _story(world)

    assert (await run.result()).outcome is Outcome.REFUNDED
    assert await world.mails() == STORY_MAILS
    assert sum(mail["deliveries"] for mail in (await world.books())["mails"]) == 4


async def test_an_address_that_is_refused_is_told_to_operations(world: World) -> None:
    """The no is final, a person hears of each mail that is missing, and the refund is paid."""
    no_such = fault("send", "status", status=550, stage="rcpt", recipient=ADA, call="every")
    await set_faults(world, no_such)
    run = await _story(world)

    assert (await run.result()).outcome is Outcome.REFUNDED
    assert await world.mails() == {
        "approval_request.r1": 1,
        "alert.undelivered.under_review": 1,
        "alert.undelivered.refunded": 1,
    }
    told = await world.mail("alert.undelivered.refunded")
    assert (told["to"], ADA in told["text"]) == ([OPERATIONS], True)
    assert await calls(world, "send") == 5


async def test_one_refused_approver_of_several_is_told_to_operations(world: World) -> None:
    """The others have the mail, and it does not look as if everybody had."""
    no_such = fault("send", "status", status=550, stage="rcpt", recipient=TOM, call="every")
    await set_faults(world, no_such)
    run = await _story(world)
    await run.result()

    assert (await world.mail("approval_request.r1"))["to"] == [MARIA]
    told = await world.mail("alert.undelivered.approval_request.r1")
    assert (told["to"], TOM in told["text"], MARIA in told["text"]) == ([OPERATIONS], True, False)


async def test_operations_that_cannot_be_reached_hold_nothing_up(world: World) -> None:
    """Every mail is refused, also that which says so: the run ends, and its trail tells it."""
    await set_faults(world, fault("send", "status", status=550, stage="rcpt", call="every"))
    ended = await (await _story(world)).result()

    assert ended.outcome is Outcome.REFUNDED
    assert [entry.what for entry in ended.trail].count("mail_refused") == 6
    assert await world.mails() == {}


@pytest.mark.parametrize("decides", [True, False], ids=["on-the-sixth-day", "never"])
async def test_a_run_waits_to_its_end_while_nobody_can_be_written_to(
    world: World, decides: bool
) -> None:
    """Issue 4: no mail arrives for a week, and the run is decided, or expires, as ever."""
    await set_faults(world, fault("send", "status", status=550, stage="rcpt", call="every"))
    run = await world.start()
    await run.waiting()
    await run.move_on(days=6)
    if decides:
        now = time.time() + 6 * 86_400
        assert (await run.send(world.signer.decision(await run.waiting(), at=now))).refusal is None
    else:
        await run.move_on(days=1, minutes=16)
    ended = await run.result()

    assert ended.outcome is (Outcome.REFUNDED if decides else Outcome.EXPIRED)
    assert len(await world.refunds()) == int(decides)
    refused = {e.detail.split()[0] for e in ended.trail if e.what == "mail_refused"}
    assert {"approval_request", "reminder", "escalation"} <= refused


async def test_a_mail_server_that_is_down_for_an_hour_holds_no_money(world: World) -> None:
    """Everybody hears of it once, when it is back; the refund was paid meanwhile."""
    await set_faults(world, fault("send", "drop_before", call="every"))
    run = await _story(world)
    await run.move_on(hours=1)
    assert await world.mails() == {}
    await mend(world)
    await run.move_on(minutes=6)

    assert (await run.result()).outcome is Outcome.REFUNDED
    assert await world.mails() == STORY_MAILS


@contextmanager
def _locked(world: World) -> Iterator[None]:
    """Somebody else writes into the ledger's database, and does not come to an end."""
    other = sqlite3.connect(world.settings.data_dir / "ledger.db", isolation_level=None)
    other.execute("begin immediate")
    try:
        yield
    finally:
        other.close()


async def _has_failed(run: Run, words: str) -> bool:
    """Whether an attempt of the run's has ended with these words, and waits for the next."""
    pending = (await run.handle.describe()).raw_description.pending_activities
    return any(words in activity.last_failure.message for activity in pending)


@pytest.mark.parametrize(("knows_keys", "copies"), [(True, 1), (False, 2)])
async def test_a_ledger_that_fails_between_send_and_record(
    world: World, monkeypatch: pytest.MonkeyPatch, knows_keys: bool, copies: int
) -> None:
    """The one window: the same message goes out again, which a server that knows keys drops."""
    await world.stop_worker()
    monkeypatch.setattr(ledger, "BUSY_SECONDS", 0)
    await world.start_worker()
    await world.control("mail", {"knows_keys": knows_keys})
    await set_faults(world, fault("send", "delay", seconds=1))
    run = await world.start("8891")
    await fired(world)
    with _locked(world):
        await world.until(lambda: _has_failed(run, "ledger cannot be used"))
    world.clock.advance(minutes=1)
    await run.move_on(minutes=2)

    assert (await run.result()).outcome is Outcome.REFUNDED
    assert await calls(world, "send") == 2
    messages = await _mailbox(world, "refunded")
    assert len(messages) == copies
    assert len({(message["message_id"], message["text"]) for message in messages}) == 1


async def test_a_ledger_that_fails_before_the_claim_sends_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What cannot be written down is not sent; the model's answers, which are kept too, wait."""
    await world.stop_worker()
    monkeypatch.setattr(ledger, "BUSY_SECONDS", 1)
    await world.start_worker()
    run = await world.start()
    await run.until(lambda status: status.accepted)
    with _locked(world):
        await world.until(lambda: _has_failed(run, "ledger cannot be used"))
        assert await world.mails() == {}
    await run.waiting()
    await run.move_on(minutes=10)  # However long the next attempt was put off.
    await run.approve()

    assert (await run.result()).outcome is Outcome.REFUNDED
    assert await world.mails() == STORY_MAILS


async def test_a_repeat_after_new_templates_is_the_message_of_before(
    world: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Deployed between two attempts: the words that the server may have are sent again."""
    await world.control("mail", {"knows_keys": False})
    await set_faults(world, fault("send", "drop_after"))
    run = await world.start("8891")
    await fired(world)
    await world.stop_worker()
    shipped = Path(mail_text.__file__).with_name("templates")
    for template in shipped.iterdir():
        (tmp_path / template.name).write_text(template.read_text().replace("Dear", "Ahoy"))
    monkeypatch.setattr(
        mail_text, "PackageLoader", lambda _package: jinja2.FileSystemLoader(tmp_path)
    )
    await world.start_worker()

    assert (await run.result()).outcome is Outcome.REFUNDED
    first, second = await _mailbox(world, "refunded")
    assert (first["text"], first["html"]) == (second["text"], second["html"])
    assert "Ahoy" not in second["text"]
