"""What a sweep does when the outside is down, too much, or wrong: nothing of it is silent."""

import asyncio
import uuid
from collections.abc import Sequence
from functools import partial
from typing import Any

import pytest
from temporalio.client import WorkflowFailureError
from temporalio.exceptions import ApplicationError

from activities import payments
from domain import names
from domain.sweep import SweepOrder, SweepOutcome
from tests.sweeping import (
    CORRECTED,
    OPERATIONS,
    SEEDED,
    begin,
    fails,
    make,
    out_of_patience,
    refunded,
    retries,
    said,
    swept,
)
from tests.workflows.test_recovery import BAD_INPUT
from tests.world import PATIENCE, Run, World
from workers.settings import SANDBOX_STRIPE_KEY
from workflows.sweep import FAILED_LIMIT, READINGS_LIMIT


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


async def test_a_sweep_that_can_tell_nobody_fails(world: World) -> None:
    """P4: no provider and no mail server: the run fails, and says what it could not say by mail."""
    for system, operation in (("payments", "refunds.list"), ("mail", "send")):
        down = {"system": system, "operation": operation, "what": "fail_before"}
        await world.control("faults", [{**down, "call": "every"}])
    sweep = await begin(world)
    for kind in ("find_failed_refunds", "send_mail"):
        await world.until(partial(retries, sweep, kind))
        await Run(world, world.request(), sweep).move_on(hours=1, minutes=1)
    with pytest.raises(WorkflowFailureError) as failure:
        async with asyncio.timeout(PATIENCE):
            await sweep.result()

    assert isinstance(failure.value.cause, ApplicationError)
    assert failure.value.cause.type == "sweep_incomplete"
    assert "server_fault" in failure.value.cause.message


async def test_more_refunds_than_a_sweep_looks_at_are_no_secret(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P4: the oldest refunds were not looked at: operations hear of it, with the number."""
    monkeypatch.setattr(payments, "PAGE", 1)
    monkeypatch.setattr(payments, "SWEEP_PAGES", 1)
    for _ in range(READINGS_LIMIT + 1 - SEEDED):
        await world.control("hand_refund", {"payment": "pi_8899", "amount_minor": 1})
    report = await swept(world)

    assert report.outcome is SweepOutcome.TOO_MANY_REFUNDS
    assert report.looked_at == READINGS_LIMIT
    assert await world.mails() == {"alert.too_many_refunds": 1}
    assert f"newest {READINGS_LIMIT}" in (await world.mail("alert.too_many_refunds"))["text"]


async def test_a_heap_of_failed_refunds_is_told_over_several_sweeps(world: World) -> None:
    """P4: each is told once; that there is a heap is told too."""
    for number in range(FAILED_LIMIT + 1):
        await world.control("payments/pi_8891", {"next_refund_status": "failed"})
        await make(world, f"local/refund-order-8891/req-{number}/refund.r1")
    reports = [await swept(world) for _ in range(3)]

    assert [(report.outcome, len(report.found)) for report in reports] == [
        (SweepOutcome.TOO_MANY_FAILED, FAILED_LIMIT),
        (SweepOutcome.COMPLETE, 1),
        (SweepOutcome.COMPLETE, 0),
    ]
    assert await world.mails() == {
        "alert.refund_failed_later": FAILED_LIMIT + 1,
        "alert.too_many_failed": 1,
    }


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
    await world.control("faults", [{**row, "body": page, "call": "every"}])

    assert (await swept(world)).found == (refund,)


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
    await world.until(lambda: retries(sweep))
    await sweep.terminate("the test is over")

    assert "refunds.list" not in (await world.books())["calls"]
