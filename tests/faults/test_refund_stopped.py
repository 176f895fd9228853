"""Withdrawn or cancelled before, during and after the call to the provider (R16)."""

import pytest

from domain.models import Outcome, Stage
from domain.outcomes import Reason
from domain.trail import Refusal
from tests.faults.support import PAID, STORY_MAILS, fault, fired, set_faults
from tests.world import Run, World


async def _withdraw(world: World, run: Run) -> None:
    answer = await run.send(world.signer.withdrawal(run.request), "withdraw")
    assert answer.refusal is Refusal.TOO_LATE


async def _cancel(_world: World, run: Run) -> None:
    await run.handle.cancel()
    await run.until(lambda s: "cancel_refused" in [entry.what for entry in s.trail])


STOPS = {"withdraw": _withdraw, "cancel": _cancel}


async def test_cancelled_during_the_re_check_nothing_is_paid(world: World) -> None:
    """R16: before the money a cancel is a withdrawal, though all had been approved."""
    run = await world.start()
    await run.waiting()
    await set_faults(world, fault("orders.get", "fail_before", call="every"))
    await run.approve()
    await run.until(lambda s: s.stage is Stage.RECHECKING)
    await run.handle.cancel()
    ended = await run.result()

    assert (ended.outcome, ended.reason) == (Outcome.WITHDRAWN, Reason.CANCELLED_IN_TEMPORAL)
    assert await world.refunds() == []


@pytest.mark.parametrize("how", STOPS)
async def test_stopped_while_the_provider_works(world: World, how: str) -> None:
    """R16: the call is out; it is awaited, and the end says what came of it."""
    run = await world.start()
    await run.waiting()
    await set_faults(world, fault("refunds.create", "delay", seconds=1))
    await run.approve()
    await fired(world)
    await STOPS[how](world, run)
    assert await world.refunds() == []
    ended = await run.result()

    assert (ended.outcome, await world.refunds()) == (Outcome.REFUNDED, PAID)
    assert await world.mails() == STORY_MAILS


async def test_cancelled_while_the_refund_is_verified(world: World) -> None:
    """R16: the money has moved, so a cancel changes nothing."""
    await world.control("payments/pi_8890", {"next_refund_status": "pending"})
    run = await world.start()
    await run.approve()
    status = await run.until(lambda s: s.refund is not None and s.refund.status == "pending")
    await _cancel(world, run)
    assert status.refund is not None
    await world.control(f"refunds/{status.refund.id}", {"status": "succeeded"})
    await run.move_on(days=1)

    assert (await run.result()).outcome is Outcome.REFUNDED
    assert await world.mails() == STORY_MAILS
