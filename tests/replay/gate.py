"""The gate: replays saved histories against the code here, and says what is wrong with each.

It asks for more than a replay without an exception: Temporal compares steps alone, and a run may
take the same steps to another end.
"""

import json
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Any

from google.protobuf.message import Message
from pydantic_core import to_json
from temporalio.api.common.v1 import Payload
from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import WorkflowHistory

from domain.trail import RunStatus
from starters.errors import CommandError
from starters.exports import read_export
from starters.rehearsal import Finding, rehearse
from tests.replay.driven import Kept
from tests.replay.saved import Saved, expected, facts, parts
from tests.world import failed_tasks

_COMPLETED = EventType.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED
_SCHEDULED = EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED
# Parts of Activities' inputs that are written for people, and by no one else read.
_WORDS = ("explanation", "changed", "waits_for")
# What `DATA_CONVERTER` writes: models and their parts as JSON, and nothing where there is nothing.
_ENCODINGS = (b"json/plain", b"binary/null")


async def judge_all(saved: Sequence[Saved]) -> dict[Saved, list[str]]:
    """Replay histories; for each what is wrong with it, which is nothing for a good one."""
    read = [_read(one) for one in saved]

    async def histories() -> AsyncIterator[WorkflowHistory | None]:
        for one in read:
            yield one if isinstance(one, WorkflowHistory) else None

    findings = [finding async for finding in rehearse(histories(), len(read))]
    told = {release: expected(release) for release in {one.release for one in saved}}
    return {
        one: list(_complaints(one, history, finding, told[one.release].get(one.name)))
        for one, history, finding in zip(saved, read, findings, strict=True)
    }


def _read(saved: Saved) -> WorkflowHistory | str:
    try:
        return read_export(saved.file)
    except (CommandError, OSError) as error:
        return str(error)


def _complaints(
    saved: Saved, history: WorkflowHistory | str, finding: Finding | None, told: Any
) -> Iterator[str]:
    if isinstance(history, str) or finding is None:
        yield f"it was not replayed: {history}"
        return
    yield from _about_the_file(saved, history)
    if finding.mistake is not None:
        yield f"{finding.mistake.kind}: {finding.mistake.message} ({finding.mistake.place})"
    if finding.difference is not None:
        words = f"the history has {finding.difference.history}"
        yield f"{words}, the code asks for {finding.difference.code}"
    if not finding.ok:
        return
    if finding.status is None or told is None:
        yield "nothing says how far it had come"
        return
    if finding.answer != to_json(finding.status):
        # The SDK's usual one reads and writes models too, but not quite as they would.
        yield "it is not the pydantic converter that reads and writes"
    yield from differences(told, facts(finding.status), "status")
    yield from _about_the_inputs(history, finding.inputs)
    last = history.events[-1]
    if saved.stage is Kept.CLOSED:
        yield from _about_the_result(last, finding.result)


def _about_the_file(saved: Saved, history: WorkflowHistory) -> Iterator[str]:
    for event in failed_tasks(history):
        yield f"event {event.event_id}: a workflow task failed"
    for event in history.events:
        for payload in payloads(event):
            if payload.metadata["encoding"] not in _ENCODINGS:
                yield f"event {event.event_id}: encoded as {payload.metadata['encoding']!r}"
    closed = history.events[-1].event_type == _COMPLETED
    if closed != (saved.stage is Kept.CLOSED):
        yield f"it was kept as {saved.stage}, and its last event says otherwise"


def _about_the_result(last: HistoryEvent, result: bytes | None) -> Iterator[str]:
    """The converter's work too: what the run ends with is read and written by it."""
    if result is None:
        yield "the code does not end the run where it ended"
        return
    (kept,) = last.workflow_execution_completed_event_attributes.result.payloads
    before, now = (RunStatus.model_validate_json(data) for data in (kept.data, result))
    yield from differences(facts(before), facts(now), "result")


def _about_the_inputs(history: WorkflowHistory, now: Mapping[str, bytes]) -> Iterator[str]:
    """What the Activities were handed: Temporal looks at their names alone.

    So it takes a mail for another mail that went in its place, and a refund that is tried again for
    the same one under another key. Words for people may change.
    """
    for event in history.events:
        if event.event_type != _SCHEDULED:
            continue
        task = event.activity_task_scheduled_event_attributes
        before = b"".join(given.data for given in task.input.payloads)
        here = f"event {event.event_id}: {task.activity_type.name}"
        yield from differences(_read_input(before), _read_input(now[task.activity_id]), here)


def _read_input(data: bytes) -> Any:
    return _without_words(json.loads(data)) if data else None


def _without_words(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_words(one) for key, one in value.items() if key not in _WORDS}
    return [_without_words(one) for one in value] if isinstance(value, list) else value


def differences(before: Any, now: Any, where: str) -> Iterator[str]:
    """What was said before and is not said now; what is said in addition is no difference."""
    if isinstance(before, dict) and isinstance(now, dict):
        for name, value in before.items():
            if name in now:
                yield from differences(value, now[name], f"{where}.{name}")
            else:
                yield f"{where}.{name} is missing, it was {json.dumps(value)}"
    elif isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
        for number, (one, other) in enumerate(zip(before, now, strict=True)):
            yield from differences(one, other, f"{where}.{number}")
    elif before != now:
        yield f"{where} is {json.dumps(now)}, it was {json.dumps(before)}"


def payloads(message: Message) -> Iterator[Payload]:
    """All that was sent, wherever it stands in an event."""
    for inner in parts(message):
        if isinstance(inner, Payload):
            yield inner
        else:
            yield from payloads(inner)
