"""Hosts apart: every effect is cut, each on an order of its own, and whoever came is held."""

import asyncio
import json
from collections import Counter
from pathlib import Path

from domain import names
from domain.moments import Moment
from starters.drill.apart import Cut, cases
from starters.drill.gate import Gate
from starters.drill.matrix import EFFECTS

ORDER, PLACE = "h-1", "refund.r1:done"


def test_every_effect_is_cut_before_and_after() -> None:
    """No cut leaves out an effect, but for a worker that stands still where nothing is sent."""
    for cut in Cut:
        there = {(case.effect, case.moment) for case in cases(cut)}
        for effect in EFFECTS:
            sends = effect.name.startswith(("mail", "refund"))
            if sends or cut is not Cut.STANDS_STILL:
                assert {(effect.name, Moment.BEFORE), (effect.name, Moment.DONE)} <= there


def test_each_case_has_an_order_of_its_own() -> None:
    """Two cases on one order would share its run, and one of them would show nothing."""
    orders = Counter(case.plan.order_id for cut in Cut for case in cases(cut))
    assert set(orders.values()) == {1}


def test_a_refund_and_every_mail_come_late_where_that_could_do_harm() -> None:
    """Each of them has a case in which it arrives after the other worker's, and the payment would
    bear a second refund: a provider refuses none only because nothing is left.
    """
    late = [case for cut in Cut for case in cases(cut) if case.comes_late]
    assert {case.effect for case in late} == {
        effect.name for effect in EFFECTS if effect.name.startswith(("mail", "refund"))
    }
    for case in late:
        assert case.plan.asked is not None
        assert 2 * 100 * int(case.plan.asked) <= case.plan.total_minor


async def come(gate: Gate, pid: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Come to the place as a worker does."""
    reader, writer = await asyncio.open_unix_connection(str(gate.socket))
    told = {"place": PLACE, "workflow_id": names.workflow_id(ORDER), "attempt": 1, "pid": pid}
    writer.write(f"{json.dumps(told)}\n".encode())
    return reader, writer


async def test_the_next_attempt_is_held_too(tmp_path: Path) -> None:
    """One whose Activity timed out while it was held is followed by the next attempt, and only a
    release lets it go.
    """
    async with Gate(tmp_path / "gate") as gate:
        hold = gate.hold(ORDER, PLACE, again=True)
        answer, first = await come(gate, pid=1)
        await hold.reached.wait()
        first.write_eof()
        # What the gate says to one that leaves comes after it has noted that.
        await answer.readline()
        assert not hold.reached.is_set()
        reader, second = await come(gate, pid=2)
        await hold.reached.wait()
        assert hold.pid == 2
        hold.release()
        assert await reader.readline() == b"go\n"
        for writer in (first, second):
            writer.close()
