"""Unknown is not failed (promise P8): lost answers, outages and lies of the provider."""

from datetime import timedelta
from typing import Any

import pytest
from temporalio.api.enums.v1 import EventType
from temporalio.client import WorkflowHistory

from domain import names
from domain.models import Outcome, Stage
from domain.outcomes import Reason
from tests.signing import MARIA
from tests.world import Run, World


def _fault(operation: str, what: str, **more: Any) -> dict[str, Any]:
    system = {"refunds": "payments", "chat": "model", "send": "mail"}[operation.partition(".")[0]]
    return {"system": system, "operation": operation, "call": 1, "what": what, **more}


SURVIVED: dict[str, list[dict[str, Any]]] = {
    "answer lost after the effect": [_fault("refunds.create", "drop_after")],
    "connection dropped before the effect": [_fault("refunds.create", "drop_before")],
    "a fault of the server": [_fault("refunds.create", "fail_before")],
    "the key is in use": [_fault("refunds.create", "status", status=409)],
    "too many requests": [
        _fault("refunds.create", "status", status=429, headers={"Retry-After": "1"})
    ],
    "the look-up fails": [_fault("refunds.list", "fail_before")],
    "reading back fails": [_fault("refunds.retrieve", "drop_before")],
    "a mail's answer is lost": [_fault("send", "drop_after")],
    "the mail server is busy": [_fault("send", "fail_before")],
    "the model is busy": [_fault("chat", "status", status=429, headers={"Retry-After": "1"})],
    "the model's answer is lost": [_fault("chat", "drop_after")],
}


@pytest.mark.parametrize("name", SURVIVED, ids=[name.replace(" ", "-") for name in SURVIVED])
async def test_a_passing_fault_costs_nobody_anything(world: World, name: str) -> None:
    """P1, P3, P8: one refund, one mail of each purpose, whatever was lost on the way."""
    await world.control("faults", SURVIVED[name])
    run = await world.start()
    await run.approve()
    ended = await run.result()

    assert ended.outcome is Outcome.REFUNDED
    assert await world.refunds() == [(42000, "succeeded")]
    assert await world.mails() == {"under_review": 1, "approval_request.r1": 1, "refunded": 1}


async def test_the_model_may_be_down_the_case_then_goes_to_a_person(world: World) -> None:
    """P5: after the policy's patience the manager decides with the facts that code has."""
    await world.control("faults", [_fault("chat", "fail_before", call="every")])
    run = await world.start("8891")
    await run.until(lambda s: s.accepted)
    await run.move_on(minutes=31)
    proposal = await run.waiting()

    assert proposal.approvals_needed == 1
    assert "the model gave no assessment" in proposal.why_a_person
    assert (await run.approve()).what == "approved"
    assert (await run.result()).outcome is Outcome.REFUNDED


async def test_a_provider_that_says_ok_and_does_nothing_is_not_believed(world: World) -> None:
    """P3, P8: `refunded` is never said of a refund that the provider does not know."""
    await world.control("faults", [_fault("refunds.create", "ok_without_effect", call="every")])
    run = await world.start()
    await run.approve()
    await run.until(lambda s: s.stage is Stage.VERIFYING)
    await run.move_on(hours=3)
    ended = await run.result()

    assert (ended.outcome, ended.reason) == (Outcome.NEEDS_HUMAN, Reason.REFUND_UNKNOWN)
    assert (await world.mails())["refunded"] == 0
    assert await world.refunds() == []


async def test_a_provider_that_refuses_for_good_ends_with_a_person(world: World) -> None:
    """P8: a definite no with nothing to explain it is for a person, and nobody is paid."""
    refusal = {"error": {"type": "invalid_request_error", "code": "charge_not_refundable",
                         "message": "This charge cannot be refunded."}}  # fmt: skip
    row = _fault("refunds.create", "status", status=400, body=refusal, call="every")
    await world.control("faults", [row])
    run = await world.start()
    await run.approve()
    ended = await run.result()

    assert (ended.outcome, ended.reason) == (Outcome.NEEDS_HUMAN, Reason.PROVIDER_REFUSED)
    assert await world.refunds() == []


async def test_a_person_is_told_after_an_hour_of_not_knowing(world: World) -> None:
    """P4, P8: one alert, and the run goes on looking until it knows."""
    run = await world.start()
    await run.waiting()
    await world.control("faults", [_fault("refunds.create", "drop_before", call="every")])
    await run.approve()
    await run.until(lambda s: s.stage is Stage.REFUNDING)
    await run.move_on(hours=3)
    assert (await world.mails())["alert.unknown.r1"] == 1
    assert await world.refunds() == []

    await world.http.delete("/control/faults")
    await run.move_on(hours=2)
    assert (await run.result()).outcome is Outcome.REFUNDED
    assert await world.refunds() == [(42000, "succeeded")]


async def test_a_week_of_not_knowing_ends_with_a_person(world: World) -> None:
    """P4, P8: after a cut-off attempt, all facts look old to a worker whose clock is broken.

    The run neither pays again nor calls it failed, and does not run in circles meanwhile. Every
    attempt follows a look at the world with no pause in between, so a good clock would let it pay.
    """
    run = await _held_before_the_refund(world)
    world.clock.jump = timedelta(minutes=6)
    await run.until(lambda s: "refund_stale" in [entry.what for entry in s.trail])
    await run.move_on(days=8)
    ended = await run.result()

    assert (ended.outcome, ended.reason) == (Outcome.NEEDS_HUMAN, Reason.REFUND_UNKNOWN)
    assert await world.refunds() == []
    mails = await world.mails()
    assert (mails["alert.unknown.r1"], mails["alert.refund_unknown"], mails["delayed"]) == (1, 1, 1)
    history = await run.history()
    assert len(history.events) < 1_000
    steps = _steps(history)
    attempts = [place for place, step in enumerate(steps) if step == "make_refund"]
    assert len(attempts) > 10
    assert {steps[place - 1] for place in attempts} == {"read_case"}


def _steps(history: WorkflowHistory) -> list[str]:
    """Pauses and Activities in the order in which they were begun, but for mails beside them."""
    steps = []
    for event in history.events:
        if event.event_type == EventType.EVENT_TYPE_TIMER_STARTED:
            steps.append("pause")
        elif event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
            steps.append(event.activity_task_scheduled_event_attributes.activity_type.name)
    return [step for step in steps if step != "send_mail"]


async def _held_before_the_refund(world: World) -> Run:
    """A run whose first attempt was cut off, and whose facts have grown old since."""
    run = await world.start()
    await run.waiting()
    await world.control("faults", [_fault("refunds.create", "drop_before")])
    await run.approve()
    await world.until(lambda: _cut_off(world))
    world.clock.advance(minutes=6)
    return run


async def _cut_off(world: World) -> bool:
    calls: dict[str, int] = (await world.books())["calls"]
    return calls.get("refunds.create", 0) > 0


async def test_an_attempt_on_old_facts_looks_at_the_world_again(world: World) -> None:
    """P1: nothing is sent on a re-check older than 5 minutes; the run looks and comes again."""
    run = await _held_before_the_refund(world)
    ended = await run.result()

    assert ended.outcome is Outcome.REFUNDED
    assert "refund_stale" in [entry.what for entry in ended.trail]
    assert await world.refunds() == [(42000, "succeeded")]


async def test_a_world_that_changed_since_the_cut_off_attempt_is_not_paid_over(
    world: World,
) -> None:
    """R7: refunded by hand between a cut-off attempt and the next one: the only refund."""
    run = await _held_before_the_refund(world)
    await world.control("hand_refund", {"payment": "pi_8890", "amount_minor": 42000})
    ended = await run.result()

    assert ended.outcome is Outcome.ALREADY_REFUNDED
    assert await world.refunds() == [(42000, "succeeded")]


async def test_no_new_key_while_an_earlier_attempt_may_still_arrive(world: World) -> None:
    """P1: after a cut-off attempt a changed world is for a person, not for another round."""
    run = await _held_before_the_refund(world)
    await world.control("hand_refund", {"payment": "pi_8890", "amount_minor": 12000})
    ended = await run.result()

    assert (ended.outcome, ended.reason) == (Outcome.NEEDS_HUMAN, Reason.REFUND_UNKNOWN)
    assert await world.refunds() == [(12000, "succeeded")]


async def test_a_cut_off_attempt_that_arrives_late_is_told_although_it_was_withdrawn(
    world: World,
) -> None:
    """P8: it arrives while another approver is asked. "Withdrawn" would be untrue by then."""
    run = await _held_before_the_refund(world)
    await world.control(f"staff/{MARIA}", {"active": False})
    await run.until(lambda s: "approval_lost" in [entry.what for entry in s.trail])
    scope = names.request_scope("local", "8890", run.request.request_id)
    ours = {names.METADATA_KEY: names.idempotency_key(scope, names.refund_purpose(1))}
    arrives = {"payment": "pi_8890", "amount_minor": 42000, "metadata": ours}
    await world.control("hand_refund", arrives)
    await run.send(world.signer.withdrawal(run.request), names.SIGNAL_WITHDRAW)
    ended = await run.result()

    assert ended.outcome is Outcome.REFUNDED
    assert await world.refunds() == [(42000, "succeeded")]
    assert (await world.mails())["withdrawn"] == 0
