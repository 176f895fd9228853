"""Sweeps as tests start them, and what they shall find."""

import asyncio
import uuid
from typing import Any

from temporalio.client import WorkflowHandle

from domain import names
from domain.models import Outcome, Refund
from domain.sweep import SweepOrder, SweepReport
from tests.world import PATIENCE, Run, World
from workers.sandbox import build_replayer
from workers.settings import SANDBOX_STRIPE_KEY

CORRECTED = {"correction": 1, "alert.refund_failed_later": 1}
# Refunds that the company has from the beginning, made by hand.
SEEDED = 2
OPERATIONS = "refund-operations@northwind.example"


async def begin(world: World, *arguments: Any) -> WorkflowHandle[Any, SweepReport]:
    """Start a sweep, as the Schedule would, or with any other arguments."""
    return await world.client.start_workflow(
        names.SWEEP_WORKFLOW,
        args=arguments or [SweepOrder(environment="local")],
        id=f"{names.sweep_id('local')}-{uuid.uuid4().hex}",
        task_queue=names.TASK_QUEUE,
        result_type=SweepReport,
    )


async def end_of(sweep: WorkflowHandle[Any, SweepReport]) -> SweepReport:
    """Wait for a sweep's end; its history replays."""
    async with asyncio.timeout(PATIENCE):
        report = SweepReport.model_validate(await sweep.result())
    await build_replayer().replay_workflow(await sweep.fetch_history())
    return report


async def swept(world: World) -> SweepReport:
    """Sweep once."""
    return await end_of(await begin(world))


async def refunded(world: World, order: str = "8891") -> tuple[Run, str]:
    """A run that has confirmed its refund, and the refund's id."""
    run = await world.start(order)
    ended = await run.result()
    assert ended.outcome is Outcome.REFUNDED
    assert ended.refund is not None
    return run, ended.refund.id


async def verifying(world: World) -> tuple[Run, Refund]:
    """A run that rests between two readings of its refund, which is pending."""
    await world.control("payments/pi_8891", {"next_refund_status": "pending"})
    run = await world.start("8891")
    status = await run.until(lambda s: "refund_read" in [entry.what for entry in s.trail])
    assert status.refund is not None
    return run, status.refund


async def fails(world: World, refund: str, status: str = "failed") -> None:
    """The bank sends a refund back."""
    change = {"status": status, "failure_reason": "lost_or_stolen_card"}
    await world.control(f"refunds/{refund}", change)


async def said(world: World) -> dict[str, int]:
    """The mails that sweeps have sent, by purpose."""
    mails = await world.mails()
    return {purpose: n for purpose, n in mails.items() if purpose.startswith(("alert", "corr"))}


async def make(world: World, key: str | None) -> str:
    """A refund that no run of this environment has made; its id."""
    answer = await world.http.post(
        "/v1/refunds",
        headers={"Authorization": f"Bearer {SANDBOX_STRIPE_KEY}"},
        data={
            "payment_intent": "pi_8891",
            "amount": "100",
            **({f"metadata[{names.METADATA_KEY}]": key} if key is not None else {}),
        },
    )
    assert answer.is_success, answer.text
    refund: str = answer.json()["id"]
    return refund


async def retries(sweep: WorkflowHandle[Any, Any], kind: str = "") -> bool:
    """Whether an Activity of the sweep, of one kind or of any, has failed and is tried again."""
    pending = (await sweep.describe()).raw_description.pending_activities
    return any(one.attempt > 1 and kind in one.activity_type.name for one in pending)


async def out_of_patience(world: World) -> SweepReport:
    """Sweep, and let time go by until the sweep gives its reading up."""
    sweep = await begin(world)
    await world.until(lambda: retries(sweep))
    await Run(world, world.request(), sweep).move_on(hours=1, minutes=1)
    return await end_of(sweep)
