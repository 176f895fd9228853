"""Drills in which a deploy comes in the middle: what is drawn, when it comes, what is expected."""

from dataclasses import replace
from pathlib import Path

import pytest
from temporalio.api.common.v1 import ActivityType
from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import WorkflowHistory

from starters.drill.checks import check
from starters.drill.conflicts import conflict_in
from starters.drill.deploy import Code, with_deploy
from starters.drill.draw import draw
from starters.drill.evidence import Evidence
from starters.drill.plan import Plan
from tests.starters.drill.build import SCOPE, mail_order, refunded
from workers.release import RELEASE

SEED = 7
OLDER = "1"
UNNAMED = "A member of our team is looking at it."


def test_each_drawn_plan_has_one_deploy_more_and_nothing_else() -> None:
    """The runs of a seed stay what they are, and nothing in them goes against the deploy."""
    places = set()
    for number in range(200):
        before = draw(SEED, number)
        plan = with_deploy(before, SEED, number)
        assert plan == with_deploy(before, SEED, number)
        *others, deploy = plan.steps
        assert before == plan.model_copy(update={"steps": tuple(others), "name": before.name})
        assert deploy.do == "deploy"
        assert conflict_in(plan) is None
        places.add(deploy.at)
    assert {"start", "wait", "refund.r1:done", "mail.refunded:before"} <= places


@pytest.mark.parametrize(("plans", "due"), [(1, 1), (3, 1), (24, 8)])
def test_one_deploy_comes_when_a_third_has_asked(plans: int, due: int) -> None:
    """So that some runs are anywhere by then, and some begin after it."""
    code = Code(Path("older"), plans)
    assert [code.is_due() for _ in range(plans)].index(True) == due - 1
    assert not code.is_due()


def test_without_older_code_no_deploy_is_due() -> None:
    """A plan with one can be run again without it."""
    assert not Code(None, 1).is_due()


def task(event_id: int, build: str) -> HistoryEvent:
    """A workflow task, done by a worker of a release."""
    event = HistoryEvent(event_id=event_id, event_type=EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED)
    event.workflow_task_completed_event_attributes.worker_version.build_id = build
    return event


def read(event_id: int) -> list[HistoryEvent]:
    """A refund is read back."""
    begun = HistoryEvent(event_id=event_id)
    begun.activity_task_scheduled_event_attributes.activity_type.CopyFrom(
        ActivityType(name="read_refund")
    )
    done = HistoryEvent(event_id=event_id + 1)
    done.activity_task_completed_event_attributes.scheduled_event_id = event_id
    return [begun, done]


def tell(event_id: int) -> HistoryEvent:
    """The order service is to be told."""
    event = HistoryEvent(event_id=event_id)
    name = ActivityType(name="tell_order_service")
    event.activity_task_scheduled_event_attributes.activity_type.CopyFrom(name)
    return event


def with_events(given: Evidence, *events: HistoryEvent) -> Evidence:
    """The same with these events in its run."""
    (history,) = given.histories
    first, *rest = history.events
    return replace(given, histories=[WorkflowHistory("run", [first, *events, *rest])])


UNTOLD = "refunded, and neither order service nor operations were told"
# What the order service is not told of, and whether that is found.
ENDS = {
    "the end under release 1": ([*read(5), task(8, OLDER), task(9, RELEASE)], []),
    "the end under this code": ([task(4, OLDER), *read(5), task(8, RELEASE)], [UNTOLD]),
    "two readings": ([*read(2), task(4, OLDER), *read(5), task(8, RELEASE)], [UNTOLD]),
    "told, and not noted": ([*read(5), task(8, OLDER), tell(9)], [UNTOLD]),
}


@pytest.mark.parametrize(("events", "found"), ENDS.values(), ids=ENDS)
def test_only_an_end_under_older_code_is_not_told_to_the_order_service(
    events: list[HistoryEvent], found: list[str]
) -> None:
    """Whose worker came to the end stands in the history, so nothing else is excused."""
    given = with_events(replace(refunded(), noted=[]), *events)
    assert [finding.what for finding in check(given)] == found


@pytest.mark.parametrize(
    ("build", "text", "found"),
    [
        (OLDER, UNNAMED, []),
        (RELEASE, UNNAMED, ["mail.under_review does not say who will decide"]),
        (RELEASE, "Maria Silva or Tom Becker will decide on it.", []),
    ],
)
def test_this_code_says_who_will_decide(build: str, text: str, found: list[str]) -> None:
    """A run that ordered this mail under release 1 said that somebody looks at it."""
    ordered = mail_order(f"{SCOPE}mail.under_review")
    ordered.event_id = 5
    ordered.activity_task_scheduled_event_attributes.workflow_task_completed_event_id = 4
    given = with_events(refunded(), task(4, build), ordered)
    mails = [replace(m, text=text) if m.purpose == "mail.under_review" else m for m in given.mails]
    assert [finding.what for finding in check(replace(given, mails=mails))] == found


def test_a_plan_with_a_deploy_can_be_saved() -> None:
    """It is data as any other."""
    plan = with_deploy(draw(SEED, 1), SEED, 1)
    assert Plan.model_validate_json(plan.model_dump_json()) == plan
