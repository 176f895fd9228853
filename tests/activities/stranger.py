"""A payment provider that nobody here wrote: `localstripe`, in a process of its own.

In front of it stands a small proxy that can lose an answer after its effect, hold refunds until
several have arrived, and completes charges by the two documented fields that localstripe lacks.
"""

import asyncio
import json
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import httpx

from tests.northwind.support import client_of

API_KEY = "sk_test_stranger"
# Its own command listens on all interfaces, and writes each change into one file of /tmp.
_PROGRAM = """
import socket, sys
from aiohttp import web
from localstripe.resources import Store
from localstripe.server import app
Store.dump_to_disk = lambda self: None
web.run_app(app, sock=socket.socket(fileno=int(sys.argv[1])), print=None, access_log=None)
"""


@contextmanager
def running_localstripe() -> Iterator[str]:
    """Start it on a free port of 127.0.0.1, and return its address. It keeps nothing."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        # From here on, connections wait until it is ready for them.
        listener.listen()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, str(listener.fileno())],
            pass_fds=[listener.fileno()],
        )
    try:
        yield url
    finally:
        process.kill()
        process.wait()


class Stranger:
    """The provider as its customers see it, and its faults."""

    def __init__(self, direct: httpx.AsyncClient) -> None:
        """Pass everything on to `direct`."""
        self.direct = direct
        """A client of the provider itself, past the proxy."""
        self.url = ""
        self.refunds_asked = 0
        """How many requests for a refund came by."""
        self.answers_to_lose = 0
        """Of so many refunds the answer is lost, after they were made."""
        self.meeting: asyncio.Barrier | None = None
        """Where requests for a refund wait for each other."""

    async def post(self, path: str, **form: Any) -> httpx.Response:
        """Ask the provider itself for something new."""
        return await self.direct.post(f"/v1/{path}", data=form)

    async def new_payment(self, amount: int) -> str:
        """A captured payment in dollars, in cents; its id."""
        card = {"number": "4242424242424242", "exp_month": 12, "exp_year": 2040, "cvc": "123"}
        fields = {f"card[{name}]": value for name, value in card.items()}
        method = (await self.post("payment_methods", type="card", **fields)).json()["id"]
        payment = await self.post(
            "payment_intents", amount=amount, currency="usd", payment_method=method, confirm="true"
        )
        return str(payment.json()["id"])

    async def amounts(self, payment: str) -> list[int]:
        """The provider's own books: every refund of a payment, in cents."""
        return [refund["amount"] for refund in await self.listed(payment, 1000)]

    async def listed(self, payment: str, limit: int) -> list[dict[str, Any]]:
        """A page of the refunds of a payment, as the provider itself lists them."""
        query = httpx.QueryParams(payment_intent=payment, limit=limit)
        answer = await self.direct.get("/v1/refunds", params=query)
        page: list[dict[str, Any]] = answer.json()["data"]
        return page

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Pass one request on, and its answer back unless that is to be lost."""
        line, *rows = (await reader.readuntil(b"\r\n\r\n")).decode().strip().split("\r\n")
        method, target, _ = line.split(" ")
        pairs = (row.partition(": ") for row in rows)
        headers = httpx.Headers([(name, value) for name, _, value in pairs])
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        kept = ("authorization", "content-type", "idempotency-key")
        passed = {name: headers[name] for name in kept if name in headers}
        is_refund = (method, target) == ("POST", "/v1/refunds")
        if is_refund:
            self.refunds_asked += 1
            if self.meeting is not None:
                await self.meeting.wait()
        answer = await self.direct.request(method, target, headers=passed, content=body)
        if is_refund and self.answers_to_lose:
            self.answers_to_lose -= 1
        else:
            content = json.dumps(_completed(answer.json())).encode()
            head = (
                f"HTTP/1.1 {answer.status_code} {answer.reason_phrase}\r\nConnection: close\r\n"
                f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n"
            )
            writer.write(head.encode() + content)
            await writer.drain()
        writer.close()


def _completed(answer: dict[str, Any]) -> dict[str, Any]:
    charge = answer.get("latest_charge")
    if charge is not None:
        captured = charge["amount"] if charge["captured"] else 0
        charge.update(amount_captured=captured, disputed=False)
    return answer


@asynccontextmanager
async def stranger_at(url: str) -> AsyncIterator[Stranger]:
    """The proxy, on a free port."""
    async with client_of(url) as direct:
        direct.headers["Authorization"] = f"Bearer {API_KEY}"
        stranger = Stranger(direct)
        async with await asyncio.start_server(stranger.serve, "127.0.0.1", 0) as server:
            host, port = server.sockets[0].getsockname()
            stranger.url = f"http://{host}:{port}"
            yield stranger
