"""The course that plans are drawn by, held against the plain model of the rules."""

from functools import cache

import pytest

from starters.drill import course
from starters.drill.draw import draw
from starters.drill.expect import expect
from starters.drill.plan import Plan

ENDS = {
    "mail.refunded": "refunded",
    "mail.declined": "declined",
    "mail.rejected": "rejected",
    "mail.expired": "expired",
    "mail.withdrawn": "withdrawn",
    "mail.already_refunded": "already_refunded",
    "mail.refund_failed": "refund_failed",
    "mail.delayed": "needs_human",
}


@cache
def _plans() -> list[Plan]:
    return [draw(11, number) for number in range(600)]


@pytest.mark.parametrize("end", ENDS.values())
def test_a_course_ends_as_the_rules_allow(end: str) -> None:
    """Steps are drawn at the places of this end alone, so it must be one that can come."""
    these = [plan for plan in _plans() if ENDS.get(course.effects(plan)[-1]) == end]
    assert these
    assert [plan.order_id for plan in these if end not in expect(plan).outcomes] == []
