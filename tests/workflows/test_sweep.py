"""The sweep: what failed after its confirmation is corrected once, and never paid again."""

import asyncio
import uuid
from collections.abc import Sequence
from functools import partial
from typing import Any

import pytest
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflowservice.v1 import ResetWorkflowExecutionRequest
from temporalio.client import WorkflowFailureError, WorkflowHandle
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.exceptions import ApplicationError
from temporalio.worker import Replayer

from activities.payments import PAGE
from domain import names
from domain.models import Outcome, Refund
from domain.sweep import SweepOrder, SweepOutcome, SweepReport
from tests.counting import cost_of
from tests.workflows.test_recovery import BAD_INPUT
from tests.world import PATIENCE, Run, World
from workers.settings import SANDBOX_STRIPE_KEY
from workers.wiring import WORKFLOWS

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
    replayer = Replayer(workflows=WORKFLOWS, data_converter=pydantic_data_converter)
    await replayer.replay_workflow(await sweep.fetch_history())
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
    return (await sweep.describe()).close_time is not None or await _retries(sweep)


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
    for _ in range(PAGE + 1):
        await world.control("hand_refund", {"payment": "pi_8899", "amount_minor": 1})
    await fails(world, refund)
    report = await swept(world)

    assert report.looked_at > PAGE
    assert report.found == (refund,)
    assert await said(world) == CORRECTED


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


async def test_a_provider_that_is_down_is_left_to_the_next_sweep(world: World) -> None:
    """P4: after an hour operations hear of it, once on a day; the next sweep corrects as ever."""
    _, refund = await refunded(world)
    await fails(world, refund)
    down = {"system": "payments", "operation": "refunds.list", "what": "fail_before"}
    await world.control("faults", [{**down, "call": "every"}])
    reports = [await out_of_patience(world) for _ in range(2)]
    await world.http.delete("/control/faults")
    after = await swept(world)

    assert [report.outcome for report in reports] == [SweepOutcome.UNREADABLE] * 2
    assert "server_fault" in reports[0].explanation
    assert after.found == (refund,)
    assert await said(world) == {**CORRECTED, "alert.unreadable": 1}
    alert = await world.mail("alert.unreadable")
    assert alert["to"] == [OPERATIONS]
    assert "server_fault" in alert["text"]


async def out_of_patience(world: World) -> SweepReport:
    """Sweep, and let time go by until the sweep gives its reading up."""
    sweep = await begin(world)
    await world.until(lambda: _retries(sweep))
    await Run(world, world.request(), sweep).move_on(hours=1, minutes=1)
    return await end_of(sweep)


async def _retries(sweep: WorkflowHandle[Any, Any]) -> bool:
    pending = (await sweep.describe()).raw_description.pending_activities
    return any(activity.attempt > 1 for activity in pending)


async def test_operations_hear_of_it_while_the_order_service_is_down(world: World) -> None:
    """P4: the alert does not wait for the customer's address; the next sweep writes to them."""
    _, refund = await refunded(world)
    await fails(world, refund)
    down = {"system": "orders", "operation": "orders.get", "what": "fail_before"}
    await world.control("faults", [{**down, "call": "every"}])
    await out_of_patience(world)
    first = await said(world)
    await world.http.delete("/control/faults")
    reports = [await swept(world) for _ in range(2)]

    assert first == {"alert.refund_failed_later": 1}
    assert "could not be told yet" in (await world.mail("alert.refund_failed_later"))["text"]
    assert [report.found for report in reports] == [(refund,), ()]
    assert await said(world) == CORRECTED


async def test_an_address_that_is_refused_is_told_to_operations(world: World) -> None:
    """P4: no later sweep can write there either, so a person must find another way."""
    _, refund = await refunded(world)
    to = (await world.mail("refunded"))["to"][0]
    await fails(world, refund)
    row = {"system": "mail", "operation": "send", "stage": "rcpt", "recipient": to}
    fault = {**row, "what": "status", "status": 550, "call": "every"}
    await world.control("faults", [fault])
    reports = [await swept(world) for _ in range(2)]

    assert [report.found for report in reports] == [(refund,), ()]
    assert await said(world) == {"alert.refund_failed_later": 1}
    assert "refused for good" in (await world.mail("alert.refund_failed_later"))["text"]


async def test_a_broken_refund_of_somebody_else_stops_nothing(world: World) -> None:
    """An old refund on the account without what we need of ours does not hide ours."""
    _, refund = await refunded(world)
    await fails(world, refund)
    key = {"Authorization": f"Bearer {SANDBOX_STRIPE_KEY}"}
    page = (await world.http.get("/v1/refunds", headers=key)).json()
    strange: dict[str, Any] = {
        "id": "re_old",
        "status": None,
        "payment_intent": None,
        "metadata": [],
    }
    page["data"].insert(0, strange)
    row = {"system": "payments", "operation": "refunds.list", "what": "status", "status": 200}
    await world.control("faults", [{**row, "body": page}])

    assert (await swept(world)).found == (refund,)


async def test_a_sweep_that_finds_nothing_costs_two_actions(world: World) -> None:
    """One start and one reading, where there are no more than a thousand refunds."""
    sweep = await begin(world)
    await end_of(sweep)

    assert cost_of(await sweep.fetch_history()).actions == 2


@pytest.mark.parametrize("name", BAD_INPUT, ids=[name.replace(" ", "-") for name in BAD_INPUT])
async def test_a_sweep_started_with_bad_input_fails(world: World, name: str) -> None:
    """P7: anybody can start a sweep with anything from the Web UI; it ends and hangs nowhere."""
    arguments: Sequence[Any] = BAD_INPUT[name]
    handle = await world.client.start_workflow(
        names.SWEEP_WORKFLOW,
        args=arguments,
        id=f"{names.sweep_id('local')}-{uuid.uuid4().hex}",
        task_queue=names.TASK_QUEUE,
    )
    with pytest.raises(WorkflowFailureError) as failure:
        async with asyncio.timeout(PATIENCE):
            await handle.result()
    assert isinstance(failure.value.cause, ApplicationError)
    if len(arguments) == 1:
        assert failure.value.cause.type == "bad_request"
        assert '{"environment": "local"}' in failure.value.cause.message


async def test_a_sweep_of_another_environment_reads_nothing(world: World) -> None:
    """A worker of `local` does no part of a sweep of `staging`."""
    sweep = await begin(world, SweepOrder(environment="staging"))
    await world.until(lambda: _retries(sweep))
    await sweep.terminate("the test is over")

    assert "refunds.list" not in (await world.books())["calls"]
