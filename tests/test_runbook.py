"""The runbook's lines for a deploy and for a rollback do what it says, typed one after the other.

Workers are real processes of two releases on one server; open refunds go through all of it.
"""

import asyncio
import os
import re
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from tests import documents
from tests.deploying import worked_on, world_to_deploy
from tests.e2e.support import PATIENCE, environment, programs
from tests.replay.releases import release_1
from tests.signing import GRACE, MARIA
from tests.test_readme import RUNBOOK
from tests.trees import ROOT
from tests.worker_process import real_worker
from tests.world import Run, World, check_history

DESCRIBE = "temporal worker deployment describe-version --deployment-name refunds --build-id"
_WORKER = re.compile(r"refund worker --deployment refunds --build-id (\d)")


class Operator:
    """Types lines in a folder, with the code of the newest release, and runs workers of all."""

    def __init__(self, world: World, folder: Path, workers: AsyncExitStack) -> None:
        """Point both programs to the world's server."""
        self._world, self._folder, self._open = world, folder, workers
        self.trees = {"1": release_1(folder / "1"), "2": ROOT}
        self.workers: dict[str, asyncio.subprocess.Process] = {}
        self._environment = {
            **environment(folder, ROOT),
            "PATH": f"{programs(folder / 'bin')}{os.pathsep}{os.environ['PATH']}",
            "TEMPORAL_ADDRESS": world.client.service_client.config.target_host,
            "NORTHWIND_DATA_DIR": str(world.settings.data_dir),
            "NORTHWIND_KEYS_DIR": str(world.company.keys),
            "NORTHWIND_COMPANY_URL": world.company.http_url,
            "NORTHWIND_SMTP_URL": world.company.smtp_url,
        }

    async def follow(self, heading: str) -> dict[str, str]:
        """Type the lines of a chapter; what each printed."""
        return {line: await self.type(line) for line in documents.commands(RUNBOOK, heading)}

    async def type(self, line: str) -> str:
        """Type a line, and wait for its end; a worker's line is done once the worker polls."""
        if worker := _WORKER.fullmatch(line):
            await self._start_worker(line, worker[1])
            return ""
        out = await self._call(line)
        while line == "temporal batch list" and "Running" in out:
            out = await self._call(line)
        return out

    async def _call(self, line: str) -> str:
        process = await asyncio.create_subprocess_exec(
            *("bash", "-c", line),
            cwd=self._folder,
            env=self._environment,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        async with asyncio.timeout(PATIENCE):
            out, err = await process.communicate()
        assert process.returncode == 0, f"{line}\n{out.decode()}{err.decode()}"
        return out.decode()

    async def _start_worker(self, line: str, release: str) -> None:
        log = self._folder / f"worker-{release}.log"
        with log.open("ab") as stderr:
            process = await asyncio.create_subprocess_exec(
                *("bash", "-c", f"exec {line}"),
                cwd=self._folder,
                env={**self._environment, "PYTHONPATH": str(self.trees[release])},
                stdout=asyncio.subprocess.PIPE,
                stderr=stderr,
            )
        self._open.push_async_callback(_kill, process)
        self.workers[release] = process
        assert process.stdout is not None
        async with asyncio.timeout(PATIENCE):
            assert await process.stdout.readline(), log.read_text()

    async def end(self, release: str) -> None:
        """End the worker of a release as the runbook says."""
        process = self.workers.pop(release)
        process.terminate()
        await process.communicate()
        assert process.returncode == 0


async def _kill(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        process.kill()
    await process.wait()


@asynccontextmanager
async def operator(folder: Path) -> AsyncIterator[tuple[World, Operator]]:
    """Somebody at a terminal, and what they look after, well set up."""
    async with world_to_deploy(folder / "world") as world, AsyncExitStack() as workers:
        at_work = Operator(world, folder, workers)
        await at_work.type("refund doctor --fix --json")
        yield world, at_work


@pytest.mark.timeout(400)
async def test_a_rolling_deploy_and_its_rollback_go_as_the_runbook_says(tmp_path: Path) -> None:
    """Every refund is paid once, told once, by the release that the runbook names."""
    async with operator(tmp_path) as (world, typed):
        async with real_worker(world, typed.trees["1"]):
            ended, first = await world.start("8891"), await world.start("8890")
            await ended.result()
            await first.waiting()
            await typed.follow("Workers with a version")
        said = await typed.follow("Before a deploy")
        for line in ("refund replay --open", "refund replay .northwind/histories"):
            assert "1 of 1 replay" in said[line]

        said = await typed.follow("A rolling deploy")
        assert "drain" in said[f"{DESCRIBE} 1"]
        await typed.end("1")
        kept, left = await world.start("8893"), await world.start("8892")
        for run in (kept, left):
            await run.waiting()
        await first.approve()
        await first.result()
        await world.until(lambda: _are_listed_with_their_marker(kept, left))

        await typed.follow("A rollback")
        back = await world.start("8899")
        await back.waiting()
        await kept.approve()
        await kept.result()

        await typed.follow("Forward again")
        await world.until(lambda: _is_let_go(left))
        for run, people in ((back, (MARIA,)), (left, (MARIA, GRACE))):
            for person in people:
                await run.approve(by=person)
            await run.result()

        went = {run.request.order_id: worked_on(await run.history()) for run in world.runs}
        assert went == {
            "8891": [""],
            "8890": ["", "2"],
            "8893": ["2"],
            "8892": ["2"],
            "8899": ["1", "2"],
        }
        for run in world.runs:
            assert len(await world.refunds(run.request.order_id)) == 1
            await check_history(run)
        told = (await world.books())["orders"]
        assert {order: len(notes) for order, notes in told.items()} == dict.fromkeys(
            ("8890", "8893", "8892", "8899"), 1
        )
        messages = (await world.http.get("/mailbox.json")).json()["messages"]
        assert set(Counter(mail["key"] for mail in messages).values()) == {1}


async def _are_listed_with_their_marker(*runs: Run) -> bool:
    """Whether the server's list, which is a little behind, has what the runbook looks for."""
    query = 'TemporalChangeVersion = "who-decides"'
    found = {run.id async for run in runs[0].world.client.list_workflows(query)}
    return found >= {run.handle.id for run in runs}


async def _is_let_go(run: Run) -> bool:
    """Whether the run is pinned to no release any more."""
    info = (await run.handle.describe()).raw_description.workflow_execution_info
    return not info.versioning_info.HasField("versioning_override")
