"""Who polls the task queue, and whether those do to whom the server gives tasks.

Workers with a version get none until it is the current one, or ramps up to that; then workers of
other versions, and those without one, get none of new refunds, nor of open ones.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from temporalio.api.deployment.v1 import WorkerDeploymentVersion
from temporalio.api.enums.v1 import TaskQueueType, WorkerVersioningMode
from temporalio.api.taskqueue.v1 import PollerInfo, TaskQueue, TaskQueueVersioningInfo
from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest, DescribeTaskQueueResponse
from temporalio.client import Client

from starters.connect import RPC_TIMEOUT

# A poll comes at least once a minute; the server lists pollers for five.
_POLLED_WITHIN = timedelta(minutes=2)
_KINDS = (
    (TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW, "workflow tasks"),
    (TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY, "activity tasks"),
)


@dataclass(frozen=True, order=True)
class Version:
    """A version of a Worker Deployment; both are empty for workers without one."""

    deployment: str = ""
    build_id: str = ""

    def __str__(self) -> str:
        """As Temporal writes it."""
        return f"{self.deployment}.{self.build_id}" if self.deployment else "no version"


@dataclass(frozen=True)
class Polled:
    """Who has asked for one kind of task lately, and who gets it."""

    what: str
    polls: frozenset[Version]
    gets: frozenset[Version]
    """The current version, and the one that ramps up."""

    @property
    def lacks(self) -> frozenset[Version]:
        """Whose tasks nobody takes."""
        return self.gets - self.polls


async def look(client: Client, queue: str) -> list[Polled]:
    """Who polls a queue, by kind of task.

    Raises:
        RPCError: the server does not tell.
    """
    now = datetime.now(UTC)
    found = []
    for kind, what in _KINDS:
        answer = await _describe(client, queue, kind)
        live = [one for one in answer.pollers if now - seen(one) < _POLLED_WITHIN]
        polls = frozenset(_version_of(one) for one in live)
        found.append(Polled(what, polls, _who_gets(answer.versioning_info)))
    return found


def tell(polled: Sequence[Polled], queue: str, at: str) -> tuple[bool, str, str]:
    """Whether every task is taken by somebody; how it stands, in words; and how to mend it.

    Args:
        polled: From `look`.
        queue: Its name.
        at: The options by which the `temporal` program reaches the namespace.
    """
    gets = {version for kind in polled for version in kind.gets}
    lacks = sorted({version for kind in polled for version in kind.lacks})
    if not lacks:
        named = "" if gets == {Version()} else f", by {_listed(gets)}"
        return True, f"polls {queue}{named}", ""
    wanted = lacks[0]
    what = " or ".join(kind.what for kind in polled if wanted in kind.lacks)
    others = {version for kind in polled for version in kind.polls} - {wanted}
    who, mend = "nobody", "Start one: refund worker"
    if wanted.deployment:
        who = f"nobody of {wanted}, which gets them,"
        mend = f"{mend} --deployment {wanted.deployment} --build-id {wanted.build_id}"
    elif others:
        who = "no version is current, and nobody without one"
        mend = f"temporal worker deployment set-current-version {at} --yes --deployment-name "
        mend += f"{max(others).deployment} --build-id {max(others).build_id}"
    beside = f"; others: {_listed(others)}" if others else ""
    return False, f"{who} polls {queue} for {what}{beside}", mend


def _listed(versions: Iterable[Version]) -> str:
    return ", ".join(str(version) for version in sorted(versions))


async def pollers_of(
    client: Client, queue: str, kind: "TaskQueueType.ValueType"
) -> Sequence[PollerInfo]:
    """All that the server lists, of whatever version.

    Raises:
        RPCError: the server does not tell.
    """
    return (await _describe(client, queue, kind)).pollers


def seen(poller: PollerInfo) -> datetime:
    """When it last asked, by the server's clock."""
    return poller.last_access_time.ToDatetime(UTC)


async def _describe(
    client: Client, queue: str, kind: "TaskQueueType.ValueType"
) -> DescribeTaskQueueResponse:
    return await client.workflow_service.describe_task_queue(
        DescribeTaskQueueRequest(
            namespace=client.namespace, task_queue=TaskQueue(name=queue), task_queue_type=kind
        ),
        timeout=RPC_TIMEOUT,
    )


def _version_of(poller: PollerInfo) -> Version:
    given = poller.deployment_options
    if given.worker_versioning_mode != WorkerVersioningMode.WORKER_VERSIONING_MODE_VERSIONED:
        return Version()
    return Version(given.deployment_name, given.build_id)


def _who_gets(info: TaskQueueVersioningInfo) -> frozenset[Version]:
    gets = {_version(info.current_deployment_version)}
    if info.ramping_version_percentage > 0:
        gets.add(_version(info.ramping_deployment_version))
    return frozenset(gets)


def _version(given: WorkerDeploymentVersion) -> Version:
    """Nothing given stands for workers without a version."""
    return Version(given.deployment_name, given.build_id)
