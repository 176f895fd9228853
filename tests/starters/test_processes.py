"""Processes and folders: what is started is ended, and nothing else is touched."""

import asyncio
import json
import os
import shlex
import stat
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from starters import processes
from starters.errors import CommandError
from starters.folder import Folder, Links
from starters.installation import Installation, local_environment
from starters.processes import Child, free_ports, start
from starters.up import own_command

LINKS = Links(
    temporal="127.0.0.1:7233",
    web_ui="http://127.0.0.1:8233",
    company="http://127.0.0.1:8700",
    smtp="smtp://127.0.0.1:8725",
)
READY = "print('{\"ready\": true}', flush=True); "
WAIT = "import signal; signal.pause()"


async def run_python(folder: Folder, lock: int, code: str) -> Child:
    """Start a small program under the name `part`."""
    return await start("part", folder, [sys.executable, "-c", code], os.environ, lock)


@pytest.fixture
async def held(tmp_path: Path) -> AsyncIterator[tuple[Folder, int]]:
    """A data folder that is held by this test."""
    folder = Folder(tmp_path / "data")
    with folder.hold() as lock:
        yield folder, lock


async def test_a_data_folder_is_nobody_elses(held: tuple[Folder, int]) -> None:
    """Letters, mails and statements in a new data folder cannot be read by other users."""
    assert stat.S_IMODE(held[0].path.stat().st_mode) == 0o700


async def test_a_process_says_when_it_is_ready(held: tuple[Folder, int]) -> None:
    """The line that a process prints is waited for, and the process ends when it is told to."""
    child = await run_python(*held, READY + WAIT)
    assert await child.ready_line() == {"ready": True}
    await child.stop()
    assert child.has_ended


async def test_a_process_that_cannot_start_says_why(held: tuple[Folder, int]) -> None:
    """An end instead of a ready line is told with the process's last words."""
    child = await run_python(*held, "import sys; sys.exit('the port is taken')")
    with pytest.raises(CommandError, match=r"part ended .*exit code 1.*the port is taken"):
        await child.ready_line()


async def test_only_the_last_words_count(held: tuple[Folder, int]) -> None:
    """What an earlier process wrote into the same log is not taken for the reason."""
    first = await run_python(*held, "import sys; sys.exit('an old sorrow')")
    await first.wait()
    child = await run_python(*held, READY + WAIT)
    await child.ready_line()
    await child.kill()
    with pytest.raises(CommandError, match=r"killed by signal 9\): it said nothing"):
        child.check_alive()


async def test_a_process_ends_with_its_parent(tmp_path: Path) -> None:
    """Where the parent is killed, its child is ended too, and the folder is free again."""
    code = f"""
import asyncio, sys
from pathlib import Path
from starters.folder import Folder
from tests.starters.test_processes import READY, WAIT, run_python

async def main():
    folder = Folder(Path({str(tmp_path / "data")!r}))
    with folder.hold() as lock:
        child = await run_python(folder, lock, READY + WAIT)
        await child.ready_line()
        print(child.pid, flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""
    parent = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", code),
        cwd=Path(__file__).parents[2],
        stdout=asyncio.subprocess.PIPE,
    )
    assert parent.stdout is not None
    assert int(await parent.stdout.readline())
    parent.kill()
    await parent.wait()
    # The child held the lock: that it can be had again says that the child has ended.
    with Folder(tmp_path / "data").hold():
        pass


async def test_a_folder_is_held_by_one(held: tuple[Folder, int]) -> None:
    """A second holder is refused at once, in one line that names the first."""
    folder, _ = held
    with pytest.raises(CommandError, match=f"in use .process {os.getpid()}"), folder.hold():
        pass


def test_links_are_kept(tmp_path: Path) -> None:
    """What one `refund up` wrote, the other commands and the next one read; rubbish is nothing."""
    folder = Folder(tmp_path)
    assert folder.read_links() is None
    folder.write_links(LINKS)
    assert folder.read_links() == LINKS
    for rubbish in ("", "[]", '{"temporal": 1}', "\x00"):
        folder.links_file.write_text(rubbish)
        assert folder.read_links() is None


def test_free_ports_are_free_and_different() -> None:
    """A port that is taken is replaced by another one, and no two are the same."""
    import socket

    with socket.create_server(("127.0.0.1", 0)) as taken:
        busy = taken.getsockname()[1]
        ports = free_ports([busy, 0, 0, busy])
    assert busy not in ports
    assert len(set(ports)) == 4


def test_ports_that_are_not_the_usual_ones_are_known(tmp_path: Path) -> None:
    """Where a folder keeps its ports of the last time, `refund up` can say which are not usual."""
    folder = Folder(tmp_path)
    temporal, web_ui, company, smtp = free_ports([0, 0, 0, 0])
    folder.write_links(
        Links(
            temporal=f"127.0.0.1:{temporal}",
            web_ui=f"http://127.0.0.1:{web_ui}",
            company=f"http://127.0.0.1:{company}",
            smtp=f"smtp://127.0.0.1:{smtp}",
        )
    )
    installation = Installation(
        folder, 0, Path("temporal"), environment={}, usual_ports=True, say=print
    )
    assert installation.moved == {
        "temporal": (temporal, 7233),
        "web_ui": (web_ui, 8233),
        "company": (company, 8700),
        "smtp": (smtp, 8725),
    }


def test_the_example_can_be_typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command stands by its name where the PATH has it, and by its whole path elsewhere."""
    program = tmp_path / "an environment" / "refund"
    program.parent.mkdir()
    program.touch(mode=0o700)
    monkeypatch.setattr(sys, "executable", str(program.with_name("python")))
    monkeypatch.setenv("PATH", "/nowhere")
    assert shlex.split(own_command()) == [str(program)]
    monkeypatch.setenv("PATH", str(program.parent))
    assert own_command() == "refund"


def test_nothing_foreign_reaches_a_local_process(tmp_path: Path) -> None:
    """Keys of real accounts and settings of another Temporal stay out; our own settings stay in."""
    given = {
        "PATH": "/bin",
        "TEMPORAL_API_KEY": "secret",
        "TEMPORAL_PROFILE": "production",
        "STRIPE_API_KEY": "sk_live_1",
        "OPENAI_API_KEY": "secret",
        "ANTHROPIC_API_KEY": "secret",
        "ANTHROPIC_BASE_URL": "https://secret.example",
        "NORTHWIND_MODEL_NAME": "my-model",
        "NORTHWIND_DEPLOYMENT": "refunds",
        "NORTHWIND_BUILD_ID": "2",
    }
    environment = local_environment(given, Folder(tmp_path), LINKS)
    assert "secret" not in json.dumps(environment)
    assert "sk_live_1" not in json.dumps(environment)
    assert "TEMPORAL_PROFILE" not in environment
    assert not {"NORTHWIND_DEPLOYMENT", "NORTHWIND_BUILD_ID"} & environment.keys()
    assert environment["TEMPORAL_ADDRESS"] == LINKS.temporal
    assert environment["NORTHWIND_MODEL_NAME"] == "my-model"


def test_a_folder_of_the_same_name_is_not_run(tmp_path: Path) -> None:
    """`workers` in the current folder is not taken for ours."""
    (tmp_path / "workers.py").write_text("raise SystemExit('not ours')")
    done = subprocess.run(
        [*processes.python_module("workers")],
        cwd=tmp_path,
        env={"PYTHONPATH": processes.python_path({}), "NORTHWIND_SMTP_URL": "nonsense"},
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert "not ours" not in done.stderr
    assert "NORTHWIND_SMTP_URL" in done.stderr
