"""Reset, terminate and start again, bad input, a bare server: the run is met where it stands."""

import asyncio
import uuid
from pathlib import Path
from typing import Any

import pytest
from temporalio.api.common.v1 import Payload, WorkflowExecution
from temporalio.api.enums.v1 import EventType
from temporalio.api.workflowservice.v1 import ResetWorkflowExecutionRequest
from temporalio.client import WorkflowExecutionStatus, WorkflowFailureError
from temporalio.common import RawValue
from temporalio.exceptions import ApplicationError

from domain import names
from domain.models import Outcome
from domain.outcomes import Reason
from domain.trail import RunStatus
from tests.world import PATIENCE, Run, World, check_history, temporal_server


async def _reset_to(run: Run, event_id: int) -> RunStatus:
    """Reset a run to the end of the workflow task whose completion has this event id."""
    client = run.world.client
    await client.workflow_service.reset_workflow_execution(
        ResetWorkflowExecutionRequest(
            namespace=client.namespace,
            workflow_execution=WorkflowExecution(workflow_id=run.handle.id),
            reason="a test",
            workflow_task_finish_event_id=event_id,
            request_id=uuid.uuid4().hex,
        )
    )
    again = client.get_workflow_handle(run.handle.id, result_type=RunStatus)
    async with asyncio.timeout(PATIENCE):
        return RunStatus.model_validate(await again.result())


async def _task_ends(run: Run) -> list[int]:
    history = await run.history()
    completed = EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED
    return [event.event_id for event in history.events if event.event_type == completed]


async def _before_the_refund(run: Run) -> int:
    """The workflow task that scheduled the refund."""
    for event in (await run.history()).events:
        attributes = event.activity_task_scheduled_event_attributes
        if attributes.activity_type.name == "make_refund":
            return attributes.workflow_task_completed_event_id
    raise AssertionError("the run made no refund")


@pytest.mark.parametrize("where", ["first task", "before the refund"])
async def test_a_reset_pays_nothing_twice_and_mails_nothing_twice(world: World, where: str) -> None:
    """R24: same key, one refund, one mail of each purpose."""
    run = await world.start()
    await run.approve()
    await run.result()
    mails = await world.mails()
    first = (await _task_ends(run))[0]
    ended = await _reset_to(run, first if where == "first task" else await _before_the_refund(run))

    assert ended.outcome is Outcome.REFUNDED
    assert await world.refunds() == [(42000, "succeeded")]
    assert await world.mails() == mails


async def test_terminated_after_the_refund_and_started_again(world: World) -> None:
    """P1: the same request finds its own refund, verifies it and says so once."""
    request = world.request()
    await world.control("payments/pi_8890", {"next_refund_status": "pending"})
    run = await world.start_with(request)
    await run.approve()
    status = await run.until(lambda s: s.refund is not None)
    await run.handle.terminate("somebody's mistake")
    assert status.refund is not None
    await world.control(f"refunds/{status.refund.id}", {"status": "succeeded"})
    ended = await (await world.start_with(request)).result()

    assert ended.outcome is Outcome.REFUNDED
    assert await world.refunds() == [(42000, "succeeded")]
    assert (await world.mails())["refunded"] == 1


async def test_terminated_while_waiting_and_started_again(world: World) -> None:
    """P3: the same request writes no mail again, and is paid once."""
    request = world.request()
    run = await world.start_with(request)
    await run.waiting()
    await world.until(lambda: _has_mails(world, 2))
    await run.handle.terminate("somebody's mistake")
    again = await world.start_with(request)
    await again.approve()
    ended = await again.result()

    assert ended.outcome is Outcome.REFUNDED
    assert await world.refunds() == [(42000, "succeeded")]
    assert await world.mails() == {"under_review": 1, "approval_request.r1": 1, "refunded": 1}


async def test_each_reason_is_told_also_by_a_later_run_of_the_request(world: World) -> None:
    """P4: an alert of an earlier run does not make another end silent."""
    request = world.request("8891")
    await world.control("orders/8891", {"payment": "pi_none"})
    first = await (await world.start_with(request)).result()
    await world.control("orders/8891", {"payment": "pi_8891"})
    await world.control("payments/pi_8891", {"next_refund_status": "odd"})
    second = await (await world.start_with(request)).result()

    assert (first.reason, second.reason) == (Reason.PAYMENT_UNKNOWN, Reason.STATUS_UNKNOWN)
    mails = await world.mails()
    assert (mails["alert.payment_unknown"], mails["alert.status_unknown"]) == (1, 1)


_BROKEN = RawValue(Payload(metadata={"encoding": b"json/plain"}, data=b"{nope"))
_ENCODED = RawValue(Payload(metadata={"encoding": b"x/y"}, data=b"zz"))

BAD_INPUT: dict[str, list[Any]] = {
    "nothing": [],
    "two inputs": ["one", "two"],
    "two that do not decode": [_BROKEN, _ENCODED],
    "text": ["order 8890"],
    "null": [None],
    "a number": [8890],
    "an empty object": [{}],
    "an order id that is a path": [{"order_id": "../8890"}],
    "broken JSON": [_BROKEN],
    "an unknown encoding": [_ENCODED],
}


async def _failure(world: World, arguments: list[Any], kind: str = names.REFUND_WORKFLOW) -> str:
    """The message with which a run fails that was started like this."""
    handle = await world.client.start_workflow(
        kind, args=arguments, id=names.workflow_id("8890"), task_queue=names.TASK_QUEUE
    )
    with pytest.raises(WorkflowFailureError) as failure:
        async with asyncio.timeout(PATIENCE):
            await handle.result()
    assert isinstance(failure.value.cause, ApplicationError)
    assert failure.value.cause.type == "bad_request"
    return failure.value.cause.message


@pytest.mark.parametrize("name", BAD_INPUT, ids=[name.replace(" ", "-") for name in BAD_INPUT])
async def test_a_run_started_with_bad_input_fails_with_a_clear_message(
    world: World, name: str
) -> None:
    """P7: from the Web UI anybody can start a run with anything; it ends, and says why."""
    assert "refund request" in await _failure(world, BAD_INPUT[name])


async def test_a_run_of_an_unknown_type_fails_with_a_clear_message(world: World) -> None:
    """P7: a misspelt workflow type does not hold the order's id for ever."""
    assert "'RefundWorkFlow'" in await _failure(world, [world.request()], "RefundWorkFlow")


async def test_a_run_under_another_workflow_id_is_refused(world: World) -> None:
    """Two ids for one order would be two runs at once."""
    handle = await world.client.start_workflow(
        names.REFUND_WORKFLOW,
        world.request(),
        id="refund-order-8890-again",
        task_queue=names.TASK_QUEUE,
    )
    with pytest.raises(WorkflowFailureError) as failure:
        await handle.result()
    assert "under id refund-order-8890 alone" in str(failure.value.cause)


async def test_a_server_without_the_search_attributes_wedges_nothing(tmp_path: Path) -> None:
    """R50: a run that is told so sets none, and is paid like any other."""
    async with (
        temporal_server(search_attributes=False) as bare,
        World(bare, tmp_path) as world,
    ):
        run = await world.start_with(world.request(search_attributes=False))
        await run.approve()
        ended = await run.result()
        await check_history(run)

        assert ended.outcome is Outcome.REFUNDED
        assert await world.refunds() == [(42000, "succeeded")]


async def test_a_run_of_another_environment_is_not_touched(world: World) -> None:
    """A worker of `local` refuses a run of `staging`, and pays and mails nothing for it."""
    run = await world.start_with(world.request(environment="staging"))
    await world.until(lambda: _has_failed_attempts(run))
    assert (await run.handle.describe()).status is WorkflowExecutionStatus.RUNNING
    assert await world.refunds() == []
    assert (await world.mails()).total() == 0


async def _has_mails(world: World, count: int) -> bool:
    return (await world.mails()).total() >= count


async def _has_failed_attempts(run: Run) -> bool:
    description = await run.handle.describe()
    pending = description.raw_description.pending_activities
    return any("serves environment local" in activity.last_failure.message for activity in pending)
