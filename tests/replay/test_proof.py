"""The gate can fail: a change is caught by what the table says, and by nothing else.

What comes earlier has nothing to say: a step that the gate must see passes lint and types.
"""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests import patch_lint, set_lint
from tests.replay.proof import PROOF, By, Row, table
from tests.replay.saved import releases
from tests.trees import ROOT, copy_with

RELEASE = 1
_RESTRICTED = "RestrictedWorkflowAccessError"
# The code that is replayed. All else is checked by `make check`, and costs a minute here.
_CHECKED = ("domain", "activities/interfaces.py", "workflows")
_CACHE = ".mypy_cache"


@dataclass(frozen=True)
class Said:
    """What was said of all copies, by the name of the change."""

    lint: dict[str, list[str]]
    replays: dict[str, dict[str, list[str]]]
    types: list[str]
    """Of the changes that types must catch, all in one copy."""
    types_of_others: list[str]


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> Said:
    """Every copy has been made and looked at: each kind of look once, since each start costs."""
    folder = tmp_path_factory.mktemp("proof")
    trees = {
        name: copy_with(folder / str(number), *row.changes)
        for number, (name, row) in enumerate(PROOF.items())
    }
    typed = [row for row in PROOF.values() if By.TYPES in row.caught]
    untyped = [row for row in PROOF.values() if By.TYPES not in row.caught]
    return Said(
        lint={name: list(_lint(tree)) for name, tree in trees.items()},
        replays=_replays(folder, trees),
        types=_types(folder / "typed", typed),
        types_of_others=_types(folder / "untyped", untyped),
    )


def _lint(tree: Path) -> Iterator[str]:
    shutil.copy(ROOT / "pyproject.toml", tree)
    ruff = (sys.executable, "-m", "ruff", "check", "--no-cache", "--output-format", "concise")
    done = subprocess.run(
        [*ruff, "--quiet", "domain", "workflows"], cwd=tree, check=False, capture_output=True
    )
    assert done.returncode in (0, 1), done.stderr
    yield from done.stdout.decode().splitlines()
    yield from patch_lint.check(tree)
    yield from set_lint.check(tree)


def _replays(folder: Path, trees: dict[str, Path]) -> dict[str, dict[str, list[str]]]:
    asked = {name: row.misses + row.sees for name, row in PROOF.items() if row.misses + row.sees}
    results = {name: folder / f"{trees[name].name}.json" for name in asked}
    orders = [(str(trees[name]), str(results[name]), asked[name]) for name in asked]
    subprocess.run(
        [sys.executable, "-m", "tests.replay.in_copies"],
        cwd=ROOT,
        check=True,
        input=json.dumps(orders).encode(),
    )
    return {name: json.loads(file.read_text()) for name, file in results.items()}


def _types(tree: Path, rows: list[Row]) -> list[str]:
    """What mypy says of all these changes together; where `make check` ran, it knows the rest."""
    copy_with(tree, *(change for row in rows for change in row.changes))
    shutil.copy(ROOT / "pyproject.toml", tree)
    if (ROOT / _CACHE).exists():
        shutil.copytree(ROOT / _CACHE, tree / _CACHE)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *_CHECKED], cwd=tree, check=False, capture_output=True
    )
    assert done.returncode in (0, 1), done.stderr
    return [line for line in done.stdout.decode().splitlines() if ": error: " in line]


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("name", "row"), PROOF.items(), ids=PROOF)
def test_a_change_is_caught_by_what_the_table_says(said: Said, name: str, row: Row) -> None:
    """P6: whoever breaks a refund that waits makes CI go red, and whoever does not does not."""
    lint = said.lint[name]
    types = [line for line in said.types if row.caught.get(By.TYPES, "\n") in line]
    found: dict[By, list[str]] = {By.LINT: lint, By.TYPES: types, By.SANDBOX: [], By.GATE: []}
    replays = said.replays.get(name, {})
    for one in row.misses:
        assert replays[f"{RELEASE}/{one}"] == []
    for one in row.sees:
        complaints = "; ".join(replays[f"{RELEASE}/{one}"])
        assert complaints != ""
        found[By.SANDBOX if complaints.startswith(_RESTRICTED) else By.GATE].append(complaints)
    assert {by for by, words in found.items() if words} == row.caught.keys()
    for by, says in row.caught.items():
        assert says in found[by][0]


@pytest.mark.timeout(600)
def test_types_have_nothing_to_say_of_what_others_catch(said: Said) -> None:
    """Those changes are whole, so what catches them is not needed for nothing."""
    assert said.types_of_others == []


def test_the_histories_of_the_table_are_there() -> None:
    """The table speaks of those of release 1, which are never written again."""
    assert RELEASE in releases()


def test_the_table_stands_in_the_documentation() -> None:
    """What is said of the gate in docs/versioning.md is what is tested."""
    shown = (ROOT / "docs" / "versioning.md").read_text().splitlines()
    assert [line for line in table() if line not in shown] == []
