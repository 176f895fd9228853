"""A Temporal server as a process of its own, on a file, for tests that end it.

Runs are moved on in time as in `tests.world`. Seen with server 1.32: a run's clock is kept in the
file with the run, so it goes on after a SIGKILL where it stood.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

from temporalio.client import Client, WorkflowHandle
from temporalio.testing import TimeSkipper, TimeSkippingConfig

from starters.processes import LOOPBACK, free_ports
from tests.world import PATIENCE, server_arguments, temporal_program
from workers.process import connect


class TemporalProcess:
    """The server, which comes back on the same port and file."""

    def __init__(self, database: Path) -> None:
        """Note where to be; `start` comes next."""
        self._database = database
        (self._port,) = free_ports([0])

    async def start(self) -> None:
        """Start the server, and wait until it serves the namespace."""
        self._process = await asyncio.create_subprocess_exec(
            *(temporal_program(), "server", "start-dev", "--headless", "--log-level", "error"),
            *("--ip", LOOPBACK, "--port", str(self._port), "--db-filename", str(self._database)),
            *server_arguments(),
            stdout=asyncio.subprocess.DEVNULL,
        )
        place = {"target_host": f"{LOOPBACK}:{self._port}", "namespace": "default"}
        client = await connect(place, timedelta(seconds=PATIENCE))
        self._skipper = TimeSkipper(client, config=TimeSkippingConfig(enabled=False))

    async def kill(self) -> None:
        """End the server at once (SIGKILL), as a power failure would."""
        self._process.kill()
        await self._process.wait()

    @property
    def client(self) -> Client:
        """A client of the server; it finds the server again after a restart."""
        return self._skipper.client

    async def fast_forward(self, handle: WorkflowHandle[Any, Any], duration: timedelta, /) -> bool:
        """Let time go by for a run."""
        return await self._skipper.fast_forward(handle, duration)


@asynccontextmanager
async def temporal_process(database: Path) -> AsyncIterator[TemporalProcess]:
    """A server on a new file; it is killed at the end."""
    server = TemporalProcess(database)
    await server.start()
    try:
        yield server
    finally:
        await server.kill()
