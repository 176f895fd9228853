"""A request that has ended cannot be brought back by whoever can start and reset runs (P2)."""

import uuid

import pytest
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import EventType, ResetReapplyExcludeType
from temporalio.api.workflowservice.v1 import ResetWorkflowExecutionRequest

from domain.models import Outcome
from domain.names import SIGNAL_WITHDRAW
from domain.outcomes import Reason
from domain.request import Proposal, Resumed
from domain.trail import RunStatus
from tests.signing import TOM
from tests.world import Run, World


async def _end(run: Run, outcome: Outcome) -> Proposal:
    """Bring a run to an end without money; its proposal."""
    proposal = await run.waiting()
    if outcome is Outcome.REJECTED:
        await run.approve(verdict="reject", by=TOM)
    elif outcome is Outcome.WITHDRAWN:
        await run.send(run.world.signer.withdrawal(run.request), SIGNAL_WITHDRAW)
    else:
        await run.move_on(days=7, minutes=16)
    assert (await run.result()).outcome is outcome
    return proposal


@pytest.mark.parametrize("outcome", [Outcome.REJECTED, Outcome.WITHDRAWN, Outcome.EXPIRED])
async def test_an_approval_that_came_too_late_revives_nothing(
    world: World, outcome: Outcome
) -> None:
    """The same request, started beside the command with a manager's late approval of it."""
    run = await world.start()
    proposal = await _end(run, outcome)
    mails = await world.mails()
    late = world.signer.decision(proposal).token
    forged = run.request.model_copy(
        update={"resumes": Resumed(retry=0, proposal=proposal, decisions=(late,))}
    )
    ended = await (await world.start_with(forged)).result()

    assert (ended.outcome, ended.reason) == (outcome, Reason.TOLD_BEFORE)
    assert await world.refunds() == []
    assert await world.mails() == mails


async def test_a_reset_that_leaves_the_rejection_out_pays_nothing(world: World) -> None:
    """Whoever resets a run may drop its signals: the re-check knows what the customer was told."""
    run = await world.start()
    proposal = await _end(run, Outcome.REJECTED)
    events = (await run.history()).events
    signaled = EventType.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED
    completed = EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED
    decided = next(event.event_id for event in events if event.event_type == signaled)
    before = max(e.event_id for e in events if e.event_type == completed and e.event_id < decided)
    client = world.client
    await client.workflow_service.reset_workflow_execution(
        ResetWorkflowExecutionRequest(
            namespace=client.namespace,
            workflow_execution=WorkflowExecution(workflow_id=run.handle.id),
            reason="a test",
            workflow_task_finish_event_id=before,
            request_id=uuid.uuid4().hex,
            reset_reapply_exclude_types=[ResetReapplyExcludeType.RESET_REAPPLY_EXCLUDE_TYPE_SIGNAL],
        )
    )
    handle = client.get_workflow_handle(run.handle.id, result_type=RunStatus)
    again = Run(world, run.request, handle)
    world.runs.append(again)
    await again.send(world.signer.decision(proposal))
    ended = await again.result()

    assert (ended.outcome, ended.reason) == (Outcome.REJECTED, Reason.TOLD_BEFORE)
    assert await world.refunds() == []
