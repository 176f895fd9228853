"""A worker's process is ended at each moment around an effect, and another one goes on."""

import signal
from asyncio.subprocess import Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from temporalio.exceptions import ApplicationError

from domain.models import Outcome
from tests.faults.support import ONE_MODE, PAID, STORY_MAILS, calls, fault, fired, set_faults
from tests.worker_process import worker
from tests.world import Run, World

pytestmark = ONE_MODE


@asynccontextmanager
async def real_worker(world: World, **more: str) -> AsyncIterator[Process]:
    """A worker process in the place of the world's own worker, once it polls."""
    await world.stop_worker()
    place = {
        "TEMPORAL_ADDRESS": world.client.service_client.config.target_host,
        "TEMPORAL_CONFIG_FILE": "/dev/null",
        "NORTHWIND_DATA_DIR": str(world.settings.data_dir),
        "NORTHWIND_COMPANY_URL": world.company.http_url,
        "NORTHWIND_SMTP_URL": world.company.smtp_url,
        **more,
    }
    async with worker(**place) as process:
        assert process.stdout is not None
        assert await process.stdout.readline()
        yield process


async def given_up(run: Run, activity: str) -> None:
    """End the attempt of a killed worker at once, as its start-to-close time does in a minute.

    No clock can be moved on for that: time is not skipped while an Activity is at work.
    """
    pending = (await run.handle.describe()).raw_description.pending_activities
    (killed,) = [one.activity_id for one in pending if one.activity_type.name == activity]
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
