"""The staff directory: who may do what, and by which keys they sign."""

import re
from urllib.parse import quote

from activities.company import CompanyClient
from domain.errors import BadAnswer
from domain.models import Frozen, Person

_ADDRESS = re.compile(r"[^@\s/?#%\\]{1,64}@[^@\s/?#%\\]{1,190}")


class People(Frozen):
    """All that the directory holds."""

    people: tuple[Person, ...]

    def find(self, address: str) -> Person | None:
        """The person with this address, however it is spelled in capitals."""
        wanted = directory_address(address)
        return next(
            (person for person in self.people if directory_address(person.address) == wanted), None
        )


class StaffDirectory:
    """Reads people from the company's staff directory."""

    def __init__(self, company: CompanyClient) -> None:
        """Read through this client."""
        self._company = company

    async def read_people(self) -> People:
        """Everybody.

        Raises:
            OutsideError: the directory cannot be read.
        """
        return await self._company.read("the staff directory", "/staff", People)

    async def find_person(self, address: str) -> Person | None:
        """The person with this address; None where the directory has nobody.

        Raises:
            OutsideError: the directory cannot be read, or answers with somebody else.
        """
        wanted = directory_address(address)
        if _ADDRESS.fullmatch(wanted) is None:
            # Nobody has it, and it might name another document than a person.
            return None
        what = "a person in the staff directory"
        person = await self._company.find(what, f"/staff/{quote(wanted, safe='@')}", Person)
        if person is not None and directory_address(person.address) != wanted:
            raise BadAnswer(f"{what}: the directory answered with another one")
        return person


def directory_address(address: str) -> str:
    """An address as the directory stores it: lower case, no spaces around it."""
    return address.strip().casefold()
