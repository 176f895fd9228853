"""Thousands of hostile signals stay harmless: answered, counted, bounded, and the run decidable."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from random import Random

from domain.models import Outcome, Stage
from domain.names import SIGNAL_DECIDE
from domain.trail import REFUSED_IN_DETAIL, Refusal
from tests.workflows.hostile import Attacker, Hostile
from tests.world import Run, World, event_types

SEED = 4
COUNT = 2_000
# At once: the server buffers a hundred for a running workflow task, and fails the task above that.
TOGETHER = 16
# What the run shows of itself stays below this, whatever was sent to it. Bytes.
SMALL = 48 * 1024


async def test_two_thousand_hostile_signals_leave_a_run_decidable(world: World) -> None:
    """P2, P4, P7: each is counted under its reason, nothing is paid, and then $420.00 once.

    The second half comes while no worker is there. It lies in one workflow task, which the SDK
    would fail for ever if it computed for two seconds, so the run ends the task by timers.
    """
    print(f"seed {SEED}")  # noqa: T201 - pytest shows it where the test fails
    run = await world.start()
    seeded = Random(SEED)  # noqa: S311 - repeatable, not secret
    attacker = Attacker(seeded, world.signer, run.request, await run.waiting())
    hostile = attacker.signals(COUNT)
    await send(run, hostile[: COUNT // 2])
    await world.stop_worker()
    await send(run, hostile[COUNT // 2 :])
    await run.handle.signal(SIGNAL_DECIDE, "x" * 1_000_000)
    await world.start_worker()
    status = await run.until(lambda s: sum(s.refused.values()) == COUNT + 1)
    assert event_types(await run.history())["TIMER_FIRED"] >= COUNT // 2 // 250

    sure: Counter[str] = Counter(one.refusal for one in hostile if one.refusal is not None)
    sure[Refusal.MALFORMED] += 1
    counted = Counter(status.refused)
    assert counted >= sure
    assert (counted - sure).total() == sum(one.refusal is None for one in hostile)
    assert status.stage is Stage.AWAITING_APPROVAL
    assert len([entry for entry in status.trail if entry.refusal]) == 2 * REFUSED_IN_DETAIL
    assert len(status.model_dump_json()) < SMALL
    assert await world.refunds() == []

    assert (await run.approve()).what == "approved"
    ended = await run.result()
    assert ended.outcome is Outcome.REFUNDED
    assert len(ended.model_dump_json()) < SMALL
    assert await world.refunds() == [(42000, "succeeded")]
    assert "WORKFLOW_TASK_FAILED" not in event_types(await run.history())


async def send(run: Run, signals: Sequence[Hostile]) -> None:
    """Send signals, some of them at the same time."""
    for first in range(0, len(signals), TOGETHER):
        some = signals[first : first + TOGETHER]
        await asyncio.gather(*(run.handle.signal(one.signal, args=one.arguments) for one in some))
