"""Two people above the one-manager tier, one of them a finance director (issue 4)."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.approvals import (
    Approval,
    Standing,
    is_complete,
    is_director_for,
    missing_in_words,
    refuse_beside,
    stand,
    still_counting,
)
from domain.case import Case
from domain.models import Approver, Contact
from domain.people import may_decide
from domain.request import Proposal
from domain.statements import Verdict
from domain.trail import Refusal
from tests.domain.build import (
    CUSTOMER,
    MANAGER,
    REQUESTER,
    case,
    order,
    payment,
    person,
    policy,
    proposal,
    refund,
    usd,
)

LARGE = usd(185_000)
GRACE = "grace.lin@northwind.example"
IVAN = "ivan.petrov@northwind.example"


def large(**changes: Any) -> Proposal:
    """A proposal of $1,850.00: above what one manager may approve."""
    facts = case(order=order(LARGE), payment=payment(captured=LARGE), **changes)
    return proposal(facts)


def by(address: str, *, director: bool = False) -> Approval:
    """An approval that counts."""
    return Approval(person=Contact(name=address, address=address), token=address, director=director)


MARIA, TOM, DIRECTOR = by(MANAGER), by("tom@northwind.example"), by(GRACE, director=True)


@pytest.mark.parametrize(
    ("limit", "expected"),
    [(100_000, None), (99_999, Refusal.OVER_LIMIT), (50_000, Refusal.OVER_LIMIT)],
)
def test_who_stands_beside_a_director_may_approve_the_whole_manager_tier(
    limit: int, expected: Refusal | None
) -> None:
    """A limit of $1,000.00 is enough beside a director's, one cent less is not."""
    manager = person(limits=(usd(limit),))
    assert may_decide(manager, Verdict.APPROVE, large(), REQUESTER, CUSTOMER) == expected


@pytest.mark.parametrize(
    ("roles", "limit", "expected"),
    [
        (("finance_director",), 185_000, True),
        (("finance_director", "manager"), 500_000, True),
        (("finance_director",), 184_999, False),
        (("manager",), 500_000, False),
        (("Finance_Director",), 500_000, False),
    ],
)
def test_the_directors_own_limit_covers_the_total(
    roles: tuple[str, ...], limit: int, expected: bool
) -> None:
    """The role alone is not enough, nor is the limit alone."""
    assert is_director_for(person(roles=roles, limits=(usd(limit),)), large()) is expected


PAIRS: list[tuple[str, list[Approval], Approval, Refusal | None]] = [
    ("a manager first", [], MARIA, None),
    ("a director first", [], DIRECTOR, None),
    ("a director after a manager", [MARIA], DIRECTOR, None),
    ("a manager after a director", [DIRECTOR], MARIA, None),
    ("two directors", [DIRECTOR], by(IVAN, director=True), None),
    ("two managers", [MARIA], TOM, Refusal.NEEDS_DIRECTOR),
    ("the same manager", [MARIA], MARIA, Refusal.ALREADY_APPROVED),
    ("the same director, tagged", [DIRECTOR], by("Grace.Lin+2@northwind.example", director=True),
     Refusal.ALREADY_APPROVED),
]  # fmt: skip


@pytest.mark.parametrize(
    ("given", "new", "expected"), [row[1:] for row in PAIRS], ids=[row[0] for row in PAIRS]
)
def test_which_second_approval_counts(
    given: list[Approval], new: Approval, expected: Refusal | None
) -> None:
    """Two different people, and one of them a director: nothing else makes a pair."""
    wanted = large()
    answer = refuse_beside(wanted, given, new.person, director=new.director)
    assert answer == expected
    # What is refused is never added, so what is complete was a pair.
    kept = [*given, *([new] if expected is None else [])]
    assert is_complete(wanted, kept) is (expected is None and len(given) == 1)


def test_the_words_say_who_is_missing() -> None:
    """What the approvers read."""
    wanted = large()
    assert missing_in_words(wanted, []) == "two people, one of them a finance director"
    assert missing_in_words(wanted, [MARIA]) == "a finance director"
    assert missing_in_words(wanted, [DIRECTOR]) == "one more person"
    assert missing_in_words(wanted, [MARIA, DIRECTOR]) == ""
    assert missing_in_words(proposal(), []) == "a manager or a finance director"


def test_an_approval_that_still_holds_stays() -> None:
    """Only whoever lost the right is replaced."""
    lost = (Standing(refusal=Refusal.NOT_ACTIVE), Standing(director=True))
    assert not stand(large(), lost)
    assert still_counting(large(), [MARIA, DIRECTOR], lost) == (DIRECTOR,)


def test_a_director_who_became_a_manager_makes_room_for_a_director() -> None:
    """Both may still approve, and together they are no pair any more."""
    now = (Standing(), Standing(director=False))
    assert not stand(large(), now)
    assert still_counting(large(), [MARIA, DIRECTOR], now) == (MARIA,)


def test_a_second_director_is_enough_when_the_first_is_none_any_more() -> None:
    """The pair still holds, so nobody is asked again."""
    assert stand(large(), (Standing(director=False), Standing(director=True)))


@given(
    before=st.lists(st.booleans(), min_size=2, max_size=2).filter(any),
    now=st.lists(st.tuples(st.booleans(), st.booleans()), min_size=2, max_size=2),
)
def test_what_is_left_never_is_a_pair_that_does_not_stand(
    before: list[bool], now: list[tuple[bool, bool]]
) -> None:
    """P2: whatever the directory says, what is left needs another approval or stands."""
    wanted = large()
    approvals = [by(f"p{i}@northwind.example", director=was) for i, was in enumerate(before)]
    standings = [
        Standing(refusal=None if holds else Refusal.NO_RIGHT, director=director)
        for holds, director in now
    ]
    left = still_counting(wanted, approvals, standings)
    stands = stand(wanted, standings)
    assert is_complete(wanted, left) is stands
    refused = {a.token for a, s in zip(approvals, standings, strict=True) if s.refusal}
    assert not refused & {approval.token for approval in left}


def _approver(address: str, minor: int) -> Approver:
    return Approver(name=address, address=address, limits=(usd(minor),))


def _facts(managers: list[int], directors: list[int]) -> Case:
    return case(
        order=order(LARGE),
        payment=payment(captured=LARGE),
        approvers=[_approver(f"m{n}@x.example", minor) for n, minor in enumerate(managers)],
        directors=[_approver(f"d{n}@x.example", minor) for n, minor in enumerate(directors)],
    )


ASKED: list[tuple[list[int], list[int], list[str]]] = [
    ([100_000, 50_000], [500_000], ["m0", "d0"]),
    ([50_000], [500_000, 185_000], ["d0", "d1"]),
    ([50_000], [500_000], []),
    ([100_000, 100_000], [184_999], []),
    ([100_000], [], []),
]


@pytest.mark.parametrize(("managers", "directors", "asked"), ASKED)
def test_who_is_asked_for_two_approvals(
    managers: list[int], directors: list[int], asked: list[str]
) -> None:
    """Those who can be one of the pair; nobody where there can be no pair."""
    facts = _facts(managers, directors)
    found = [contact.address.partition("@")[0] for contact in facts.to_ask(large())]
    assert found == asked


def test_who_is_reminded_is_whose_approval_is_missing() -> None:
    """After a manager's yes only a director helps; after a director's, everybody else does."""
    facts = _facts([100_000, 100_000], [500_000])
    manager, director = by("m0@x.example"), by("d0@x.example", director=True)
    assert [c.name for c in facts.to_ask(large(), (manager,))] == ["d0@x.example"]
    assert [c.name for c in facts.to_ask(large(), (director,))] == ["m0@x.example", "m1@x.example"]


def test_a_policy_with_a_lower_auto_tier_than_manager_tier_is_no_hole() -> None:
    """Slices: what was refunded before counts for the pair too."""
    facts = case(
        refund("re_1", 90_000),
        order=order(LARGE),
        payment=payment(refund("re_1", 90_000), captured=LARGE),
        policy=policy(auto_approve_up_to={"USD": 10**6}),
    )
    wanted = proposal(facts)
    assert (wanted.approvals_needed, wanted.director_needed) == (2, True)
