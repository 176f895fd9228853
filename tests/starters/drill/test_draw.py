"""Drawn plans: the same each time, of every kind, and none that cannot be carried through."""

import os
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from northwind.documents import Order
from northwind.faults import FaultRow
from northwind.policy import seeded_policy
from starters.drill import course
from starters.drill.conflicts import CONFLICTS, Conflict, conflict_in
from starters.drill.draw import LAST_NUMBER, draw
from starters.drill.hostile import ANSWERS, LETTERS
from starters.drill.kinds import kinds
from starters.drill.plan import (
    AT_START,
    AT_WAIT,
    Decision,
    Fault,
    Message,
    Plan,
    Process,
    Step,
)
from starters.drill.rows import row

ROOT = Path(__file__).parents[3]
SEED = 7


@cache
def _plans() -> list[Plan]:
    return [draw(SEED, number) for number in range(2_000)]


def _first() -> list[Plan]:
    return _plans()[:300]


def _drawn_by_another_process(hash_seed: str) -> str:
    code = (
        "from starters.drill.draw import draw\n"
        f"for number in range(200): print(draw({SEED}, number).model_dump_json())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    )
    return done.stdout


def test_the_same_seed_and_number_draw_the_same_plan_in_any_process() -> None:
    """No order of a set, and nothing that was drawn before, gets into a plan."""
    here = "".join(f"{draw(SEED, number).model_dump_json()}\n" for number in reversed(range(200)))
    backwards = "\n".join(reversed(here.splitlines())) + "\n"
    assert [_drawn_by_another_process(seed) for seed in ("1", "2")] == [backwards] * 2


def test_another_seed_draws_other_plans() -> None:
    """A fresh seed shows something new."""
    other = [draw(SEED + 1, number).name for number in range(300)]
    assert sum(name == plan.name for name, plan in zip(other, _first(), strict=True)) < 100


OFTEN = {
    *(f"decision: {decision.value}" for decision in Decision),
    *(f"message: {message.value}" for message in Message),
    *(f"kill: {process.value}" for process in Process),
    "message: a flood", "kill: two at once", "kill: all at once",
    "stop: worker", "second worker joins", "hand refund", "right lost", "time passes",
    "reset", "terminated, started again", "dispute",
    "payments: drop before", "payments: drop after", "payments: delay", "payments: 409",
    "payments: 429", "payments: 500", "payments: stored 500", "payments: ok without effect",
    "payments: keys forgotten", "refund: fails late",
    "refund: pending, then succeeded", "refund: pending, then failed",
    "refund: pending, then in_review", "refund: requires_action, then succeeded",
    "refund: requires_action, then canceled",
    "mail: drop before", "mail: drop after", "mail: 451", "mail: 550", "mail: ok without effect",
    "model: 500", "model: 429", "model: drop before", "model: drop after",
}  # fmt: skip
# Each of these alone is rare.
SELDOM = {f"letter: {name}" for name in LETTERS} | {f"model says: {name}" for name in ANSWERS}


def test_every_kind_of_fault_is_drawn() -> None:
    """No group is dead: 300 runs have each kind, and more runs have each hostile word."""
    first = {kind for plan in _first() for kind in kinds(plan)}
    assert first >= OFTEN, sorted(OFTEN - first)
    assert len(SELDOM & first) > len(SELDOM) / 2
    drawn = {kind for plan in _plans() for kind in kinds(plan)}
    assert drawn >= SELDOM, sorted(SELDOM - drawn)


SHARES = {
    "kill": (0.20, 0.30),
    "stop": (0.05, 0.12),
    "second worker joins": (0.05, 0.12),
    "payments|refund|orders": (0.20, 0.32),
    "mail": (0.10, 0.20),
    "model|model says|letter": (0.10, 0.20),
    "message": (0.20, 0.30),
    "hand refund": (0.07, 0.14),
    "right lost": (0.05, 0.11),
    "time passes": (0.07, 0.13),
    "reset": (0.02, 0.07),
    "terminated, started again": (0.02, 0.07),
    "dispute": (0.01, 0.04),
}


@pytest.mark.parametrize("groups", SHARES, ids=[groups.split("|")[0] for groups in SHARES])
def test_each_group_has_its_share(groups: str) -> None:
    """A drill is neither a storm nor a calm: most runs have one or two things that go wrong."""
    among = groups.split("|")
    hit = [plan for plan in _plans() if any(kind.split(":")[0] in among for kind in kinds(plan))]
    low, high = SHARES[groups]
    assert low <= len(hit) / len(_plans()) <= high


def test_the_borders_of_the_tiers_are_drawn() -> None:
    """$50.00 and a cent more, $1,000.00 and a cent more; every currency; odd amounts."""
    in_dollars = {
        plan.total_minor for plan in _first() if plan.currency == "USD" and not plan.asked
    }
    assert in_dollars >= {5_000, 5_001, 100_000, 100_001}
    assert {plan.currency for plan in _first()} == {"USD", "EUR", "JPY", "KWD"}
    assert {plan.delivered_days_ago for plan in _first()} >= {6, 31}
    refused = [plan for plan in _first() if plan.asked and course.due_minor(plan) == 0]
    part = [
        plan for plan in _first() if plan.asked and 0 < course.due_minor(plan) < plan.total_minor
    ]
    assert (len(refused) > 5, len(part) > 20) == (True, True)
    assert any(0 < plan.refunded_before_minor < plan.total_minor for plan in _first())


def test_the_course_knows_the_policy_of_the_company() -> None:
    """Where the policy's numbers change, plans would stand at places that no run comes by."""
    policy = seeded_policy()
    assert policy.auto_approve_up_to == course.NOBODY_NEEDED_UP_TO
    assert policy.one_manager_up_to == course.ONE_OF_SEVERAL_UP_TO
    assert policy.return_window_days == course.RETURN_WINDOW_DAYS
    assert policy.expire_after_hours == course.EXPIRES_AFTER_HOURS
    assert policy.reminder_after_hours == course.REMINDER_AFTER_HOURS
    assert policy.escalate_after_hours == course.ESCALATION_AFTER_HOURS


def test_a_plan_goes_through_json_unchanged() -> None:
    """A plan that was printed is the plan that is run again, hostile letters and all."""
    for plan in _plans():
        assert Plan.model_validate_json(plan.model_dump_json(exclude_defaults=True)) == plan


def test_no_order_id_is_a_part_of_another() -> None:
    """A row of the fault plan that is about one order would else strike another one too."""
    ids = [
        draw(seed, number).order_id
        for seed in (1, 11, 111, 7, 17)
        for number in (0, 1, 11, 111, 100_000, LAST_NUMBER)
    ]
    assert not [(one, other) for one in ids for other in ids if one != other and one in other]
    for number in (-1, LAST_NUMBER + 1):
        with pytest.raises(ValueError, match="runs are numbered"):
            draw(1, number)


def test_the_company_takes_every_order_and_every_fault() -> None:
    """Rows and orders that the company refuses would end a drill before it began."""
    for plan in _plans():
        for fault in plan.faults:
            FaultRow.model_validate(row(fault, plan.order_id, "req-1"))
        Order.model_validate(
            {
                "id": plan.order_id,
                "customer": {"name": "Ada Park", "email": "ada.park@customers.example"},
                "payment": f"pi_{plan.order_id}",
                "total": {"amount_minor": plan.total_minor, "currency": plan.currency},
                "items": [],
                "placed_at": "2026-01-01T00:00:00Z",
                "delivered_at": "2026-01-01T00:00:00Z",
            }
        )


def test_a_fault_is_about_its_own_order_or_mail() -> None:
    """Runs share a company, and no run suffers another one's faults."""
    fault = Fault(operation="refunds.create", what="status", status=500, stored=True)
    assert row(fault, "d1-000001", "req-1") == {
        "system": "payments", "operation": "refunds.create", "what": "status",
        "status": 500, "stored": True, "about": "d1-000001",
    }  # fmt: skip
    mail = Fault(operation="send", what="drop_after", purpose="mail.refunded")
    about = "local/refund-order-d1-000001/req-1/mail.refunded"
    assert row(mail, "d1-000001", "req-1")["about"] == about


# A plan for each conflict: it makes no sense for this reason, and for none before it in the table.
def _plan(*steps: Step, **fields: object) -> Plan:
    usual = {"name": "", "order_id": "d1-000001", "total_minor": 42_000, "steps": steps}
    return Plan.model_validate(usual | fields)


def _at_wait(do: str, **fields: object) -> Step:
    return Step.model_validate({"at": AT_WAIT, "do": do, **fields})


CREATE = "refunds.create"
SENSELESS: dict[str, Plan] = {
    "a step at a place that the run does not come by": _plan(
        Step(at="mail.rejected:done", do="kill", who=(Process.WORKER,))
    ),
    "a fault of a call that is not made": _plan(
        faults=(Fault(operation="send", what="drop_after", purpose="mail.expired"),)
    ),
    "people who decide where nobody is asked": _plan(total_minor=5_000, decision=Decision.REJECT),
    "the company held in a call, and not killed": _plan(
        Step(at="company/chat:done", do="kill", who=(Process.WORKER,))
    ),
    "the company held in a call that something else is wrong with": _plan(
        Step(at="company/chat:done", do="kill", who=(Process.COMPANY,)),
        faults=(Fault(operation="chat", what="drop_after"),),
    ),
    "time passed while the worker is held": _plan(
        Step(at="recheck:before", do="pass_time", hours=25)
    ),
    "time passed to the deadline or beyond": _plan(
        _at_wait("pass_time", hours=100), _at_wait("pass_time", hours=68)
    ),
    "a run that is replaced while the outside world changes": _plan(
        _at_wait("reset"), _at_wait("hand_refund", minor=1)
    ),
    "a run that is replaced twice": _plan(_at_wait("reset"), _at_wait("terminate")),
    "a refund by hand on a disputed payment": _plan(
        _at_wait("hand_refund", minor=1), _at_wait("dispute")
    ),
    "more refunded by hand than is left": _plan(
        _at_wait("hand_refund", minor=42_000), _at_wait("hand_refund", minor=1)
    ),
    "a right lost that nobody else has, or nobody uses": _plan(
        _at_wait("lose_right"), total_minor=100_001
    ),
    "an approval repeated before there is one": _plan(_at_wait("send", message=Message.DUPLICATE)),
    "two faults of the call that moves the money": _plan(
        faults=(
            Fault(operation=CREATE, what="drop_after"),
            Fault(operation=CREATE, what="status", status=500),
        )
    ),
    "a refund that changes and is never made": _plan(
        decision=Decision.REJECT, first_status="pending", settles="failed"
    ),
    "a late failure of what never succeeded": _plan(
        first_status="pending", settles="failed", fails_late=True
    ),
}


@pytest.mark.parametrize("conflict", CONFLICTS, ids=lambda conflict: conflict.name)
def test_each_conflict_is_seen(conflict: Conflict) -> None:
    """No row of the table is dead."""
    assert conflict_in(SENSELESS[conflict.name]) is conflict


# The same rules once more, read off a plan without the table.
def _held(step: Step) -> bool:
    return step.at not in (AT_START, AT_WAIT)


IMPOSSIBLE: dict[str, Callable[[Plan], bool]] = {
    "time and a held worker": lambda p: any(s.hours and _held(s) for s in p.steps),
    "a wait where small amounts need nobody": lambda p: (
        p.currency == "USD" and p.total_minor <= 5_000 and any(s.at == AT_WAIT for s in p.steps)
    ),
    "a wait for an order that came long ago": lambda p: (
        p.delivered_days_ago > 30 and any(s.at == AT_WAIT for s in p.steps)
    ),
    "a refund's moment where everybody says no": lambda p: (
        p.decision in (Decision.REJECT, Decision.NOBODY, Decision.WITHDRAW, Decision.CANCEL)
        and any(s.at.startswith(("refund.", "verification")) for s in p.steps)
    ),
    "the next round without a refund by hand": lambda p: (
        any(s.at.startswith("refund.r2") for s in p.steps)
        and not any(s.do == "hand_refund" for s in p.steps)
    ),
    "two ends of one run": lambda p: {"reset", "terminate"} <= {s.do for s in p.steps},
    "a call that hangs": lambda p: any(f.what == "hang_after" for f in p.faults),
    "a fate of a refund that never was": lambda p: (
        p.first_status != "succeeded"
        and any(f.what == "ok_without_effect" for f in p.faults if f.operation == CREATE)
    ),
    "a kill of nothing": lambda p: any(s.do in ("kill", "stop") and not s.who for s in p.steps),
    "a message without words": lambda p: any(
        (s.do == "send") != (s.message is not None) for s in p.steps
    ),
    "a refund by hand of nothing": lambda p: any(
        (s.do == "hand_refund") != (s.minor > 0) for s in p.steps
    ),
}


@pytest.mark.parametrize("name", IMPOSSIBLE, ids=[name.replace(" ", "-") for name in IMPOSSIBLE])
def test_nothing_impossible_is_drawn(name: str) -> None:
    """What cannot go together is in none of 2,000 plans."""
    assert [plan.order_id for plan in _plans() if IMPOSSIBLE[name](plan)] == []


def test_no_plan_has_a_conflict_of_the_table() -> None:
    """Each piece is held against the whole table when it is added."""
    assert [plan.order_id for plan in _plans() if conflict_in(plan) is not None] == []


COURSES = {
    "approved": (
        _plan(),
        ("decision", "recheck", "refund.r1", "verification", "order.refunded", "mail.refunded"),
    ),
    "refunded by hand": (
        _plan(_at_wait("hand_refund", minor=42_000)),
        ("decision", "recheck", "mail.already_refunded"),
    ),
    "in part by hand": (
        _plan(_at_wait("hand_refund", minor=2_000)),
        ("decision", "recheck", "mail.approval_request.r2", "refund.r2", "verification",
         "order.refunded", "mail.refunded"),
    ),
    "withdrawn": (_plan(decision=Decision.WITHDRAW), ("withdrawal", "mail.withdrawn")),
    "in dispute": (_plan(_at_wait("dispute")), ("decision", "recheck", "mail.declined")),
    "failed": (
        _plan(first_status="pending", settles="failed"),
        ("decision", "recheck", "refund.r1", "verification", "mail.refund_failed"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", COURSES, ids=[name.replace(" ", "-") for name in COURSES])
def test_the_course_of_a_run(name: str) -> None:
    """After the proposal, what the worker's watch sees by what people and the provider do."""
    plan, after = COURSES[name]
    asked = ("facts", "model", "mail.under_review", "mail.approval_request.r1")
    assert course.effects(plan) == (*asked, *after)
