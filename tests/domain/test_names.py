# ruff: noqa: RUF001 - letters and digits that look alike are the point here
"""Names on the wire: what may be an id, and that keys are made of ids alone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from domain.models import Identifier
from domain.names import (
    IDENTIFIER_PATTERN,
    idempotency_key,
    is_identifier,
    order_of_workflow,
    purpose_of,
    request_scope,
    workflow_id,
)

IDENTIFIERS = st.from_regex(IDENTIFIER_PATTERN, fullmatch=True).filter(is_identifier)
# Stripe documents 255 characters as the longest key.
LONGEST_KEY_OF_PROVIDERS = 255


def is_model_identifier(text: str) -> bool:
    """Whether the models accept the text as an id."""
    try:
        TypeAdapter(Identifier).validate_python(text)
    except ValidationError:
        return False
    return True


@pytest.mark.parametrize("text", ["8890", "08890", "A.b_c-9", "...", ".a", "-", "x" * 64])
def test_ids(text: str) -> None:
    """Letters, digits and three marks, up to 64."""
    assert is_identifier(text)
    assert is_model_identifier(text)


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "x" * 65, "8890\n", "\n8890", "88 90", "88\u00a090", "8890\x00", "\ud800"),
        *(".", "..", "../staff", "a/b", "a\\b", "8890%2f", "8890?x=1", "8890#", "a:b", "a@b"),
        *("８８９０", "٨٨٩٠", "ordeř", "o\u0301", "\u202e8890"),
    ],
)
def test_no_ids(text: str) -> None:
    """Nothing that a URL, a key or an eye could take for something else is an id."""
    assert not is_identifier(text)
    assert not is_model_identifier(text)


@given(text=st.text(max_size=70) | IDENTIFIERS | st.text("./-", max_size=4))
def test_models_and_names_agree_on_ids(text: str) -> None:
    """The command refuses exactly what the run would refuse."""
    assert is_identifier(text) == is_model_identifier(text)


@given(order_id=IDENTIFIERS)
def test_an_order_is_found_in_its_workflow_id(order_id: str) -> None:
    """One order has one workflow id, from which the order can be told."""
    assert order_of_workflow(workflow_id(order_id)) == order_id


@pytest.mark.parametrize(
    "workflow", ["", "8890", "refund-order-", "refund-order-a/b", "refund-order-..", "order-8890"]
)
def test_another_workflow_has_no_order(workflow: str) -> None:
    """What is no refund is not taken for one."""
    assert order_of_workflow(workflow) is None


def test_keys_are_spelled_as_documented() -> None:
    """Whoever reads the provider's books finds a key by these words; they never change."""
    scope = request_scope("local", "8890", "r-1")
    assert scope == "local/refund-order-8890/r-1/"
    assert idempotency_key(scope, "refund.r1") == "local/refund-order-8890/r-1/refund.r1"


@given(
    one=st.tuples(IDENTIFIERS, IDENTIFIERS, IDENTIFIERS, IDENTIFIERS),
    other=st.tuples(IDENTIFIERS, IDENTIFIERS, IDENTIFIERS, IDENTIFIERS),
)
def test_two_effects_never_share_a_key(
    one: tuple[str, str, str, str], other: tuple[str, str, str, str]
) -> None:
    """Keys differ where any id differs, and no scope is the beginning of another one's."""
    keys = [idempotency_key(request_scope(*ids[:3]), ids[3]) for ids in (one, other)]
    assert (keys[0] == keys[1]) == (one == other)
    assert keys[1].startswith(request_scope(*one[:3])) == (one[:3] == other[:3])
    assert purpose_of(keys[0]) == one[3]


def test_the_longest_key_fits_the_provider() -> None:
    """Ids of the greatest length still make a key that the provider takes."""
    longest = "x" * 64
    key = idempotency_key(request_scope(longest, longest, longest), "refund.r999")
    assert len(key) <= LONGEST_KEY_OF_PROVIDERS
