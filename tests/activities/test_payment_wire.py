"""Rows of the provider's list of all refunds, which others fill as they like."""

from typing import Any

import pytest

from activities.payment_wire import WireRow
from domain.errors import BadAnswer


@pytest.mark.parametrize(
    ("metadata", "is_ours"),
    [
        ({"northwind_key": "local/refund-order-8890/r-1/refund.r1"}, True),
        ({"northwind_key": "see ticket 12"}, False),
        ({"northwind_key": 7}, False),
        ({}, False),
        (None, False),
        (["northwind_key"], False),
    ],
)
def test_what_carries_no_key_of_ours_is_not_read(metadata: Any, is_ours: bool) -> None:
    """P7: a refund by hand with words under our name, on no payment of ours, stops no sweep."""
    assert WireRow(id="re_1", status="failed", metadata=metadata).is_ours is is_ours


@pytest.mark.parametrize("created", [10**18, -(10**18), 1.5, None, "soon", True])
def test_an_impossible_time_is_a_bad_answer(created: Any) -> None:
    """P7: a provider's nonsense is waited out as such, and is no mistake of ours."""
    row = WireRow.model_validate(
        {"id": "re_1", "status": "failed", "amount": 100, "currency": "usd",
         "payment_intent": "pi_1", "created": created}
    )  # fmt: skip
    with pytest.raises(BadAnswer, match=r"re_1.*created"):
        row.read("a refund")
