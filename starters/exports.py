"""Reads a saved history: by `refund history`, the Web UI, or `temporal workflow show`.

What cannot be replayed ends in one line that says why, and never in a green.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from google.protobuf.json_format import ParseError
from temporalio.client import WorkflowHistory

from domain import names
from starters.errors import CommandError, Exit

WORKFLOW_TYPES = (names.REFUND_WORKFLOW, names.SWEEP_WORKFLOW)

_PAYLOAD_FIELDS = {"metadata", "data", "externalPayloads"}
_BASE64 = re.compile(r"(?:[A-Za-z0-9+/_-]{4})*(?:[A-Za-z0-9+/_-]{2}==|[A-Za-z0-9+/_-]{3}=)?")
_GET_IT = (
    "save it again by `refund history`, `temporal workflow show --output json`, or the Web UI's "
    "download without decoding"
)


def read_export(file: Path) -> WorkflowHistory:
    """The history in a file.

    Raises:
        CommandError: it is empty, decoded, foreign, damaged, or no history at all.
        OSError: it cannot be read.
    """
    exported = _read_json(file)
    # The Web UI also takes, and older ones saved, the events alone.
    events = exported if isinstance(exported, list) else exported.get("events")
    if not isinstance(events, list) or not all(isinstance(event, dict) for event in events):
        raise _unusable(file, f"is JSON, and no history: {_GET_IT}")
    if not events:
        raise _unusable(file, "holds no events")
    if any(_is_decoded(event) for event in events):
        raise _unusable(file, f"was decoded, and a replay needs the payloads as sent: {_GET_IT}")
    if not all(_is_base64(payload) for event in events for payload in _payloads(event)):
        raise _unusable(file, "is damaged: a payload of it is no base64")
    try:
        history = WorkflowHistory.from_json("", {"events": events})
    except (ParseError, ValueError, TypeError, AttributeError) as error:
        raise _unusable(file, f"is damaged: {str(error)[:200]}") from None
    return check(history, str(file))


def check(history: WorkflowHistory, source: str) -> WorkflowHistory:
    """A history that can be replayed here, under the workflow id that it names.

    Raises:
        CommandError: events are missing, or it is another project's.
    """
    expected = enumerate(history.events, start=1)
    gap = next(((number, e.event_id) for number, e in expected if number != e.event_id), None)
    if gap is not None:
        number, found = gap
        raise _unusable(
            source, f"is not whole: event {number} is missing, and event {found} stands there"
        )
    if not history.events:
        raise _unusable(source, "holds no events")
    first = history.events[0]
    if not first.HasField("workflow_execution_started_event_attributes"):
        raise _unusable(source, "is damaged: its first event is no start of a workflow")
    for event in history.events:
        if not event.event_type or event.WhichOneof("attributes") is None:
            words = f"is damaged: event {event.event_id} is of no kind that is known here"
            raise _unusable(source, words)
    started = first.workflow_execution_started_event_attributes
    if started.workflow_type.name not in WORKFLOW_TYPES:
        ours = " and ".join(WORKFLOW_TYPES)
        raise _unusable(
            source, f"is a history of {started.workflow_type.name[:80]!r}; this code has {ours}"
        )
    if started.task_queue.name != names.TASK_QUEUE:
        raise _unusable(
            source,
            f"is another project's: its task queue is {started.task_queue.name[:80]!r}, ours is "
            f"{names.TASK_QUEUE!r}",
        )
    if not started.workflow_id:
        raise _unusable(source, "does not name its workflow id, as old servers did not")
    return WorkflowHistory(started.workflow_id, history.events)


def _read_json(file: Path) -> Any:
    try:
        text = file.read_text(encoding="utf-8")
        if not text.strip():
            raise _unusable(file, "is empty")
        exported = json.loads(text)
    except UnicodeDecodeError:
        raise _unusable(file, "is no text, so no history") from None
    except RecursionError:
        raise _unusable(file, "is JSON, and no history") from None
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}: {error.msg}"
        raise _unusable(file, f"is no JSON, or was cut off ({where})") from None
    if not isinstance(exported, dict | list):
        raise _unusable(file, f"is JSON, and no history: {_GET_IT}")
    return exported


def _is_decoded(event: dict[str, Any]) -> bool:
    """Whether what was sent stands there in clear, instead of as metadata and data."""
    for name, attributes in event.items():
        if not name.lower().replace("_", "").endswith("eventattributes"):
            continue
        if not isinstance(attributes, dict):
            continue
        whole = [attributes[key] for key in ("input", "result") if attributes.get(key) is not None]
        if any(not isinstance(value, dict) or "payloads" not in value for value in whole):
            return True
    return not all(_is_payload(payload) for payload in _payloads(event))


def _payloads(value: Any) -> Iterator[Any]:
    """All that was sent, wherever it stands in an event."""
    if isinstance(value, dict):
        payloads = value.get("payloads")
        if isinstance(payloads, list):
            yield from payloads
        else:
            for inner in value.values():
                yield from _payloads(inner)
    elif isinstance(value, list):
        for item in value:
            yield from _payloads(item)


def _is_payload(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and value.keys() <= _PAYLOAD_FIELDS
        and isinstance(value.get("metadata"), dict)
    )


def _is_base64(payload: dict[str, Any]) -> bool:
    """The SDK's own reader leaves out what is no base64, and a replay would fail for the rest."""
    texts = [payload.get("data", ""), *payload["metadata"].values()]
    return all(isinstance(text, str) and _BASE64.fullmatch(text) is not None for text in texts)


def _unusable(source: Path | str, why: str) -> CommandError:
    return CommandError(f"{source} {why}", Exit.USAGE)
