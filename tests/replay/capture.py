"""Drives the real run through every path, on whatever code the worker has."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path as Folder
from typing import Any

from temporalio.client import Client, WorkflowHandle
from temporalio.testing import TimeSkipper, TimeSkippingConfig, WorkflowEnvironment

from tests.replay.driven import Driven
from tests.replay.paths import PATHS, Path
from tests.replay.saved import Keeper
from tests.world import World
from workers.sandbox import DATA_CONVERTER

# A client's and a worker's usual name tells process and machine.
IDENTITY = "northwind"
# In place of a page that each history would hold some four times, for the model alone to read.
_POLICY = "§2 Items that arrived damaged are refunded in full within 30 days after delivery."
# More at once starve each other on a small machine.
_AT_ONCE = 8


class NamelessServer:
    """A server whose clients, and so its workers, do not name this machine in any event."""

    def __init__(self, client: Client) -> None:
        """Take a client that has a name of its own."""
        self._skipper = TimeSkipper(client, config=TimeSkippingConfig(enabled=False))

    @property
    def client(self) -> Client:
        """A client of the server."""
        return self._skipper.client

    async def fast_forward(self, handle: WorkflowHandle[Any, Any], duration: timedelta, /) -> bool:
        """Let time go by for a run."""
        return await self._skipper.fast_forward(handle, duration)


@asynccontextmanager
async def nameless_world(server: WorkflowEnvironment, folder: Folder) -> AsyncIterator[World]:
    """A world in which no event names the machine."""
    address = server.client.service_client.config.target_host
    client = await Client.connect(address, identity=IDENTITY, data_converter=DATA_CONVERTER)
    async with World(NamelessServer(client), folder) as world:
        yield world


async def capture(world: World, release: int) -> None:
    """Save the history of every path at every stage.

    Raises:
        FileExistsError: this release has histories.
    """
    keeper = Keeper(release)
    await world.control("policy", {"text": _POLICY})
    drives = Drives(world)

    async def drive(path: Path) -> None:
        driven = drives.new()
        async for stage in path.drive(driven):
            keeper.keep(path.name, stage, await driven.run.history(), await driven.run.status())

    await together(partial(drive, path) for path in PATHS)
    keeper.close()


class Drives:
    """Runs in one world, each of an order of its own."""

    def __init__(self, world: World) -> None:
        """None so far."""
        self._world, self._staff, self._count = world, asyncio.Lock(), 0

    def new(self) -> Driven:
        """One more."""
        self._count += 1
        return Driven(self._world, f"kept-{self._count:03}", self._staff)


async def together(steps: Iterable[Callable[[], Awaitable[None]]]) -> None:
    """Take all steps, some at once, and end at the first that fails."""
    some = asyncio.Semaphore(_AT_ONCE)

    async def take(step: Callable[[], Awaitable[None]]) -> None:
        async with some:
            await step()

    async with asyncio.TaskGroup() as group:
        for step in steps:
            group.create_task(take(step))
