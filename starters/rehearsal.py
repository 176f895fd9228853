"""Replays histories against the code that is here, in one process or in several."""

import asyncio
import logging
import multiprocessing
import os
import re
import signal
from asyncio import Future
from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace

from temporalio.api.failure.v1 import Failure
from temporalio.api.history.v1 import History
from temporalio.client import WorkflowHistory
from temporalio.worker import WorkflowReplayResult, WorkflowRunner
from temporalio.workflow import NondeterminismError

from domain.trail import RunStatus
from starters.difference import Difference, find_difference, find_unseen
from starters.errors import CommandError, Exit
from starters.mistake import Mistake, read_mistake
from starters.runtime import quiet_runtime
from starters.witness import Testimony, Witness
from workers.sandbox import build_replayer

# One more process takes two seconds to load the code; 20 replays take one.
WORTH_A_PROCESS = 40
# A replayer is built for each: long enough that this is little, short enough for a progress.
CHUNK = 40
_SDK_MESSAGE = re.compile(r'message: "((?:[^"\\]|\\.)*)"')

Packed = tuple[str, bytes]
"""Workflow id and events, on their way to another process."""


@dataclass(frozen=True)
class Finding:
    """What came of one replay."""

    status: RunStatus | None = None
    """What the run says of itself at the end; None where its kind keeps no status."""
    answer: bytes = b""
    """The same, as the run's converter has encoded it."""
    result: bytes | None = None
    """What it ended with, encoded; None where it is open or failed."""
    inputs: Mapping[str, bytes] = field(default_factory=dict)
    """What the code hands to each Activity, encoded, by the Activity's id in the history."""
    difference: Difference | None = None
    """Where the code and the history part."""
    mistake: Mistake | None = None
    """What came out of the code itself, instead of an answer."""

    @property
    def stage(self) -> str:
        """How far the run had come, as it says itself."""
        return self.status.stage.value if self.status is not None else ""

    @property
    def ok(self) -> bool:
        """Whether an open run would go on with this code."""
        return self.difference is None and self.mistake is None


async def rehearse(
    histories: AsyncIterator[WorkflowHistory | None], expected: int
) -> AsyncIterator[Finding | None]:
    """Replay all, and say of each what came of it, in the order in which they were given.

    Args:
        histories: Read as they are needed; None, where one could not be read, stays None.
        expected: About how many they are: many are worth several processes.

    Raises:
        CommandError: the code cannot even be loaded.
    """
    await _load()
    processes = min(os.cpu_count() or 1, expected // WORTH_A_PROCESS)
    if processes < 2:
        async for chunk in _chunks(histories):
            for found in _merge(chunk, [finding async for finding in _replay(_present(chunk))]):
                yield found
        return
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(processes, context, _leave_interrupts_to_the_command)
    loop = asyncio.get_running_loop()
    under_way: deque[tuple[list[WorkflowHistory | None], Future[list[Finding]]]] = deque()
    try:
        async for chunk in _chunks(histories):
            packed = _pack(_present(chunk))
            under_way.append((chunk, loop.run_in_executor(pool, _replay_packed, packed)))
            if len(under_way) > 2 * processes:
                first, done = under_way.popleft()
                for found in _merge(first, await done):
                    yield found
        for last, done in under_way:
            for found in _merge(last, await done):
                yield found
    finally:
        pool.shutdown(cancel_futures=True)


async def _load() -> None:
    """Have the sandbox load the workflows, before anything depends on that.

    Raises:
        CommandError: it cannot.
    """
    _hush()
    try:
        async with build_replayer(runtime=quiet_runtime()).workflow_replay_iterator(_nothing()):
            pass
    except RuntimeError as error:
        cause = error.__cause__ or error
        words = f"the sandbox does not take this code: {type(cause).__name__}: {cause}"
        raise CommandError(words, Exit.CHECK_FAILED) from None


async def _nothing() -> AsyncIterator[WorkflowHistory]:
    return
    yield


async def _chunks(
    histories: AsyncIterator[WorkflowHistory | None],
) -> AsyncIterator[list[WorkflowHistory | None]]:
    chunk: list[WorkflowHistory | None] = []
    async for history in histories:
        chunk.append(history)
        if len(chunk) == CHUNK:
            yield chunk
            chunk = []
    if chunk:
        yield chunk


def _present(chunk: Sequence[WorkflowHistory | None]) -> list[WorkflowHistory]:
    return [history for history in chunk if history is not None]


def _merge(
    chunk: Sequence[WorkflowHistory | None], findings: Sequence[Finding]
) -> list[Finding | None]:
    """What was found, with None again where there was nothing to replay."""
    rest = iter(findings)
    return [next(rest) if history is not None else None for history in chunk]


def _leave_interrupts_to_the_command() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _pack(histories: Sequence[WorkflowHistory]) -> list[Packed]:
    return [(h.workflow_id, History(events=h.events).SerializeToString()) for h in histories]


def _replay_packed(packed: list[Packed]) -> list[Finding]:
    histories = [WorkflowHistory(name, History.FromString(data).events) for name, data in packed]

    async def replay() -> list[Finding]:
        return [finding async for finding in _replay(histories)]

    return asyncio.run(replay())


async def _replay(histories: Sequence[WorkflowHistory]) -> AsyncIterator[Finding]:
    _hush()
    witnesses: list[Witness] = []

    def watch(runner: WorkflowRunner) -> WorkflowRunner:
        witnesses.append(Witness(runner))
        return witnesses[-1]

    replayer = build_replayer(watch, quiet_runtime())
    witness = witnesses[-1]

    async def one_by_one() -> AsyncIterator[WorkflowHistory]:
        for history in histories:
            witness.begin()
            yield history

    async with replayer.workflow_replay_iterator(one_by_one()) as results:
        async for result in results:
            yield _judge(result, witness.testimony)


def _judge(result: WorkflowReplayResult, testimony: Testimony) -> Finding:
    seen = Finding(testimony.status, testimony.answer, testimony.result, testimony.inputs)
    error = result.replay_failure
    if error is None:
        wrong = testimony.failure or testimony.unanswered
        if wrong is not None:
            return replace(seen, mistake=read_mistake(wrong))
        return replace(seen, difference=find_unseen(result.history.events, testimony))
    if not isinstance(error, NondeterminismError):
        failure = testimony.failure or _told(str(error))
        return replace(seen, mistake=read_mistake(failure))
    if (ended := _ended_itself(testimony)) is not None:
        return replace(seen, mistake=read_mistake(ended))
    found = find_difference(result.history.events, testimony, str(error))
    return replace(seen, difference=found)


def _ended_itself(testimony: Testimony) -> Failure | None:
    """Why the code ended the run as failed, which no release does where the history goes on."""
    _, commands = testimony.last_task
    for command in commands:
        if command.HasField("fail_workflow_execution"):
            return command.fail_workflow_execution.failure
    return None


def _told(message: str) -> Failure:
    """The SDK's own failure, such as that of code which does not come back, out of its message."""
    found = _SDK_MESSAGE.search(message)
    failure = Failure(message=found[1] if found is not None else message)
    if "deadlock" in failure.message:
        failure.application_failure_info.type = "Deadlock"
    return failure


def _hush() -> None:
    """The SDK's Python part logs each failure too, with a traceback."""
    logger = logging.getLogger("temporalio")
    if not logger.handlers:
        logger.addHandler(logging.NullHandler())
