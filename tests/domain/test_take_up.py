"""A request is held against order, payment and rules before anything else is done."""

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from domain.case import Case, Ours
from domain.models import Order, Outcome, Refund, RefundStatus
from domain.money import Money
from domain.outcomes import Close, Reason
from domain.policy import Claim, take_up
from domain.request import RefundRequest
from domain.trail import Refusal
from tests.domain.build import (
    NOW,
    SCOPE,
    case,
    order,
    payment,
    policy,
    proposal,
    refund,
    request,
    usd,
)

YEN = Money(amount_minor=12_500, currency="JPY")
HAND = refund("re_hand", 42_000)

ENDS: list[tuple[str, dict[str, Any], Case, Outcome, Reason]] = [
    (
        "unsigned",
        {},
        case(requester_refusal=Refusal.BAD_SIGNATURE),
        Outcome.NEEDS_HUMAN,
        Reason.REQUEST_NOT_AUTHENTIC,
    ),
    (
        "no such order",
        {},
        case(order=None, payment=None),
        Outcome.DECLINED,
        Reason.ORDER_UNKNOWN,
    ),
    (
        "other spelling",
        {"order_id": "08890"},
        case(),
        Outcome.DECLINED,
        Reason.ORDER_SPELLED_DIFFERENTLY,
    ),
    ("no payment", {}, case(payment=None), Outcome.NEEDS_HUMAN, Reason.PAYMENT_UNKNOWN),
    (
        "paid in another currency",
        {},
        case(payment=payment(captured=YEN)),
        Outcome.NEEDS_HUMAN,
        Reason.PAYMENT_UNKNOWN,
    ),
    (
        "refunded in another currency",
        {},
        case(refund("re_yen", 0, amount=YEN)),
        Outcome.NEEDS_HUMAN,
        Reason.PAYMENT_UNKNOWN,
    ),
    (
        "two refunds of ours",
        {},
        case(refund("re_1", 100, key=f"{SCOPE}refund.r1"), refund("re_2", 1, key=f"{SCOPE}x")),
        Outcome.NEEDS_HUMAN,
        Reason.REFUND_CONTRADICTORY,
    ),
    (
        "disputed",
        {},
        case(payment=payment(disputed=True)),
        Outcome.DECLINED,
        Reason.PAYMENT_DISPUTED,
    ),
    (
        "late",
        {},
        case(order=order(delivered_at=NOW - timedelta(days=30, seconds=1))),
        Outcome.DECLINED,
        Reason.OUTSIDE_RETURN_WINDOW,
    ),
    ("no amount", {"amount": "1e2"}, case(), Outcome.DECLINED, Reason.AMOUNT_INVALID),
    ("below zero", {"amount": "-1"}, case(), Outcome.DECLINED, Reason.AMOUNT_INVALID),
    ("zero", {"amount": "0.00"}, case(), Outcome.DECLINED, Reason.AMOUNT_INVALID),
    ("empty", {"amount": ""}, case(), Outcome.DECLINED, Reason.AMOUNT_INVALID),
    ("part of a cent", {"amount": "0.333"}, case(), Outcome.DECLINED, Reason.AMOUNT_INVALID),
    ("other currency", {"amount": "1 EUR"}, case(), Outcome.DECLINED, Reason.AMOUNT_INVALID),
    (
        "too much",
        {"amount": "420.01"},
        case(),
        Outcome.DECLINED,
        Reason.AMOUNT_ABOVE_REFUNDABLE,
    ),
    ("all gone", {}, case(HAND), Outcome.ALREADY_REFUNDED, Reason.REFUNDED_BEFORE),
    (
        "all gone, a part asked for",
        {"amount": "1.00"},
        case(HAND),
        Outcome.ALREADY_REFUNDED,
        Reason.REFUNDED_BEFORE,
    ),
    (
        "all pending",
        {},
        case(refund("re_hand", 42_000, RefundStatus.PENDING)),
        Outcome.NEEDS_HUMAN,
        Reason.OTHER_REFUND_PENDING,
    ),
    (
        "all in a state nobody knows",
        {},
        case(refund("re_hand", 42_000, "reversing")),
        Outcome.NEEDS_HUMAN,
        Reason.OTHER_REFUND_PENDING,
    ),
    (
        "all gone by the provider's sum, with no refund to show",
        {},
        case(payment=payment(refunded_minor=42_000)),
        Outcome.NEEDS_HUMAN,
        Reason.OTHER_REFUND_PENDING,
    ),
]


@pytest.mark.parametrize(
    ("changes", "facts", "outcome", "reason"),
    [end[1:] for end in ENDS],
    ids=[end[0] for end in ENDS],
)
def test_a_request_that_does_not_hold_ends_with_its_reason(
    changes: dict[str, Any], facts: Case, outcome: Outcome, reason: Reason
) -> None:
    """Every rule has a name, and people can read why."""
    close = take_up(request(**changes), facts, NOW)
    assert isinstance(close, Close)
    assert (close.outcome, close.reason) == (outcome, reason)
    assert close.explanation.endswith(".")


@pytest.mark.parametrize(
    ("amount", "refunds", "minor"),
    [
        (None, (), 42_000),
        ("420.00", (), 42_000),
        ("0.01 USD", (), 1),
        (None, (refund("a", 12_000), refund("b", 5_000, "pending")), 25_000),
        ("250.00", (refund("a", 12_000), refund("b", 5_000, "requires_action")), 25_000),
        (None, (refund("a", 12_000, "failed"), refund("b", 5_000, "canceled")), 42_000),
        (None, (refund("a", 12_000, "a word of next year"),), 30_000),
    ],
)
def test_a_claim_is_what_was_asked_or_all_that_is_left(
    amount: str | None, refunds: tuple[Refund, ...], minor: int
) -> None:
    """Refunded and pending money is not there any more (openfoodnetwork#5449); failed money is."""
    claim = take_up(request(amount=amount), case(*refunds), NOW)
    assert claim == Claim(amount=usd(minor), known_refunds=tuple(r.id for r in refunds))


def test_yen_stay_yen() -> None:
    """500 yen are 500 minor units from the text to the claim."""
    facts = case(order=order(YEN), payment=payment(captured=YEN))
    claim = take_up(request(amount="500"), facts, NOW)
    assert isinstance(claim, Claim)
    assert claim.amount == Money(amount_minor=500, currency="JPY")


@pytest.mark.parametrize(
    ("amount", "refused"), [(None, False), ("420.00", False), ("420.01", True)]
)
def test_an_order_gets_no_more_than_its_own_total(amount: str | None, refused: bool) -> None:
    """A payment that paid for several orders does not refund them all through one."""
    facts = case(payment=payment(captured=usd(100_000)))
    taken_up = take_up(request(amount=amount), facts, NOW)
    if refused:
        assert isinstance(taken_up, Close)
        assert taken_up.reason is Reason.AMOUNT_ABOVE_REFUNDABLE
    else:
        assert isinstance(taken_up, Claim)
        assert taken_up.amount == usd(42_000)


@pytest.mark.parametrize(
    "facts",
    [
        order(delivered_at=NOW - timedelta(days=30)),
        order(delivered_at=NOW + timedelta(days=1)),
        order(delivered_at=None),
    ],
)
def test_the_return_window_closes_after_its_last_moment(facts: Order) -> None:
    """The last moment is inside, and what was never delivered has no window."""
    assert isinstance(take_up(request(), case(order=facts), NOW), Claim)


@pytest.mark.parametrize("status", [*RefundStatus, "a word of next year"])
def test_a_refund_of_this_request_is_taken_up_again(status: str) -> None:
    """A run that starts again goes on with the refund it has made, whatever became of it."""
    ours = refund("re_1", 42_000, status, key=f"{SCOPE}refund.r1")
    assert take_up(request(), case(ours, refund("re_2", 9)), NOW) == Ours(refund=ours)


@given(
    captured=st.integers(0, 10**12),
    total=st.integers(0, 10**12),
    refunds=st.lists(
        st.tuples(st.integers(0, 10**12), st.sampled_from([*RefundStatus, "other"])), max_size=6
    ),
    refunded=st.integers(0, 10**14),
    asked=st.none() | st.integers(0, 10**12).map(lambda minor: f"{usd(minor).decimal:f}"),
)
def test_a_claim_is_never_above_what_is_left(
    captured: int, total: int, refunds: list[tuple[int, str]], refunded: int, asked: str | None
) -> None:
    """Whatever the provider says and whoever asks: captured, less refunded, less pending."""
    made = [refund(f"re_{n}", minor, status) for n, (minor, status) in enumerate(refunds)]
    facts = case(
        order=order(usd(total)),
        payment=payment(*made, captured=usd(captured), refunded_minor=refunded),
    )
    taken_up = take_up(request(amount=asked), facts, NOW)
    assert isinstance(taken_up, Claim | Close)
    if isinstance(taken_up, Claim):
        gone = sum(minor for minor, status in refunds if status not in ("failed", "canceled"))
        assert taken_up.amount.amount_minor <= captured - max(gone, refunded)
        assert taken_up.amount.amount_minor <= total


@pytest.mark.parametrize(
    "changes",
    [
        {"auto_approve_up_to": {"USD": -1}},
        {"auto_approve_up_to": {"USD": 50.0}},
        {"one_manager_up_to": {"USD": "100000"}},
        {"one_manager_up_to": {"USD": 10**13}},
        {"return_window_days": 10**9},
        {"expire_after_hours": 10**12},
        {"expire_after_hours": 0},
        {"grace_minutes": 10**12},
        {"skew_minutes": -1},
    ],
)
def test_a_policy_that_would_break_a_run_is_refused_when_read(changes: dict[str, Any]) -> None:
    """No number of a policy can overflow a clock or stand for negative money."""
    with pytest.raises(ValidationError):
        policy(**changes)


def shared(*refunds: Refund) -> Case:
    """Order 8890 of $420.00, paid together with another order by one payment of $1,000.00."""
    return case(payment=payment(*refunds, captured=usd(100_000)))


def of_order(order_id: str, minor: int, status: str = RefundStatus.SUCCEEDED) -> Refund:
    """A refund that another request of ours made on the same payment."""
    key = f"local/refund-order-{order_id}/r-9/refund.r1"
    return refund(f"re_{order_id}_{minor}", minor, status, key=key)


SHARED: list[tuple[str, Case, int | Reason]] = [
    ("nothing refunded yet", shared(), 42_000),
    ("the other order refunded", shared(of_order("8891", 58_000)), 42_000),
    ("this order in part", shared(of_order("8890", 12_000)), 30_000),
    ("by hand in part, for whichever", shared(refund("re_hand", 12_000)), 30_000),
    ("this order whole", shared(of_order("8890", 42_000)), Reason.REFUNDED_BEFORE),
    ("both", shared(of_order("8890", 42_000), of_order("8891", 58_000)), Reason.REFUNDED_BEFORE),
    ("this order, pending", shared(of_order("8890", 42_000, "pending")),
     Reason.OTHER_REFUND_PENDING),
    ("by hand, more than this order", shared(refund("re_hand", 100_000)),
     Reason.REFUND_CONTRADICTORY),
    ("all of it for the other", shared(of_order("8891", 100_000)), Reason.REFUND_CONTRADICTORY),
    ("more than the rest for the other", shared(of_order("8891", 80_000)), 20_000),
]  # fmt: skip


@pytest.mark.parametrize(
    ("facts", "expected"), [row[1:] for row in SHARED], ids=[row[0] for row in SHARED]
)
def test_no_order_is_refunded_at_anothers_expense(facts: Case, expected: int | Reason) -> None:
    """P1: a payment for several orders pays each back once, by what our marks on refunds say."""
    held = take_up(request(), facts, NOW)
    if isinstance(expected, int):
        assert isinstance(held, Claim), held
        assert held.amount == usd(expected)
    else:
        assert isinstance(held, Close), held
        assert held.reason is expected


def retried(asked: str | None, **last: Any) -> RefundRequest:
    """A request whose last run proposed $20.00 before it needed a person."""
    proposed = proposal(taken_up=request(amount="20.00")).model_copy(update=last)
    return request(amount=asked, resumes={"retry": 1, "proposal": proposed})


RETRIED: list[tuple[str, str | None, dict[str, Any], Case, int | Reason]] = [
    ("as it was", "20.00", {}, case(), 2_000),
    ("all of it by hand", "20.00", {}, case(refund("h", 2_000)), Reason.REFUNDED_BY_HAND),
    ("more by hand", "20.00", {}, case(refund("h", 9_000)), Reason.REFUNDED_BY_HAND),
    ("by hand, pending", "20.00", {}, case(refund("h", 2_000, "pending")),
     Reason.OTHER_REFUND_PENDING),
    ("a part by hand", "20.00", {}, case(refund("h", 500)), 1_500),
    ("failed by hand", "20.00", {}, case(refund("h", 500, "failed")), 2_000),
    ("known before", "20.00", {"known_refunds": ("h",)}, case(refund("h", 500)), 2_000),
    ("on another payment", "20.00", {"payment": "pi_old"}, case(refund("h", 500)), 2_000),
    ("forged higher", "20.00", {"amount": usd(42_000)}, case(), 2_000),
    ("all that is left", None, {}, case(refund("h", 500)), 41_500),
]  # fmt: skip


@pytest.mark.parametrize(
    ("amount", "last", "facts", "expected"),
    [row[1:] for row in RETRIED],
    ids=[row[0] for row in RETRIED],
)
def test_what_others_refunded_before_a_retry_is_not_paid_again(
    amount: str | None, last: dict[str, Any], facts: Case, expected: int | Reason
) -> None:
    """R7: a refund by hand counts against a request that waited for a person, as against a run."""
    result = take_up(retried(amount, **last), facts, NOW)
    if isinstance(expected, Reason):
        assert isinstance(result, Close)
        assert result.reason is expected
    else:
        assert isinstance(result, Claim)
        assert result.amount == usd(expected)


@pytest.mark.parametrize("made_up", [-5, 0, 10_001, 10**4299])
def test_a_made_up_round_is_refused(made_up: int) -> None:
    """P7: whoever can start runs cannot choose a key that no sweep knows, nor break a task."""
    proposed = proposal().model_dump(mode="json") | {"round": made_up}
    with pytest.raises(ValidationError):
        request(resumes={"retry": 1, "proposal": proposed})
