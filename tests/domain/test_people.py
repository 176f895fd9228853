"""Who may ask and who may decide."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.models import Person
from domain.money import Money
from domain.people import may_decide, may_request, same_person
from domain.statements import Verdict
from domain.trail import Refusal
from tests.domain.build import (
    CUSTOMER,
    MANAGER,
    REQUESTER,
    case,
    person,
    proposal,
    refund,
    request,
    usd,
)

EURO = Money(amount_minor=100_000, currency="EUR")


@pytest.mark.parametrize(
    "other",
    [
        "Maria.Silva@Northwind.Example",
        " maria.silva@northwind.example\n",
        "maria. silva @northwind.example",
        "maria.silva+refunds@northwind.example",
        "maria.silva+@northwind.example",
        "maria.silva+a+b@NORTHWIND.example",
        "\uff4daria.silva@northwind.example",
    ],
)
def test_spelling_makes_no_other_person(other: str) -> None:
    """Case, spaces, a tag and wide letters reach the same mailbox (bcgov/sbc-pay#2248)."""
    assert same_person(MANAGER, other)


@pytest.mark.parametrize(
    "other",
    [
        "maria@northwind.example",
        "maria.silva@northwind.example.org",
        "maria.silva@north+wind.example",
        "mariasilva@northwind.example",
        "maria.silva",
        "",
    ],
)
def test_another_mailbox_is_another_person(other: str) -> None:
    """Only what certainly reaches the same mailbox is the same person."""
    assert not same_person(MANAGER, other)


LOCALS = st.text("abc.xyz-_", min_size=1, max_size=12)


@given(
    local=LOCALS,
    other=LOCALS,
    tag=st.text("abc+ ", max_size=8),
    upper=st.booleans(),
    space=st.integers(0, 20),
)
def test_same_person_looks_at_the_mailbox_alone(
    local: str, other: str, tag: str, upper: bool, space: int
) -> None:
    """However an address is dressed up, it is its own person and nobody else's."""
    plain = f"{local}@northwind.example"
    dressed = f"{local}+{tag}@northwind.example"
    dressed = dressed.upper() if upper else dressed
    dressed = f"{dressed[:space]} {dressed[space:]}"
    assert same_person(plain, dressed)
    assert same_person(dressed, plain)
    assert same_person(dressed, f"{other}@northwind.example") == (local == other)


@pytest.mark.parametrize(
    ("who", "refusal"),
    [
        (person(REQUESTER, roles=("support",), limits=()), None),
        (person(), None),
        (person(active=False), Refusal.NOT_ACTIVE),
        (None, Refusal.UNKNOWN_PERSON),
    ],
)
def test_who_may_hand_in_a_request(who: Person | None, refusal: Refusal | None) -> None:
    """Every active member of staff, and nobody else."""
    assert may_request(who) == refusal


ADA = {"address": CUSTOMER}
DECIDES: list[tuple[str, dict[str, Any] | None, Refusal | None, Refusal | None]] = [
    ("a manager", {}, None, None),
    ("a finance director", {"roles": ("finance_director",)}, None, None),
    ("both, and roles of next year", {"roles": ("auditor", "manager")}, None, None),
    ("the exact limit", {"limits": (EURO, usd(42_000))}, None, None),
    ("nobody", None, Refusal.UNKNOWN_PERSON, Refusal.UNKNOWN_PERSON),
    ("one who left", {"active": False}, Refusal.NOT_ACTIVE, Refusal.NOT_ACTIVE),
    ("the requester", {"address": REQUESTER}, Refusal.IS_REQUESTER, Refusal.IS_REQUESTER),
    (
        "the requester in other letters",
        {"address": "Sam.Okafor+x@Northwind.example"},
        Refusal.IS_REQUESTER,
        Refusal.IS_REQUESTER,
    ),
    ("the customer", ADA, Refusal.IS_CUSTOMER, Refusal.IS_CUSTOMER),
    ("support", {"roles": ("support",)}, Refusal.NO_RIGHT, Refusal.NO_RIGHT),
    ("no role", {"roles": ()}, Refusal.NO_RIGHT, Refusal.NO_RIGHT),
    ("a role of next year", {"roles": ("cfo",)}, Refusal.NO_RIGHT, Refusal.NO_RIGHT),
    ("a role spelled otherwise", {"roles": ("Manager",)}, Refusal.NO_RIGHT, Refusal.NO_RIGHT),
    ("a cent too little", {"limits": (usd(41_999),)}, Refusal.OVER_LIMIT, None),
    ("a limit in another currency", {"limits": (EURO,)}, Refusal.OVER_LIMIT, None),
    ("no limit", {"limits": ()}, Refusal.OVER_LIMIT, None),
]


@pytest.mark.parametrize(
    ("changes", "approving", "rejecting"),
    [row[1:] for row in DECIDES],
    ids=[row[0] for row in DECIDES],
)
def test_who_may_decide(
    changes: dict[str, Any] | None, approving: Refusal | None, rejecting: Refusal | None
) -> None:
    """Active, with the role, neither requester nor customer; to approve, within the limit."""
    who = None if changes is None else person(**changes)
    for verdict, refusal in ((Verdict.APPROVE, approving), (Verdict.REJECT, rejecting)):
        assert may_decide(who, verdict, proposal(), REQUESTER, CUSTOMER) == refusal


@pytest.mark.parametrize(("limit", "refusal"), [(42_000, None), (41_999, Refusal.OVER_LIMIT)])
def test_a_limit_covers_earlier_refunds_too(limit: int, refusal: Refusal | None) -> None:
    """A large refund cannot be approved in slices."""
    slice_of_it = proposal(case(refund("re_1", 32_000)), request(amount="100.00"))
    who = person(limits=(usd(limit),))
    assert may_decide(who, Verdict.APPROVE, slice_of_it, REQUESTER, CUSTOMER) == refusal
