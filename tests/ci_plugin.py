"""How the whole suite is run: no test is left out, and no processor waits for another.

Makes skips count: where `CI` is set, a skipped or expectedly failing test fails the run. A run that
collects no test fails by pytest itself (exit code 5). Registered in pyproject.toml.

With several processes (pytest-xdist), a whole file goes to one of them, in the order in which the
files come here: what takes long must not come last, or one process works while the others are done.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Generator, Sequence

import pytest

# Files whose few tests take longer than their number tells, the longest first.
LONG = (
    "tests/replay/test_handover.py",
    "tests/workflows/test_rules.py",
    "tests/test_readme.py",
    "tests/workflows/test_hostile_signals.py",
    "tests/e2e/test_command.py",
    "tests/e2e/test_drill.py",
    "tests/faults/test_killed.py",
    "tests/replay/test_proof.py",
    "tests/test_runbook.py",
    "tests/replay/test_life.py",
)
# The property under which a test records, by `record_property`, a line about what it measured.
MEASURED = "measured"
# About what a test takes, in seconds: with a world around it, with a company, or with neither.
_WEIGHTS = {"server": 1.0, "company": 0.2}
_ALONE = 0.02


def longest_first(tests: Sequence[tuple[str, Sequence[str]]]) -> list[str]:
    """Return the files of tests in the order of their start; a test is a file and its fixtures."""
    seconds: dict[str, float] = defaultdict(float)
    for file, fixtures in tests:
        seconds[file] += max((_WEIGHTS.get(name, _ALONE) for name in fixtures), default=_ALONE)
    rest = sorted((file for file in seconds if file not in LONG), key=lambda file: -seconds[file])
    return [file for file in LONG if file in seconds] + rest


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put the files that take long first where processes share the work; each does the same."""
    if not hasattr(config, "workerinput"):
        return
    tests = [(_file(item), getattr(item, "fixturenames", ())) for item in items]
    place = {file: number for number, file in enumerate(longest_first(tests))}
    items.sort(key=lambda item: place[_file(item)])


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the switch by which `tests/replay` writes histories."""
    parser.addoption(
        "--capture-release",
        type=int,
        metavar="N",
        help="drive the real run and save its histories as those of release N, which has none yet",
    )


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what tests have measured: nothing is asserted about it."""
    reports = [report for found in terminalreporter.stats.values() for report in found]
    for report in reports:
        for name, value in getattr(report, "user_properties", ()):
            if name == MEASURED and report.when == "call":
                terminalreporter.write_line(str(value))


@pytest.hookimpl(optionalhook=True, wrapper=True)
def pytest_xdist_auto_num_workers() -> Generator[None, int, int]:
    """Start two processes more than there are processors: tests also wait for servers."""
    return (yield) + 2


def _file(item: pytest.Item) -> str:
    return item.nodeid.partition("::")[0]


def _left_out(reporter: pytest.TerminalReporter) -> int:
    """Return how many tests or modules were skipped, or failed as they were expected to."""
    return len(reporter.stats.get("skipped", [])) + len(reporter.stats.get("xfailed", []))


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Turn a passing run that left tests out into a failing one, and say so."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if not isinstance(reporter, pytest.TerminalReporter) or not os.environ.get("CI"):
        return
    if session.exitstatus == pytest.ExitCode.OK and (count := _left_out(reporter)):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
        reporter.ensure_newline()
        reporter.write_line(f"CI is set and {count} left out: this run fails", red=True)
