"""The gates of the project can fail: import contracts, banned calls, skips, targets."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.ci_plugin import LONG, longest_first

ROOT = Path(__file__).parents[1]
PACKAGES = ("domain", "activities", "workflows", "workers", "starters", "northwind")


def run_tool(name: str, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run a program that is installed beside this interpreter; its output is for the message."""
    program = Path(sys.executable).with_name(name)
    return subprocess.run(
        [program, *arguments], cwd=cwd, check=False, capture_output=True, text=True
    )


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Return a copy of the packages and of what configures their checks."""
    for package in PACKAGES:
        shutil.copytree(ROOT / package, tmp_path / package)
    (tmp_path / "tests").mkdir()
    for name in ("pyproject.toml", "tests/__init__.py", "tests/import_contract.py"):
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


@pytest.mark.parametrize(
    ("package", "line", "contract"),
    [
        ("domain", "import httpx", "domain is pure"),
        ("domain", "import activities.interfaces", "domain is pure"),
        ("activities/interfaces", "import sqlalchemy", "activity interfaces know"),
        ("workflows", "import workers.settings", "workflows know"),
        ("workflows", "import httpx", "workflows know"),
        ("activities", "import workflows", "adapters know nothing"),
        ("activities", "import northwind", "adapters know nothing"),
        ("workers", "import starters", "workers know nothing"),
        ("workers/settings", "import stripe", "settings can be read"),
        ("starters", "import workers.wiring", "the command knows"),
        ("starters", "import activities.orders", "the command knows"),
        ("northwind", "import domain.money", "the stand-in company is a stranger"),
    ],
)
def test_a_wrong_import_breaks_its_contract(
    tree: Path, package: str, line: str, contract: str
) -> None:
    """Every import in a forbidden direction turns the contract that holds it red."""
    module = tree / f"{package}.py" if "/" in package else tree / package / "intruder.py"
    with module.open("a") as source:
        source.write(f"\n{line}\n")
    done = run_tool("lint-imports", "--no-cache", cwd=tree)
    broken = [row for row in done.stdout.splitlines() if " BROKEN" in row]
    assert done.returncode == 1, done.stdout + done.stderr
    assert any(row.startswith(contract) for row in broken), done.stdout


@pytest.mark.parametrize(
    ("folder", "code"),
    [
        ("workflows", "import time"),
        ("workflows", "from datetime import datetime\n\ndatetime.now()"),
        ("workflows", "import asyncio\n\nasyncio.wait([])"),
        ("workflows", "from asyncio import as_completed"),
        ("workflows", "from os import environ"),
        ("workflows", "import random"),
        ("workflows", "from temporalio import client"),
        ("domain", "from datetime import date\n\ndate.today()"),
        ("domain", "import uuid\n\nuuid.uuid4()"),
        ("tests", "import asyncio\n\nasyncio.sleep(1)"),
        ("tests", "from time import sleep"),
        ("northwind", "from unittest import mock"),
    ],
)
def test_a_banned_call_is_refused(folder: str, code: str) -> None:
    """Lint refuses what differs on replay, what makes the domain impure, and sleeps in tests."""
    name = ROOT / folder / "code_to_check.py"
    command = [sys.executable, "-m", "ruff", "check", "--output-format", "concise"]
    done = subprocess.run(
        [*command, "--select", "TID251", "--stdin-filename", name, "-"],
        input=f"{code}\n",
        check=False,
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    assert "TID251" in done.stdout, done.stdout + done.stderr


LEFT_OUT = {
    "skip": "@pytest.mark.skip",
    "skipif": "@pytest.mark.skipif(True, reason='no')",
    "xfail": "@pytest.mark.xfail(strict=False)",
    "module": "pytest.skip(allow_module_level=True)",
}


@pytest.mark.parametrize(
    ("how", "ci", "code"), [*((how, "true", 1) for how in LEFT_OUT), ("skip", "", 0)]
)
def test_a_skip_fails_the_run_in_ci(tmp_path: Path, how: str, ci: str, code: int) -> None:
    """A test that is left out fails the run where CI is set, and is only shown elsewhere."""
    (tmp_path / "test_one.py").write_text(
        f"import pytest\n{LEFT_OUT[how]}\ndef test_a():\n    raise ValueError\n"
    )
    (tmp_path / "test_two.py").write_text("def test_b():\n    pass\n")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "tests.ci_plugin", "--rootdir", tmp_path, tmp_path],
        env={"CI": ci, "PYTHONPATH": str(ROOT)},
        check=False,
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert done.returncode == code, done.stdout + done.stderr
    assert "1 passed, 1 " in done.stdout
    assert ("CI is set and 1 left out" in done.stdout) == bool(ci)


def make(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run make as from a shell, also where these tests were started by `make test`."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    return subprocess.run(
        ["make", *arguments], cwd=folder, env=clean, check=False, capture_output=True, text=True
    )


def test_make_alone_prints_every_target() -> None:
    """Whoever types `make` sees each target with what it does, and nothing is run."""
    done = make(ROOT)
    assert done.returncode == 0, done.stderr
    makefile = (ROOT / "Makefile").read_text()
    phony = re.search(r"^\.PHONY: (.+)$", makefile, re.MULTILINE)
    assert phony is not None
    assert [row.split()[1] for row in done.stdout.splitlines()] == phony[1].split()


def test_make_runs_modules_that_exist() -> None:
    """Every `python -m` of the Makefile names a module of the project or of its environment."""
    modules = re.findall(r"python -m ([a-z_.]+)", (ROOT / "Makefile").read_text())
    assert modules
    assert [name for name in modules if find_spec(name) is None] == []


def test_make_says_what_python_it_needs(tmp_path: Path) -> None:
    """Without a Python that is new enough, `make demo` ends with one line that says so."""
    for name in ("Makefile", "pyproject.toml", "requirements.lock"):
        shutil.copy(ROOT / name, tmp_path)
    for given, message in [("PYTHON=", "No Python 3.11"), ("PYTHON=false", "false does not run")]:
        done = make(tmp_path, "demo", given)
        assert done.returncode != 0
        assert message in done.stderr
        assert "Traceback" not in done.stderr


def pins(name: str) -> dict[str, str]:
    """Return the pinned requirements of a lock file, with their hashes, by project."""
    text = (ROOT / name).read_text().replace("\\\n", " ")
    rows = [row for row in text.splitlines() if row and not row.startswith("#")]
    return {row.partition("==")[0]: row for row in rows}


@pytest.mark.parametrize("name", ["requirements.lock", "requirements-dev.lock"])
def test_a_lock_file_pins_by_hash_and_names_no_place(name: str) -> None:
    """What is installed is the same bytes everywhere, from whatever index the user has."""
    assert [
        row for row in pins(name).values() if "==" not in row or "--hash=sha256:" not in row
    ] == []
    assert re.findall(r"://|--index|--find-links|\B/\w+/", (ROOT / name).read_text()) == []


def test_the_lock_files_agree() -> None:
    """`make test` checks the very versions that `make demo` runs."""
    runtime, dev = pins("requirements.lock"), pins("requirements-dev.lock")
    assert runtime
    assert {name: dev.get(name) for name in runtime} == runtime


def test_what_takes_long_is_started_first() -> None:
    """Long files come first, then those with the most to do: none is left for the end alone."""
    assert all((ROOT / file).is_file() for file in LONG)
    tests: list[tuple[str, tuple[str, ...]]] = [("many.py", ("tmp_path",))] * 9
    tests += [("two_worlds.py", ("server", "world"))] * 2
    tests += [("companies.py", ("company",))] * 3
    tests += [(LONG[1], ()), (LONG[0], ("server",))]
    assert longest_first(tests) == [*LONG[:2], "two_worlds.py", "companies.py", "many.py"]
