"""The gate holds exactly those that a plan wants held: one too many, and a run is stuck."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Self

import pytest

from starters.drill.gate import Gate
from tests.world import PATIENCE

PLACE, ELSEWHERE = "refund.r1:done", "refund.r1:before"


class Process:
    """A worker process, as the gate sees it: it asks, and goes on when it is told."""

    def __init__(self, gate: Gate, pid: int) -> None:
        """It has asked nothing yet."""
        self._gate, self._pid = gate, pid
        self._heard: asyncio.Task[bytes]

    async def ask(self, place: str = PLACE, order: str = "8890") -> Self:
        """Come to a place of an order's run."""
        reader, self._writer = await asyncio.open_unix_connection(str(self._gate.socket))
        told = {"workflow_id": f"refund-order-{order}", "place": place, "pid": self._pid}
        self._writer.write(f"{json.dumps(told | {'attempt': 1})}\n".encode())
        self._heard = asyncio.create_task(reader.readline())
        return self

    async def goes_on(self) -> bool:
        """Whether it is told to go on; False where the gate ended without a word."""
        async with asyncio.timeout(PATIENCE):
            heard = await self._heard
        self._writer.close()
        return heard == b"go\n"

    @property
    def is_held(self) -> bool:
        """Whether it has heard nothing yet."""
        return not self._heard.done()

    def die(self) -> None:
        """End as by SIGKILL: nobody is told, but the connection is gone."""
        self._heard.cancel()
        self._writer.transport.abort()


@pytest.fixture
async def gate(tmp_path: Path) -> AsyncIterator[Gate]:
    """A gate that listens."""
    async with Gate(tmp_path / "drill.sock") as listening:
        yield listening


async def reached(event: asyncio.Event) -> None:
    """Wait, with a bound, until somebody stands there."""
    async with asyncio.timeout(PATIENCE):
        await event.wait()


async def test_the_first_who_comes_is_held_until_it_is_released(gate: Gate) -> None:
    """The drill knows which process stands there; others of its place and elsewhere pass."""
    hold = gate.hold("8890", PLACE)
    for place, order in ((ELSEWHERE, "8890"), (PLACE, "8891")):
        assert await (await Process(gate, 1).ask(place, order)).goes_on()
    assert not hold.reached.is_set()
    first = await Process(gate, 2).ask()
    await reached(hold.reached)
    assert hold.pid == 2
    assert await (await Process(gate, 3).ask()).goes_on()
    assert first.is_held
    hold.release()
    assert await first.goes_on()


async def test_a_hold_that_was_released_before_holds_nobody(gate: Gate) -> None:
    """It still tells who came."""
    hold = gate.hold("8890", PLACE)
    hold.release()
    assert await (await Process(gate, 1).ask()).goes_on()
    assert hold.reached.is_set()


async def test_two_holds_of_a_place_hold_two_who_come_in_turn(gate: Gate) -> None:
    """Each is let go by its own release."""
    holds = [gate.hold("8890", PLACE) for _ in range(2)]
    processes = []
    for number, hold in enumerate(holds, start=1):
        processes.append(await Process(gate, number).ask())
        await reached(hold.reached)
    assert [hold.pid for hold in holds] == [1, 2]
    holds[1].release()
    assert await processes[1].goes_on()
    assert processes[0].is_held
    holds[0].release()
    assert await processes[0].goes_on()


async def test_a_process_that_is_killed_while_it_is_held_blocks_nobody(gate: Gate) -> None:
    """The next one at its place passes, and the gate ends at once."""
    hold = gate.hold("8890", PLACE)
    first = await Process(gate, 1).ask()
    await reached(hold.reached)
    first.die()
    assert await (await Process(gate, 2).ask()).goes_on()


async def test_where_it_is_asked_to_it_holds_the_one_that_comes_after(gate: Gate) -> None:
    """An Activity that timed out is tried again by another worker, which is held in its stead."""
    hold = gate.hold("8890", PLACE, again=True)
    first = await Process(gate, 1).ask()
    await reached(hold.reached)
    first.die()
    async with asyncio.timeout(PATIENCE):
        while hold.reached.is_set():  # noqa: ASYNC110
            await asyncio.sleep(0)  # noqa: TID251 - lets the gate see the end of the connection
    second = await Process(gate, 2).ask()
    await reached(hold.reached)
    assert hold.pid == 2
    hold.release()
    assert await second.goes_on()
    assert await (await Process(gate, 3).ask()).goes_on()


async def test_the_end_of_the_gate_lets_everybody_go(tmp_path: Path) -> None:
    """No worker waits for a drill that has ended, and no socket is left."""
    async with Gate(tmp_path / "drill.sock") as gate:
        hold = gate.hold("8890", PLACE)
        held = await Process(gate, 1).ask()
        await reached(hold.reached)
    assert not await held.goes_on()
    assert not gate.socket.exists()


async def test_who_speaks_nonsense_is_hung_up_on(gate: Gate) -> None:
    """And the next one is answered as ever."""
    reader, writer = await asyncio.open_unix_connection(str(gate.socket))
    writer.write(b"nonsense\n")
    async with asyncio.timeout(PATIENCE):
        assert await reader.read() == b""
    writer.close()
    assert await (await Process(gate, 1).ask()).goes_on()


async def test_a_reading_is_from_its_beginning_to_its_end(gate: Gate) -> None:
    """By the process that began it: one that was killed in between has read nothing."""
    hold = gate.hold("8890", "recheck:before")
    first = await Process(gate, 1).ask("recheck:before")
    await reached(hold.reached)
    first.die()
    hold.release()
    before = time.monotonic()
    for place in ("recheck:before", "recheck:done"):
        assert await (await Process(gate, 2).ask(place)).goes_on()
    assert await (await Process(gate, 2).ask("recheck:done", "8891")).goes_on()
    [(start, end)] = gate.readings("8890", "recheck")
    assert before <= start <= end <= time.monotonic()
    assert gate.readings("8891", "recheck") == []
