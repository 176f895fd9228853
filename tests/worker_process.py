"""A worker as a process of its own, for tests that end it."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

# Loading all libraries takes seconds on a busy machine.
PATIENCE = 60.0


@asynccontextmanager
async def worker(
    tree: Path | None = None, /, **environment: str
) -> AsyncIterator[asyncio.subprocess.Process]:
    """A worker process, of the code here or of a copy; it is killed if it outlives the block."""
    ours = ("NORTHWIND_", "TEMPORAL_", "STRIPE_", "OPENAI_", "ANTHROPIC_")
    rest = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "workers",
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        cwd=tree,
        env={**rest, **environment},
    )
    try:
        async with asyncio.timeout(PATIENCE):
            yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
