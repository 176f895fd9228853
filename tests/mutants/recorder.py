"""A pytest plugin that writes down how each test failed, for the runner: one line of JSON each."""

from __future__ import annotations

import json
from collections.abc import Generator
from pathlib import Path

import pytest

# What a test says when it has seen something: an assertion, a `pytest.raises` that waits in vain,
# and the bound of a wait. Any other error may be that of a slow machine, or the broken code's own.
SAID = (AssertionError, pytest.fail.Exception, TimeoutError)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Where to write."""
    parser.addoption("--record", type=Path, help="write how each test ended into this file")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Write a line for each part of a test: its fixtures, itself, and the end of its fixtures."""
    report = yield
    error = call.excinfo
    line = {
        "test": item.nodeid,
        "passed": report.passed and call.when == "call",
        "failed": report.failed,
        # What a fixture asserts afterwards is a part of the test; one that cannot begin is not.
        "crashed": report.failed
        and (error is None or call.when == "setup" or not issubclass(error.type, SAID)),
        "how": error.exconly().strip().partition("\n")[0] if error is not None else "",
    }
    with item.config.getoption("--record").open("a") as file:
        file.write(f"{json.dumps(line)}\n")
    return report
