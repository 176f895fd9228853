"""The table of safeguards does not rot, and its runner cannot be fooled by what is not a miss."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.mutants.__main__ import ROOT, main
from tests.mutants.mutant import Edit, Mutant
from tests.mutants.table import ALL

_WHOLE = "LIMIT = 5\n# A remark.\nTWICE = 1\nTWICE = 1\n"
_TEST = '"""Tests."""\n\nfrom safe import LIMIT\n\n\ndef test_limit():\n    assert LIMIT == 5\n'
_COMMAND = "import sys\n\nfrom safe import LIMIT\n\n\ndef main():\n    sys.exit(int(LIMIT != 5))\n"
_HELD = ("tests/test_safe.py::test_limit",)


def broken(name: str, old: str, new: str, *caught_by: Any) -> Mutant:
    """A row that breaks the one module of the small tree."""
    return Mutant(name, "P1", (Edit("safe.py", old, new),), caught_by or _HELD)


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A tree with one safeguard, one test and one command."""
    (tmp_path / "tests" / "mutants").mkdir(parents=True)
    (tmp_path / "starters").mkdir()
    # Without it, an installed package of that name would be found first.
    (tmp_path / "starters" / "__init__.py").touch()
    for name in ("tests/__init__.py", "tests/mutants/__init__.py", "tests/mutants/recorder.py"):
        shutil.copy(ROOT / name, tmp_path / name)
    # Else pytest would look for one above.
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "safe.py").write_text(_WHOLE)
    (tmp_path / "tests" / "test_safe.py").write_text(_TEST)
    (tmp_path / "starters" / "cli.py").write_text(_COMMAND)
    return tmp_path


def test_every_row_breaks_something_that_is_there(tmp_path: Path) -> None:
    """Each text is found exactly once, and what comes out is Python that knows all its names."""
    for number, mutant in enumerate(ALL):
        tree = tmp_path / str(number)
        for path in {edit.path for edit in mutant.edits}:
            (tree / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / path, tree / path)
        for edit in mutant.edits:
            edit.apply(tree)
    command = [
        sys.executable,
        "-m",
        "ruff",
        "check",
        "--isolated",
        "--no-cache",
        "--select",
        "F821",
    ]
    done = subprocess.run([*command, tmp_path], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_test_that_a_row_names_exists() -> None:
    """With its parameters: pytest would end at the first name that it does not know."""
    tests = {check for mutant in ALL for check in mutant.caught_by if isinstance(check, str)}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", *tests],
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


def test_each_row_has_a_name_of_its_own_and_something_that_misses_it() -> None:
    """`--only` finds one row, each row is caught by something, and no promise is left out."""
    assert len({mutant.name for mutant in ALL}) == len(ALL)
    assert all(mutant.caught_by and mutant.edits for mutant in ALL)
    assert {mutant.promise for mutant in ALL} == {f"P{number}" for number in range(1, 9)}


def test_what_is_missed_and_what_is_not(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Only the named test's own failing assertion counts, or a command's exit code 1."""
    how = {
        "caught": broken("caught", "LIMIT = 5", "LIMIT = 6"),
        "by a command": broken("by a command", "LIMIT = 5", "LIMIT = 6", ("refund", "drill")),
        "impossible here": broken(
            "impossible here", "LIMIT = 5", "LIMIT = 6", *_HELD, ("sh", "-c", "exit 5")
        ),
        "nothing else": broken("nothing else", "LIMIT = 5", "LIMIT = 6", ("sh", "-c", "exit 5")),
        "survives": broken("survives", "# A remark.", "# Another."),
        "no Python": broken("no Python", "LIMIT = 5", "LIMIT = ="),
        "cannot be imported": broken("cannot be imported", "LIMIT = 5", "LIMIT = missing"),
        "twice": broken("twice", "TWICE = 1", "TWICE = 2"),
        "one of two": broken("one of two", "LIMIT = 5", "LIMIT = 6", *_HELD, ("true",)),
    }
    code = main(["--json", "--jobs", "4"], list(how.values()), small)
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)}

    assert code == 1
    caught = ["caught", "by a command", "impossible here"]
    assert [name for name in how if rows[name]["caught"]] == caught
    assert {name: row["seen"][-1]["state"] for name, row in rows.items()} == {
        "caught": "red",
        "by a command": "red",
        "impossible here": "impossible",
        "nothing else": "impossible",
        "survives": "green",
        "no Python": "broken",
        "cannot be imported": "broken",
        "twice": "broken",
        "one of two": "green",
    }
    assert "assert 6 == 5" in rows["caught"]["seen"][0]["how"]
    assert "is no Python any more" in rows["no Python"]["seen"][0]["how"]
    assert "2 times" in rows["twice"]["seen"][0]["how"]
    assert (small / "safe.py").read_text() == _WHOLE


def test_all_caught_is_success(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One row of the table may be run alone; exit code 0 and a line that says so."""
    rows = [broken("held", "LIMIT = 5", "LIMIT = 6"), broken("not asked for", "# A", "# B")]
    assert main(["--only", "held"], rows, small) == 0
    assert "Safeguards broken: 1, not caught: 0" in capsys.readouterr().out


def test_a_test_that_is_red_anyway_proves_nothing(
    small: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is named, and no safeguard is broken."""
    (small / "safe.py").write_text("LIMIT = 6\n")
    assert main([], [broken("held", "LIMIT = 6", "LIMIT = 7")], small) == 1
    printed = capsys.readouterr()
    assert (
        f"Not green with nothing broken: {_HELD[0]}: AssertionError: assert 6 == 5" in printed.err
    )
    assert printed.out == ""


def test_a_name_that_nobody_knows_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 2, and nothing is run."""
    assert main(["--only", "no such safeguard"]) == 2
    printed = capsys.readouterr()
    assert printed.err.splitlines() == [
        "There is no safeguard 'no such safeguard'; --list names them."
    ]
    assert printed.out == ""


def test_the_table_can_be_read(capsys: pytest.CaptureFixture[str]) -> None:
    """`--list` prints each safeguard with the tests that miss it."""
    assert main(["--list"]) == 0
    printed = capsys.readouterr().out
    assert all(f"{mutant.promise}  {mutant.name}  (" in printed for mutant in ALL)
    assert "tests/activities/test_payments.py::test_old_facts_send_nothing" in printed
