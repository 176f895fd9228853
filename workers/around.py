"""What stands around the SDK's sandbox, on the outside: the code in it runs as ever."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from temporalio.bridge.proto.workflow_activation import WorkflowActivation
from temporalio.bridge.proto.workflow_completion import WorkflowActivationCompletion
from temporalio.worker import WorkflowInstance, WorkflowInstanceDetails, WorkflowRunner


class RunnerAround(WorkflowRunner):
    """A runner that leaves everything to another one."""

    def __init__(self, inner: WorkflowRunner) -> None:
        """Stand around a runner."""
        self._inner = inner

    def prepare_workflow(self, defn: Any) -> None:
        """Leave it to the inner runner."""
        self._inner.prepare_workflow(defn)

    def set_worker_level_failure_exception_types(
        self, types: Sequence[type[BaseException]]
    ) -> None:
        """Leave it to the inner runner."""
        self._inner.set_worker_level_failure_exception_types(types)

    def create_instance(self, det: WorkflowInstanceDetails) -> WorkflowInstance:
        """Have the run made as ever."""
        return self._inner.create_instance(det)


class InstanceAround(WorkflowInstance):
    """A run that leaves everything to another one."""

    def __init__(self, inner: WorkflowInstance) -> None:
        """Stand around a run."""
        self._inner = inner

    def activate(self, act: WorkflowActivation) -> WorkflowActivationCompletion:
        """Leave it to the inner one."""
        return self._inner.activate(act)

    def get_serialization_context(self, command_info: Any) -> Any:
        """None: our converter writes everything alike, whatever it belongs to.

        The SDK asks for each payload, by a call into the sandbox: a quarter of a replay's time.
        """
        return None

    def get_external_store_context(self, command_info: Any) -> Any:
        """The first answer: nothing is stored outside, so it does not matter."""
        return self._store

    def get_info(self) -> Any:
        """What the run is; it does not change what we ask it for."""
        return self._info

    def get_thread_id(self) -> int | None:
        """Leave it to the inner one."""
        return self._inner.get_thread_id()

    @cached_property
    def _store(self) -> Any:
        return self._inner.get_external_store_context(None)

    @cached_property
    def _info(self) -> Any:
        return self._inner.get_info()
