"""The sweep: what failed after its confirmation is corrected once, and never paid again."""

import asyncio
import uuid
from functools import partial
from typing import Any

import pytest
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflowservice.v1 import ResetWorkflowExecutionRequest
from temporalio.client import WorkflowHandle

from activities import payments
from domain import names
from domain.models import Outcome
from domain.sweep import SweepOutcome, SweepReport
from tests.counting import cost_of
from tests.sweeping import (
    CORRECTED,
    OPERATIONS,
    SEEDED,
    begin,
    end_of,
    fails,
    make,
    refunded,
    retries,
    said,
    swept,
    verifying,
)
from tests.world import PATIENCE, Run, World


@pytest.mark.parametrize("status", ["failed", "canceled"])
async def test_a_refund_that_failed_later_is_corrected_once(world: World, status: str) -> None:
    """R5: one mail to the customer, one alert, no second refund, however often a sweep looks."""
    _, refund = await refunded(world)
    before = await swept(world)
    await fails(world, refund, status)
    reports = [await swept(world) for _ in range(3)]

    assert (before.outcome, before.looked_at, before.found) == (
        SweepOutcome.COMPLETE,
        SEEDED + 1,
        (),
    )
    assert [report.found for report in reports] == [(refund,), (), ()]
    assert await world.refunds("8891") == [(3500, status)]
    assert await said(world) == CORRECTED
    correction = await world.mail("correction")
    assert correction["to"] == (await world.mail("refunded"))["to"]
    assert "$35.00" in correction["text"]
    assert "lost_or_stolen" not in correction["text"]
    alert = await world.mail("alert.refund_failed_later")
    assert alert["to"] == [OPERATIONS]
    for word in ("8891", "$35.00", refund, status, "has been told now"):
        assert word in alert["text"]
    assert ("lost_or_stolen_card" in alert["text"]) is (status == "failed")


async def test_money_is_written_as_the_customer_writes_it(world: World) -> None:
    """R29: yen without decimals, in the customer's own locale."""
    run = await world.start("8893")
    await run.approve()
    ended = await run.result()
    assert ended.refund is not None
    await fails(world, ended.refund.id)
    await swept(world)

    assert "12,500" in (await world.mail("correction"))["text"]


async def test_two_sweeps_at_once_say_it_once(world: World) -> None:
    """P3: one from the Schedule and one by hand do not write twice."""
    _, refund = await refunded(world)
    await fails(world, refund)
    for sweep in [await begin(world), await begin(world)]:
        # One that meets the other's attempt comes again when that must be over.
        await world.until(partial(_rests, sweep))
        if (await sweep.describe()).close_time is None:
            await Run(world, world.request(), sweep).move_on(minutes=1)
        await end_of(sweep)

    assert await said(world) == CORRECTED


async def _rests(sweep: WorkflowHandle[Any, Any]) -> bool:
    return (await sweep.describe()).close_time is not None or await retries(sweep)


async def test_a_worker_that_ends_between_the_two_mails(world: World) -> None:
    """P3: the next worker writes the mail that is missing, and not the one that went out."""
    _, refund = await refunded(world)
    await fails(world, refund)
    down = {"system": "mail", "operation": "send", "what": "fail_before"}
    await world.control("faults", [{**down, "call": 2, "times": 1000}])
    sweep = await begin(world)
    await world.until(lambda: _has(world, "correction"))
    await world.stop_worker()
    await world.http.delete("/control/faults")
    await world.start_worker()
    report = await end_of(sweep)

    assert report.found == (refund,)
    assert await said(world) == CORRECTED


async def _has(world: World, purpose: str) -> bool:
    return (await world.mails())[purpose] > 0


async def test_a_reset_of_the_sweep_says_nothing_again(world: World) -> None:
    """P3: the ledger knows what was said, whatever the history has forgotten."""
    _, refund = await refunded(world)
    await fails(world, refund)
    sweep = await begin(world)
    await end_of(sweep)
    await world.client.workflow_service.reset_workflow_execution(
        ResetWorkflowExecutionRequest(
            namespace=world.client.namespace,
            workflow_execution=WorkflowExecution(workflow_id=sweep.id),
            reason="a test",
            # The end of the first task; what the reading found is forgotten.
            workflow_task_finish_event_id=4,
            request_id=uuid.uuid4().hex,
        )
    )
    again = world.client.get_workflow_handle(sweep.id, result_type=SweepReport)
    async with asyncio.timeout(PATIENCE):
        report = SweepReport.model_validate(await again.result())

    assert report.found == ()
    assert await said(world) == CORRECTED


async def test_a_failure_that_the_run_told_is_not_told_again(world: World) -> None:
    """P3: failed while it was verified: the run has written, and the sweep does not."""
    await world.control("payments/pi_8891", {"next_refund_status": "failed"})
    run = await world.start("8891")
    assert (await run.result()).outcome is Outcome.REFUND_FAILED
    mails = await world.mails()
    report = await swept(world)

    assert (report.looked_at, report.found) == (SEEDED + 1, ())
    assert await world.mails() == mails


async def test_an_open_run_tells_it_itself(world: World) -> None:
    """P3: while the run verifies, the sweep leaves the refund to it."""
    _, refund = await verifying(world)
    await fails(world, refund.id)
    report = await swept(world)

    assert report.found == ()
    assert (await world.mails()).total() == 0


async def test_another_request_on_the_order_keeps_nobody_waiting(world: World) -> None:
    """An open run of the same order that is another request's does not hold the correction up."""
    _, refund = await refunded(world)
    await fails(world, refund)
    request = world.request("8891", environment="staging")
    handle = await world.client.start_workflow(
        names.REFUND_WORKFLOW,
        request,
        id=names.workflow_id("8891"),
        task_queue=names.TASK_QUEUE,
        memo={names.MEMO_REQUEST_ID: request.request_id},
    )
    report = await swept(world)
    await handle.terminate("the test is over")

    assert report.found == (refund,)
    assert await said(world) == CORRECTED


async def test_a_refund_that_nobody_told_of_alerts_operations_alone(world: World) -> None:
    """P4: the run was ended from outside. Operations hear of it, the customer gets no guess."""
    run, refund = await verifying(world)
    await run.handle.terminate("somebody's mistake")
    await fails(world, refund.id)
    reports = [await swept(world), await swept(world)]

    assert [report.found for report in reports] == [(refund.id,), ()]
    assert await world.mails() == {"alert.refund_failed_later": 1}
    assert "no corrective mail" in (await world.mail("alert.refund_failed_later"))["text"]


OF_OTHERS = {
    "nobody's": None,
    "another environment's": "staging/refund-order-8891/req-1/refund.r1",
    "nearly ours": "local/refund-order-8891/req-1/mail.refunded",
}


@pytest.mark.parametrize("whose", OF_OTHERS)
async def test_refunds_of_others_are_left_alone(world: World, whose: str) -> None:
    """Somebody else's failed refund, and another environment's, are no business of this sweep."""
    await fails(world, await make(world, OF_OTHERS[whose]))
    report = await swept(world)

    assert (report.outcome, report.looked_at, report.found) == (
        SweepOutcome.COMPLETE,
        SEEDED + 1,
        (),
    )
    assert (await world.mails()).total() == 0


async def test_a_failed_refund_is_found_behind_more_than_a_page(world: World) -> None:
    """All pages are read: a hundred and one later refunds push ours to the second one."""
    _, refund = await refunded(world)
    for _ in range(payments.PAGE + 1):
        await world.control("hand_refund", {"payment": "pi_8899", "amount_minor": 1})
    await fails(world, refund)
    sweep = await begin(world)
    report = await end_of(sweep)

    assert report.looked_at > payments.PAGE
    assert report.found == (refund,)
    assert await said(world) == CORRECTED
    # Start, one reading of both pages, whom to write to, two mails.
    assert cost_of(await sweep.fetch_history()).actions == 5


@pytest.mark.parametrize(("days", "seen"), [(59, True), (61, False)])
async def test_a_sweep_looks_sixty_days_back(world: World, days: int, *, seen: bool) -> None:
    """What was made before is not even listed by the provider."""
    await world.control("clock", {"advance_seconds": -days * 86_400})
    refund = await make(world, "local/refund-order-8891/req-1/refund.r1")
    await world.control("clock", {"advance_seconds": days * 86_400})
    await fails(world, refund)
    report = await swept(world)

    assert report.found == ((refund,) if seen else ())
    assert report.looked_at == SEEDED + seen


async def test_a_sweep_that_finds_nothing_costs_two_actions(world: World) -> None:
    """One start and one reading; the Schedule itself is billed for two more."""
    sweep = await begin(world)
    await end_of(sweep)

    assert cost_of(await sweep.fetch_history()).actions == 2
