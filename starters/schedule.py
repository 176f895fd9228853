"""The Schedule of the sweep: one for each environment, made once and brought up to date."""

import json
from datetime import timedelta
from typing import Any

from temporalio.api.common.v1 import Payload
from temporalio.client import (
    Client,
    Schedule,
    ScheduleActionExecutionStartWorkflow,
    ScheduleActionStartWorkflow,
    ScheduleAlreadyRunningError,
    ScheduleDescription,
    ScheduleIntervalSpec,
    ScheduleOverlapPolicy,
    SchedulePolicy,
    ScheduleSpec,
    ScheduleState,
    ScheduleUpdate,
    ScheduleUpdateInput,
    WorkflowExecutionStatus,
)
from temporalio.service import RPCError, RPCStatusCode

from domain import names
from domain.sweep import SweepOrder
from starters.connect import RPC_TIMEOUT
from starters.errors import is_namespace_missing

# A bank takes days to return a refund: a quarter of a day more is soon enough.
EVERY = timedelta(hours=6)
# After an outage of the server one late sweep does the work of all that were missed.
_CATCH_UP = EVERY
# A sweep ends within five hours (`workflows.calls.SWEEP_PATIENCE` bounds each of its steps). One
# that finds no worker gives way after a day.
_LONGEST = timedelta(days=1)
_NOTE = "Corrects what customers were told about refunds that failed later. A pause is kept."
_BAD_ENDS = (
    WorkflowExecutionStatus.FAILED,
    WorkflowExecutionStatus.TIMED_OUT,
    WorkflowExecutionStatus.TERMINATED,
)


def wanted(environment: str) -> Schedule:
    """The Schedule as it should be."""
    return Schedule(
        action=ScheduleActionStartWorkflow(
            names.SWEEP_WORKFLOW,
            SweepOrder(environment=environment),
            id=names.sweep_id(environment),
            task_queue=names.TASK_QUEUE,
            execution_timeout=_LONGEST,
            static_summary="Look for refunds that failed after their confirmation",
        ),
        spec=ScheduleSpec(intervals=[ScheduleIntervalSpec(every=EVERY)]),
        policy=SchedulePolicy(overlap=ScheduleOverlapPolicy.SKIP, catchup_window=_CATCH_UP),
        state=ScheduleState(note=_NOTE),
    )


async def find(client: Client, environment: str) -> ScheduleDescription | None:
    """The Schedule as it is; None where there is none."""
    handle = client.get_schedule_handle(names.sweep_id(environment))
    try:
        return await handle.describe(rpc_timeout=RPC_TIMEOUT)
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND and not is_namespace_missing(error):
            return None
        raise


async def ensure(client: Client, environment: str) -> str:
    """Make the Schedule, or bring it up to date; what was done, in words, or nothing.

    Somebody's pause stays: it has a reason that this command does not know.
    """
    schedule_id = names.sweep_id(environment)
    try:
        await client.create_schedule(schedule_id, wanted(environment), rpc_timeout=RPC_TIMEOUT)
    except ScheduleAlreadyRunningError:
        found = await find(client, environment)
        if found is None or not differs(found.schedule, environment):
            return ""
        await _bring_up_to_date(client, environment)
        return f"schedule {schedule_id} brought up to date"
    return f"schedule {schedule_id} made"


async def _bring_up_to_date(client: Client, environment: str) -> None:
    def update(found: ScheduleUpdateInput) -> ScheduleUpdate:
        schedule = wanted(environment)
        schedule.state = found.description.schedule.state
        return ScheduleUpdate(schedule=schedule)

    handle = client.get_schedule_handle(names.sweep_id(environment))
    await handle.update(update, rpc_timeout=RPC_TIMEOUT)


def differs(found: Schedule, environment: str) -> str:
    """What of a Schedule is not as it should be, in words; nothing where all is."""
    is_so, should_be = _gist(found), _gist(wanted(environment))
    return ", ".join(what for what, value in should_be.items() if is_so[what] != value)


async def last_failure(client: Client, found: ScheduleDescription) -> str:
    """How the last sweep failed, in words; nothing where it did not, or is forgotten."""
    if not found.info.recent_actions:
        return ""
    last = found.info.recent_actions[-1].action
    if not isinstance(last, ScheduleActionExecutionStartWorkflow):
        return ""
    handle = client.get_workflow_handle(last.workflow_id, run_id=last.first_execution_run_id)
    try:
        status = (await handle.describe(rpc_timeout=RPC_TIMEOUT)).status
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            return ""
        raise
    if status not in _BAD_ENDS:
        return ""
    return f"{last.workflow_id} {status.name.lower().replace('_', ' ')}"


def _gist(schedule: Schedule) -> dict[str, Any]:
    """What makes the Schedule, part by part, in a form that can be compared."""
    action, spec, policy = schedule.action, schedule.spec, schedule.policy
    if not isinstance(action, ScheduleActionStartWorkflow):
        raise TypeError("a Schedule starts workflows")
    return {
        "action": (action.workflow, action.id, [_plain(value) for value in action.args]),
        "task queue": action.task_queue,
        # The `temporal` program writes a zero where there is none.
        "time-out": (action.execution_timeout or None, action.run_timeout or None),
        "rhythm": (
            [(interval.every, interval.offset or timedelta()) for interval in spec.intervals],
            [*spec.calendars, *spec.cron_expressions, *spec.skip],
            (spec.start_at, spec.end_at),
        ),
        "policy": (policy.overlap, policy.catchup_window, policy.pause_on_failure),
        "end": schedule.state.limited_actions,
    }


def _plain(value: Any) -> Any:
    """An argument as its JSON says it: the server keeps bytes, we make models."""
    if isinstance(value, SweepOrder):
        return value.model_dump(mode="json")
    try:
        return json.loads(value.data) if isinstance(value, Payload) else value
    except ValueError:
        return None
