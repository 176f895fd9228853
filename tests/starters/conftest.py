"""A Temporal server and a world for the commands, and a way to type them."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from temporalio.testing import WorkflowEnvironment

from starters.cli import run
from tests.world import PATIENCE, World, temporal_server


@dataclass(frozen=True)
class Done:
    """How a command ended, and what it printed where."""

    code: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        """What was printed as JSON."""
        return json.loads(self.out)


Typed = Callable[..., Coroutine[Any, Any, Done]]


@pytest.fixture
def typed(capsys: pytest.CaptureFixture[str]) -> Typed:
    """Type a command, in a thread of its own, so that the test's worker goes on working."""

    async def type_it(*arguments: str) -> Done:
        capsys.readouterr()
        code = await asyncio.to_thread(run, arguments)
        printed = capsys.readouterr()
        assert "Traceback" not in printed.err
        return Done(code, printed.out, printed.err)

    return type_it


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nothing of this machine's own settings reaches a command, and it writes nowhere else."""
    for name in ("TEMPORAL_ADDRESS", "TEMPORAL_NAMESPACE", "TEMPORAL_PROFILE", "NORTHWIND_AS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TEMPORAL_CONFIG_FILE", "/dev/null")
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="session")
async def server() -> AsyncIterator[WorkflowEnvironment]:
    """The Temporal server that the commands of these tests share."""
    async with temporal_server() as environment:
        yield environment


@pytest.fixture(scope="session")
async def bare_server() -> AsyncIterator[WorkflowEnvironment]:
    """A Temporal server that knows none of our search attributes."""
    async with temporal_server(search_attributes=False) as environment:
        yield environment


@pytest.fixture
async def world(
    server: WorkflowEnvironment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[World]:
    """A company and a worker, and settings by which the command finds both."""
    async with World(server, tmp_path) as opened:
        use(opened, monkeypatch)
        yield opened
        await end_all(opened)


@pytest.fixture
async def bare_world(
    bare_server: WorkflowEnvironment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[World]:
    """The same on the server without search attributes."""
    async with World(bare_server, tmp_path) as opened:
        use(opened, monkeypatch)
        yield opened
        await end_all(opened)


def use(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Set the settings by which a command finds a world."""
    monkeypatch.setenv("TEMPORAL_ADDRESS", world.client.service_client.config.target_host)
    monkeypatch.setenv("NORTHWIND_DATA_DIR", str(world.company.data))
    monkeypatch.setenv("NORTHWIND_COMPANY_URL", world.company.http_url)
    monkeypatch.setenv("NORTHWIND_SMTP_URL", world.company.smtp_url)


async def end_all(world: World) -> None:
    """Have every open run withdrawn: the server is shared, and an order has one run at a time.

    A terminate would leave orders that `refund start` rightly hesitates to touch.
    """
    async for execution in world.client.list_workflows('ExecutionStatus = "Running"'):
        handle = world.client.get_workflow_handle(execution.id, run_id=execution.run_id)
        await handle.cancel()
        async with asyncio.timeout(PATIENCE):
            await handle.result()
