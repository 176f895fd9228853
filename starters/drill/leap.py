"""Lets time go by for one run alone."""

import asyncio
from datetime import timedelta
from typing import Any, Protocol

from google.protobuf.field_mask_pb2 import FieldMask
from temporalio.api.common.v1 import TimeSkippingConfig, WorkflowExecution
from temporalio.api.workflow.v1 import WorkflowExecutionOptions
from temporalio.api.workflowservice.v1 import UpdateWorkflowExecutionOptionsRequest
from temporalio.client import Client, WorkflowHandle
from temporalio.service import RPCError, RPCStatusCode

from starters.drill.patience import patiently

# How long to try, in seconds of the real clock: while an Activity is at work, no time goes by.
LEAP_SECONDS = 5.0
_RPC_TIMEOUT = timedelta(seconds=10)
_PATIENCE_SECONDS = 60.0


class Skips(Protocol):
    """Moves runs of a server on in time, as `temporalio.testing.TimeSkipper` does."""

    @property
    def client(self) -> Client:
        """A client of the server."""

    async def fast_forward(self, handle: WorkflowHandle[Any, Any], duration: timedelta, /) -> bool:
        """Let time go by for a run, and wait until it has; False where the run ends before."""


async def leap(
    skips: Skips, handle: WorkflowHandle[Any, Any], how_long: timedelta, seconds: float
) -> bool:
    """Let time go by for a run; whether all of it has, within so many seconds of the real clock.

    What has not is given up. The server would keep it, and let it go by as soon as no Activity is
    at work: then somebody's days to decide would be over before they could.
    """
    try:
        async with asyncio.timeout(seconds):
            return await skips.fast_forward(handle, how_long)
    except (TimeoutError, RPCError, RuntimeError):
        # An Activity is at work, or the server is away, or the run has ended.
        await _stand_still(skips.client, handle)
        return False


async def _stand_still(client: Client, handle: WorkflowHandle[Any, Any]) -> None:
    request = UpdateWorkflowExecutionOptionsRequest(
        namespace=client.namespace,
        workflow_execution=WorkflowExecution(workflow_id=handle.id, run_id=handle.run_id or ""),
        workflow_execution_options=WorkflowExecutionOptions(
            time_skipping_config=TimeSkippingConfig(enabled=False)
        ),
        update_mask=FieldMask(paths=["time_skipping_config"]),
        identity=client.identity,
    )
    service = client.workflow_service
    try:
        await patiently(
            lambda: service.update_workflow_execution_options(request, timeout=_RPC_TIMEOUT),
            _PATIENCE_SECONDS,
        )
    except RPCError as error:
        # A run that has closed has no time to pass.
        if error.status is not RPCStatusCode.NOT_FOUND:
            raise
