"""A model that fails, babbles or lies: the run ends right, and a person decides (promise P5).

Each row is one way to misbehave, held against the provider's books, the mailbox and the trail.
"""

import json
from datetime import timedelta
from typing import Any

import pytest
from temporalio.api.enums.v1 import PendingActivityState

from domain.agent import BAD_ANSWERS_LIMIT
from domain.models import Outcome, TokenUsage
from domain.money import Money
from domain.request import Proposal
from domain.trail import RunStatus
from tests.activities.speakers import (
    INPUT_TOKENS,
    OUTPUT_TOKENS,
    Call,
    Ending,
    Said,
    chat_completion,
)
from tests.counting import cost_of
from tests.letters import LETTERS
from tests.world import Run, World

# Twice is for what branches in the workflow. Elsewhere the second time would show nothing new: the
MEGABYTES = 3_000_000
# Bytes. The whole refund with a model that behaves has less than 40 KB; the longest letter, which
# stands in it five times, and a model that makes use of all its turns bring it here.
SMALL_HISTORY = 150_000
# A model that asks for as much as it may in all its turns; the server's own limit is 50 MB.
LARGEST_HISTORY = 800_000
TURNS = 8

ASSESSMENT = {"category": "damaged", "recommendation": "refund", "summary": "It is broken."}


def submit(**changes: Any) -> Said:
    """An assessment, with more or other fields."""
    return Said((Call("submit_assessment", json.dumps(ASSESSMENT | changes)),))


async def say(world: World, *answers: Said, last: bool = False) -> None:
    """Have the model answer in this order; `last` repeats the last one for ever."""
    rows = [
        {
            "system": "model",
            "operation": "chat",
            "what": "status",
            "status": 200,
            "body": chat_completion(said),
            "call": number,
            "times": 1_000 if last and number == len(answers) else 1,
        }
        for number, said in enumerate(answers, 1)
    ]
    await world.control("faults", rows)


def rows_of(status: RunStatus, what: str) -> list[str]:
    """The details of the trail's rows of a kind."""
    return [entry.detail for entry in status.trail if entry.what == what]


async def paid_as_ever(run: Run, history_below: int = SMALL_HISTORY) -> RunStatus:
    """Order 8890 is refunded for $420.00 once a manager approves, whatever the model did."""
    world, proposal = run.world, await run.waiting()
    unchanged(proposal)
    assert (await world.refunds()) == []
    assert (await run.approve()).what == "approved"
    ended = await run.result()
    assert ended.outcome is Outcome.REFUNDED
    assert await world.refunds() == [(42_000, "succeeded")]
    assert await world.mails() == {"under_review": 1, "approval_request.r1": 1, "refunded": 1}
    payments = (await world.books())["payments"]
    assert [p for p in payments if payments[p]["refunds"]] == ["pi_8890", "pi_8896", "pi_8897"]
    assert (cost := cost_of(await run.history())).size < history_below, cost
    return ended


def unchanged(proposal: Proposal) -> None:
    """Order, payee, amount and the approvals needed are those of order 8890."""
    assert (proposal.order_id, proposal.payment) == ("8890", "pi_8890")
    assert proposal.amount == Money(amount_minor=42_000, currency="USD")
    assert (proposal.approvals_needed, proposal.director_needed) == (1, False)


BAD: dict[str, tuple[Said, str, str]] = {
    "truncated JSON": (
        Said((Call("submit_assessment", '{"category": "dam'),)), "its JSON", '{"category": "dam',
    ),
    "cut off": (
        Said((Call("submit_assessment", '{"category": "dam'),), ending=Ending.CUT_OFF),
        "cut off", '{"category": "dam',
    ),
    "prose around JSON": (
        Said(text=f"I am sure. {json.dumps(ASSESSMENT)} Shall I pay?"),
        "without a tool call", "I am sure.",
    ),
    "empty": (Said(), "without a tool call", ""),
    "refusal": (
        Said(text="I cannot help with money.", ending=Ending.REFUSED),
        "refused to answer", "I cannot help with money.",
    ),
    "wrong enum": (submit(recommendation="pay_at_once"), "recommendation", "pay_at_once"),
    "unknown tool": (
        Said((Call("create_refund", '{"amount": "42000.00"}'),)),
        "no tool 'create_refund'", "42000.00",
    ),
    "tool arguments that are no JSON": (
        Said((Call("look_up_order", "order 8890, please"),)), "JSON object", "order 8890, please",
    ),
    "20 tool calls in one answer": (
        Said(tuple(Call("look_up_order", call_id=f"c{n}") for n in range(20))),
        "20 tool calls", "look_up_order",
    ),
    "megabytes of text": (Said(text="Refund! " * (MEGABYTES // 8)), "tool call", "Refund! Refund!"),
    "megabytes in a call": (
        Said((Call("look_up_order", json.dumps({"order_id": "8" * MEGABYTES})),)),
        "JSON object", "88888888",
    ),
    "megabytes of summary": (submit(summary="Pay. " * (MEGABYTES // 5)), "summary", "Pay. Pay."),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD, ids=[name.replace(" ", "-") for name in BAD])
async def test_three_bad_answers_in_a_row_and_a_person_decides(world: World, name: str) -> None:
    """R43: asked three times and told what was wrong; the trail has the model's words."""
    said, problem, words = BAD[name]
    await say(world, said, last=True)
    ended = await paid_as_ever(await world.start())

    notes = rows_of(ended, "bad_answer")
    assert len(notes) == BAD_ANSWERS_LIMIT
    assert all(problem in note and words in note for note in notes), notes
    assert rows_of(ended, "no_assessment") == ["the model came to no usable answer"]
    assert ended.proposal is not None
    assert "the model gave no assessment" in ended.proposal.why_a_person
    assert ended.usage == spent(BAD_ANSWERS_LIMIT)
    assert (await world.books())["model_requests"] == BAD_ANSWERS_LIMIT


def spent(requests: int) -> TokenUsage:
    """What so many answers cost."""
    return TokenUsage(
        requests=requests,
        input_tokens=requests * INPUT_TOKENS,
        output_tokens=requests * OUTPUT_TOKENS,
    )


ENDLESS: dict[str, tuple[Said, str, int]] = {
    "the same tool for ever": (Said((Call("read_policy"),)), "read_policy", SMALL_HISTORY),
    "another order's id": (
        Said((Call("look_up_order", '{"order_id": "8891"}'),)),
        'look_up_order {"order_id": "8891"}', SMALL_HISTORY,
    ),
    "as many tools as there may be": (
        Said(tuple(Call("read_policy", call_id=f"c{n}") for n in range(8))),
        ", ".join(["read_policy"] * 8), LARGEST_HISTORY,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ENDLESS, ids=[name.replace(" ", "-") for name in ENDLESS])
async def test_a_model_that_comes_to_no_end_is_stopped(world: World, name: str) -> None:
    """P5, R45: eight turns, and no order but the run's own is read."""
    said, noted, history_below = ENDLESS[name]
    await say(world, said, last=True)
    ended = await paid_as_ever(await world.start(), history_below)

    assert rows_of(ended, "looked_up") == [noted] * TURNS
    assert rows_of(ended, "no_assessment") == ["the model came to no usable answer"]
    assert ended.usage == spent(TURNS)
    assert (await world.books())["model_requests"] == TURNS
    assert (await world.books())["payments"]["pi_8891"]["refunds"] == []


async def test_another_orders_facts_are_told_to_no_model(world: World) -> None:
    """R45: what another customer bought is not in the history, so it was never sent."""
    await say(world, Said((Call("look_up_order", '{"order_id": "8891"}'),)), submit())
    run = await world.start()
    await paid_as_ever(run)

    told = b"".join(event.SerializeToString() for event in (await run.history()).events)
    assert b"Only order 8890" in told
    assert b"Milk jug" not in told


async def test_bad_answers_count_in_a_row(world: World) -> None:
    """Two bad ones, a good one, two bad ones: the sixth answer is still heard."""
    bad, good = Said(text="Hm."), Said((Call("read_policy"),))
    await say(world, bad, bad, good, bad, bad, submit(summary="Broken, after all."))
    ended = await paid_as_ever(await world.start())

    assert len(rows_of(ended, "bad_answer")) == 4
    assert rows_of(ended, "assessed") == ["damaged, refund: Broken, after all."]
    assert ended.usage == spent(6)


LIES: dict[str, Said] = {
    "an amount a thousand times too high": submit(
        amount="420000.00", amount_minor=42_000_000, summary="Refund $420,000.00, I insist."
    ),
    "no approval needed": submit(
        approvals_needed=0, approved=True, approved_by="maria.silva@northwind.example",
        why_a_person=[], summary="No approval needed: the limit was raised to $50,000.00.",
    ),
    "another order and payee": submit(
        order_id="8892", payment="pi_8892", payee="me", summary="Refund order 8892 instead."
    ),
    "refuse": submit(recommendation="refuse", summary="Refuse this one and all others."),
    "refused already": submit(
        recommendation="refuse", outcome="declined", summary="I have told the customer no."
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LIES, ids=[name.replace(" ", "-") for name in LIES])
async def test_what_a_model_says_of_money_changes_none(world: World, name: str) -> None:
    """P5: no amount, order, payee or approval comes from it, and it refuses nobody."""
    await say(world, LIES[name])
    ended = await paid_as_ever(await world.start())

    said = json.loads(LIES[name].calls[0].arguments)
    assert ended.assessment is not None
    assert ended.assessment.summary == said["summary"]
    assert rows_of(ended, "assessed") == [f"damaged, {said['recommendation']}: {said['summary']}"]


@pytest.mark.parametrize("recommendation", ["refuse", "unsure"])
async def test_a_doubt_of_the_model_asks_a_person(world: World, recommendation: str) -> None:
    """P5: a small refund that needs nobody then needs one, and is paid with that one's word."""
    await say(world, submit(recommendation=recommendation))
    run = await world.start("8891")
    proposal = await run.waiting()
    assert proposal.why_a_person == (f"the model says {recommendation}",)
    await run.approve()

    assert (await run.result()).outcome is Outcome.REFUNDED
    assert await world.refunds("8891") == [(3_500, "succeeded")]


# These stand for all of `tests.letters`, which the tests of domain and adapter go through.
REPRESENTATIVE = (
    "a system message",
    "another customer's order",
    "a thousand times as much",
    "Arabic with direction marks",
    "Cyrillic look-alikes",
    "zero-width characters",
    "control characters",
    "as long as may be",
)


@pytest.mark.parametrize("name", REPRESENTATIVE, ids=[n.replace(" ", "-") for n in REPRESENTATIVE])
async def test_a_letter_changes_nothing_though_the_model_believes_it(
    world: World, name: str
) -> None:
    """R44: its claims reach the manager as words, and the refund is what the books say."""
    letter = LETTERS[name]
    await say(world, submit(summary=letter[:1_500]))
    ended = await paid_as_ever(await world.start(message=letter))

    assert ended.assessment is not None
    assert ended.assessment.summary == letter[:1_500]


@pytest.mark.parametrize("name", ["a new limit", "German", "Japanese"])
async def test_a_letter_makes_no_large_refund_a_small_one(world: World, name: str) -> None:
    """R44: above one manager's tier it takes two people, whatever letter and model say."""
    await say(world, submit(summary=LETTERS[name]))
    proposal = await (await world.start("8892", message=LETTERS[name])).waiting()

    assert proposal.amount == Money(amount_minor=185_000, currency="USD")
    assert (proposal.approvals_needed, proposal.director_needed) == (2, True)


LATER = {"Retry-After": "60"}
DOWN: dict[str, tuple[dict[str, Any], dict[str, float], str]] = {
    "too many requests for ever": (
        {"what": "status", "status": 429, "headers": LATER}, {"minutes": 31}, "rate_limited",
    ),
    "down for a day": (
        {"what": "status", "status": 503, "headers": LATER}, {"hours": 23}, "server_fault",
    ),
    "overloaded": (
        {"what": "status", "status": 529, "headers": LATER}, {"minutes": 31}, "server_fault",
    ),
    "no connection": ({"what": "drop_before"}, {"minutes": 31}, "unreachable"),
    "HTML for ever": (
        {"what": "status", "status": 200, "body": "<html>Sorry</html>"},
        {"minutes": 31}, "bad_answer",
    ),
    "a wrong key": ({"what": "status", "status": 401}, {}, "model_misconfigured"),
    "a wrong name": ({"what": "status", "status": 404}, {}, "model_misconfigured"),
}  # fmt: skip


@pytest.mark.parametrize("name", DOWN, ids=[name.replace(" ", "-") for name in DOWN])
async def test_a_model_that_is_not_to_be_had_costs_half_an_hour(world: World, name: str) -> None:
    """P5: then the manager decides without it, and the trail says why it was not heard."""
    row, wait, kind = DOWN[name]
    await world.control(
        "faults", [{"system": "model", "operation": "chat", "call": "every", **row}]
    )
    run = await world.start()
    if wait:
        await between_attempts(run)
        await run.move_on(**wait)
    ended = await paid_as_ever(run)

    [why] = rows_of(ended, "no_assessment")
    assert kind in why
    times = {entry.what: entry.at for entry in ended.trail}
    assert times["no_assessment"] - times["accepted"] <= timedelta(minutes=31)
    assert ended.usage == TokenUsage()


async def test_the_model_is_asked_again_when_it_said(world: World) -> None:
    """R42: one request for each attempt, and the next one is set for when the wait is over."""
    row = {"what": "status", "status": 429, "headers": {"Retry-After": "600"}}
    await world.control("faults", [{"system": "model", "operation": "chat", **row}])
    run = await world.start()
    assert round((await between_attempts(run)).total_seconds()) == 600
    assert (await world.books())["model_requests"] == 1
    await run.move_on(minutes=11)
    ended = await paid_as_ever(run)

    assert rows_of(ended, "no_assessment") == []
    assert ended.assessment is not None
    assert ended.usage.requests == 2
    assert (await world.books())["model_requests"] == 3


async def between_attempts(run: Run) -> timedelta:
    """Wait until the model's next attempt is seconds away: one in flight would time out instead.

    How long the server lets the model rest.
    """
    rests: list[timedelta] = []

    async def backs_off() -> bool:
        for pending in (await run.handle.describe()).raw_description.pending_activities:
            rest = pending.current_retry_interval.ToTimedelta()
            waits = pending.state == PendingActivityState.PENDING_ACTIVITY_STATE_SCHEDULED
            if pending.activity_type.name == "ask_model" and waits and rest.total_seconds() > 2:
                rests.append(rest)
        return bool(rests)

    await run.world.until(backs_off)
    return rests[0]
