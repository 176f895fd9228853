"""A worker says that it is ready once the server has its polls, and is never stopped by the look.

Worker and server are real; between them stands a client that can alter who is said to poll.
"""

import asyncio
import io
import json
import uuid
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from temporalio.api.enums.v1 import TaskQueueType
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest, DescribeTaskQueueResponse
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode, ServiceClient
from temporalio.testing import WorkflowEnvironment

from domain.names import TASK_QUEUE
from tests.world import PATIENCE
from workers.process import serve
from workers.sandbox import DATA_CONVERTER
from workers.settings import Settings
from workers.wiring import build_activities

WORKFLOW = TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW
ACTIVITY = TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY

Kind: TypeAlias = TaskQueueType.ValueType
Altered = Callable[[Kind, DescribeTaskQueueResponse], DescribeTaskQueueResponse]


class Between(ServiceClient):
    """All calls go to the server; what it answers about pollers can be altered on the way."""

    def __init__(self, real: ServiceClient) -> None:
        super().__init__(real.config)
        self._real = real
        self.alters: Altered = as_it_is
        self.looks: asyncio.Queue[Kind] = asyncio.Queue()
        """One entry for each answer about pollers."""

    @property
    def worker_service_client(self) -> Any:
        return self._real.worker_service_client

    def update_rpc_metadata(self, metadata: Mapping[str, str | bytes]) -> None:
        self._real.update_rpc_metadata(metadata)

    def update_api_key(self, api_key: str | None) -> None:
        self._real.update_api_key(api_key)

    async def _rpc_call(self, rpc: str, req: Any, resp_type: Any, **how: Any) -> Any:
        answer = await self._real._rpc_call(rpc, req, resp_type, **how)
        if rpc != "describe_task_queue":
            return answer
        self.looks.put_nowait(req.task_queue_type)
        return self.alters(req.task_queue_type, answer)


def as_it_is(_kind: Kind, answer: DescribeTaskQueueResponse) -> DescribeTaskQueueResponse:
    """All pollers, as the server lists them."""
    return answer


def hiding(*kinds: Kind) -> Altered:
    """Nobody is said to poll for tasks of these kinds."""
    return lambda kind, answer: DescribeTaskQueueResponse() if kind in kinds else answer


def refusing(_kind: Kind, _answer: DescribeTaskQueueResponse) -> DescribeTaskQueueResponse:
    """Who polls is none of the worker's business."""
    raise RPCError("not for you", RPCStatusCode.PERMISSION_DENIED, b"")


class Place:
    """Where workers of one identity serve in this process, one after the other."""

    def __init__(self, server: WorkflowEnvironment, between: Between, folder: Path) -> None:
        self.server, self.between, self.folder = server, between, folder

    @asynccontextmanager
    async def worker(
        self, namespace: str = "default", **how: Any
    ) -> AsyncIterator[tuple[asyncio.Task[None], io.StringIO]]:
        """A worker that serves, and what it prints; in the end it is told to end, and does."""
        client = Client(self.between, namespace=namespace, data_converter=DATA_CONVERTER)
        settings = Settings(data_dir=self.folder)
        out, ended = io.StringIO(), asyncio.Event()
        # The first one in a process loads the libraries: that is not what is waited for here.
        async with build_activities(settings) as activities, asyncio.timeout(PATIENCE):
            serving = asyncio.create_task(serve(client, settings, activities, ended, out, **how))
            try:
                yield serving, out
            finally:
                ended.set()
                await serving

    async def looked(self, times: int) -> None:
        """Wait until the worker has asked so often, from now on, for both kinds of tasks."""
        while not self.between.looks.empty():
            self.between.looks.get_nowait()
        for _ in range(2 * times):
            await self.between.looks.get()

    async def until_ready(self, out: io.StringIO) -> Any:
        """What the worker prints when it is ready."""
        while not out.getvalue():
            await asyncio.wait_for(self.between.looks.get(), PATIENCE)
        return json.loads(out.getvalue())

    async def listed(self, kind: Kind) -> DescribeTaskQueueResponse:
        """What the server itself tells about our pollers of one kind."""
        answer = await self.server.client.workflow_service.describe_task_queue(
            DescribeTaskQueueRequest(
                namespace="default", task_queue=TaskQueue(name=TASK_QUEUE), task_queue_type=kind
            )
        )
        ours = [one for one in answer.pollers if one.identity == self.between.config.identity]
        return DescribeTaskQueueResponse(pollers=ours)


@pytest.fixture
async def place(server: WorkflowEnvironment, tmp_path: Path) -> Place:
    """An identity of its own: the server and its queue are shared with other tests."""
    config = replace(server.client.service_client.config, identity=f"test-{uuid.uuid4().hex}")
    return Place(server, Between(await ServiceClient.connect(config)), tmp_path)


@pytest.mark.parametrize("hidden", [(WORKFLOW,), (ACTIVITY,)], ids=["workflow", "activity"])
async def test_it_is_ready_once_both_kinds_of_polls_are_listed(
    place: Place, hidden: tuple[Kind, ...]
) -> None:
    """Nothing is said before the server lists the worker for workflow and for Activity tasks."""
    place.between.alters = hiding(*hidden)
    async with place.worker() as (_, out):
        await place.looked(3)
        assert out.getvalue() == ""
        place.between.alters = as_it_is
        ready = await place.until_ready(out)
        assert ready["identity"] == place.between.config.identity
        assert (await place.listed(WORKFLOW)).pollers
        assert (await place.listed(ACTIVITY)).pollers


async def test_polls_of_a_dead_worker_of_the_same_name_do_not_count(place: Place) -> None:
    """The server lists a killed worker for minutes, and in a container the next is called alike."""
    async with place.worker() as (_, out):
        await place.until_ready(out)
    old = {kind: await place.listed(kind) for kind in (WORKFLOW, ACTIVITY)}
    place.between.alters = lambda kind, _: old[kind]
    async with place.worker() as (_, out):
        await place.looked(3)
        assert out.getvalue() == ""
        place.between.alters = as_it_is
        assert await place.until_ready(out)


async def test_a_worker_that_may_not_look_goes_on(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    """A namespace that does not tell who polls stops no worker; the log says so."""
    place.between.alters = refusing
    async with place.worker() as (serving, out):
        assert await place.until_ready(out)
        assert not serving.done()
    assert "does not tell who polls refunds: not for you" in caplog.text


async def test_a_worker_that_is_never_listed_says_so_and_goes_on(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    """The wait has a bound: then the log says it, nobody is told that it is ready, and it polls."""
    place.between.alters = hiding(WORKFLOW, ACTIVITY)
    said = "no polls of this worker after 0 s"
    async with place.worker(patience=timedelta(0)) as (serving, out):
        # Its first polls may leave before it has looked itself, and told.
        while not ((await place.listed(ACTIVITY)).pollers and said in caplog.text):
            assert not serving.done()
    assert out.getvalue() == ""


async def test_it_can_be_ended_while_it_waits_to_be_listed(place: Place) -> None:
    """SIGTERM is heeded at once, and nothing is said to be ready."""
    place.between.alters = hiding(WORKFLOW, ACTIVITY)
    async with place.worker() as (_, out):
        await place.looked(3)
    assert out.getvalue() == ""


async def test_an_end_of_its_own_is_seen_while_it_waits(place: Place) -> None:
    """A worker that fails by itself ends the process with its reason, and does not wait on."""
    with pytest.raises(RuntimeError, match="elsewhere"):
        async with place.worker("elsewhere") as (serving, _):
            by_itself, _ = await asyncio.wait({serving}, timeout=PATIENCE / 2)
    assert by_itself
