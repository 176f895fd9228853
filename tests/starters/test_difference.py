"""The last task of a history, which the SDK does not compare with what stands behind it."""

from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import HistoryEvent
from temporalio.bridge.proto.workflow_commands import WorkflowCommand

from starters import witness
from starters.difference import find_unseen


def events() -> list[HistoryEvent]:
    """A task that began with event 3 and asked for one Activity."""
    completed = HistoryEvent(event_id=4, event_type=EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED)
    scheduled = HistoryEvent(event_id=5, event_type=EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED)
    completed.workflow_task_completed_event_attributes.started_event_id = 3
    attributes = scheduled.activity_task_scheduled_event_attributes
    attributes.activity_type.name = "read_case"
    attributes.workflow_task_completed_event_id = 4
    return [completed, scheduled]


def asked(*commands: WorkflowCommand) -> witness.Testimony:
    """What the code asked for in the task of event 3."""
    testimony = witness.Testimony()
    testimony.add(witness.Step(3, commands, None))
    return testimony


def command(kind: str, **fields: object) -> WorkflowCommand:
    """One command."""
    made = WorkflowCommand()
    part = getattr(made, kind)
    part.SetInParent()
    for name, value in fields.items():
        setattr(part, name, value)
    return made


ACTIVITY = command("schedule_activity", activity_type="read_case")


def test_a_task_that_fits_is_none() -> None:
    """The usual case."""
    assert find_unseen(events(), asked(ACTIVITY)) is None


def test_a_step_more_or_less_is_told() -> None:
    """Whichever of the two has it."""
    more = find_unseen(events(), asked(ACTIVITY, command("start_timer", seq=1)))
    less = find_unseen(events(), asked())
    assert more is not None
    assert less is not None
    assert (more.event_id, more.history, more.code) == (0, "nothing more here", "timer of 0:00:00")
    assert (less.event_id, less.history, less.code) == (5, "Activity read_case", "nothing here")


def test_a_deprecated_patch_may_have_no_marker_here() -> None:
    """Its marker may stand in another task, or nowhere; what comes behind it is compared."""
    patch = command("set_patch_marker", patch_id="x", deprecated=True)
    assert find_unseen(events(), asked(patch, ACTIVITY)) is None
    assert find_unseen(events(), asked(patch)) is not None
    living = command("set_patch_marker", patch_id="x")
    assert find_unseen(events(), asked(living, ACTIVITY)) is not None


def test_a_history_that_ends_within_a_task_says_nothing_yet() -> None:
    """What the task asks for became no events."""
    assert find_unseen([], asked(ACTIVITY)) is None
