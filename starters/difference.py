"""Where workflow code and a history part, in words: the first event that the code did not ask for.

Temporal compares the commands of each workflow task with the events that the history has for it.
So does this, since the SDK's own message names an event's number and hardly ever what the code did.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from temporalio.api.common.v1 import Payload
from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import HistoryEvent
from temporalio.bridge.proto.workflow_commands import WorkflowCommand
from temporalio.client import WorkflowHistory

from starters.witness import Testimony

# Which event a command becomes.
_EVENTS = {
    "schedule_activity": "ACTIVITY_TASK_SCHEDULED",
    "schedule_local_activity": "MARKER_RECORDED",
    "request_cancel_activity": "ACTIVITY_TASK_CANCEL_REQUESTED",
    "start_timer": "TIMER_STARTED",
    "cancel_timer": "TIMER_CANCELED",
    "set_patch_marker": "MARKER_RECORDED",
    "upsert_workflow_search_attributes": "UPSERT_WORKFLOW_SEARCH_ATTRIBUTES",
    "modify_workflow_properties": "WORKFLOW_PROPERTIES_MODIFIED",
    "complete_workflow_execution": "WORKFLOW_EXECUTION_COMPLETED",
    "fail_workflow_execution": "WORKFLOW_EXECUTION_FAILED",
    "cancel_workflow_execution": "WORKFLOW_EXECUTION_CANCELED",
    "continue_as_new_workflow_execution": "WORKFLOW_EXECUTION_CONTINUED_AS_NEW",
}
# What was asked for and taken back within one task never reaches the history.
_TAKEN_BACK = {"cancel_timer": "start_timer", "request_cancel_activity": "schedule_activity"}
# The server keeps the ids of a run's patches in this search attribute, beside each marker.
_PATCHES_ATTRIBUTE = "TemporalChangeVersion"
_PATCH_MARKER = "core_patch"
_NAMED_EVENT = re.compile(r"HistoryEvent\(id: (\d+), \w+\)")

_PATCH = (
    "where the change is meant, put it behind `workflow.patched()`, so that open runs take the old "
    "path"
)


@dataclass(frozen=True)
class Difference:
    """The first event in which a history and the code differ."""

    event_id: int
    """0 where it cannot be told."""
    event: str
    """Its type, such as `ActivityTaskScheduled`."""
    history: str
    """What the history has there."""
    code: str
    """What the code asked for instead."""
    mend: str
    """What usually mends it."""


def find_difference(
    events: Sequence[HistoryEvent], testimony: Testimony, message: str
) -> Difference:
    """Compare the last workflow task that was replayed with what the history has of it.

    Args:
        events: The whole history.
        testimony: What the code did.
        message: The SDK's own, which names the event where the comparison finds none.
    """
    asked, recorded = _left_over(events, testimony)
    return _tell(asked, recorded, _named(events, message))


def find_unseen(events: Sequence[HistoryEvent], testimony: Testimony) -> Difference | None:
    """What the SDK does not see at the end of a history: a step that was added behind all others.

    It compares what a task asked for with the events behind it, as far as there are events. None
    where all fits, and where the history ends within a task: its commands became no events yet.
    """
    started_id, _ = testimony.last_task
    if _end_of_task(events, started_id) is None:
        return None
    asked, recorded = _left_over(events, testimony)
    return _tell(asked, recorded, None) if asked or recorded else None


def _left_over(
    events: Sequence[HistoryEvent], testimony: Testimony
) -> tuple[list[WorkflowCommand], list[HistoryEvent]]:
    """Of the last task, what the code asked for and what the history has, from where they part."""
    started_id, commands = testimony.last_task
    asked = _without_taken_back(commands)
    recorded = _recorded(events, started_id)
    while asked and recorded:
        if _fits(asked[0], recorded[0]):
            recorded = recorded[1:]
        elif not _may_be_missing(asked[0]):
            break
        asked = asked[1:]
    return [command for command in asked if not _may_be_missing(command)], recorded


def _tell(
    asked: Sequence[WorkflowCommand], recorded: Sequence[HistoryEvent], named: HistoryEvent | None
) -> Difference:
    event = recorded[0] if recorded else named
    command = asked[0] if asked else None
    return Difference(
        event_id=event.event_id if event is not None else 0,
        event=event_type(event) if event is not None else "",
        history=event_in_words(event) if recorded and event is not None else "nothing more here",
        code=command_in_words(command) if command is not None else "nothing here",
        mend=_mend(recorded[0] if recorded else None, command),
    )


def event_type(event: HistoryEvent) -> str:
    """The type as the Web UI writes it, such as `ActivityTaskScheduled`."""
    name = EventType.Name(event.event_type).removeprefix("EVENT_TYPE_")
    return "".join(part.title() for part in name.split("_"))


def event_in_words(event: HistoryEvent) -> str:
    """What an event that came from a command stands for."""
    match event.WhichOneof("attributes"):
        case "activity_task_scheduled_event_attributes":
            name = event.activity_task_scheduled_event_attributes.activity_type.name
            words = f"Activity {name}"
        case "timer_started_event_attributes":
            length = event.timer_started_event_attributes.start_to_fire_timeout
            words = f"timer of {length.ToTimedelta()}"
        case "marker_recorded_event_attributes":
            patch = _patch_of(event)
            words = f"marker of the patch {patch!r}" if patch else "marker"
        case "upsert_workflow_search_attributes_event_attributes":
            attributes = event.upsert_workflow_search_attributes_event_attributes
            words = _upsert(list(attributes.search_attributes.indexed_fields))
        case _:
            words = _spaced(event_type(event))
    return _with_summary(words, event.user_metadata.summary)


def command_in_words(command: WorkflowCommand) -> str:
    """What the code asked for."""
    kind = command.WhichOneof("variant") or "nothing"
    match kind:
        case "schedule_activity":
            words = f"Activity {command.schedule_activity.activity_type}"
        case "start_timer":
            words = f"timer of {command.start_timer.start_to_fire_timeout.ToTimedelta()}"
        case "set_patch_marker":
            words = f"marker of the patch {command.set_patch_marker.patch_id!r}"
        case "upsert_workflow_search_attributes":
            attributes = command.upsert_workflow_search_attributes.search_attributes
            words = _upsert(list(attributes.indexed_fields))
        case "complete_workflow_execution":
            words = "the end of the run"
        case "fail_workflow_execution":
            words = "the end of the run, as failed"
        case _:
            words = kind.replace("_", " ")
    return _with_summary(words, command.user_metadata.summary)


def _recorded(events: Sequence[HistoryEvent], started_id: int) -> list[HistoryEvent]:
    """The events that the commands of one workflow task became."""
    completed = _end_of_task(events, started_id)
    if completed is None:
        return []
    return [event for event in events if _from_task(event) == completed and not _is_patches(event)]


def _end_of_task(events: Sequence[HistoryEvent], started_id: int) -> int | None:
    """The event that completed the workflow task which an event began."""
    if not started_id:
        return None
    for event in events:
        if event.workflow_task_completed_event_attributes.started_event_id == started_id:
            return event.event_id
    return None


def _from_task(event: HistoryEvent) -> int | None:
    """The end of the workflow task whose command became this event, where one did."""
    name = event.WhichOneof("attributes")
    attributes = getattr(event, name) if name is not None else None
    found: int | None = getattr(attributes, "workflow_task_completed_event_id", None)
    return found


def _is_patches(event: HistoryEvent) -> bool:
    attributes = event.upsert_workflow_search_attributes_event_attributes
    return _PATCHES_ATTRIBUTE in attributes.search_attributes.indexed_fields


def _without_taken_back(commands: list[WorkflowCommand]) -> list[WorkflowCommand]:
    made = {(command.WhichOneof("variant"), _number(command)) for command in commands}
    dropped: set[tuple[str | None, int]] = set()
    for command in commands:
        kind = command.WhichOneof("variant") or ""
        pair = (_TAKEN_BACK.get(kind), _number(command))
        if pair in made:
            dropped |= {pair, (kind, _number(command))}
    return [
        command
        for command in commands
        if (command.WhichOneof("variant"), _number(command)) not in dropped
    ]


def _number(command: WorkflowCommand) -> int:
    kind = command.WhichOneof("variant")
    number: int = getattr(getattr(command, kind), "seq", 0) if kind is not None else 0
    return number


def _fits(command: WorkflowCommand, event: HistoryEvent) -> bool:
    kind = command.WhichOneof("variant") or ""
    expected = _EVENTS.get(kind)
    if expected is None or EventType.Name(event.event_type) != f"EVENT_TYPE_{expected}":
        return False
    if kind == "schedule_activity":
        scheduled = event.activity_task_scheduled_event_attributes
        return command.schedule_activity.activity_type == scheduled.activity_type.name
    if kind == "set_patch_marker":
        return command.set_patch_marker.patch_id == _patch_of(event)
    return True


def _may_be_missing(command: WorkflowCommand) -> bool:
    """A deprecated patch fits runs with its marker, and those without."""
    return command.set_patch_marker.deprecated


def _named(events: Sequence[HistoryEvent], message: str) -> HistoryEvent | None:
    found = _NAMED_EVENT.search(message)
    number = int(found[1]) if found is not None else 0
    return next((event for event in events if event.event_id == number), None)


def full_patches(history: WorkflowHistory) -> frozenset[str]:
    """The patches by whose `patched` call the run has a marker; a deprecated one is no such."""
    markers = [_marker(event) for event in history.events]
    return frozenset(str(m["id"]) for m in markers if "id" in m and not m.get("deprecated"))


def _patch_of(event: HistoryEvent) -> str:
    return str(_marker(event).get("id", ""))


def _marker(event: HistoryEvent) -> dict[str, Any]:
    """What the SDK has written into the marker of a patch; empty for other events."""
    marker = event.marker_recorded_event_attributes
    if marker.marker_name != _PATCH_MARKER or "patch-data" not in marker.details:
        return {}
    try:
        data = json.loads(marker.details["patch-data"].payloads[0].data)
    except (IndexError, ValueError):
        return {}
    return data if isinstance(data, dict) else {}


def _mend(event: HistoryEvent | None, command: WorkflowCommand | None) -> str:
    if event is not None and (patch := _patch_of(event)):
        return (
            f"this run has recorded the patch {patch!r}: keep `patched({patch!r})`, or "
            "`deprecate_patch`, until no open run has its marker"
        )
    if event is None:
        return f"a step was added, or comes earlier than it did; {_PATCH}"
    if command is None:
        return f"a step was taken out, or a condition comes out differently; {_PATCH}"
    kinds = (event.WhichOneof("attributes"), command.WhichOneof("variant"))
    if kinds == ("activity_task_scheduled_event_attributes", "schedule_activity"):
        old = event.activity_task_scheduled_event_attributes.activity_type.name
        return (
            f"an Activity was renamed, added, or changed places; if it was renamed, keep the name "
            f"{old!r} for open runs; {_PATCH}"
        )
    return f"a step was added, taken out or moved; {_PATCH}"


def _upsert(names: list[str]) -> str:
    return f"search attributes {', '.join(sorted(names))}"


def _with_summary(words: str, summary: Payload) -> str:
    try:
        said = json.loads(summary.data)
    except ValueError:
        return words
    return f"{words} ({said})" if said else words


def _spaced(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower()
