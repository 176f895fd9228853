"""What one refund costs: billed Actions, events and bytes, counted from its history.

Temporal Cloud bills as Actions: a start, a signal, each activity attempt, a timer, an update of
search attributes, and the local activities of one workflow task together as one (its pricing page,
docs.temporal.io/cloud/actions). The marker of a patch and the update of `TemporalChangeVersion`
that comes with it are exempt there. Queries are billed as well and leave no event.
"""

from dataclasses import dataclass

from temporalio.api.enums.v1 import EventType
from temporalio.client import WorkflowHistory

_ONE_ACTION = frozenset(
    {
        EventType.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED,
        EventType.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED,
        EventType.EVENT_TYPE_TIMER_STARTED,
    }
)
_CHANGE_VERSION = "TemporalChangeVersion"
_PATCH_MARKER = "core_patch"


@dataclass(frozen=True)
class Cost:
    """The cost of one run."""

    actions: int
    events: int
    size: int
    """Bytes of all events as the server stores and sends them."""

    def __str__(self) -> str:
        return f"{self.actions} Actions, {self.events} events, {self.size} bytes"


def cost_of(history: WorkflowHistory) -> Cost:
    """Count a history."""
    actions = 0
    tasks_with_markers = set()
    for event in history.events:
        if event.event_type in _ONE_ACTION:
            actions += 1
        elif event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_STARTED:
            actions += event.activity_task_started_event_attributes.attempt
        elif event.event_type == EventType.EVENT_TYPE_MARKER_RECORDED:
            marker = event.marker_recorded_event_attributes
            if marker.marker_name != _PATCH_MARKER:
                tasks_with_markers.add(marker.workflow_task_completed_event_id)
        elif event.event_type == EventType.EVENT_TYPE_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES:
            upsert = event.upsert_workflow_search_attributes_event_attributes
            actions += set(upsert.search_attributes.indexed_fields) != {_CHANGE_VERSION}
    return Cost(
        actions=actions + len(tasks_with_markers),
        events=len(history.events),
        size=sum(event.ByteSize() for event in history.events),
    )
