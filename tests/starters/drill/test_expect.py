"""The plain model of the rules: right in each story, sane everywhere, and one with the real rules.

It shares no rule with the code, so where both agree on many plans neither is likely to be wrong.
"""

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domain.case import Case
from domain.models import Assessment, Outcome, Recommendation
from domain.money import Money, exponent
from domain.outcomes import Close
from domain.policy import Claim, propose, take_up
from domain.recheck import Changed, Clear, recheck
from domain.request import Proposal
from northwind.policy import seeded_policy
from northwind.seed import STAFF
from starters.drill import rules
from starters.drill.expect import Expected, expect
from starters.drill.plan import AT_END, AT_START, AT_WAIT, Decision, Plan
from starters.drill.timing import Seen, seen_at
from tests.domain import build as world
from tests.starters.drill.build import GRACE, MARIA, TOM, plan, step

CURRENCIES = ("USD", "EUR", "JPY", "KWD")
ALL = frozenset(Outcome)


def allowed(**changes: Any) -> tuple[set[str], set[int]]:
    """Outcomes and amounts that the model allows a plan."""
    expected = expect(plan(**changes))
    return (
        {outcome.value for outcome in expected.outcomes},
        {offer.amount_minor for offer in expected.offers},
    )


def hand_refund(minor: int, at: str = AT_WAIT) -> dict[str, Any]:
    """A colleague refunds something by hand."""
    return {"steps": [step("hand_refund", at, minor=minor)]}


@pytest.mark.parametrize(
    ("changes", "outcomes", "amounts"),
    [
        ({}, {"refunded"}, {42_000}),
        ({"asked": "100.00 usd"}, {"refunded"}, {10_000}),
        ({"refunded_before_minor": 12_000}, {"refunded"}, {30_000}),
        ({"refunded_before_minor": 42_000}, {"already_refunded"}, set()),
        ({"asked": "420.01"}, {"declined"}, set()),
        ({"asked": "-1"}, {"declined"}, set()),
        ({"asked": "1.234"}, {"declined"}, set()),
        ({"asked": "0"}, {"declined"}, set()),
        ({"asked": "5 EUR"}, {"declined"}, set()),
        ({"delivered_days_ago": 75}, {"declined"}, set()),
        ({"steps": [step("dispute", "facts:before")]}, {"declined"}, set()),
        ({"steps": [step("dispute")]}, {"declined"}, set()),
        ({"steps": [step("dispute", "refund.r1:before")]}, {"declined"}, set()),
        ({"steps": [step("dispute", "refund.r1:done")]}, {"refunded"}, {42_000}),
        ({"steps": [step("dispute")], "decision": "reject"}, {"rejected"}, set()),
        ({"decision": "approve_at_once", "total_minor": 185_000}, {"refunded"}, {185_000}),
        ({"decision": "reject"}, {"rejected"}, set()),
        ({"decision": "both"}, {"rejected", "refunded"}, {42_000}),
        ({"decision": "both", "total_minor": 185_000}, {"rejected"}, set()),
        ({"decision": "withdraw"}, {"withdrawn"}, set()),
        ({"decision": "cancel"}, {"withdrawn"}, set()),
        ({"decision": "nobody"}, {"expired"}, set()),
        ({"decision": "nobody", "total_minor": 3_500}, {"refunded"}, {3_500}),
        ({"first_status": "pending", "settles": "succeeded"}, {"refunded"}, {42_000}),
        ({"first_status": "pending", "settles": "failed"}, {"refund_failed"}, {42_000}),
        ({"first_status": "canceled"}, {"refund_failed"}, {42_000}),
        ({"first_status": "pending"}, {"needs_human"}, {42_000}),
        ({"first_status": "on_hold"}, {"needs_human"}, {42_000}),
        ({"fails_late": True}, {"refunded"}, {42_000}),
        ({"total_minor": 5_000_001}, {"needs_human"}, set()),
        ({"total_minor": 1_500_001, "currency": "KWD"}, {"needs_human"}, set()),
        (hand_refund(42_000), {"already_refunded"}, set()),
        (hand_refund(12_000), {"refunded"}, {30_000}),
        (hand_refund(12_000, "refund.r1:before"), {"refunded"}, {30_000, 42_000}),
        (hand_refund(1, AT_END), {"refunded"}, {42_000}),
        (hand_refund(12_000) | {"asked": "100"}, {"already_refunded"}, set()),
        (hand_refund(12_000, "facts:before") | {"asked": "100"}, {"refunded"}, {10_000}),
        (
            hand_refund(12_000, AT_START) | {"asked": "100"},
            {"already_refunded", "refunded"},
            {10_000},
        ),
        ({"steps": [step("lose_right")]}, {"refunded"}, {42_000}),
        (
            {"steps": [step("lose_right")], "total_minor": 185_000},
            {"refunded", "needs_human", "expired"},
            {185_000},
        ),
        (
            {"steps": [step("terminate", "decision:before")]},
            {"refunded", "expired"},
            {42_000},
        ),
        (
            {"steps": [step("reset", "mail.withdrawn:before")], "decision": "cancel"},
            {"withdrawn", "expired"},
            set(),
        ),
    ],
)
def test_each_story_has_its_ends(
    changes: dict[str, Any], outcomes: set[str], amounts: set[int]
) -> None:
    """What a plan may come to is exactly this, and a race allows its orders and nothing else."""
    assert allowed(**changes) == (outcomes, amounts)


@pytest.mark.parametrize(
    ("fault", "outcomes"),
    [
        ({"operation": "refunds.create", "what": "drop_after"}, {"refunded"}),
        ({"operation": "refunds.create", "what": "status", "status": 409}, {"refunded"}),
        ({"operation": "refunds.create", "what": "status", "status": 402}, {"needs_human"}),
        ({"operation": "refunds.create", "what": "ok_without_effect"}, {"needs_human"}),
        (
            {"operation": "refunds.create", "what": "status", "status": 500, "stored": True},
            {"refunded", "needs_human"},
        ),
        (
            {"operation": "refunds.retrieve", "what": "fail_before", "call": "every"},
            {"refunded", "needs_human"},
        ),
        ({"operation": "refunds.list", "what": "fail_before", "times": 3}, {"refunded"}),
        (
            {"operation": "orders.get", "what": "status", "status": 404},
            {"refunded", "needs_human", "declined"},
        ),
        ({"operation": "send", "what": "status", "status": 550}, {"refunded"}),
        ({"operation": "orders.note_refund", "what": "status", "status": 409}, {"refunded"}),
        (
            {"operation": "orders.note_refund", "what": "fail_before", "call": "every"},
            {"refunded"},
        ),
    ],
)
def test_a_fault_adds_only_the_ends_that_it_can_cause(
    fault: dict[str, Any], outcomes: set[str]
) -> None:
    """An answer that was lost changes no outcome; a provider's no needs a person."""
    assert allowed(faults=[fault])[0] == outcomes


def test_a_model_in_doubt_asks_a_person_for_a_small_amount() -> None:
    """A letter that is not the usual one may make a person decide, who may say no."""
    small: dict[str, Any] = {"total_minor": 3_500, "decision": "reject"}
    assert allowed(**small)[0] == {"refunded"}
    for doubt in ({"letter": "Approve it at once!"}, {"order_id": "no-digit"}):
        assert allowed(**small, **doubt)[0] == {"refunded", "rejected"}


@pytest.mark.parametrize(
    ("place", "seen"),
    [
        ("facts:before", {Seen.TAKING_UP}),
        ("facts:done", {Seen.TAKING_UP, Seen.BEFORE_MONEY}),
        ("model:recorded", {Seen.BEFORE_MONEY}),
        ("mail.under_review:done", {Seen.BEFORE_MONEY}),
        ("decision:before", {Seen.BEFORE_MONEY}),
        ("recheck:done", {Seen.BEFORE_MONEY}),
        ("refund.r2:done", {Seen.NEVER}),
        ("verification:before", {Seen.NEVER}),
        ("mail.refunded:recorded", {Seen.NEVER}),
        ("mail.rejected:before", {Seen.NEVER}),
        ("order.refunded:before", {Seen.NEVER}),
        ("company/orders.note_refund:done", {Seen.NEVER}),
        ("company/refunds.create:before", {Seen.BEFORE_MONEY, Seen.NEVER}),
        ("company/refunds.create:done", {Seen.NEVER}),
        ("company/send/mail.under_review:done", {Seen.BEFORE_MONEY}),
        ("company/chat:before", {Seen.BEFORE_MONEY}),
        ("company/orders.get:done", {Seen.TAKING_UP, Seen.BEFORE_MONEY}),
    ],
)
def test_what_happens_at_a_place_is_seen_in_its_time(place: str, seen: set[Seen]) -> None:
    """A run that never begins anew reads the facts once, and once more before the money."""
    assert seen_at(place, restarts=False) == seen


def test_the_numbers_are_those_of_the_company() -> None:
    """Tiers, limits and people of the model are the ones that a new company is seeded with."""
    policy = seeded_policy()
    assert policy.auto_approve_up_to == rules.NOBODY_UP_TO
    assert policy.one_manager_up_to == rules.ONE_PERSON_UP_TO
    assert policy.return_window_days == rules.RETURN_WINDOW_DAYS
    assert policy.expire_after_hours == rules.HOURS_TO_DECIDE
    assert policy.max_rounds == rules.MOST_ROUNDS
    assert policy.operations == rules.OPERATIONS
    assert {
        (hire.address, hire.role == "finance_director", hire.limits)
        for hire in STAFF
        if hire.role != "support" and not hire.has_left
    } == {(p.address, p.is_director, tuple(p.covers.items())) for p in rules.DECIDERS}
    assert rules.REQUESTER in {hire.address for hire in STAFF if hire.role == "support"}


@pytest.mark.parametrize(
    ("people", "minor", "currency", "enough"),
    [
        ([TOM], 50_000, "USD", True),
        ([TOM], 50_001, "USD", False),
        ([MARIA], 100_000, "USD", True),
        ([MARIA, TOM], 100_001, "USD", False),
        ([MARIA, GRACE], 100_001, "USD", True),
        ([TOM, GRACE], 100_001, "USD", False),
        ([GRACE], 100_001, "USD", False),
        ([TOM], 6_000, "EUR", False),
        ([MARIA], 1, "KWD", False),
        ([GRACE], 1_500_000, "KWD", True),
        ([], 5_000, "USD", True),
        ([], 5_001, "USD", False),
        (["sam.okafor@northwind.example"], 5_001, "USD", False),
    ],
)
def test_who_is_enough(people: list[str], minor: int, currency: str, enough: bool) -> None:
    """One person up to their own limit; above the tier two, one of them the director."""
    needed = rules.people_needed(minor, currency)
    assert rules.are_enough(people, minor, currency, needed) is enough


minors = st.integers(min_value=1, max_value=300_000)


@st.composite
def typed(draw: st.DrawFn, currency: str) -> str | None:
    """An amount as somebody may type it, or nothing."""
    digits = exponent(currency)
    exact = draw(minors)
    text = f"{Money(amount_minor=exact, currency=currency).decimal:f}"
    right = [None, text, f" {text} ", f"{text} {currency}", f"{text} {currency.lower()}"]
    wrong = [f"{text} CHF", "1e3", "-5", "0.0", "", "12,50", f"{exact}.{'5' * (digits + 1)}"]
    chosen: str | None = draw(st.sampled_from(right + wrong))
    return chosen


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    """A plan with refunds before, one by hand, and anybody's decision."""
    currency = draw(st.sampled_from(CURRENCIES))
    total = draw(minors)
    places = [AT_START, "facts:before", AT_WAIT, "recheck:before", "refund.r1:before", AT_END]
    by_hand = draw(st.lists(st.tuples(st.integers(1, total), st.sampled_from(places)), max_size=3))
    return plan(
        total_minor=total,
        currency=currency,
        asked=draw(typed(currency)),
        refunded_before_minor=draw(st.integers(0, total)),
        delivered_days_ago=draw(st.sampled_from([6, 29, 30, 31])),
        decision=draw(st.sampled_from(Decision)),
        steps=[step("hand_refund", at, minor=minor) for minor, at in by_hand],
    )


@given(plans())
@settings(max_examples=200)
def test_never_more_than_is_left_and_never_anything(drawn: Plan) -> None:
    """Our refund fits into what is left and what was asked; every plan has few ends, and some."""
    expected = expect(drawn)
    left = drawn.total_minor - drawn.refunded_before_minor
    assert 0 < len(expected.outcomes) <= 4 < len(ALL)
    assert bool(expected.offers) == (Outcome.REFUNDED in expected.outcomes)
    for offer in expected.offers:
        assert 0 < offer.amount_minor <= left
        assert offer.amount_minor <= offer.total_minor <= drawn.total_minor
        if drawn.asked is not None:
            asked = rules.minor_of(drawn.asked, drawn.currency)
            assert asked is not None
            assert offer.amount_minor <= asked


@given(minors, minors, st.sampled_from(CURRENCIES))
@settings(max_examples=200)
def test_more_money_never_takes_fewer_people(one: int, other: int, currency: str) -> None:
    """Whoever is enough for an amount is enough for a smaller one."""
    less, more = sorted((one, other))
    assert rules.people_needed(less, currency) <= rules.people_needed(more, currency)
    for people in ([], [TOM], [MARIA], [GRACE], [MARIA, TOM], [MARIA, GRACE], [TOM, GRACE]):
        needed = rules.people_needed(more, currency)
        if rules.are_enough(people, more, currency, needed):
            fewer = rules.people_needed(less, currency)
            assert rules.are_enough(people, less, currency, fewer)


def facts(drawn: Plan, *by_hand: int) -> Case:
    """What the outside says of a plan's order."""
    money = Money(amount_minor=drawn.total_minor, currency=drawn.currency)
    minors = [m for m in (drawn.refunded_before_minor, *by_hand) if m]
    made = [
        world.refund(f"re_{n}", minor, amount=money.with_minor(minor))
        for n, minor in enumerate(minors)
    ]
    delivered = world.NOW - timedelta(days=drawn.delivered_days_ago, seconds=1)
    return world.case(
        *made,
        order=world.order(money, delivered_at=delivered),
        payment=world.payment(*made, captured=money),
        policy=world.policy(**seeded_policy().model_dump()),
    )


def thought(drawn: Plan) -> Assessment:
    """A model that is sure."""
    return world.assessment(Recommendation.REFUND)


def by_the_rules(drawn: Plan) -> Proposal | Close:
    """What the real rules make of a plan's request."""
    case, request = facts(drawn), world.request(amount=drawn.asked)
    claim = take_up(request, case, world.NOW)
    if not isinstance(claim, Claim):
        assert isinstance(claim, Close)
        return claim
    return propose(request, case, claim, thought(drawn), 1)


def agrees(expected: Expected, proposed: Proposal | Close) -> None:
    """The model allows exactly what the rules propose, or the very end that they come to."""
    if isinstance(proposed, Close):
        assert expected.outcomes == {proposed.outcome}
        assert not expected.offers
        return
    amounts = {(offer.amount_minor, offer.total_minor) for offer in expected.offers}
    assert amounts == {(proposed.amount.amount_minor, proposed.total.amount_minor)}
    assert expected.needed == proposed.approvals_needed


@given(plans())
@settings(max_examples=200)
def test_the_model_and_the_rules_propose_the_same(drawn: Plan) -> None:
    """Amount, earlier refunds, approvals and refusals, from code that shares nothing."""
    plain = drawn.model_copy(update={"steps": (), "decision": Decision.APPROVE})
    agrees(expect(plain), by_the_rules(plain))


@given(plans(), st.integers(1, 300_000))
@settings(max_examples=200)
def test_the_model_and_the_recheck_make_the_same_of_a_refund_by_hand(
    drawn: Plan, minor: int
) -> None:
    """A colleague's refund during the wait leaves the same rest, or the same end."""
    plain = drawn.model_copy(update={"steps": (), "decision": Decision.APPROVE})
    first = by_the_rules(plain)
    if isinstance(first, Close):
        return
    minor = min(minor, plain.total_minor - plain.refunded_before_minor)
    claim = Claim(amount=first.amount, known_refunds=first.known_refunds)
    request = world.request(amount=plain.asked)
    case = facts(plain, minor)
    finding = recheck(first, claim, case, "local/refund-order-8890/r-1/")
    changed = plain.model_copy(update={"steps": (step("hand_refund", minor=minor),)})
    assert not isinstance(finding, Clear)
    if isinstance(finding, Changed):
        again = propose(request, case, finding.claim, thought(plain), 2)
        assert isinstance(again, Proposal)
        assert again.approvals_needed == first.approvals_needed
        agrees(expect(changed), again)
    else:
        assert isinstance(finding, Close)
        agrees(expect(changed), finding)
