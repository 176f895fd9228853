"""Workers of several releases on one server, as processes with a version of one deployment each."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

from temporalio.api.enums.v1 import EventType
from temporalio.client import WorkflowHistory

from tests.worker_process import real_worker
from tests.world import PATIENCE, Run, World, temporal_program, temporal_server

DEPLOYMENT = "refunds"
_COMPLETED = EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED


@asynccontextmanager
async def world_to_deploy(folder: Path) -> AsyncIterator[World]:
    """A world on a server of its own: which version is current holds for the whole task queue."""
    async with temporal_server() as server, World(server, folder) as world:
        yield world


def versioned(
    world: World, release: int, tree: Path | None = None
) -> AbstractAsyncContextManager[asyncio.subprocess.Process]:
    """A worker of a release as that version of the deployment, once it polls."""
    version = {"NORTHWIND_DEPLOYMENT": DEPLOYMENT, "NORTHWIND_BUILD_ID": str(release)}
    return real_worker(world, tree, **version)


async def make_current(world: World, release: int) -> None:
    """From now on new runs, and open ones at their next step, go to workers of a release."""
    version = ("--deployment-name", DEPLOYMENT, "--build-id", str(release))
    await temporal(world, "worker", "deployment", "set-current-version", "--yes", *version)


async def temporal(world: World, *arguments: str) -> str:
    """Call the `temporal` program; what it printed."""
    address = world.client.service_client.config.target_host
    process = await asyncio.create_subprocess_exec(
        *(temporal_program(), *arguments, "--address", address),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(PATIENCE):
        out, err = await process.communicate()
    assert process.returncode == 0, err.decode()
    return out.decode()


def worked_on(history: WorkflowHistory) -> list[str]:
    """Which releases have done the steps of a run, in their order, each time that it changed."""
    seen = [
        event.workflow_task_completed_event_attributes.deployment_version.build_id
        for event in history.events
        if event.event_type == _COMPLETED
    ]
    return [one for one, before in zip(seen, [None, *seen], strict=False) if one != before]


async def under_review(world: World, run: Run) -> str:
    """The text of the run's "under review" mail."""
    messages = (await world.http.get("/mailbox.json")).json()["messages"]
    key = f"/{run.handle.id}/{run.request.request_id}/mail.under_review"
    [text] = [mail["text"] for mail in messages if (mail["key"] or "").endswith(key)]
    return str(text)
