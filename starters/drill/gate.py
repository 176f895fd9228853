"""The drill's end of the workers' watch: who comes to which place, and who is held there."""

import asyncio
import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from domain import names
from domain.moments import Moment, place


class Hold:
    """One worker process, once, at one place of one run."""

    def __init__(self, *, again: bool = False) -> None:
        """Nobody has come yet.

        Args:
            again: Whether to hold the next one too, where the one that stood here left unasked:
                its Activity has timed out.
        """
        self.again = again
        self.reached = asyncio.Event()
        self.pid = 0
        """Which process stands here."""
        self._let_go = asyncio.Event()

    def release(self) -> None:
        """Let the process go on, now or as soon as it comes."""
        self._let_go.set()

    def reopen(self) -> bool:
        """Whether the next one is to be held, now that the one that stood here has left."""
        if self.again and not self._let_go.is_set():
            self.reached.clear()
            return True
        return False

    async def stand(self, pid: int) -> None:
        """Stand still until released."""
        self.pid = pid
        self.reached.set()
        await self._let_go.wait()


@dataclass(frozen=True)
class _Passage:
    """A worker process has come to a place and gone on; by the monotonic clock, in seconds."""

    workflow_id: str
    place: str
    pid: int
    came_at: float
    went_at: float


class Gate:
    """Listens where the workers ask (`activities.watch`), and answers when they may go on."""

    def __init__(self, socket: Path) -> None:
        """Note where to listen; nobody is held yet."""
        self.socket = socket
        self._holds: dict[tuple[str, str], list[Hold]] = {}
        self._asking: set[asyncio.StreamWriter] = set()
        self._passages: list[_Passage] = []

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_unix_server(self._answer, path=str(self.socket))
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        # Whoever is still held goes on: the end of the connection says so.
        for asking in list(self._asking):
            asking.close()
        self.socket.unlink(missing_ok=True)

    def hold(self, order_id: str, at: str, *, again: bool = False) -> Hold:
        """Hold the next process that comes to this place of this order's run (`Hold`)."""
        hold = Hold(again=again)
        self._holds.setdefault((names.workflow_id(order_id), at), []).append(hold)
        return hold

    def readings(self, order_id: str, effect: str) -> list[tuple[float, float]]:
        """From when to when a worker was at an effect of this order's run, each time it was.

        By the monotonic clock, in seconds: not before the first instant, and done by the second.
        """
        found: list[tuple[float, float]] = []
        begun: dict[int, float] = {}
        before, done = place(effect, Moment.BEFORE), place(effect, Moment.DONE)
        for passage in self._passages:
            if passage.workflow_id != names.workflow_id(order_id):
                continue
            if passage.place == before:
                begun[passage.pid] = passage.went_at
            elif passage.place == done and passage.pid in begun:
                found.append((begun.pop(passage.pid), passage.came_at))
        return found

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._asking.add(writer)
        try:
            told: dict[str, Any] = json.loads(await reader.readline())
            came_at = time.monotonic()
            waiting = self._holds.get((told["workflow_id"], told["place"]), [])
            if waiting:
                hold = waiting.pop(0)
                gone = asyncio.create_task(reader.read())
                standing = asyncio.create_task(hold.stand(told["pid"]))
                # A process that is killed while it is held is not waited for.
                await asyncio.wait((gone, standing), return_when=asyncio.FIRST_COMPLETED)
                gone.cancel()
                standing.cancel()
                if hold.reopen():
                    waiting.append(hold)
            self._passages.append(
                _Passage(told["workflow_id"], told["place"], told["pid"], came_at, time.monotonic())
            )
            writer.write(b"go\n")
            await writer.drain()
        except (OSError, ValueError):
            return
        finally:
            self._asking.discard(writer)
            writer.close()
