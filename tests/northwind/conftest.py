"""A new company for each test, in the test's own process, and clients for it."""

from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
import stripe

from northwind.server import Company
from tests.northwind.support import client_of, payments_at


@pytest.fixture
async def company(tmp_path: Path) -> AsyncIterator[Company]:
    """A freshly seeded company."""
    async with Company(tmp_path / "company") as running:
        yield running


@pytest.fixture
async def http(company: Company) -> AsyncIterator[httpx.AsyncClient]:
    """A client for everything that the company serves over HTTP."""
    async with client_of(company.http_url) as client:
        yield client


@pytest.fixture
async def payments(company: Company) -> AsyncIterator[stripe.StripeClient]:
    """The official payment SDK, speaking to the company."""
    async with payments_at(company.http_url) as client:
        yield client
