"""The releases whose histories are held against the code here, and what came of it."""

import time
from dataclasses import dataclass

import pytest

from tests.replay.capture import capture, nameless_world
from tests.replay.gate import judge_all
from tests.replay.saved import Saved, releases, wanted
from tests.world import temporal_server


def known(config: pytest.Config) -> list[int]:
    """All releases, with the one that is captured now."""
    new = config.getoption("--capture-release")
    return sorted({*releases(), *([new] if new is not None else [])})


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One test for each release, or for each history that it must hold."""
    found = known(metafunc.config)
    if "release" in metafunc.fixturenames:
        metafunc.parametrize("release", found)
    if "saved" in metafunc.fixturenames:
        histories = [one for release in found for one in wanted(release)]
        metafunc.parametrize("saved", histories, ids=str)


@pytest.fixture(scope="session")
async def captured(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """With `--capture-release`, the histories of that release have been written."""
    new = request.config.getoption("--capture-release")
    if new is not None:
        folder = tmp_path_factory.mktemp("capture")
        async with temporal_server() as server, nameless_world(server, folder) as world:
            await capture(world, new)


@dataclass(frozen=True)
class Replayed:
    """What came of all replays, and how long they took."""

    wrong: dict[Saved, list[str]]
    seconds: float


@pytest.fixture(scope="session")
async def replayed(captured: None, request: pytest.FixtureRequest) -> Replayed:
    """Every history of every release, replayed against the code here."""
    began = time.monotonic()
    saved = [one for release in known(request.config) for one in wanted(release)]
    wrong = await judge_all(saved)
    return Replayed(wrong, time.monotonic() - began)
