"""How workflow code is run: which workflows, in which sandbox, with which converter.

The worker and `refund replay` are built from this, so that a replay shows what a worker would do.
"""

from collections.abc import Callable

from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.runtime import Runtime
from temporalio.worker import Replayer, WorkflowRunner
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions

from workflows.refund import RefundWorkflow
from workflows.sweep import RefundSweep

DATA_CONVERTER = pydantic_data_converter
# Loaded once instead of once per workflow run: pure code, and the Activities' names and models.
PASSED_THROUGH = ("domain", "activities.interfaces")

# The first one is dynamic: it takes a start under any other name too, and refuses it in words.
WORKFLOWS = (RefundWorkflow, RefundSweep)


def build_runner() -> WorkflowRunner:
    """The SDK's default sandbox, with nothing of it switched off."""
    restrictions = SandboxRestrictions.default.with_passthrough_modules(*PASSED_THROUGH)
    return SandboxedWorkflowRunner(restrictions=restrictions)


def build_replayer(
    wrap: Callable[[WorkflowRunner], WorkflowRunner] = lambda runner: runner,
    runtime: Runtime | None = None,
) -> Replayer:
    """What replays histories as a worker does. No interceptor of a worker touches workflows.

    Args:
        wrap: Puts something around the runner, to watch it.
        runtime: Another one than the SDK's default, such as one that logs nothing.
    """
    return Replayer(
        workflows=WORKFLOWS,
        workflow_runner=wrap(build_runner()),
        data_converter=DATA_CONVERTER,
        runtime=runtime,
    )
