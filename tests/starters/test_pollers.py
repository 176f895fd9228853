"""`refund doctor` on workers with versions: those who poll must be those who get the tasks."""

from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Any

import pytest

from starters.pollers import Polled, Version, tell
from tests.deploying import temporal, worked_on, world_to_deploy
from tests.starters.conftest import Typed, use
from tests.world import World
from workers.wiring import build_activities, build_worker

NONE, ONE, TWO = Version(), Version("refunds", "1"), Version("refunds", "2")
START = "Start one: refund worker"
START_ONE = f"{START} --deployment refunds --build-id 1"
SET = "temporal worker deployment set-current-version --address x --yes"
SET_TWO = f"{SET} --deployment-name refunds --build-id 2"
# Who polls, who gets the tasks, and what is said: whether it is well, what stands there, the mend.
CASES: dict[str, tuple[list[Version], list[Version], tuple[bool, str, str]]] = {
    "no versions": ([NONE], [NONE], (True, "polls q", "")),
    "nobody": ([], [NONE], (False, "nobody polls q for w or a", START)),
    "current polls": ([ONE, TWO], [TWO], (True, "polls q, by refunds.2", "")),
    "none is current": (
        [ONE, TWO],
        [NONE],
        (
            False,
            (
                "no version is current, and nobody without one polls q for w or a; others: "
                "refunds.1, refunds.2"
            ),
            SET_TWO,
        ),
    ),
    "another polls": (
        [NONE, TWO],
        [ONE],
        (
            False,
            (
                "nobody of refunds.1, which gets them, polls q for w or a; others: no version, "
                "refunds.2"
            ),
            START_ONE,
        ),
    ),
    "nobody of the current": (
        [],
        [ONE],
        (False, "nobody of refunds.1, which gets them, polls q for w or a", START_ONE),
    ),
    "ramp": ([ONE, TWO], [ONE, TWO], (True, "polls q, by refunds.1, refunds.2", "")),
    "a ramp to nobody": (
        [TWO],
        [ONE, TWO],
        (
            False,
            "nobody of refunds.1, which gets them, polls q for w or a; others: refunds.2",
            START_ONE,
        ),
    ),
}


def kinds(polls: Iterable[Version], gets: Iterable[Version]) -> list[Polled]:
    """The same for both kinds of task."""
    return [Polled(what, frozenset(polls), frozenset(gets)) for what in ("w", "a")]


@pytest.mark.parametrize(("polls", "gets", "said"), CASES.values(), ids=CASES)
def test_who_polls_is_held_against_who_gets_the_tasks(
    polls: list[Version], gets: list[Version], said: tuple[bool, str, str]
) -> None:
    """Workers whose version is not current would wait for ever, and so would the refunds."""
    assert tell(kinds(polls, gets), "q", "--address x") == said


def test_a_kind_of_task_that_nobody_takes_is_named() -> None:
    """A worker that only runs Activities moves no refund."""
    one, other = kinds([ONE], [ONE])[0], kinds([], [ONE])[1]
    assert tell([one, other], "q", "")[1].endswith("polls q for a")


@pytest.fixture
async def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[World]:
    """A world on a server of its own, without a worker."""
    async with world_to_deploy(tmp_path) as opened:
        await opened.stop_worker()
        use(opened, monkeypatch)
        yield opened


async def test_a_worker_of_no_current_version_is_found_and_its_mend_helps(
    world: World, typed: Typed
) -> None:
    """It polls and gets nothing: `refund doctor` has the line that changes that."""

    async def found() -> dict[str, Any]:
        done = await typed("doctor", "--json")
        return next(one for one in done.data if one["check"] == "worker")

    async def is_polled() -> bool:
        return "others: refunds.2" in (await found())["detail"]

    async def is_well() -> bool:
        return bool((await found())["ok"])

    settings = world.settings.model_copy(update={"deployment": "refunds", "build_id": "2"})
    async with (
        build_activities(settings) as activities,
        build_worker(world.client, settings, activities),
    ):
        await world.until(is_polled)
        program, *mend = str((await found())["mend"]).split()
        assert program == "temporal"
        await temporal(world, *mend)
        await world.until(is_well)
        assert (await found())["detail"] == "polls refunds, by refunds.2"
        run = await world.start()
        await run.waiting()
        assert worked_on(await run.history()) == ["2"]
