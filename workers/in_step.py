"""Lets no query move a run ahead of its workflow tasks (docs/decisions/0011-queries.md).

The SDK answers a query after it has applied all events that came with it. Where a workflow task for
those events still waits, the run would take them without the signals that come until that task is
begun, and at the time of its last one: every replay does it otherwise, and the run would be stuck.
"""

import time
from collections.abc import Callable

from temporalio.bridge.proto.workflow_activation import WorkflowActivation
from temporalio.bridge.proto.workflow_completion import WorkflowActivationCompletion
from temporalio.worker import WorkflowInstance, WorkflowInstanceDetails, WorkflowRunner

from domain.names import QUERY_REFUSED
from workers.around import InstanceAround, RunnerAround

# A run that was ended from outside gets no more workflow tasks: its last events can be shown by a
# query alone. For one that is open, a worker that answers queries has taken its task by then.
SECONDS_TO_TAKE_A_TASK = 10.0
_MOST_REMEMBERED = 1000


class InStep(RunnerAround):
    """A runner around another one that refuses such queries; the run is dropped from the cache."""

    def __init__(self, inner: WorkflowRunner, clock: Callable[[], float] = time.monotonic) -> None:
        """Stand around a runner; the clock tells seconds."""
        super().__init__(inner)
        self._clock = clock
        self._refused: dict[tuple[str, int], float] = {}
        """Since when, by run and by how many events it has."""

    def create_instance(self, det: WorkflowInstanceDetails) -> WorkflowInstance:
        """Have the run made as ever, and keep it in step."""
        return _InStep(super().create_instance(det), self)

    def refuses(self, run_id: str, events: int) -> bool:
        """Whether to refuse a query that would move a run on to so many events."""
        since = self._refused.setdefault((run_id, events), self._clock())
        if len(self._refused) > _MOST_REMEMBERED:
            del self._refused[next(iter(self._refused))]
        return self._clock() - since < SECONDS_TO_TAKE_A_TASK


class _InStep(InstanceAround):
    def __init__(self, inner: WorkflowInstance, runner: InStep) -> None:
        super().__init__(inner)
        self._runner = runner
        self._events, self._bytes = 0, 0

    def activate(self, act: WorkflowActivation) -> WorkflowActivationCompletion:
        if self._is_ahead(act) and self._runner.refuses(act.run_id, act.history_length):
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


_MOVES_NOTHING = ("query_workflow", "remove_from_cache")
