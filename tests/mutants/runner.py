"""Breaks safeguards in copies of the tree, and sees what goes red.

The working tree is only read. Tests of a copy run with the copy first on the path, also in the
processes that they start.
"""

import asyncio
import json
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import pytest

from starters.errors import Exit
from tests.mutants.mutant import Check, DoesNotApply, Mutant, named

# In seconds: until pytest has found its tests, for each test as pyproject.toml has it (which ends a
# test that hangs, with a word), and for a command.
_TO_BEGIN, _EACH_TEST, _COMMAND = 180.0, 180.0, 1800.0
# What no test of the table reads; hidden folders hold environments and data.
_LEFT_OUT = shutil.ignore_patterns(".*", "build", "dist", "*.egg-info")
_OURS = ("NORTHWIND_", "TEMPORAL_", "STRIPE_", "OPENAI_", "ANTHROPIC_", "PYTEST_")
_REFUND = "from starters.cli import main; main()"


class State(StrEnum):
    """What a check of the table has come to, or a row."""

    GREEN = "green"
    RED = "red"
    """It has seen the broken safeguard, by a failing assertion."""
    BROKEN = "broken"
    """It has not come so far: an error that says nothing of the safeguard."""
    IMPOSSIBLE = "impossible"
    """A command that this machine does not let run, as hosts apart do not without root."""


@dataclass(frozen=True)
class Seen:
    """How one check ended."""

    check: str
    state: State
    how: str = ""
    """In a line, where it is not green."""


@dataclass(frozen=True)
class Verdict:
    """What became of a mutant: it is caught where each of its checks that can run here is red."""

    mutant: Mutant
    seen: tuple[Seen, ...]

    @property
    def caught(self) -> bool:
        """Whether nothing is left to do."""
        return {one.state for one in self.seen} - {State.IMPOSSIBLE} == {State.RED}


Tell = Callable[[Verdict], None]


@asynccontextmanager
async def whole_copy(root: Path) -> AsyncIterator[Path]:
    """A copy of the tree as it is, in a temporary folder."""
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        tree = Path(folder) / "whole"
        await asyncio.to_thread(shutil.copytree, root, tree, ignore=_LEFT_OUT)
        yield tree


async def try_whole(tree: Path, mutants: Iterable[Mutant], jobs: int) -> list[Seen]:
    """Run each check that the rows name once, with nothing broken."""
    checks = dict.fromkeys(check for mutant in mutants for check in mutant.caught_by)
    piles: list[list[Check]] = [[] for _ in range(jobs)]
    files = sorted({_file(check) for check in checks})
    for check in checks:
        piles[files.index(_file(check)) % jobs].append(check)
    names = range(len(piles))
    tried = (_look(tree, pile, f"whole-{n}") for n, pile in zip(names, piles, strict=True))
    return [one for pile in await asyncio.gather(*tried) for one in pile]


async def try_mutants(
    tree: Path, mutants: Sequence[Mutant], jobs: int, tell: Tell
) -> list[Verdict]:
    """Break each safeguard in a copy of its own, some at a time, and tell of each at once."""
    free = asyncio.Semaphore(jobs)

    async def one(number: int, mutant: Mutant) -> Verdict:
        async with free:
            copy = tree.parent / f"mutant-{number}"
            verdict = Verdict(mutant, tuple(await _break(tree, copy, mutant)))
        tell(verdict)
        return verdict

    return await asyncio.gather(*(one(n, mutant) for n, mutant in enumerate(mutants)))


async def _break(tree: Path, copy: Path, mutant: Mutant) -> list[Seen]:
    # With what Python has compiled: most of it stays as it is.
    await asyncio.to_thread(shutil.copytree, tree, copy, ignore=_LEFT_OUT)
    try:
        for edit in mutant.edits:
            edit.apply(copy)
        return await _look(copy, mutant.caught_by, copy.name)
    except DoesNotApply as error:
        return [Seen(named(check), State.BROKEN, str(error)) for check in mutant.caught_by]
    finally:
        await asyncio.to_thread(shutil.rmtree, copy)


async def _look(tree: Path, checks: Sequence[Check], name: str) -> list[Seen]:
    """Run checks in a tree: the tests together, each command by itself."""
    tests = [check for check in checks if isinstance(check, str)]
    seen = await _run_tests(tree, tests, tree.parent / f"{name}.tmp") if tests else []
    for check in checks:
        if not isinstance(check, str):
            seen.append(await _run_command(tree, check))
    return seen


async def _run_tests(tree: Path, tests: Sequence[str], folder: Path) -> list[Seen]:
    await asyncio.to_thread(folder.mkdir)
    record = folder / "record.jsonl"
    code, said = await _run(
        tree,
        _TO_BEGIN + len(tests) * _EACH_TEST,
        *(sys.executable, "-m", "pytest", "-q", "--tb=no", "-p", "no:cacheprovider"),
        *("-p", "tests.mutants.recorder", "--record", record, "--basetemp", folder / "tests"),
        *tests,
    )
    rows = [json.loads(line) for line in _lines(record)]
    await asyncio.to_thread(shutil.rmtree, folder)
    if code not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED) or not rows:
        return [Seen(test, State.BROKEN, f"pytest ended with {code}: {said}") for test in tests]
    return [_judge(test, [row for row in rows if _is_of(row["test"], test)]) for test in tests]


def _lines(record: Path) -> list[str]:
    return record.read_text().splitlines() if record.exists() else []


def _is_of(node: str, test: str) -> bool:
    """Whether a node is the named test, or the named test with one of its parameters."""
    return node == test or node.startswith(f"{test}[")


def _judge(test: str, rows: list[dict[str, str | bool]]) -> Seen:
    failed = [row for row in rows if row["failed"]]
    if not failed and not any(row["passed"] for row in rows):
        return Seen(test, State.BROKEN, "it was not run")
    if not failed:
        return Seen(test, State.GREEN)
    # One that got as far as its subject says more than one that did not.
    first = next((row for row in failed if not row["crashed"]), failed[0])
    return Seen(test, State.BROKEN if first["crashed"] else State.RED, str(first["how"]))


async def _run_command(tree: Path, command: tuple[str, ...]) -> Seen:
    program = (sys.executable, "-c", _REFUND) if command[0] == "refund" else command[:1]
    code, said = await _run(tree, _COMMAND, *program, *command[1:])
    states = {0: State.GREEN, 1: State.RED, Exit.UNREACHABLE: State.IMPOSSIBLE}
    return Seen(named(command), states.get(code, State.BROKEN), said if code else "")


async def _run(tree: Path, patience: float, *arguments: str | Path) -> tuple[int, str]:
    """Run a program in a tree, without settings of this machine: exit code and last words.

    It and all that it has started end with it, with this task, or after so many seconds.
    """
    rest = {name: value for name, value in os.environ.items() if not name.startswith(_OURS)}
    # The copies of a copy need not compile again what stays as it is.
    rest.pop("PYTHONDONTWRITEBYTECODE", None)
    process = await asyncio.create_subprocess_exec(
        *arguments,
        cwd=tree,
        env={**rest, "PYTHONPATH": str(tree)},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        async with asyncio.timeout(patience):
            out, _ = await process.communicate()
    except TimeoutError:
        return -1, f"no end within {patience:.0f} s"
    finally:
        _end_group(process.pid)
        await process.wait()
    lines = out.decode(errors="replace").split("\n")
    last = next((line for line in reversed(lines) if line.strip()), "")
    return process.returncode or 0, last.strip()


def _end_group(leader: int) -> None:
    try:
        os.killpg(leader, signal.SIGKILL)
    except ProcessLookupError:
        return


def _file(check: Check) -> str:
    return check.partition("::")[0] if isinstance(check, str) else named(check)
