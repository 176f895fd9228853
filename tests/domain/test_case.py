"""Finding the refund that this very request has made."""

import pytest

from domain.case import Ours
from domain.models import Outcome, Refund
from domain.money import Money
from domain.outcomes import Close, Reason
from tests.domain.build import SCOPE, case, proposal, refund

OURS = refund("re_1", 42_000, key=f"{SCOPE}refund.r1")
BY_HAND = refund("re_2", 42_000)
# Keys that only begin alike: another request, order, environment.
STRANGERS = tuple(
    refund(f"re_{number}", 42_000, key=key)
    for number, key in enumerate(
        [
            "",
            SCOPE[:-1],
            SCOPE.replace("r-1/", "r-10/refund.r1"),
            SCOPE.replace("8890", "88900"),
            SCOPE.replace("local", "local2"),
            f"x{SCOPE}refund.r1",
            SCOPE.upper(),
        ]
    )
)


@pytest.mark.parametrize("refunds", [(), (BY_HAND,), STRANGERS])
def test_what_others_made_is_not_ours(refunds: tuple[Refund, ...]) -> None:
    """Neither a refund without our mark nor one of another request."""
    assert case(*refunds).find_ours(SCOPE) is None
    assert case(*refunds).find_ours(SCOPE, proposal()) is None


def test_without_a_payment_nothing_is_ours() -> None:
    """Where the payment cannot be read, nothing is found and nothing fails."""
    assert case(order=None, payment=None).find_ours(SCOPE) is None


@pytest.mark.parametrize("status", ["succeeded", "pending", "failed", "a word of next year"])
def test_ours_is_found_among_others_in_any_state(status: str) -> None:
    """A failed one too: it is verified and told, never made a second time."""
    ours = OURS.model_copy(update={"status": status})
    facts = case(BY_HAND, *STRANGERS, ours)
    assert facts.find_ours(SCOPE) == facts.find_ours(SCOPE, proposal()) == Ours(refund=ours)


@pytest.mark.parametrize(
    "refunds",
    [
        (OURS, refund("re_9", 42_000, key=f"{SCOPE}refund.r2")),
        (OURS, OURS.model_copy(update={"id": "re_9", "status": "failed"})),
    ],
)
def test_two_of_ours_are_for_a_person(refunds: tuple[Refund, ...]) -> None:
    """This must never happen; if it has, nothing is adopted, and both are named."""
    for wanted in (None, proposal()):
        close = case(*refunds).find_ours(SCOPE, wanted)
        assert isinstance(close, Close)
        assert (close.outcome, close.reason) == (
            Outcome.NEEDS_HUMAN,
            Reason.REFUND_CONTRADICTORY,
        )
        assert "re_1" in close.explanation
        assert "re_9" in close.explanation


@pytest.mark.parametrize(
    "change",
    [
        {"amount": Money(amount_minor=41_999, currency="USD")},
        {"amount": Money(amount_minor=42_000, currency="EUR")},
        {"payment": "pi_other"},
    ],
)
def test_another_amount_or_payment_is_not_adopted(change: dict[str, object]) -> None:
    """Our mark on a refund that nobody approved is a contradiction."""
    close = case(OURS.model_copy(update=change)).find_ours(SCOPE, proposal())
    assert isinstance(close, Close)
    assert close.reason is Reason.REFUND_CONTRADICTORY
