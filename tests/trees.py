"""Copies of the project's code with a change in them: another release, or somebody's mistake."""

import asyncio
import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
_FOLDERS = ("domain", "activities", "workflows", "workers", "starters", "northwind")
# Loading all libraries takes seconds on a busy machine.
_PATIENCE = 60.0


@dataclass(frozen=True)
class Change:
    """A text that stands once in a file, and what stands there instead."""

    file: str
    old: str
    new: str


def copy_with(folder: Path, *changes: Change) -> Path:
    """A copy of the code, changed.

    Raises:
        AssertionError: a change does not fit any more: the code has moved on, and the test must.
    """
    for name in _FOLDERS:
        shutil.copytree(ROOT / name, folder / name)
    for change in changes:
        file = folder / change.file
        text = file.read_text()
        assert text.count(change.old) == 1, f"{change.file} has {change.old!r} not once"
        file.write_text(text.replace(change.old, change.new))
    return folder


async def refund(tree: Path, *arguments: str) -> tuple[int, str, str]:
    """Type a `refund` command of a copy: its exit code, its output and its error output."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", "from starters.cli import main; main()", *arguments),
        cwd=tree,
        env={**os.environ, "PYTHONPATH": str(tree)},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(_PATIENCE):
        out, err = await process.communicate()
    assert process.returncode is not None
    return process.returncode, out.decode(), err.decode()
