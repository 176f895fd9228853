"""What the tests of the company share: clients, and the company as a real process."""

import asyncio
import json
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import aiosmtplib
import httpx
import stripe

from northwind.mail import KEY_HEADER
from northwind.payment_api import API_KEY

# Reading the certificates takes longer than most tests do, and none of them needs any.
NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
# How long a test waits for what must happen soon, in seconds.
PATIENCE = 20.0


def client_of(url: str) -> httpx.AsyncClient:
    """A client for everything that the company serves over HTTP."""
    return httpx.AsyncClient(base_url=url, timeout=PATIENCE, verify=NO_TLS)


@asynccontextmanager
async def payments_at(url: str, api_key: str = API_KEY) -> AsyncIterator[stripe.StripeClient]:
    """The official SDK, without retries of its own and without telemetry."""
    stripe.enable_telemetry = False
    transport = stripe.HTTPXClient(timeout=PATIENCE)
    yield stripe.StripeClient(
        api_key, base_addresses={"api": url}, http_client=transport, max_network_retries=0
    )
    await transport.close_async()  # type: ignore[no-untyped-call] # the SDK's


def response_header(source: Any, name: str) -> str | None:
    """A header of the response that an object or an error of the SDK came in."""
    headers = source.headers if isinstance(source, stripe.StripeError) else None
    value: str | None = (headers or source.last_response.headers).get(name)
    return value


def letter(key: str | None = None, subject: str = "Under review") -> EmailMessage:
    """A message to a customer, with an idempotency key if one is given."""
    message = EmailMessage()
    message["From"] = "refunds@northwind.example"
    message["To"] = "ada.park@customers.example"
    message["Subject"] = subject
    message["Message-ID"] = "<one@northwind.example>"
    if key is not None:
        message[KEY_HEADER] = key
    message.set_content("We look at it. Ünïcode too.")
    return message


async def send(smtp_url: str, message: EmailMessage) -> None:
    """Send a message over SMTP."""
    host, _, port = smtp_url.removeprefix("smtp://").partition(":")
    await aiosmtplib.send(message, hostname=host, port=int(port), timeout=PATIENCE)


async def until(happened: Callable[[], Awaitable[bool]]) -> None:
    """Ask again and again, with a bound, until something has happened."""
    async with asyncio.timeout(PATIENCE):
        while not await happened():
            pass


async def set_faults(http: httpx.AsyncClient, *rows: dict[str, Any]) -> None:
    """Set rows of the fault plan, and see that they were taken."""
    answer = await http.post("/control/faults", json=list(rows))
    assert answer.status_code == 200, answer.text


async def fired(http: httpx.AsyncClient) -> list[int]:
    """How often each row of the fault plan has fired."""
    return [row["fired"] for row in (await http.get("/control/faults")).json()]


async def books(http: httpx.AsyncClient) -> Any:
    """What really happened."""
    return (await http.get("/books")).json()


async def refunds(http: httpx.AsyncClient, payment: str) -> list[dict[str, Any]]:
    """What was really refunded of a payment."""
    found: list[dict[str, Any]] = (await books(http))["payments"][payment]["refunds"]
    return found


@asynccontextmanager
async def clients_of(url: str) -> AsyncIterator[tuple[stripe.StripeClient, httpx.AsyncClient]]:
    """The payment SDK and an HTTP client for one company."""
    async with payments_at(url) as payments, client_of(url) as http:
        yield payments, http


@contextmanager
def process(data: Path, *options: str) -> Iterator[tuple[subprocess.Popen[str], dict[str, Any]]]:
    """The company as a process of its own, and the line that it printed once it served."""
    command = [sys.executable, "-m", "northwind", "--data", str(data), *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        try:
            assert running.stdout is not None
            yield running, json.loads(running.stdout.readline())
        finally:
            running.kill()
