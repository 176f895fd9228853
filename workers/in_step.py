"""Lets no query move a run ahead of its workflow tasks (docs/decisions/0011-queries.md).

The SDK answers a query after it has applied all events that came with it. Where a workflow task for
those events still waits, the run would take them without the signals that come until that task is
begun, and at the time of its last one: every replay does it otherwise, and the run would be stuck.
"""

import asyncio
from collections.abc import Callable
from datetime import timedelta

from temporalio.bridge.proto.workflow_activation import WorkflowActivation
from temporalio.bridge.proto.workflow_completion import WorkflowActivationCompletion
from temporalio.client import Client, WorkflowExecutionStatus
from temporalio.service import RPCError
from temporalio.worker import WorkflowInstance, WorkflowInstanceDetails, WorkflowRunner

from domain.names import QUERY_REFUSED
from workers.around import InstanceAround, RunnerAround

# The SDK takes a step that lasts for two seconds for a deadlock.
_ANSWER_SECONDS = 1.5
_RPC_TIMEOUT = timedelta(seconds=1)
_MOVES_NOTHING = ("query_workflow", "remove_from_cache")


class InStep(RunnerAround):
    """A runner around another one that refuses such queries; the run is dropped from the cache.

    A run that has closed gets no more workflow tasks: a query alone can show its last events.
    """

    def __init__(self, inner: WorkflowRunner, client: Client) -> None:
        """Stand around a runner; the client tells whether a run is open."""
        super().__init__(inner)
        self._client = client

    def create_instance(self, det: WorkflowInstanceDetails) -> WorkflowInstance:
        """Have the run made as ever, and keep it in step."""
        instance, loop = super().create_instance(det), asyncio.get_running_loop()

        def may_be_open() -> bool:
            asking = self._is_open(det.info.workflow_id, det.info.run_id)
            try:
                return asyncio.run_coroutine_threadsafe(asking, loop).result(_ANSWER_SECONDS)
            except (RPCError, TimeoutError):
                return True

        return _InStep(instance, may_be_open)

    async def _is_open(self, workflow_id: str, run_id: str) -> bool:
        handle = self._client.get_workflow_handle(workflow_id, run_id=run_id)
        described = await handle.describe(rpc_timeout=_RPC_TIMEOUT)
        return described.status is WorkflowExecutionStatus.RUNNING


class _InStep(InstanceAround):
    def __init__(self, inner: WorkflowInstance, may_be_open: Callable[[], bool]) -> None:
        super().__init__(inner)
        self._may_be_open = may_be_open
        self._events, self._bytes = 0, 0

    def activate(self, act: WorkflowActivation) -> WorkflowActivationCompletion:
        # In a thread of its own, beside the worker's loop.
        if self._is_ahead(act) and self._may_be_open():
            refused = WorkflowActivationCompletion(run_id=act.run_id)
            refused.failed.failure.message = QUERY_REFUSED
            return refused
        self._events, self._bytes = act.history_length, act.history_size_bytes
        return self._inner.activate(act)

    def _is_ahead(self, act: WorkflowActivation) -> bool:
        """Whether there are more events, and no workflow task has begun since.

        The size of the history stands in the event that begins a task; a server that does not tell
        it says 0.
        """
        moves = any(job.WhichOneof("variant") not in _MOVES_NOTHING for job in act.jobs)
        more = 0 < self._events < act.history_length
        return moves and more and 0 < act.history_size_bytes == self._bytes
