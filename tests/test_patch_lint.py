"""The lint for patches finds what would fail late, and lets pass what is well."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.patch_lint import check

ROOT = Path(__file__).parents[1]
NAMES = """
PATCH_ONE = "one"
PATCH_TWO = "two"
PATCHES = {PATCH_ONE: PatchStage.PATCHED, PATCH_TWO: PatchStage.GONE}
"""
GOOD = """
def step(state):
    for item in state.items:
        pass
    if state.is_new and workflow.patched(PATCH_ONE):
        return 1
"""


def tree(folder: Path, code: str, names: str = NAMES) -> Path:
    """A tree with this code as its workflows."""
    for file, text in (("domain/names.py", names), ("workflows/one.py", code)):
        (folder / file).parent.mkdir(exist_ok=True)
        (folder / file).write_text(text)
    return folder


def test_the_workflows_of_this_code_are_well() -> None:
    """And so says the command of `make check`, by its exit code."""
    assert check(ROOT) == []
    done = subprocess.run([sys.executable, "-m", "tests.patch_lint"], check=False, cwd=ROOT)
    assert done.returncode == 0
    makefile = (ROOT / "Makefile").read_text()
    assert "python -m tests.patch_lint" in makefile


@pytest.mark.parametrize(
    "code",
    [
        GOOD,
        "async def a():\n    x = patched(names.PATCH_ONE)\n",
        "async def a():\n    while f():\n        g()\n    workflow.patched(PATCH_ONE)\n",
    ],
    ids=["condition", "by another import", "after a loop"],
)
def test_a_call_in_its_one_place_is_well(tmp_path: Path, code: str) -> None:
    """However the function is imported, and with a loop beside it."""
    assert check(tree(tmp_path, code)) == []


BAD = {
    "for": ("for x in y:\n        workflow.patched(PATCH_ONE)", "stands in a loop"),
    "async for": ("async for x in y:\n        workflow.patched(PATCH_ONE)", "stands in a loop"),
    "while": ("while True:\n        workflow.patched(PATCH_ONE)", "stands in a loop"),
    "condition of a loop": ("while workflow.patched(PATCH_ONE):\n        f()", "stands in a loop"),
    "list": ("[workflow.patched(PATCH_ONE) for x in y]", "stands in a comprehension"),
    "set": ("{workflow.patched(PATCH_ONE) for x in y}", "stands in a comprehension"),
    "dictionary": ("{x: workflow.patched(PATCH_ONE) for x in y}", "stands in a comprehension"),
    "generator": ("any(workflow.patched(PATCH_ONE) for x in y)", "stands in a comprehension"),
    "lambda": ("wait(lambda: workflow.patched(PATCH_ONE))", "stands in a lambda"),
    "inner function": (
        "def g():\n        workflow.patched(PATCH_ONE)",
        "in a function within a function",
    ),
    "handed on": ("map(workflow.patched, y)", "is called where it stands"),
    "another name": ("from temporalio.workflow import patched as p", "is called where it stands"),
    "text": ('workflow.patched("one")', "must be a constant of domain/names.py"),
    "made up": ('workflow.patched(f"one-{x}")', "must be a constant of domain/names.py"),
    "foreign constant": ("workflow.patched(PATCH_NINE)", "must be a constant of domain/names.py"),
    "keyword": ("workflow.patched(id=PATCH_ONE)", "must be a constant of domain/names.py"),
    "gone": ("workflow.patched(PATCH_TWO)", "PATCH_TWO is gone, and is called here"),
    "wrong stage": ("workflow.deprecate_patch(PATCH_ONE)", "so it is called by patched"),
    "missing": ("f()", "PATCH_ONE is patched, so it is called by patched, once"),
}


@pytest.mark.parametrize(("line", "says"), BAD.values(), ids=BAD)
def test_a_call_in_another_place_is_found(tmp_path: Path, line: str, says: str) -> None:
    """Each with the file, and in words."""
    found = check(tree(tmp_path, f"async def step(y):\n    {line}\n"))
    assert any(says in problem for problem in found), found


@pytest.mark.parametrize(
    "decorator",
    [
        "workflow.signal",
        "workflow.signal(dynamic=True)",
        'workflow.query(name="q")',
        "workflow.update",
        "step.validator",
    ],
)
def test_a_call_in_a_handler_is_found(tmp_path: Path, decorator: str) -> None:
    """Of signals, queries and updates, and of an update's validator."""
    code = f"class A:\n    @{decorator}\n    def f(self):\n        workflow.patched(PATCH_ONE)\n"
    found = check(tree(tmp_path, code))
    assert found == ["workflows/one.py:4: patched stands in a handler"]


def test_a_call_outside_of_a_run_is_found(tmp_path: Path) -> None:
    """A module is loaded before there is a run."""
    found = check(tree(tmp_path, "workflow.patched(PATCH_ONE)\n"))
    assert found == ["workflows/one.py:1: patched stands outside of any function"]


def test_one_id_for_two_places_is_found(tmp_path: Path) -> None:
    """The second place would have the answer of the first one: in one file, in two, by value."""
    twice = f"{GOOD}\n\ndef other():\n    return workflow.patched(PATCH_ONE)\n"
    [found] = check(tree(tmp_path, twice))
    assert found == "PATCH_ONE is used for 2 places: workflows/one.py:5, workflows/one.py:10"
    (tmp_path / "workflows" / "two.py").write_text(GOOD)
    [found] = check(tree(tmp_path, GOOD))
    assert found.startswith("PATCH_ONE is used for 2 places: workflows/one.py:5, workflows/two.py")
    (tmp_path / "workflows" / "two.py").unlink()
    same = NAMES.replace('"two"', '"one"')
    assert "domain/names.py: PATCH_TWO has the id 'one' of another change" in check(
        tree(tmp_path, GOOD, same)
    )


def test_an_id_without_a_stage_is_found(tmp_path: Path) -> None:
    """`refund doctor --patches` could say nothing of it."""
    names = NAMES.replace(", PATCH_TWO: PatchStage.GONE", "")
    [found] = check(tree(tmp_path, GOOD, names))
    assert found == "domain/names.py: PATCHES does not say where PATCH_TWO stands"
