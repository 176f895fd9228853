"""The domain gives the same answers on replay, in any process, at any time."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

import domain

ROOT = Path(__file__).parents[2]
MODULES = sorted(Path(domain.__file__).parent.glob("*.py"))
# Of the standard library, only what depends on nothing but its arguments.
PURE = set(
    "base64 binascii collections datetime decimal enum hashlib json re typing unicodedata".split()
)
# Builtins and methods whose answer is another one in another process, or that reach outside.
IMPURE_FUNCTIONS = {"breakpoint", "eval", "exec", "globals", "hash", "id", "input", "open", "print"}
IMPURE_METHODS = {"now", "today", "utcnow"}

ANSWERS = """
from tests.domain.build import *
from domain.names import order_of_workflow
from domain.outcomes import Reason
from domain.statements import request_digest
from domain.trail import Entry, Refusal, RunStatus, Trail
trail = Trail()
for refusal in [*Refusal, *Refusal]:
    trail.add(Entry(at=NOW, what="refused", refusal=refusal))
facts = case(refund("re_2", 2), refund("re_1", 1))
print(request_digest(request()), proposal(facts), claim(request(), facts), list(Reason))
print(RunStatus(trail=trail.entries, refused=trail.refused).model_dump_json())
"""


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_a_module_uses_only_what_is_pure(path: Path) -> None:
    """No clock, no chance, no environment, no files: the caller hands everything in."""
    tree = ast.parse(path.read_text())
    imported = {
        (node.module or "" if isinstance(node, ast.ImportFrom) else alias.name).split(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    assert imported - PURE - {"domain", "pydantic"} == set()
    called = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
    functions = {node.id for node in called if isinstance(node, ast.Name)}
    methods = {node.attr for node in called if isinstance(node, ast.Attribute)}
    assert functions & IMPURE_FUNCTIONS == set()
    assert methods & IMPURE_METHODS == set()


def test_the_order_of_sets_changes_no_answer() -> None:
    """Digests, proposals and answers are the same under any hash seed (sdk-python#429)."""
    answers = {
        subprocess.run(
            [sys.executable, "-c", ANSWERS],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed in ("0", "1", "2")
    }
    assert len(answers) == 1
    assert "re_1" in answers.pop()
