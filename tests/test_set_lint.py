"""The lint for sets finds what differs on replay, and lets pass what is well."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.set_lint import check
from tests.trees import ROOT

HEAD = """
class State:
    seen: set[str]

def names() -> frozenset[str]:
    return frozenset("ab")

"""


def tree(folder: Path, line: str) -> Path:
    """A tree with this line in a function of its workflows."""
    (folder / "domain").mkdir()
    (folder / "workflows").mkdir()
    (folder / "domain" / "one.py").write_text(HEAD)
    code = f"async def step(state, given: set[str] | None, rows):\n    {line}\n"
    (folder / "workflows" / "two.py").write_text(code)
    return folder


def test_the_workflows_of_this_code_are_well() -> None:
    """And so says the command of `make check`, by its exit code."""
    assert check(ROOT) == []
    done = subprocess.run([sys.executable, "-m", "tests.set_lint"], check=False, cwd=ROOT)
    assert done.returncode == 0
    assert "python -m tests.set_lint" in (ROOT / "Makefile").read_text()


@pytest.mark.parametrize(
    "line",
    [
        "return 'a' in state.seen or len(state.seen)",
        "return sorted(state.seen), max(names())",
        "return any(x.isdigit() for x in state.seen)",
        "return {x.upper() for x in state.seen}",
        "return {*state.seen, 'a'}",
        "state.seen.add('a')",
        "return [x for x in rows if x in state.seen]",
        "return dict.fromkeys(rows), list(rows), rows.pop()",
        "seen = [*rows]; return list(seen)",
    ],
)
def test_what_asks_for_no_order_is_well(tmp_path: Path, line: str) -> None:
    """Membership, counts, sorting, sets of sets; and all that is no set."""
    assert check(tree(tmp_path, line)) == []


BAD = {
    "for x in {'a', 'b'}: pass": "a loop",
    "for x in state.seen: pass": "a loop",
    "async for x in names(): pass": "a loop",
    "for x in given or (): pass; [y for y in given]": "a comprehension",
    "kept = set(rows); return [x for x in kept]": "a comprehension",
    "return ', '.join(x for x in state.seen)": "a comprehension",
    "return ', '.join(state.seen)": "join()",
    "return list(state.seen - {'a'})": "list()",
    "return tuple(rows.keys() & rows.keys())": "tuple()",
    "return next(iter(state.seen.union(rows)))": "iter()",
    "return sorted(state.seen, key=len)": "sorted()",
    "return [*state.seen]": "an unpacking",
    "a, b = names()": "an unpacking",
    "return state.seen.pop()": "pop()",
    "return f'{state.seen}'": "a text",
    "kept = other = {1}; more = other; return list(more)": "list()",
}


@pytest.mark.parametrize(("line", "what"), BAD.items())
def test_a_set_that_is_read_in_an_order_is_found(tmp_path: Path, line: str, what: str) -> None:
    """However it was made or handed on, where it was said to be a set; with the place."""
    assert check(tree(tmp_path, line)) == [f"workflows/two.py:2: {what} takes a set in its order"]


def test_the_command_refuses_a_tree_with_one(tmp_path: Path) -> None:
    """Exit code 1, and the place, for whoever runs `make check`."""
    folder = tree(tmp_path, "return list(state.seen)")
    command = [sys.executable, "-m", "tests.set_lint", str(folder)]
    done = subprocess.run(command, check=False, cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (
        1,
        "workflows/two.py:2: list() takes a set in its order\n",
    )
