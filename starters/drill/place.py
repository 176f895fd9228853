"""Places inside the company, at which its fault plan holds it in the middle of a call."""

import re
from dataclasses import dataclass

from domain.moments import Moment

# `company/refunds.create:done`, `company/send/mail.refunded:before`
_PLACE = re.compile(r"company/(?P<operation>[a-z_.]+)(/(?P<purpose>[a-z0-9_.]+))?:(?P<moment>\w+)")


@dataclass(frozen=True)
class Company:
    """A call that the company has taken: before or after it did what was asked."""

    operation: str
    purpose: str
    """Of a mail, such as `mail.refunded`; else empty."""
    moment: Moment

    @property
    def place(self) -> str:
        """Its name in a plan."""
        purpose = f"/{self.purpose}" if self.purpose else ""
        return f"company/{self.operation}{purpose}:{self.moment.value}"


def company_place(place: str) -> Company | None:
    """The company's place that a plan names; None where it names a worker's."""
    found = _PLACE.fullmatch(place)
    if found is None:
        return None
    return Company(found["operation"], found["purpose"] or "", Moment(found["moment"]))
