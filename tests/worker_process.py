"""A worker as a process of its own, for tests that end it."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.world import World

# All that is done with one worker. Loading all libraries alone takes seconds on a busy machine.
PATIENCE = 240.0
_LOG_BYTES = 2**24


@asynccontextmanager
async def worker(
    tree: Path | None = None, patience: float = PATIENCE, /, **environment: str
) -> AsyncIterator[asyncio.subprocess.Process]:
    """A worker process, of the code here or of a copy; it is killed if it outlives the block.

    The block may take `patience` seconds, the start of the process included.
    """
    ours = ("NORTHWIND_", "TEMPORAL_", "STRIPE_", "OPENAI_", "ANTHROPIC_")
    rest = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "workers",
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        # A worker must not stand still since nobody reads its log.
        limit=_LOG_BYTES,
        cwd=tree,
        env={**rest, **environment},
    )
    try:
        async with asyncio.timeout(patience):
            yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


@asynccontextmanager
async def real_worker(
    world: World, tree: Path | None = None, patience: float = PATIENCE, /, **more: str
) -> AsyncIterator[asyncio.subprocess.Process]:
    """A worker process in the place of the world's own worker, once it polls.

    It runs the code here, or that of a copy.
    """
    await world.stop_worker()
    place = {
        "TEMPORAL_ADDRESS": world.client.service_client.config.target_host,
        "TEMPORAL_CONFIG_FILE": "/dev/null",
        "NORTHWIND_DATA_DIR": str(world.settings.data_dir),
        "NORTHWIND_COMPANY_URL": world.company.http_url,
        "NORTHWIND_SMTP_URL": world.company.smtp_url,
        **more,
    }
    async with worker(tree, patience, **place) as process:
        assert process.stdout is not None
        assert await process.stdout.readline()
        yield process
