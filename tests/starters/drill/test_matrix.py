"""The matrix leaves no square out, and a kill for many comes when all of them stand there."""

import asyncio
from collections import Counter
from collections.abc import Iterable
from itertools import permutations

import pytest
from pydantic import TypeAdapter

from domain.models import Identifier
from domain.moments import Moment
from starters.drill import matrix
from starters.drill.matrix import Together, cells
from starters.drill.plan import AT_WAIT, Process
from starters.drill.site import AtEnd
from tests.world import PATIENCE

EFFECTS = (
    "model",
    "mail.under_review",
    "mail.approval_request.r1",
    "decision",
    "refund.r1",
    "verification",
    "mail.refunded",
    "order.refunded",
)


def test_each_process_is_killed_at_each_moment_of_each_effect_once() -> None:
    """3 processes, 8 effects with 3 moments each, and the wait: 75 squares."""
    wanted = Counter(
        (process, moment, effect)
        for process in Process
        for moment, effect in (
            *((moment.value, effect) for effect in EFFECTS for moment in Moment),
            (AT_WAIT, AT_WAIT),
        )
    )
    found = list(cells())
    assert Counter((cell.process, cell.moment, cell.effect) for cell in found) == wanted
    assert len(found) == 75
    for cell in found:
        [step] = cell.plan.steps
        assert (step.do, step.who) == ("kill", (cell.process,))


def test_the_orders_of_the_matrix_can_be_told_apart() -> None:
    """A fault about one order must not strike another: no id is a part of another one."""
    orders = [cell.plan.order_id for cell in cells()]
    for order in orders:
        TypeAdapter(Identifier).validate_python(order)
    assert [pair for pair in permutations(orders, 2) if pair[0] in pair[1]] == []


def test_the_company_is_held_inside_where_it_is_called() -> None:
    """Its own places are before and after the deed; where it has none, the worker is held."""
    inside = Counter(cell.effect for cell in cells() if cell.inside_the_company)
    assert inside == {effect: 2 for effect in EFFECTS if effect != "decision"}


class Site:
    """Ends processes when a test says so, and writes down for whom."""

    def __init__(self) -> None:
        """Nothing is ended yet."""
        self.happens = asyncio.Event()
        self.asked: list[str] = []

    async def kill(
        self, processes: Iterable[Process], at_end: AtEnd, by: str, pid: int = 0
    ) -> None:
        """As `starters.drill.site.Site.kill`."""
        self.asked.append(by)
        await self.happens.wait()
        at_end()


class Runs:
    """Runs that come to their places and want the kill, in this order."""

    def __init__(self, together: Together) -> None:
        """Nobody has come, and nobody was let go."""
        self.let_go: list[str] = []
        self.done: list[str] = []
        self._together = together
        self._tasks: list[asyncio.Task[None]] = []

    async def come(self, *names: str) -> None:
        """Let runs come, and do all that can be done at once."""
        for name in names:
            self._tasks.append(asyncio.create_task(self._stand(name)))
        await self.look()

    async def look(self) -> None:
        """Let everybody take the steps that need nobody else."""
        for _ in range(10):
            await asyncio.sleep(0)  # noqa: TID251 - a step of the loop, not a time

    async def end(self) -> None:
        """Wait for all."""
        async with asyncio.timeout(PATIENCE):
            await asyncio.gather(*self._tasks)

    async def _stand(self, name: str) -> None:
        await self._together((Process.WORKER,), lambda: self.let_go.append(name), name)
        assert name in self.let_go, "nobody leaves its place before it is let go"
        self.done.append(name)


@pytest.fixture
def site() -> Site:
    """What ends processes."""
    return Site()


async def test_one_kill_does_for_all_who_stand_there(site: Site) -> None:
    """It comes when the last one has come, and all are let go by it: not before, and not later."""
    runs = Runs(Together(site.kill, expected=3))
    await runs.come("a", "b")
    assert site.asked == []
    await runs.come("c")
    assert site.asked == ["c"]
    assert runs.let_go == []
    assert runs.done == []
    site.happens.set()
    await runs.end()
    assert site.asked == ["c"]
    assert sorted(runs.let_go) == sorted(runs.done) == ["a", "b", "c"]


async def test_who_comes_too_late_has_a_kill_of_its_own(site: Site) -> None:
    """Its square of the matrix is not left out."""
    runs = Runs(Together(site.kill, expected=1))
    await runs.come("a", "late")
    assert site.asked == ["a", "late"]
    site.happens.set()
    await runs.end()
    assert sorted(runs.let_go) == sorted(runs.done) == ["a", "late"]


async def test_who_never_comes_is_not_waited_for(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a while one kill comes for those who are there."""
    monkeypatch.setattr(matrix, "_MEETING_SECONDS", 0.01)
    runs = Runs(Together(site.kill, expected=3))
    await runs.come("a", "b")
    async with asyncio.timeout(PATIENCE):
        while not site.asked:
            await runs.look()
    site.happens.set()
    await runs.end()
    assert len(site.asked) == 1
    assert sorted(runs.let_go) == sorted(runs.done) == ["a", "b"]
