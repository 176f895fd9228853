"""No letter, and no model that repeats one, moves what code decides (promises P2 and P5)."""

import pytest

from domain.models import Assessment, Recommendation
from domain.policy import propose
from domain.request import Proposal
from tests.domain.build import assessment, case, claim, order, payment, request, usd
from tests.letters import LETTERS

SURE = assessment(summary="The lamp came in pieces.")
# On each side of the two tiers: nobody, one manager, two people.
AMOUNTS = {3_500: 0, 42_000: 1, 185_000: 2}


def proposed(minor: int, letter: str, thought: Assessment | None) -> Proposal:
    """What would be paid for an order of so much, after this letter and this thought about it."""
    captured = usd(minor)
    facts = case(order=order(captured), payment=payment(captured=captured))
    asked = request(message=letter)
    result = propose(asked, facts, claim(asked, facts), thought, 1)
    assert isinstance(result, Proposal)
    return result


@pytest.mark.parametrize("minor", AMOUNTS)
@pytest.mark.parametrize("name", LETTERS)
def test_a_letter_moves_no_amount_payee_or_approval(name: str, minor: int) -> None:
    """R44: the proposal is the same, to the letter, as after an honest letter."""
    honest = proposed(minor, "The lamp came in pieces.", SURE)
    assert (honest.amount, honest.approvals_needed) == (usd(minor), AMOUNTS[minor])
    assert proposed(minor, LETTERS[name], SURE) == honest


@pytest.mark.parametrize("recommendation", [*Recommendation, None])
@pytest.mark.parametrize("minor", AMOUNTS)
@pytest.mark.parametrize("name", LETTERS)
def test_a_model_that_repeats_a_letter_can_add_a_person_and_nothing_else(
    name: str, minor: int, recommendation: Recommendation | None
) -> None:
    """It refuses nobody, and removes nobody who must approve."""
    words = LETTERS[name][:1_500]
    thought = assessment(recommendation, summary=words) if recommendation else None
    honest, after = proposed(minor, "Broken.", SURE), proposed(minor, LETTERS[name], thought)
    sure = recommendation is Recommendation.REFUND
    assert after.approvals_needed == (AMOUNTS[minor] if sure else max(1, AMOUNTS[minor]))
    assert after.proposal_id == honest.proposal_id
    assert (after.amount, after.payment, after.order_id) == (usd(minor), "pi_8890", "8890")
    assert (after.director_needed, after.each_up_to) == (honest.director_needed, honest.each_up_to)
    assert after.why_a_person[: len(honest.why_a_person)] == honest.why_a_person
