"""A worker's process is ended at each moment around an effect, and another one goes on."""

import signal
import socket
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from datetime import timedelta

import pytest
from temporalio.api.enums.v1 import EventType
from temporalio.exceptions import ApplicationError

from domain.models import Outcome
from domain.names import SIGNAL_DECIDE
from tests.faults.support import PAID, STORY_MAILS, calls, fault, fired, set_faults
from tests.worker_process import real_worker
from tests.world import Run, World

_TIMED_OUT = EventType.EVENT_TYPE_WORKFLOW_TASK_TIMED_OUT


async def given_up(run: Run, activity: str) -> None:
    """End the attempts of a killed worker at once, as their start-to-close time does in a minute.

    No clock can be moved on for that: time is not skipped while an Activity is at work.
    """
    pending = (await run.handle.describe()).raw_description.pending_activities
    for killed in [one.activity_id for one in pending if one.activity_type.name == activity]:
        attempt = run.world.client.get_async_activity_handle(
            workflow_id=run.handle.id, run_id=None, activity_id=killed
        )
        await attempt.fail(ApplicationError("no answer in time"))


# Where the worker is when it is killed: the operation that it has asked for and not seen answered.
MOMENTS = {
    "between the saved key and the call": "refunds.list",
    "between the call and its result": "refunds.create",
}


@pytest.mark.parametrize("name", MOMENTS, ids=[name.replace(" ", "-") for name in MOMENTS])
async def test_killed_around_the_refund(world: World, name: str) -> None:
    """P1, R1: SIGKILL with a question to the provider open; the next worker refunds once."""
    operation = MOMENTS[name]
    async with real_worker(world) as process:
        run = await world.start()
        await run.waiting()
        # The list before this one is read for the re-check.
        call = 2 if operation == "refunds.list" else 1
        await set_faults(world, fault(operation, "delay", call=call, seconds=1))
        await run.approve()
        await fired(world)
        process.kill()
        await process.wait()
    if operation == "refunds.create":
        await world.until(lambda: _is_paid(world))
    await world.start_worker()
    await given_up(run, "make_refund")

    assert (await run.result()).outcome is Outcome.REFUNDED
    assert await world.refunds() == PAID
    assert await calls(world, "refunds.create") == 1
    assert await world.mails() == STORY_MAILS


async def test_a_decision_is_taken_up_soon_after_a_kill(world: World) -> None:
    """P4: the server offers it to the killed worker first, and for no longer than a moment.

    By the server's own times in the history: nobody's machine is too slow for that.
    """
    async with real_worker(world) as process:
        run = await world.start()
        decision = world.signer.decision(await run.waiting())
        # An Activity in its hands would hold the run up for a minute, whatever the decision does.
        await run.until(lambda s: [e.what for e in s.trail].count("mail_sent") == 2)
        process.kill()
        await process.wait()
    await run.handle.signal(SIGNAL_DECIDE, decision)
    await world.start_worker()

    assert (await run.result()).outcome is Outcome.REFUNDED
    events = {event.event_id: event for event in (await run.history()).events}
    [given_up] = [e for e in events.values() if e.event_type == _TIMED_OUT]
    offered = events[given_up.workflow_task_timed_out_event_attributes.scheduled_event_id]
    waited = given_up.event_time.ToDatetime() - offered.event_time.ToDatetime()
    assert waited < timedelta(seconds=5)


async def test_told_to_end_while_the_provider_works(world: World) -> None:
    """R40: SIGTERM lets the call get its answer into the history; one call, one refund."""
    async with real_worker(world) as process:
        run = await world.start()
        await run.waiting()
        await set_faults(world, fault("refunds.create", "delay", seconds=2))
        await run.approve()
        await fired(world)
        process.send_signal(signal.SIGTERM)
        _, log = await process.communicate()
        assert (process.returncode, b"Drained" in log) == (0, True)
    assert await world.refunds() == PAID
    assert await _has_result(run, "make_refund")
    await world.start_worker()

    assert (await run.result()).outcome is Outcome.REFUNDED
    assert await world.refunds() == PAID
    assert await calls(world, "refunds.create") == 1


async def test_killed_between_claim_and_send(world: World) -> None:
    """P3: the mails were written down and the server never spoke: the next worker sends them."""
    async with (
        silent_server() as smtp_url,
        real_worker(world, NORTHWIND_SMTP_URL=smtp_url) as dying,
    ):
        run = await world.start()
        await run.waiting()
        await world.until(lambda: _are_claimed(world, 2))
        dying.kill()
        await dying.wait()
    world.clock.advance(minutes=1)
    await world.start_worker()
    await given_up(run, "send_mail")
    await run.approve()

    assert (await run.result()).outcome is Outcome.REFUNDED
    assert await world.mails() == STORY_MAILS
    assert await calls(world, "send") == 3


async def test_killed_between_send_and_record(world: World) -> None:
    """P3: the server has the mail and the ledger does not know: the same message goes again."""
    async with real_worker(world) as dying:
        # With what it is about, it strikes once the server has read the whole message.
        await set_faults(world, fault("send", "delay", seconds=1, about="mail.refunded"))
        run = await world.start("8891")
        await fired(world)
        dying.kill()
        await dying.wait()
    await world.until(lambda: _has_mail(world))
    world.clock.advance(minutes=1)
    await world.start_worker()
    await given_up(run, "send_mail")

    assert (await run.result()).outcome is Outcome.REFUNDED
    (mail,) = (await world.books())["mails"]
    assert mail["deliveries"] == 2


@asynccontextmanager
async def silent_server() -> AsyncIterator[str]:
    """The URL of a mail server that takes connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"smtp://127.0.0.1:{listener.getsockname()[1]}"


async def _are_claimed(world: World, count: int) -> bool:
    """Whether so many mails stand in the ledger, each in the hands of an attempt."""
    with closing(sqlite3.connect(world.settings.data_dir / "ledger.db")) as ledger:
        claimed = ledger.execute("select count(*) from ledger where holder is not null")
        return bool(claimed.fetchone()[0] == count)


async def _has_mail(world: World) -> bool:
    return (await world.mails()).total() > 0


async def _is_paid(world: World) -> bool:
    return await world.refunds() == PAID


async def _has_result(run: Run, activity: str) -> bool:
    """Whether the history holds what an Activity of this name came to."""
    events = (await run.history()).events
    scheduled = {
        event.event_id
        for event in events
        if event.activity_task_scheduled_event_attributes.activity_type.name == activity
    }
    return any(
        event.activity_task_completed_event_attributes.scheduled_event_id in scheduled
        for event in events
    )
