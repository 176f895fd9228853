"""Right before the money: what others did while the run waited counts, and is never paid again."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.approvals import Standing
from domain.case import Case, Ours
from domain.models import Outcome, Payment, Refund, RefundStatus
from domain.money import Money
from domain.outcomes import Close, Reason
from domain.policy import Claim, propose, take_up
from domain.recheck import Changed, Clear, RightLost, recheck
from domain.request import Proposal
from domain.trail import Refusal
from tests.domain.build import (
    NOW,
    SCOPE,
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

Result = Clear | Ours | Changed | RightLost | Close
BEFORE = refund("re_before", 2_000)


def recheck_after(now: Case, amount: str | None = None, then: Case | None = None) -> Result:
    """The re-check of a proposal made from the facts of then."""
    asked, then = request(amount=amount), then or case()
    return recheck(proposal(then, asked), claim(asked, then), now, SCOPE)


@pytest.mark.parametrize(
    ("then", "now"),
    [
        (case(), case()),
        (case(BEFORE), case(BEFORE)),
        (case(refund("re_1", 9, "pending")), case(refund("re_1", 9))),
        (case(refund("re_1", 9, "pending")), case(refund("re_1", 9, "failed"))),
        (case(), case(refund("re_1", 9, "failed"), refund("re_2", 9, "canceled"))),
        (case(payment=payment(refunded_minor=500)), case(payment=payment(refunded_minor=500))),
    ],
    ids=["nothing", "known", "known went through", "known failed", "new failed", "known gap"],
)
def test_a_world_that_has_not_taken_money_is_clear(then: Case, now: Case) -> None:
    """Nothing new that takes money: the approved proposal is paid."""
    assert recheck_after(now, then=then) == Clear()


@pytest.mark.parametrize("status", [*RefundStatus, "a word of next year"])
def test_our_own_refund_is_found_first(status: str) -> None:
    """A crash between refund and record leads to verifying, whatever else has changed."""
    ours = refund("re_1", 42_000, status, key=f"{SCOPE}refund.r1")
    facts = case(
        payment=payment(ours, disputed=True),
        standings=(Standing(refusal=Refusal.NO_RIGHT),),
        order=None,
    )
    assert recheck_after(facts) == Ours(refund=ours)


@pytest.mark.parametrize(
    "made",
    [
        refund("re_1", 41_999, key=f"{SCOPE}refund.r1"),
        refund("re_1", 42_000, key=f"{SCOPE}refund.r1", payment="pi_other"),
        refund("re_1", 0, amount=Money(amount_minor=42_000, currency="EUR"), key=f"{SCOPE}r"),
    ],
)
def test_our_mark_on_another_refund_goes_to_a_person(made: Refund) -> None:
    """Only an exact match is adopted."""
    assert_close(recheck_after(case(made)), Outcome.NEEDS_HUMAN, Reason.REFUND_CONTRADICTORY)


def assert_close(result: Result, outcome: Outcome, reason: Reason) -> Close:
    """The re-check ended the run in this way."""
    assert isinstance(result, Close), result
    assert (result.outcome, result.reason) == (outcome, reason)
    return result


@pytest.mark.parametrize(
    ("changes", "outcome", "reason"),
    [
        ({"order": None}, Outcome.NEEDS_HUMAN, Reason.PAYMENT_UNKNOWN),
        ({"payment": None}, Outcome.NEEDS_HUMAN, Reason.PAYMENT_UNKNOWN),
        (
            {"payment": payment(captured=Money(amount_minor=42_000, currency="EUR"))},
            Outcome.NEEDS_HUMAN,
            Reason.PAYMENT_UNKNOWN,
        ),
        ({"payment": payment(id="pi_new")}, Outcome.NEEDS_HUMAN, Reason.PAYMENT_CHANGED),
        ({"payment": payment(disputed=True)}, Outcome.DECLINED, Reason.PAYMENT_DISPUTED),
        (
            {"payment": payment(refunded_minor=1)},
            Outcome.NEEDS_HUMAN,
            Reason.REFUND_CONTRADICTORY,
        ),
        (
            {"payment": payment(refund("re_1", 100), refunded_minor=42_000)},
            Outcome.NEEDS_HUMAN,
            Reason.REFUND_CONTRADICTORY,
        ),
        (
            {"payment": payment(captured=usd(41_999))},
            Outcome.NEEDS_HUMAN,
            Reason.REFUND_CONTRADICTORY,
        ),
        (
            {"payment": payment(refund("re_1", 100), captured=usd(41_000))},
            Outcome.NEEDS_HUMAN,
            Reason.REFUND_CONTRADICTORY,
        ),
    ],
    ids=[
        *("no order", "no payment", "other currency", "other payment", "disputed"),
        *("unlisted refund", "unlisted beside listed", "captured less", "captured less, refunded"),
    ],
)
def test_facts_that_contradict_the_proposal_end_the_run(
    changes: dict[str, Any], outcome: Outcome, reason: Reason
) -> None:
    """Nothing is paid on facts that do not fit together; the run says which."""
    assert_close(recheck_after(case(**changes)), outcome, reason)


@pytest.mark.parametrize(
    "now",
    [
        payment(refunded_minor=1),
        payment(refund("re_1", 4_000), refunded_minor=4_001),
        payment(refund("re_1", 10_000), refunded_minor=10_001),
    ],
    ids=["no refund", "a part", "covered"],
)
def test_money_that_no_refund_explains_is_for_a_person(now: Payment) -> None:
    """Although enough is left: the missing refund may be for this very request."""
    result = recheck_after(case(payment=now), "100.00")
    assert_close(result, Outcome.NEEDS_HUMAN, Reason.REFUND_CONTRADICTORY)


@pytest.mark.parametrize(
    ("amount", "hand", "status", "expected"),
    [
        (None, 42_000, "succeeded", Reason.REFUNDED_BY_HAND),
        ("100.00", 10_000, "succeeded", Reason.REFUNDED_BY_HAND),
        ("100.00", 10_001, "succeeded", Reason.REFUNDED_BY_HAND),
        ("100.00", 42_000, "succeeded", Reason.REFUNDED_BY_HAND),
        ("100.00", 10_000, "pending", Reason.OTHER_REFUND_PENDING),
        ("100.00", 10_000, "requires_action", Reason.OTHER_REFUND_PENDING),
        ("100.00", 10_000, "a word of next year", Reason.OTHER_REFUND_PENDING),
        ("100.00", 9_999, "succeeded", 1),
        ("100.00", 4_000, "pending", 6_000),
        (None, 12_000, "succeeded", 30_000),
        (None, 12_000, "failed", None),
        (None, 42_000, "canceled", None),
    ],
)
def test_refunded_by_hand_during_the_wait(
    amount: str | None, hand: int, status: str, expected: Reason | int | None
) -> None:
    """Covered: already refunded. In part: the rest is asked for anew. Failed: as if never made."""
    by_hand = refund("re_hand", hand, status)
    result = recheck_after(case(by_hand), amount)
    if isinstance(expected, Reason):
        covered = expected is Reason.REFUNDED_BY_HAND
        outcome = Outcome.ALREADY_REFUNDED if covered else Outcome.NEEDS_HUMAN
        close = assert_close(result, outcome, expected)
        assert "re_hand" in close.explanation
    elif expected is None:
        assert result == Clear()
    else:
        assert isinstance(result, Changed)
        assert result.claim == Claim(amount=usd(expected), known_refunds=("re_hand",))
        assert str(by_hand.amount) in result.what


def test_one_pending_among_those_that_cover_is_not_called_refunded() -> None:
    """`already_refunded` is said only where every refund that covers the request has succeeded."""
    facts = case(refund("re_1", 5_000), refund("re_2", 5_000, "pending"))
    assert_close(recheck_after(facts, "100.00"), Outcome.NEEDS_HUMAN, Reason.OTHER_REFUND_PENDING)


def test_a_refund_known_before_the_claim_does_not_count_against_it() -> None:
    """Earlier refunds lower what is left, not what this request may still get."""
    result = recheck_after(case(BEFORE, refund("re_hand", 4_000)), "100.00", case(BEFORE))
    assert isinstance(result, Changed)
    assert result.claim.amount == usd(6_000)


def test_refunds_by_hand_add_up_over_rounds() -> None:
    """Two partial refunds in two rounds that together cover the request end it."""
    asked, first = request(amount="100.00"), case(refund("re_1", 4_000))
    changed = recheck(proposal(case(), asked), claim(asked, case()), first, SCOPE)
    assert isinstance(changed, Changed)
    second = propose(asked, first, changed.claim, assessment(), 2)
    assert isinstance(second, Proposal)
    assert second.total == usd(10_000)
    now = case(refund("re_1", 4_000), refund("re_2", 6_000))
    assert_close(
        recheck(second, changed.claim, now, SCOPE),
        Outcome.ALREADY_REFUNDED,
        Reason.REFUNDED_BY_HAND,
    )


def test_another_request_of_ours_counts_as_somebody_else() -> None:
    """Two requests on one order are not added up."""
    other = refund("re_1", 42_000, key="local/refund-order-8890/r-10/refund.r1")
    assert_close(recheck_after(case(other)), Outcome.ALREADY_REFUNDED, Reason.REFUNDED_BY_HAND)


@pytest.mark.parametrize(("other", "left"), [(10_000, True), (32_001, False)])
def test_another_order_on_the_payment_takes_money_and_covers_nothing(
    other: int, left: bool
) -> None:
    """One payment may pay for several orders: a refund of the other one is nothing to ours."""
    of_other = refund("re_1", other, key="local/refund-order-8891/r-1/refund.r1")
    result = recheck_after(case(of_other), "100.00")
    if left:
        assert isinstance(result, Changed)
        assert result.claim == Claim(amount=usd(10_000), known_refunds=("re_1",))
    else:
        assert_close(result, Outcome.NEEDS_HUMAN, Reason.REFUND_CONTRADICTORY)


def test_a_lost_right_means_waiting_again_and_no_round() -> None:
    """The proposal still stands; another approver is needed. New refunds come first."""
    lost = (Standing(refusal=Refusal.OVER_LIMIT), Standing())
    assert recheck_after(case(standings=lost)) == RightLost(standings=lost)
    both = recheck_after(case(refund("re_1", 1), standings=lost))
    assert isinstance(both, Changed)


def test_a_refund_of_nothing_by_hand_is_a_change_and_no_cover() -> None:
    """An empty refund makes a new round over the same amount."""
    result = recheck_after(case(refund("re_1", 0)))
    assert isinstance(result, Changed)
    assert result.claim.amount == usd(42_000)


HAND_REFUNDS = st.lists(
    st.lists(
        st.tuples(st.integers(0, 20_000), st.sampled_from([*RefundStatus, "a word of next year"])),
        max_size=3,
    ),
    min_size=1,
    max_size=5,
)


@given(
    asked=st.integers(1, 42_000),
    before=st.integers(0, 20_000),
    rounds=HAND_REFUNDS,
    drift=st.sampled_from([None, "succeeded", "failed", "canceled"]),
)
def test_no_sequence_of_refunds_by_hand_pays_anything_twice(
    asked: int, before: int, rounds: list[list[tuple[int, str]]], drift: str | None
) -> None:
    """Proposed and given by others after the claim: never above the claim, nor what is left."""
    wanted = request(amount=f"{usd(asked).decimal:f}")
    made = [refund("re_before", before)]
    facts = case(*made, policy=policy(one_manager_up_to={}))
    taken_up = take_up(wanted, facts, NOW)
    held = taken_up if isinstance(taken_up, Claim) else None
    number = 0
    while held is not None:
        number += 1
        proposed = propose(wanted, facts, held, assessment(), number)
        assert isinstance(proposed, Proposal), proposed
        given = sum(r.amount.amount_minor for r in made[1:] if r.takes_money)
        gone = sum(r.amount.amount_minor for r in made if r.takes_money)
        assert 0 < proposed.amount.amount_minor <= asked - given
        assert proposed.amount.amount_minor <= 42_000 - gone
        made = [settle(one, drift) for one in made]
        made += new_refunds(rounds.pop(0) if rounds else [], made)
        facts = facts.model_copy(update={"payment": payment(*made)})
        result = recheck(proposed, held, facts, SCOPE)
        if result == Clear():
            given = sum(r.amount.amount_minor for r in made[1:] if r.takes_money)
            assert proposed.amount.amount_minor + given <= asked
            assert proposed.amount.amount_minor <= facts_left(made)
        if isinstance(result, Close) and result.outcome is Outcome.ALREADY_REFUNDED:
            assert sum(r.amount.amount_minor for r in made[1:] if r.succeeded) >= asked
        held = result.claim if isinstance(result, Changed) else None


def settle(one: Refund, drift: str | None) -> Refund:
    """A pending refund becomes what pending refunds become; others stay as they are."""
    if drift is None or one.status != RefundStatus.PENDING:
        return one
    return one.model_copy(update={"status": drift})


def new_refunds(drawn: list[tuple[int, str]], made: list[Refund]) -> list[Refund]:
    """What a colleague refunds now, as far as the provider lets them."""
    new: list[Refund] = []
    for minor, status in drawn:
        if minor <= facts_left([*made, *new]):
            new.append(refund(f"re_{len(made) + len(new)}", minor, status))
    return new


def facts_left(made: list[Refund]) -> int:
    """Minor units that are left of the payment, by the provider's rule."""
    return 42_000 - sum(r.amount.amount_minor for r in made if r.takes_money)


def test_an_order_that_costs_less_by_now_is_proposed_anew() -> None:
    """Issue 4: an approval of $420.00 pays nothing of an order that comes to $100.00."""
    result = recheck_after(case(order=order(usd(10_000))))
    assert isinstance(result, Changed)
    assert result.claim.amount == usd(10_000)
    assert "100.00 USD" in result.what


def test_an_order_of_which_nothing_is_left_by_now_is_a_persons() -> None:
    """A refund that covers all of the smaller order leaves nothing that could be proposed."""
    before = refund("re_before", 10_000)
    now = case(before, order=order(usd(10_000)))
    result = recheck_after(now, then=case(before))
    assert_close(result, Outcome.NEEDS_HUMAN, Reason.REFUND_CONTRADICTORY)
    yen = order(Money(amount_minor=42_000, currency="JPY"))
    assert_close(recheck_after(case(order=yen)), Outcome.NEEDS_HUMAN, Reason.PAYMENT_UNKNOWN)


def test_what_the_customer_was_told_is_not_undone() -> None:
    """One rejection ends a request, also where its run is started again; a refund made is made."""
    told = case(told=(Outcome.REJECTED,))
    assert_close(recheck_after(told), Outcome.REJECTED, Reason.TOLD_BEFORE)
    ours = refund("re_1", 42_000, key=f"{SCOPE}refund.r1")
    assert recheck_after(case(ours, told=(Outcome.EXPIRED,))) == Ours(refund=ours)
