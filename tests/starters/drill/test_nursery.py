"""A fork of a program that is loaded already is a process like any other."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from starters import processes
from starters.drill import nursery
from starters.errors import CommandError
from starters.folder import Folder

Held = tuple[Folder, int]


@pytest.fixture
def held(tmp_path: Path) -> Iterator[Held]:
    """A data folder, held."""
    folder = Folder(tmp_path / "data")
    with folder.hold() as lock:
        yield folder, lock


async def test_a_fork_serves_and_is_killed(held: Held) -> None:
    """It says that it is ready, under its own id; SIGKILL ends it, and another one comes."""
    folder, lock = held
    ports = ["--http-port", "0", "--smtp-port", "0", "--data", str(folder.path)]
    command = [*processes.python_module("northwind"), *ports]
    pids = []
    for _ in range(2):
        child = await nursery.start("company", folder, command, {}, lock)
        assert (await child.ready_line())["pid"] == child.pid
        assert not child.has_ended
        await child.kill()
        with pytest.raises(CommandError, match="killed by signal 9"):
            child.check_alive()
        pids.append(child.pid)
    assert pids[0] != pids[1]


async def test_a_fork_that_cannot_start_says_why(held: Held) -> None:
    """It sees the environment that it is given and no other, and its words are in its log."""
    folder, lock = held
    environment = {"NORTHWIND_COMPANY_URL": "nowhere", "NORTHWIND_DATA_DIR": str(folder.path)}
    command = processes.python_module("workers")
    child = await nursery.start("worker", folder, command, environment, lock)
    with pytest.raises(CommandError, match=r"exit code 2.*NORTHWIND_COMPANY_URL"):
        await child.ready_line()


async def test_another_program_is_started_as_usual(held: Held) -> None:
    """What is not ours, such as the Temporal server, is executed."""
    folder, lock = held
    child = await nursery.start("other", folder, ["/bin/echo", '{"here": true}'], {}, lock)
    assert await child.ready_line() == {"here": True}
    await child.wait()
