"""The command as a user types it, in a process of its own."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from starters.folder import Folder, Links
from starters.processes import LOOPBACK, free_ports
from tests.trees import ROOT
from tests.world import temporal_program

REFUND = "from starters.cli import main; main()"
# A demo takes about twenty seconds on a machine that does nothing else.
PATIENCE = 150.0


def environment(folder: Path, tree: Path = ROOT) -> dict[str, str]:
    """A user's environment without settings of ours, and a folder of temporary files to look at."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("NORTHWIND_", "TEMPORAL_"))
    }
    return {
        **kept,
        "PYTHONPATH": str(tree),
        "TEMPORAL_CONFIG_FILE": os.devnull,
        "TMPDIR": str(folder),
    }


def programs(folder: Path) -> Path:
    """A new folder with `refund` and `temporal`, to be put on the path."""
    folder.mkdir()
    refund = folder / "refund"
    refund.write_text(f'#!/bin/sh\nexec "{sys.executable}" -c "{REFUND}" "$@"\n')
    refund.chmod(0o755)
    (folder / "temporal").symlink_to(temporal_program())
    return folder


async def begin(folder: Path, *arguments: str, tree: Path = ROOT) -> asyncio.subprocess.Process:
    """Start a command in a folder, as a terminal would; `tree` holds its code."""
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", REFUND, *arguments),
        cwd=folder,
        env=environment(folder, tree),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


async def refund(folder: Path, *arguments: str, tree: Path = ROOT) -> tuple[int, str, str]:
    """Run a command to its end: exit code, output, messages."""
    process = await begin(folder, *arguments, tree=tree)
    async with asyncio.timeout(PATIENCE):
        out, err = await process.communicate()
    assert process.returncode is not None
    return process.returncode, out.decode(), err.decode()


@asynccontextmanager
async def running(folder: Path) -> AsyncIterator[asyncio.subprocess.Process]:
    """A `refund up` that has said that it is ready, ended by Ctrl-C."""
    _take_other_ports(Folder(folder / ".northwind"))
    process = await begin(folder, "up", "--temporal", temporal_program())
    try:
        assert process.stdout is not None
        async with asyncio.timeout(PATIENCE):
            while b"Ctrl-C" not in (line := await process.stdout.readline()):
                assert line, (await process.communicate())[1].decode()
        yield process
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGINT)
        async with asyncio.timeout(PATIENCE):
            await process.communicate()


def _take_other_ports(folder: Folder) -> None:
    """Have `refund up` take the ports of a last time: tests beside us show that nobody is there."""
    if folder.read_links() is None:
        temporal, web_ui, company, smtp = free_ports([0] * 4)
        folder.path.mkdir(mode=0o700)
        folder.write_links(
            Links(
                temporal=f"{LOOPBACK}:{temporal}",
                web_ui=f"http://{LOOPBACK}:{web_ui}",
                company=f"http://{LOOPBACK}:{company}",
                smtp=f"smtp://{LOOPBACK}:{smtp}",
            )
        )
