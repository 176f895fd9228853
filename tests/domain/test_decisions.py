"""Whether a decision or a withdrawal fits the run, and came in time."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from domain.decisions import refuse_decision, refuse_withdrawal
from domain.statements import DecisionClaims, WithdrawalClaims
from domain.trail import Refusal
from tests.domain.build import MANAGER, NOW, case, policy, proposal, refund, request

PROPOSAL = proposal()
DEADLINE = NOW + timedelta(days=7)
SKEW = timedelta(minutes=2)
SECOND = timedelta(seconds=1)
LAST_DAY = datetime.max.replace(tzinfo=NOW.tzinfo)
FIRST_DAY = datetime.min.replace(tzinfo=NOW.tzinfo)


def decision(**changes: Any) -> DecisionClaims:
    """An approval of the proposal, signed now."""
    fields: dict[str, Any] = {
        "iss": MANAGER,
        "iat": NOW,
        "jti": "d-1",
        "env": "local",
        "sub": "refund-order-8890",
        "proposal": PROPOSAL.proposal_id,
        "verdict": "approve",
    }
    return DecisionClaims.model_validate(fields | changes)


def withdrawal(**changes: Any) -> WithdrawalClaims:
    """A withdrawal of the request, signed now."""
    fields: dict[str, Any] = {
        "iss": MANAGER,
        "iat": NOW,
        "jti": "w-1",
        "env": "local",
        "sub": "refund-order-8890",
        "request": "r-1",
    }
    return WithdrawalClaims.model_validate(fields | changes)


@pytest.mark.parametrize(
    ("changes", "refusal"),
    [
        ({}, None),
        ({"verdict": "reject"}, None),
        ({"env": "production"}, Refusal.OTHER_ENVIRONMENT),
        ({"env": "Local"}, Refusal.OTHER_ENVIRONMENT),
        ({"sub": "refund-order-8891"}, Refusal.OTHER_RUN),
        ({"sub": "8890"}, Refusal.OTHER_RUN),
        ({"proposal": ""}, Refusal.OTHER_PROPOSAL),
        ({"proposal": PROPOSAL.proposal_id.upper() + "A"}, Refusal.OTHER_PROPOSAL),
        (
            {"proposal": proposal(case(refund("re_1", 1))).proposal_id},
            Refusal.OTHER_PROPOSAL,
        ),
        (
            {"proposal": proposal(taken_up=request(amount="419.99")).proposal_id},
            Refusal.OTHER_PROPOSAL,
        ),
    ],
)
def test_a_decision_is_about_one_proposal(changes: dict[str, Any], refusal: Refusal | None) -> None:
    """An approval of another amount, order, round or environment pays nothing."""
    found = refuse_decision(decision(**changes), request(), PROPOSAL, policy(), DEADLINE, NOW)
    assert found == refusal


@pytest.mark.parametrize(
    ("signed", "now", "refusal"),
    [
        (DEADLINE - SECOND, DEADLINE - SECOND, None),
        (DEADLINE, DEADLINE, None),
        (DEADLINE - SECOND, DEADLINE + timedelta(days=1), None),
        (DEADLINE + SKEW, DEADLINE + SKEW, None),
        (DEADLINE + SKEW + SECOND, DEADLINE + timedelta(days=1), Refusal.TOO_LATE),
        (NOW + SKEW, NOW, None),
        (NOW + SKEW + SECOND, NOW, Refusal.FROM_THE_FUTURE),
        (DEADLINE + SKEW + SECOND, NOW, Refusal.FROM_THE_FUTURE),
        (NOW - timedelta(days=3), NOW, None),
        (LAST_DAY, NOW, Refusal.FROM_THE_FUTURE),
        (LAST_DAY, LAST_DAY - timedelta(days=1), Refusal.FROM_THE_FUTURE),
        (FIRST_DAY, NOW, None),
    ],
    ids=[
        *("in time", "at the deadline", "in time, arrived late", "within the skew", "too late"),
        *("clock a little ahead", "clock ahead", "after a deadline to come", "days ago"),
        *("end of the calendar", "nearly there", "begin of the calendar"),
    ],
)
def test_the_signed_time_decides(signed: datetime, now: datetime, refusal: Refusal | None) -> None:
    """A worker that was down over the deadline takes nothing from one who was in time."""
    claims = decision(iat=signed)
    assert refuse_decision(claims, request(), PROPOSAL, policy(), DEADLINE, now) == refusal


@pytest.mark.parametrize(
    ("changes", "refusal"),
    [
        ({}, None),
        ({"env": "production"}, Refusal.OTHER_ENVIRONMENT),
        ({"sub": "refund-order-8891"}, Refusal.OTHER_RUN),
        ({"request": "r-2"}, Refusal.OTHER_REQUEST),
        ({"request": "R-1"}, Refusal.OTHER_REQUEST),
    ],
)
def test_a_withdrawal_is_about_one_request(
    changes: dict[str, Any], refusal: Refusal | None
) -> None:
    """What was signed for an earlier request on the order does not end this one."""
    assert refuse_withdrawal(withdrawal(**changes), request()) == refusal
