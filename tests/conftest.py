"""One Temporal server for the whole suite, and a new world around it for each test of a whole run.

Every history is replayed at the end. The scenarios that are marked run a second time without the
cache, where each workflow task replays all that came before it.
"""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from temporalio.testing import WorkflowEnvironment

from tests.world import World, check_history, temporal_server


@pytest.fixture(scope="session")
async def server() -> AsyncIterator[WorkflowEnvironment]:
    """The shared Temporal server."""
    async with temporal_server() as environment:
        yield environment


@pytest.fixture
async def world(
    request: pytest.FixtureRequest, server: WorkflowEnvironment, tmp_path: Path
) -> AsyncIterator[World]:
    """A new company and a worker; afterwards every history is held against promise P7."""
    async with World(server, tmp_path, cached=getattr(request, "param", True)) as opened:
        yield opened
        for run in opened.runs:
            await check_history(run)
