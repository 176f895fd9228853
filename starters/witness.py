"""Watches workflow code while it is replayed: what it asked for, where it failed, how far it came.

It stands around the sandbox, on the outside: the code runs as it runs in a worker.
"""

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import ValidationError
from temporalio.api.failure.v1 import Failure
from temporalio.bridge.proto.workflow_activation import WorkflowActivation
from temporalio.bridge.proto.workflow_commands import WorkflowCommand
from temporalio.bridge.proto.workflow_completion import WorkflowActivationCompletion
from temporalio.worker import WorkflowInstance, WorkflowInstanceDetails, WorkflowRunner

from domain.names import QUERY_STATUS
from domain.trail import RunStatus
from workers.around import InstanceAround, RunnerAround


@dataclass(frozen=True)
class Step:
    """One call of the code, for one workflow task or a part of one."""

    started_id: int
    """The event that began the workflow task."""
    commands: Sequence[WorkflowCommand]
    failure: Failure | None
    """The exception that came out of the code, if one did."""


class Testimony:
    """What was seen of one run."""

    def __init__(self) -> None:
        """Nothing yet."""
        self._steps: list[Step] = []
        self.status: RunStatus | None = None
        """The run's own account at the end; None where it keeps none, or cannot give it."""
        self.unanswered: Failure | None = None
        """Why it cannot give it."""
        self.answer = b""
        """That account, as encoded."""

    def add(self, step: Step) -> None:
        """Note what came of one more call."""
        self._steps.append(step)

    @property
    def failure(self) -> Failure | None:
        """The exception that ended it."""
        return self._steps[-1].failure if self._steps else None

    @property
    def last_task(self) -> tuple[int, list[WorkflowCommand]]:
        """The event that began the last workflow task, and all that the code asked for in it."""
        if not self._steps:
            return 0, []
        started_id = self._steps[-1].started_id
        steps = [step for step in self._steps if step.started_id == started_id]
        return started_id, [command for step in steps for command in step.commands]

    @property
    def inputs(self) -> dict[str, bytes]:
        """What the code handed to each Activity, as encoded, by the Activity's id."""
        found = {}
        for command in (command for step in self._steps for command in step.commands):
            if command.HasField("schedule_activity"):
                asked = command.schedule_activity
                found[asked.activity_id] = b"".join(given.data for given in asked.arguments)
        return found

    @property
    def result(self) -> bytes | None:
        """What the run ended with, as encoded; None where it did not end, or failed."""
        _, commands = self.last_task
        for command in commands:
            if command.HasField("complete_workflow_execution"):
                return command.complete_workflow_execution.result.data
        return None


class Witness(RunnerAround):
    """A runner around another one that remembers the last run."""

    def __init__(self, inner: WorkflowRunner) -> None:
        """Stand around a runner."""
        super().__init__(inner)
        self.testimony = Testimony()

    def begin(self) -> None:
        """Forget the last run: the next one may fail before any code of its runs."""
        self.testimony = Testimony()

    def create_instance(self, det: WorkflowInstanceDetails) -> WorkflowInstance:
        """Have the run made as ever, and watch it."""
        instance = super().create_instance(det)
        return _Watched(instance, self.testimony, tells=QUERY_STATUS in det.defn.queries)


class _Watched(InstanceAround):
    def __init__(self, inner: WorkflowInstance, testimony: Testimony, *, tells: bool) -> None:
        super().__init__(inner)
        self._testimony, self._tells = testimony, tells

    def activate(self, act: WorkflowActivation) -> WorkflowActivationCompletion:
        if any(job.HasField("remove_from_cache") for job in act.jobs):
            if self._tells and self._testimony.failure is None:
                self._ask(act)
            return self._inner.activate(act)
        completion = self._inner.activate(act)
        failed = completion.failed.failure if completion.HasField("failed") else None
        # A copy: the SDK goes on to encode the completion in place.
        commands = [_copy(command) for command in completion.successful.commands]
        self._testimony.add(Step(act.history_length, commands, failed))
        return completion

    def _ask(self, act: WorkflowActivation) -> None:
        """Query the run as a worker would be asked to, before it is dropped."""
        question = WorkflowActivation(
            run_id=act.run_id, timestamp=act.timestamp, history_length=act.history_length
        )
        job = question.jobs.add().query_workflow
        job.query_id, job.query_type = "replay", QUERY_STATUS
        for command in self._inner.activate(question).successful.commands:
            answer = command.respond_to_query
            if answer.HasField("failed"):
                self._testimony.unanswered = answer.failed
            else:
                payload = answer.succeeded.response
                self._testimony.answer = payload.data
                # An exception here would be met with another attempt to drop the run, for ever.
                with contextlib.suppress(ValidationError):
                    self._testimony.status = RunStatus.model_validate_json(payload.data)


def _copy(command: WorkflowCommand) -> WorkflowCommand:
    copied = WorkflowCommand()
    copied.CopyFrom(command)
    return copied
