"""`python -m tests.mutants`: exit code 0 all caught, 1 one survives or a test is red, 2 usage."""

import argparse
import asyncio
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from starters import screen
from tests.mutants.mutant import Mutant, named
from tests.mutants.runner import State, Verdict, try_mutants, try_whole, whole_copy
from tests.mutants.table import ALL

ROOT = Path(__file__).parents[2]
# So much of how a check failed is in the table; with --json there is all of it.
_LINE = 100
CAUGHT, NOT_CAUGHT = "caught", "NOT CAUGHT"


def main(arguments: Sequence[str], mutants: Sequence[Mutant] = ALL, root: Path = ROOT) -> int:
    """Run the table, or a part of it; the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.mutants",
        description="Break every safeguard in a copy of the tree and see the tests go red.",
        epilog='example: python -m tests.mutants --only "all pages of the look-up"',
    )
    parser.add_argument("--list", action="store_true", help="print the table and run nothing")
    parser.add_argument("--json", action="store_true", help="print data as JSON")
    parser.add_argument("--only", action="append", metavar="NAME", help="this safeguard; repeat it")
    processors = os.cpu_count() or 1
    how_many = f"so many at a time, instead of {processors}"
    parser.add_argument("--jobs", type=int, default=processors, metavar="N", help=how_many)
    given = parser.parse_args(arguments)
    if unknown := sorted({*(given.only or ())} - {mutant.name for mutant in mutants}):
        screen.hint(f"There is no safeguard {unknown[0]!r}; --list names them.")
        return 2
    chosen = [m for m in mutants if given.only is None or m.name in given.only]
    if given.list:
        screen.data([_described(m) for m in chosen]) if given.json else _print_list(chosen)
        return 0
    return asyncio.run(_run(chosen, root, max(1, given.jobs), as_json=given.json))


async def _run(mutants: Sequence[Mutant], root: Path, jobs: int, *, as_json: bool) -> int:
    began, done = time.monotonic(), 0

    def tell(verdict: Verdict) -> None:
        nonlocal done
        done += 1
        screen.hint(
            f"{time.monotonic() - began:6.0f} s  {done:3}/{len(mutants)}  "
            f"{_word(verdict):10}  {verdict.mutant.name}"
        )

    async with whole_copy(root) as tree:
        screen.hint("… all the tests that the table names, with nothing broken")
        seen = await try_whole(tree, mutants, jobs)
        fine = (State.GREEN, State.IMPOSSIBLE)
        if wrong := [one for one in seen if one.state not in fine]:
            for one in wrong:
                screen.hint(f"Not green with nothing broken: {one.check}: {one.how}")
            return 1
        green = sum(one.state is State.GREEN for one in seen)
        screen.hint(f"{time.monotonic() - began:6.0f} s  {green} are green")
        verdicts = await try_mutants(tree, mutants, jobs, tell)
    if as_json:
        screen.data([_as_data(verdict) for verdict in verdicts])
    else:
        _print(verdicts, time.monotonic() - began)
    return 0 if all(verdict.caught for verdict in verdicts) else 1


def _word(verdict: Verdict) -> str:
    return CAUGHT if verdict.caught else NOT_CAUGHT


def _described(mutant: Mutant) -> dict[str, Any]:
    files = sorted({edit.path for edit in mutant.edits})
    checks = [named(check) for check in mutant.caught_by]
    return {
        "name": mutant.name,
        "promise": mutant.promise,
        "files": files,
        "caught_by": checks,
    }


def _as_data(verdict: Verdict) -> dict[str, Any]:
    seen = [{"check": s.check, "state": s.state.value, "how": s.how} for s in verdict.seen]
    return {**_described(verdict.mutant), "caught": verdict.caught, "seen": seen}


def _print_list(mutants: Sequence[Mutant]) -> None:
    for mutant in mutants:
        row = _described(mutant)
        screen.say(f"{mutant.promise}  {mutant.name}  ({', '.join(row['files'])})")
        for check in row["caught_by"]:
            screen.say(f"      {check}")


def _print(verdicts: Sequence[Verdict], seconds: float) -> None:
    """The table: each safeguard, and below it how each of its checks ended."""
    for verdict in verdicts:
        screen.say(f"{verdict.mutant.promise}  {_word(verdict):10}  {verdict.mutant.name}")
        for one in verdict.seen:
            screen.say(f"      {one.state.value:6}  {one.check}")
            if one.how:
                screen.say(f"              {one.how[:_LINE]}")
    left = sum(not verdict.caught for verdict in verdicts)
    screen.say(f"Safeguards broken: {len(verdicts)}, not caught: {left} ({seconds:.0f} s)")


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
