"""Faults of the order service when it is told: the money and the customer's mail go on (P4, P8)."""

import asyncio
from typing import Any

import pytest

from domain.models import Outcome
from domain.trail import RunStatus
from tests.faults.support import PAID, STORY_MAILS, calls, fault, fired, mend, set_faults
from tests.world import Run, World

NOTE = "orders.note_refund"
ALERTED = {**STORY_MAILS, "alert.order_not_told": 1}


async def noted(world: World, order: str = "8890") -> list[tuple[str, int, int]]:
    """What the order service has of an order: purpose, minor units, how often it was told."""
    rows = (await world.books())["orders"].get(order, [])
    return [(r["key"].rpartition("/")[2], r["amount"]["amount_minor"], r["times"]) for r in rows]


async def _end(run: Run) -> RunStatus:
    await run.approve()
    return await run.result()


def _rows(status: RunStatus) -> list[str]:
    return [entry.what for entry in status.trail if entry.what.startswith("order_")]


async def test_a_lost_answer_is_said_again_and_noted_once(world: World) -> None:
    """P8: the same key and words; the service knows them."""
    await set_faults(world, fault(NOTE, "drop_after"))
    run = await world.start()
    ended = await _end(run)

    assert ended.outcome is Outcome.REFUNDED
    assert await noted(world) == [("order.refunded", 42000, 2)]
    assert _rows(ended) == ["order_told"]
    assert "which it knew" in next(e.detail for e in ended.trail if e.what == "order_told")
    assert await world.mails() == STORY_MAILS


async def test_an_order_service_that_is_down_for_a_day_is_operations_to_mend(world: World) -> None:
    """P4: the customer has heard at once; the outcome stays, and people hear what is missing."""
    # An hour between attempts, so that a day has few.
    later = {"status": 503, "headers": {"Retry-After": "3600"}}
    await set_faults(world, fault(NOTE, "status", call="every", **later))
    run = await world.start()
    ending = asyncio.create_task(_end(run))
    await fired(world)
    await world.until(lambda: _has_mail(world, "refunded"))
    assert await world.mails() == STORY_MAILS
    await run.move_on(hours=24)
    ended = await ending

    assert ended.outcome is Outcome.REFUNDED
    assert await world.refunds() == PAID
    assert await noted(world) == []
    assert _rows(ended) == ["order_not_told"]
    assert await world.mails() == ALERTED
    assert ended.refund is not None
    assert ended.refund.id in (await world.mail("alert.order_not_told"))["text"]


async def test_an_order_service_that_comes_back_is_told(world: World) -> None:
    """The run waits for it, and nobody needs to be alerted."""
    await set_faults(world, fault(NOTE, "status", status=503, call="every"))
    run = await world.start()
    ending = asyncio.create_task(_end(run))
    await fired(world, times=2)
    await mend(world)
    await run.move_on(minutes=5)
    ended = await ending

    assert _rows(ended) == ["order_told"]
    assert await noted(world) == [("order.refunded", 42000, 1)]
    assert await world.mails() == STORY_MAILS


async def test_a_definite_no_is_told_to_operations_at_once(world: World) -> None:
    """Nothing that waiting would mend."""
    await set_faults(world, fault(NOTE, "status", status=409, body={"error": "order_is_archived"}))
    ended = await _end(await world.start())

    assert ended.outcome is Outcome.REFUNDED
    assert await calls(world, NOTE) == 1
    assert _rows(ended) == ["order_not_told"]
    assert "order_is_archived" in next(e.detail for e in ended.trail if e.what == "order_not_told")
    assert await world.mails() == ALERTED


async def test_a_mail_server_that_is_down_keeps_nothing_from_the_order_service(
    world: World,
) -> None:
    """It is told beside the mails."""
    run = await world.start()
    await run.waiting()
    await world.until(lambda: _has_mail(world, "approval_request.r1"))
    await set_faults(world, fault("send", "status", status=451, call="every"))
    await run.approve()
    await run.until(lambda s: "order_told" in [e.what for e in s.trail])
    assert await noted(world) == [("order.refunded", 42000, 1)]
    assert "refunded" not in await world.mails()
    await mend(world)
    await run.move_on(minutes=5)
    assert (await run.result()).outcome is Outcome.REFUNDED


@pytest.mark.parametrize("last", ["succeeded", "failed"])
async def test_only_a_verified_refund_is_told(world: World, last: str) -> None:
    """While it is pending nobody is told, and of one that fails never."""
    await world.control("payments/pi_8890", {"next_refund_status": "pending"})
    run = await world.start()
    await run.approve()
    status = await run.until(lambda s: "refund_read" in [e.what for e in s.trail])
    assert await calls(world, NOTE) == 0
    assert status.refund is not None
    await world.control(f"refunds/{status.refund.id}", {"status": last})
    await run.move_on(seconds=5)
    await run.result()

    told: list[Any] = [("order.refunded", 42000, 1)] if last == "succeeded" else []
    assert await noted(world) == told


async def test_a_run_that_is_started_again_says_it_under_the_same_key(world: World) -> None:
    """P1's rule for keys: of the request, and not of the run."""
    request = world.request()
    await set_faults(world, fault("send", "status", status=451, call="every", about="refunded"))
    run = await world.start_with(request)
    await run.approve()
    await run.until(lambda s: "order_told" in [e.what for e in s.trail])
    await run.handle.terminate("somebody's mistake")
    await mend(world)
    ended = await (await world.start_with(request)).result()

    assert ended.outcome is Outcome.REFUNDED
    assert await noted(world) == [("order.refunded", 42000, 2)]
    assert await world.refunds() == PAID


async def _has_mail(world: World, purpose: str) -> bool:
    return (await world.mails())[purpose] == 1
