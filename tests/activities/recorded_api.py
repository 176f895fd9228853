"""A real HTTP server that gives recorded answers, one for each request, and keeps the requests."""

import asyncio
import json
from collections import deque
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any, Self

RECORDED = Path(__file__).with_name("recorded")


@dataclass(frozen=True)
class Answer:
    """What to answer; a body of text is sent as it is, and as no JSON."""

    status: int
    body: Any
    headers: dict[str, str]


@dataclass(frozen=True)
class Received:
    """A request as it came."""

    path: str
    headers: dict[str, str]
    body: Any


def recorded(name: str) -> Answer:
    """One of the recorded answers."""
    kept = json.loads((RECORDED / f"{name}.json").read_text())
    return Answer(kept["status"], kept["body"], kept["headers"])


class RecordedApi:
    """Answers on 127.0.0.1 while the `async with` block lasts."""

    def __init__(self, usual: Answer) -> None:
        """`usual` is what it answers when nothing else was put in."""
        self._usual = usual
        self._next: deque[Answer | None] = deque()
        self.received: list[Received] = []

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        await self._server.wait_closed()

    def put(self, *answers: Answer | None) -> None:
        """What to answer next, in this order; None drops the connection instead."""
        self._next.extend(answers)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            self.received.append(await _read(reader))
            answer = self._next.popleft() if self._next else self._usual
            if answer is not None:
                writer.write(_bytes(answer))
                await writer.drain()
        finally:
            writer.close()


async def _read(reader: asyncio.StreamReader) -> Received:
    first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().strip().split("\r\n")
    pairs = [line.split(": ", 1) for line in lines]
    headers = {name.lower(): value for name, value in pairs}
    body = await reader.readexactly(int(headers["content-length"]))
    return Received(first.split()[1], headers, json.loads(body))


def _bytes(answer: Answer) -> bytes:
    plain = isinstance(answer.body, str)
    body = (answer.body if plain else json.dumps(answer.body)).encode()
    headers = {
        "content-type": "text/html" if plain else "application/json",
        "content-length": str(len(body)),
        "connection": "close",
        **answer.headers,
    }
    lines = [f"HTTP/1.1 {answer.status} {_phrase(answer.status)}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + body


def _phrase(status: int) -> str:
    return HTTPStatus(status).phrase if status in list(HTTPStatus) else "Overloaded"
