"""What operators and broken services do: reset, terminate, start twice, answer nonsense."""

import asyncio
import json
import os
import sys
import uuid
from pathlib import Path
from typing import Any

import pytest
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import EventType
from temporalio.api.workflowservice.v1 import ResetWorkflowExecutionRequest

from domain.models import Outcome
from domain.outcomes import Reason
from domain.request import RefundRequest
from domain.trail import RunStatus
from starters.errors import CommandError, Exit
from starters.start import begin
from starters.statements import Signer
from tests.faults.support import PAID, STORY_MAILS, calls, fault, fired, set_faults
from tests.signing import MARIA, SAM
from tests.world import LETTER, PATIENCE, Run, World

ROOT = Path(__file__).parents[2]


async def _reset(run: Run, to: int) -> RunStatus:
    """Reset the first run to the end of a workflow task, and wait for the new run's end."""
    client = run.world.client
    answer = await client.workflow_service.reset_workflow_execution(
        ResetWorkflowExecutionRequest(
            namespace=client.namespace,
            workflow_execution=WorkflowExecution(
                workflow_id=run.handle.id, run_id=run.handle.first_execution_run_id or ""
            ),
            reason="a test",
            workflow_task_finish_event_id=to,
            request_id=uuid.uuid4().hex,
        )
    )
    again = client.get_workflow_handle(run.handle.id, run_id=answer.run_id, result_type=RunStatus)
    async with asyncio.timeout(PATIENCE):
        return RunStatus.model_validate(await again.result())


async def test_reset_to_each_point_of_a_closed_run(world: World) -> None:
    """R24: from every workflow task of order 8890's history the same story: one refund, no mail."""
    run = await world.start()
    await run.approve()
    await run.result()
    mails = (await world.books())["mails"]
    completed = EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED
    points = [e.event_id for e in (await run.history()).events if e.event_type == completed]
    assert len(points) > 8

    for point in points:
        ended = await _reset(run, point)
        told = [entry.what for entry in ended.trail]
        assert (ended.outcome, "ended" in told) == (Outcome.REFUNDED, True), point
        assert await world.refunds() == PAID, point
        assert (await world.books())["mails"] == mails, point


async def _begin(world: World, request_id: str, **how: bool) -> bool:
    """`refund start` for order 8890 with this request id; whether a run was started."""
    draft = RefundRequest(
        environment="local",
        order_id="8890",
        request_id=request_id,
        message=LETTER,
        requester=SAM,
        statement="",
    )
    begun = await begin(world.client, Signer(world.company.keys, SAM), draft, **how)
    return begun.new


async def test_terminated_after_the_refund_and_started_without_the_request_id(
    world: World,
) -> None:
    """P1: it is refused with the id to go on with, and a new request finds nothing left to pay."""
    request_id = f"req-{uuid.uuid4().hex}"
    await world.control("payments/pi_8890", {"next_refund_status": "pending"})
    run = await world.start(request_id=request_id)
    await run.approve()
    refund = (await run.until(lambda s: s.refund is not None)).refund
    assert refund is not None
    await run.handle.terminate("somebody's mistake")
    await world.control(f"refunds/{refund.id}", {"status": "succeeded"})
    with pytest.raises(CommandError) as refused:
        await _begin(world, uuid.uuid4().hex)
    assert refused.value.exit_code is Exit.REFUSED
    request_id = f"req-{uuid.uuid4().hex}"
    assert await _begin(world, request_id, anew=True)
    ended = await _begun_run(world, request_id).result()

    assert (ended.outcome, ended.reason) == (Outcome.ALREADY_REFUNDED, Reason.REFUNDED_BEFORE)
    assert await world.refunds() == PAID


async def test_the_same_start_twice_at_once_is_begun_once(world: World) -> None:
    """R26: both have looked and found no run; one starts it, the other finds it running."""
    request_id = f"req-{uuid.uuid4().hex}"
    begun = await asyncio.gather(*(_begin(world, request_id, repeats=True) for _ in range(3)))
    run = _begun_run(world, request_id)
    await run.approve()
    await run.result()

    assert sorted(begun) == [False, False, True]
    assert (await world.refunds(), await world.mails()) == (PAID, STORY_MAILS)


def _begun_run(world: World, request_id: str) -> Run:
    """The run of order 8890 that a command has started."""
    handle = world.client.get_workflow_handle("refund-order-8890", result_type=RunStatus)
    run = Run(world, world.request(request_id=request_id), handle)
    world.runs.append(run)
    return run


async def _start_process(world: World, request_id: str) -> tuple[int, Any]:
    """`refund start` in a process of its own: its exit code and what it printed."""
    place = {
        "PYTHONPATH": str(ROOT),
        "TEMPORAL_CONFIG_FILE": os.devnull,
        "TEMPORAL_ADDRESS": world.client.service_client.config.target_host,
        "NORTHWIND_DATA_DIR": str(world.company.data),
    }
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", "from starters.cli import main; main()"),
        *("start", "--order", "8890", "--message", LETTER, "--request-id", request_id, "--json"),
        env={**os.environ, **place},
        stdout=asyncio.subprocess.PIPE,
    )
    out, _ = await process.communicate()
    assert process.returncode is not None
    return process.returncode, json.loads(out)


async def test_the_same_start_by_two_processes_at_once_is_one_run(world: World) -> None:
    """R26: both end well and name the same run, and one of them has started it."""
    request_id = f"req-{uuid.uuid4().hex}"
    both = await asyncio.gather(*(_start_process(world, request_id) for _ in range(2)))
    run = _begun_run(world, request_id)
    await run.approve()
    await run.result()

    assert [code for code, _ in both] == [0, 0]
    assert len({printed["run_id"] for _, printed in both}) == 1
    assert sorted(printed["new"] for _, printed in both) == [False, True]
    assert (await world.refunds(), await world.mails()) == (PAID, STORY_MAILS)


NONSENSE: dict[str, dict[str, Any]] = {
    "null": {"body": "null"},
    "HTML": {"body": "<!doctype html><title>Busy</title>"},
    "missing fields": {"body": {"id": "8890", "object": "list"}},
    "a list": {"body": []},
    "HTML for a 404": {"status": 404, "body": "<h1>Not found</h1>"},
}
AT_THE_START = (
    "orders.get", "policy.get", "staff.list", "refunds.list", "payment_intents.retrieve",
)  # fmt: skip
AFTER_THE_DECISION = ("staff.get", "refunds.retrieve")


@pytest.mark.parametrize("operation", AT_THE_START + AFTER_THE_DECISION)
async def test_a_service_that_answers_nonsense_is_waited_for(world: World, operation: str) -> None:
    """P7, P8: five kinds, one after the other; no task fails, and the run goes on when mended."""
    rows = [
        fault(operation, "status", call=call, **{"status": 200, **answer})
        for call, answer in enumerate(NONSENSE.values(), start=1)
    ]
    await set_faults(world, *rows)
    run = await world.start()
    if operation in AT_THE_START:
        await _outlast(run)
    proposal = await run.waiting()
    await run.handle.signal("decide", world.signer.decision(proposal))
    if operation in AFTER_THE_DECISION:
        await _outlast(run)

    assert (await run.result()).outcome is Outcome.REFUNDED
    assert (await world.refunds(), await world.mails()) == (PAID, STORY_MAILS)
    assert await calls(world, operation) > len(rows)


async def _outlast(run: Run) -> None:
    """Let the pauses between attempts go by."""
    await fired(run.world)
    await run.move_on(minutes=5)


async def test_words_of_next_year_are_survived(world: World) -> None:
    """R21: roles, states and fields that this version does not know give and take nothing."""
    http = world.http
    order, policy = (await http.get("/orders/8890")).json(), (await http.get("/policy")).json()
    staff, maria = (await http.get("/staff")).json(), (await http.get(f"/staff/{MARIA}")).json()
    for person in (maria, *staff["people"]):
        person["roles"] = ["wizard", *person["roles"]]
    authorization = {"Authorization": "Bearer sk_test_northwind"}
    payment = (
        await http.get("/v1/payment_intents/pi_8890?expand[]=latest_charge", headers=authorization)
    ).json()
    answers = {
        "orders.get": order | {"loyalty": "gold"},
        "policy.get": policy | {"moon_phase": "full"},
        "staff.list": staff,
        "staff.get": maria,
        "payment_intents.retrieve": payment | {"status": "half_succeeded"},
    }
    await set_faults(
        world,
        *(
            fault(operation, "status", status=200, body=body, call="every")
            for operation, body in answers.items()
        ),
    )
    run = await world.start()
    await run.approve()

    assert (await run.result()).outcome is Outcome.REFUNDED
    assert (await world.refunds(), await world.mails()) == (PAID, STORY_MAILS)
