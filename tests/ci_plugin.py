"""Makes skips count: where `CI` is set, a skipped or expectedly failing test fails the run.

Registered in pyproject.toml. A run that collects no test fails by pytest itself (exit code 5).
"""

from __future__ import annotations

import os

import pytest


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
