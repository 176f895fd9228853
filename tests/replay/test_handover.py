"""P6: a refund that began under each released code is finished by the code that is here.

A history is no run: nothing can be finished out of a file. So fresh runs are driven by a worker
process with the older code to each stage where a run can be open, all at once, and by a worker with
this code from there to their ends.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path as Folder

import pytest
from temporalio.testing import WorkflowEnvironment

from tests.replay.capture import Drives, together
from tests.replay.driven import Driven, Kept
from tests.replay.paths import PATHS, Path
from tests.replay.releases import OLDER
from tests.replay.saved import releases
from tests.worker_process import real_worker
from tests.world import World, check_history
from workers.release import RELEASE

# Seconds for all runs together, on a busy machine.
PATIENCE = 400.0
OPEN = [(path, stage) for path in PATHS for stage in path.stages if stage is not Kept.CLOSED]


class Half:
    """A run that is driven to a stage, and later on to its end."""

    def __init__(self, driven: Driven, path: Path, stage: Kept) -> None:
        self._driven, self._path, self._stage = driven, path, stage
        self._course = path.drive(driven)

    async def begin(self) -> None:
        """Drive it to its stage."""
        async for stage in self._course:
            if stage is self._stage:
                return

    async def finish(self) -> None:
        """Drive it on, and see that it comes to the end of its path."""
        async for _ in self._course:
            pass
        ended = await self._driven.run.result()
        assert (ended.outcome, ended.reason) == (self._path.outcome, self._path.reason), self._stage
        await check_history(self._driven.run)


@asynccontextmanager
async def old_worker(world: World, tree: Folder) -> AsyncIterator[None]:
    """A worker with a tree's code in the place of the world's own; it is told to end, and ends."""
    async with real_worker(world, tree, PATIENCE) as process:
        yield
        process.terminate()
        await process.wait()
    await world.start_worker()


def test_the_code_of_every_release_is_had() -> None:
    """Whoever makes a release says how to have the one before."""
    assert set(releases()) == {*OLDER, int(RELEASE)}


@pytest.mark.parametrize("older", OLDER)
@pytest.mark.timeout(2 * PATIENCE)
async def test_it_finishes_what_a_release_began(
    server: WorkflowEnvironment, tmp_path: Folder, older: int
) -> None:
    """P6: whatever a run was doing when the worker was changed, it ends as it would have."""
    tree = OLDER[older](tmp_path / "tree")
    async with World(server, tmp_path / "world") as world:
        drives = Drives(world)
        halves = [Half(drives.new(), path, stage) for path, stage in OPEN if path.since <= older]
        async with old_worker(world, tree):
            await together(half.begin for half in halves)
        await together(half.finish for half in halves)
