"""What would be paid, and who must approve it: code decides, the model can only ask for help."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.case import Case
from domain.models import Assessment, Category, Recommendation, Refund
from domain.money import Money
from domain.outcomes import Close, Reason
from domain.policy import Claim, proposal_digest, propose, take_up
from domain.request import Proposal, RefundRequest
from tests.domain.build import (
    NOW,
    assessment,
    case,
    claim,
    order,
    payment,
    policy,
    proposal,
    refund,
    request,
    usd,
)

NO_ASSESSMENT = "the model gave no assessment"


def propose_for(
    facts: Case, thought: Assessment | None, asked: RefundRequest | None = None
) -> Proposal | Close:
    """The first proposal for a request that holds."""
    asked = asked or request()
    return propose(asked, facts, claim(asked, facts), thought, 1)


def facts_of(captured: Money, *refunds: Refund, **limits: dict[str, int]) -> Case:
    """An order of this much, under a policy with these limits."""
    return case(
        order=order(captured),
        payment=payment(*refunds, captured=captured),
        policy=policy(**limits),
    )


@pytest.mark.parametrize(
    ("captured", "before", "approvals"),
    [
        (5_000, (), 0),
        (5_001, (), 1),
        (100_000, (), 1),
        (5_000, (3_500,), 0),
        (6_000, (3_500,), 1),
        (42_000, (41_900,), 1),
        (100_000, (99_999,), 1),
    ],
)
def test_tiers_look_at_this_amount_and_earlier_refunds(
    captured: int, before: Sequence[int], approvals: int
) -> None:
    """Nobody up to $50.00 in all, one manager up to $1,000.00 in all: slices change nothing."""
    made = [refund(f"re_{n}", minor) for n, minor in enumerate(before)]
    proposed = propose_for(facts_of(usd(captured), *made), assessment())
    assert isinstance(proposed, Proposal)
    assert proposed.approvals_needed == approvals
    assert bool(proposed.why_a_person) == bool(approvals)
    assert proposed.total == usd(captured)
    assert proposed.taken_before == usd(sum(before))


@pytest.mark.parametrize(
    ("captured", "before"), [(100_001, ()), (185_000, ()), (100_001, (99_000,)), (10**12, (1,))]
)
def test_more_than_one_manager_may_approve_needs_two_people(
    captured: int, before: Sequence[int]
) -> None:
    """Above $1,000.00 in all, slices or not: two people, one of them a finance director."""
    made = [refund(f"re_{n}", minor) for n, minor in enumerate(before)]
    proposed = propose_for(facts_of(usd(captured), *made), assessment())
    assert isinstance(proposed, Proposal)
    assert (proposed.approvals_needed, proposed.director_needed) == (2, True)
    assert proposed.limit_needed == usd(100_000)
    assert proposed.total == usd(captured)
    assert proposed.why_a_person == ("more than 1000.00 USD in all",)


def test_exactly_what_one_manager_may_approve_needs_one() -> None:
    """The tier ends with its last cent, not before it."""
    proposed = propose_for(facts_of(usd(100_000)), assessment())
    assert isinstance(proposed, Proposal)
    assert (proposed.approvals_needed, proposed.director_needed) == (1, False)
    assert proposed.limit_needed == proposed.total == usd(100_000)


def test_a_pending_refund_counts_for_the_tier() -> None:
    """Money that may yet go is as good as gone."""
    facts = facts_of(usd(6_000), refund("re_1", 2_000, "pending"))
    proposed = propose_for(facts, assessment())
    assert isinstance(proposed, Proposal)
    assert (proposed.taken_before, proposed.approvals_needed) == (usd(2_000), 1)


def test_a_currency_without_limits_needs_a_person() -> None:
    """A tenth of a dinar is approved by somebody where the policy does not speak of dinars."""
    dinars = Money(amount_minor=100, currency="KWD")
    proposed = propose_for(facts_of(dinars), assessment())
    assert isinstance(proposed, Proposal)
    assert proposed.why_a_person == ("the policy has no limits in KWD",)
    assert proposed.approvals_needed == 1


def test_limits_are_in_minor_units_of_their_currency() -> None:
    """7,500 yen need nobody and 7,501 yen one person."""
    for minor, approvals in ((7_500, 0), (7_501, 1)):
        yen = Money(amount_minor=minor, currency="JPY")
        proposed = propose_for(facts_of(yen), assessment())
        assert isinstance(proposed, Proposal)
        assert proposed.approvals_needed == approvals


@pytest.mark.parametrize(
    ("thought", "why"),
    [
        (assessment(Recommendation.REFUND), ()),
        (assessment(Recommendation.UNSURE), ("the model says unsure",)),
        (assessment(Recommendation.REFUSE), ("the model says refuse",)),
        (None, (NO_ASSESSMENT,)),
    ],
)
def test_a_doubt_of_the_model_adds_a_person(
    thought: Assessment | None, why: tuple[str, ...]
) -> None:
    """Below the limit the model can ask for a person; it cannot refuse."""
    proposed = propose_for(facts_of(usd(100)), thought)
    assert isinstance(proposed, Proposal)
    assert proposed.why_a_person == why
    assert proposed.approvals_needed == len(why)


def test_what_was_not_delivered_needs_a_person() -> None:
    """Without a day of delivery no rule holds the request back, so that somebody looks at it."""
    facts = case(order=order(usd(100), delivered_at=None), payment=payment(captured=usd(100)))
    proposed = propose_for(facts, assessment())
    assert isinstance(proposed, Proposal)
    assert proposed.approvals_needed == 1


ASSESSMENTS = st.none() | st.builds(
    Assessment,
    category=st.sampled_from(Category),
    recommendation=st.sampled_from(Recommendation),
    cited_clauses=st.lists(st.text(max_size=20), max_size=10).map(tuple),
    summary=st.text(min_size=1, max_size=200),
)
CASES = st.builds(
    lambda captured, before, auto, one: facts_of(
        usd(captured),
        refund("re_0", min(before, captured)),
        auto_approve_up_to=auto,
        one_manager_up_to=one,
    ),
    captured=st.integers(1, 300_000),
    before=st.integers(0, 300_000),
    auto=st.sampled_from([{}, {"USD": 0}, {"USD": 5_000}]),
    one=st.sampled_from([{}, {"USD": 0}, {"USD": 100_000}]),
)


@given(facts=CASES, letter=st.text(min_size=1, max_size=300), thought=ASSESSMENTS)
def test_no_letter_and_no_model_changes_money_payee_or_refusal(
    facts: Case, letter: str, thought: Assessment | None
) -> None:
    """Only the number of people may differ, and only upwards (google/adk-python#1851)."""
    plain, other = request(message="A plain letter."), request(message=letter)
    held = take_up(plain, facts, NOW)
    assert take_up(other, facts, NOW) == held
    if not isinstance(held, Claim):
        return
    sure = propose(plain, facts, held, assessment(), 1)
    said = propose(other, facts, held, thought, 1)
    if isinstance(sure, Close):
        assert said == sure
    else:
        assert isinstance(said, Proposal)
        people: dict[str, Any] = {"approvals_needed": 0, "why_a_person": ()}
        assert said.model_copy(update=people) == sure.model_copy(update=people)
        assert said.approvals_needed >= sure.approvals_needed
        assert set(said.why_a_person) >= set(sure.why_a_person)


@given(
    claimed=st.integers(1, 10**12),
    captured=st.integers(0, 10**12),
    before=st.integers(0, 10**12),
    refunded=st.integers(0, 10**14),
)
def test_a_proposal_is_never_above_what_is_left(
    claimed: int, captured: int, before: int, refunded: int
) -> None:
    """Even where the facts have changed since the claim was taken up."""
    facts = case(
        payment=payment(
            refund("re_0", before, "pending"), captured=usd(captured), refunded_minor=refunded
        ),
        policy=policy(one_manager_up_to={}),
    )
    held = Claim(amount=usd(claimed), known_refunds=())
    proposed = propose(request(), facts, held, assessment(), 1)
    left = captured - max(before, refunded)
    if claimed > left:
        assert isinstance(proposed, Close)
        assert proposed.reason is Reason.REFUND_CONTRADICTORY
    else:
        assert isinstance(proposed, Proposal)
        assert proposed.amount == usd(claimed)
        assert (proposed.order_id, proposed.payment) == ("8890", "pi_8890")


def test_facts_without_order_or_payment_are_no_case_for_a_proposal() -> None:
    """Proposing on nothing is a mistake of the caller, not a refund."""
    held = Claim(amount=usd(1), known_refunds=())
    for facts in (case(order=None), case(payment=None)):
        with pytest.raises(ValueError, match="read"):
            propose(request(), facts, held, assessment(), 1)


@pytest.mark.parametrize(
    "change",
    [
        {"environment": "production"},
        {"order_id": "8891"},
        {"request_id": "r-2"},
    ],
)
def test_a_proposal_id_binds_the_request(change: dict[str, str]) -> None:
    """An approval does not carry over to another environment, order or request."""
    proposed = proposal()
    assert proposal_digest(request(), proposed) == proposed.proposal_id
    assert proposal_digest(request(**change), proposed) != proposed.proposal_id


@pytest.mark.parametrize(
    "change",
    [
        {"round": 2},
        {"order_id": "8891"},
        {"payment": "pi_other"},
        {"amount": usd(41_999)},
        {"amount": Money(amount_minor=42_000, currency="EUR")},
        {"taken_before": usd(1)},
        {"known_refunds": ("re_1",)},
        {"policy_version": "2026-08"},
    ],
)
def test_a_proposal_id_binds_what_is_proposed(change: dict[str, Any]) -> None:
    """An approval does not carry over to other money, another payee, round or policy."""
    proposed = proposal()
    other = proposed.model_copy(update=change)
    assert proposal_digest(request(), other) != proposed.proposal_id


@pytest.mark.parametrize("thought", [None, assessment(Recommendation.REFUSE)])
def test_a_proposal_id_leaves_out_what_the_model_thinks(thought: Assessment | None) -> None:
    """An assessment that comes out otherwise on a second try takes no approval away."""
    proposed = propose_for(case(), thought)
    assert isinstance(proposed, Proposal)
    assert proposed.proposal_id == proposal().proposal_id


def test_the_order_in_which_the_provider_lists_refunds_changes_no_proposal() -> None:
    """An approval does not go stale because a list came in another order."""
    one, two = refund("re_1", 1), refund("re_2", 2)
    assert propose_for(case(one, two), None) == propose_for(case(two, one), None)
