"""The refund policy's numbers and people once more, in plain words, for the drill to judge by.

Nothing here is taken from `domain.policy`, `domain.approvals` or `domain.people`: a mistake there
must not excuse itself. The numbers are those that the stand-in company is seeded with.
"""

import re
from collections.abc import Collection
from dataclasses import dataclass, field
from decimal import Decimal

from domain.money import MoneyError, exponent

REQUESTER = "sam.okafor@northwind.example"
OPERATIONS = "refund-operations@northwind.example"
RETURN_WINDOW_DAYS = 30
HOURS_TO_DECIDE = 168
MOST_ROUNDS = 3

# Minor units, with all earlier refunds on the order.
NOBODY_UP_TO = {"USD": 5_000, "EUR": 5_000, "JPY": 7_500}
ONE_PERSON_UP_TO = {"USD": 100_000, "EUR": 100_000, "JPY": 150_000}


@dataclass(frozen=True)
class Decider:
    """Somebody who may decide, and what one approval of theirs covers, in minor units."""

    address: str
    is_director: bool = False
    covers: dict[str, int] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """As in the staff directory."""
        return self.address.partition("@")[0].replace(".", " ").title()

    def reaches(self, minor: int, currency: str) -> bool:
        """Whether one approval of theirs covers so much."""
        return minor <= self.covers.get(currency, -1)


DECIDERS = (
    Decider(
        "maria.silva@northwind.example",
        covers={"USD": 100_000, "EUR": 100_000, "JPY": 150_000},
    ),
    Decider("tom.becker@northwind.example", covers={"USD": 50_000}),
    Decider(
        "grace.lin@northwind.example",
        is_director=True,
        covers={"USD": 5_000_000, "EUR": 5_000_000, "JPY": 7_500_000, "KWD": 1_500_000},
    ),
)


def people_needed(total_minor: int, currency: str) -> int:
    """How many different people must approve, for an amount plus earlier refunds on the order."""
    if currency not in NOBODY_UP_TO:
        return 1
    if total_minor <= NOBODY_UP_TO[currency]:
        return 0
    return 1 if total_minor <= ONE_PERSON_UP_TO[currency] else 2


def are_enough(people: Collection[str], total_minor: int, currency: str, needed: int) -> bool:
    """Whether the approvals of these people, by address, give the authority that is needed.

    Of two, one is a director whose own limit covers it all, and the other one's reaches the end of
    what one person may approve alone.
    """
    if needed == 0:
        return True
    able = [person for person in DECIDERS if person.address in people]
    if needed == 1:
        return any(person.reaches(total_minor, currency) for person in able)
    alone = ONE_PERSON_UP_TO[currency]
    return any(
        director.is_director and director.reaches(total_minor, currency) and other != director
        for director in able
        for other in able
        if other.reaches(alone, currency)
    )


def who_may_approve(total_minor: int, currency: str, needed: int) -> tuple[str, ...]:
    """Whose approval counts for something, by address."""
    enough = total_minor if needed < 2 else ONE_PERSON_UP_TO[currency]
    return tuple(person.address for person in DECIDERS if person.reaches(enough, currency))


def minor_of(text: str, currency: str) -> int | None:
    """What was asked for, in minor units; None where the text is no amount of this currency."""
    found = re.fullmatch(r"(\d{1,15})(?:\.(\d{1,6}))?(?: ([A-Za-z]{3}))?", text.strip(), re.ASCII)
    if found is None or (found[3] or currency).upper() != currency:
        return None
    try:
        digits = exponent(currency)
    except MoneyError:
        return None
    fraction = found[2] or ""
    if len(fraction) > digits:
        return None
    minor = int(Decimal(f"{found[1]}.{fraction or 0}").scaleb(digits))
    return minor or None
