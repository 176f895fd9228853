"""`refund drill`: the matrix of kills, then runs by chance; exit 1 where a promise was broken."""

import asyncio
import secrets
import shutil
import tempfile
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from pydantic import ValidationError

from starters import screen
from starters.drill import hosts, matrix, report
from starters.drill.apart import find_cases
from starters.drill.deploy import Code, find_older, with_deploy
from starters.drill.draw import LAST_NUMBER, draw
from starters.drill.engine import Job, Progress, carry_all, tell
from starters.drill.junit import write_junit
from starters.drill.network import CannotBuild, Network
from starters.drill.plan import Plan, Process
from starters.drill.results import Result, as_data
from starters.drill.shrink import shrink
from starters.drill.site import Site
from starters.errors import CommandError, Exit
from starters.folder import Folder
from starters.installation import Host, find_temporal
from starters.interrupts import ending, unless

# Small enough to type.
_LARGEST_SEED = 99_999
_TELL_SECONDS = 10.0
# Of the runs that failed, so many are made smaller, each by so many more runs.
_SHRUNK = 2
_SHRINK_ATTEMPTS = 12


@dataclass(frozen=True)
class Wanted:
    """What was typed."""

    matrix: bool = True
    runs: int = 60
    seed: int | None = None
    run: int | None = None
    """One run of the seed alone."""
    plan: Path | None = None
    """A plan to run instead of everything else."""
    older: Path | None = None
    """The folder of the release that runs by chance begin under; None: the code that is here."""
    hosts: bool | None = None
    """Hosts apart; None: where this machine lets us."""
    apart: str | None = None
    """The one case of hosts apart to run instead of everything else."""
    shrink: bool = True
    as_json: bool = False
    junit: Path | None = None
    temporal: Path | None = None


async def drill(wanted: Wanted) -> None:
    """Carry plans through, and print what became of them.

    Raises:
        CommandError: a promise was broken, a part did not start, or the input is wrong.
    """
    work = Drill(wanted)
    with ending() as ended:
        try:
            if not await unless(ended, work.play()):
                raise KeyboardInterrupt
        finally:
            work.clear()
    work.tell()
    failed = sum(bool(result.findings) for result in work.results)
    if failed:
        raise CommandError(f"{failed} of {len(work.results)} runs failed", Exit.CHECK_FAILED)


class Drill:
    """One call of the command."""

    def __init__(self, wanted: Wanted) -> None:
        """Decide what to do.

        Raises:
            CommandError: the input is wrong.
        """
        self._wanted = wanted
        self._temporal = find_temporal(wanted.temporal)
        self._older = find_older(wanted.older) if wanted.older is not None else None
        self.seed = secrets.randbelow(_LARGEST_SEED) + 1 if wanted.seed is None else wanted.seed
        self._apart = find_cases(wanted.apart)
        self._jobs = self._by_chance()
        cells = list(matrix.cells()) if wanted.matrix and not self._alone else []
        self._cells = cells
        self._progress = Progress(total=len(self._jobs) + len(cells))
        self._folders: list[Path] = []
        self._matrix: list[Result] = []
        self._hosts: list[Result] = []
        self._random: list[Result] = []
        self._smaller: list[Result] = []

    @property
    def _alone(self) -> bool:
        """Whether nothing but runs by chance is wanted, or one plan, or one case."""
        wanted = self._wanted
        alone = (wanted.plan, wanted.run, wanted.older, wanted.apart)
        return any(one is not None for one in alone)

    @property
    def results(self) -> list[Result]:
        """All runs so far, the matrix first."""
        return [*self._matrix, *self._hosts, *self._random]

    async def play(self) -> None:
        """All runs; then those that failed again, with less and less in them.

        Raises:
            CommandError: hosts apart are asked for, and this machine does not let us have them.
        """
        async with AsyncExitStack() as stack:
            network = await self._network(stack)
            await self._play_all(network)
        self._seconds = self._progress.seconds
        # Each smaller plan would need a site of its own that begins with the older code.
        if self._wanted.shrink and self._older is None:
            await self._shrink_some()

    async def _play_all(self, network: Network | None) -> None:
        runs = "1 run" if self._progress.total == 1 else f"{self._progress.total} runs"
        self._say(f"{runs}, seed {self.seed}")
        telling = asyncio.create_task(tell(self._progress, self._say, _TELL_SECONDS))
        try:
            async with asyncio.TaskGroup() as group:
                matrix_runs = group.create_task(self._play_matrix())
                if network is not None:
                    # On its own: what is held at one moment must all come to its place in time.
                    await matrix_runs
                    await self._play_hosts(network)
                # Not at once, since a starved worker's tasks look like deadlocks to the SDK. What
                # is left of the matrix by then waits for Activities to time out.
                await self._progress.until(2 * len(self._cells) // 3)
                await self._play_random()
        except ExceptionGroup as several:
            raise several.exceptions[0] from None
        finally:
            telling.cancel()

    def clear(self) -> None:
        """Remove the data of sites on which nothing failed."""
        failed = any(result.findings for result in self.results) or not self.results
        for folder in self._folders:
            if not failed:
                shutil.rmtree(folder, ignore_errors=True)
        if failed and self._folders:
            listed = ", ".join(str(folder) for folder in self._folders)
            screen.hint(f"Data and logs are left in {listed}")

    def tell(self) -> None:
        """Print what became of it, and write the files that were asked for."""
        if self._wanted.as_json:
            screen.data(as_data(self.results, self._seconds))
        else:
            self._show()
        # Last, so that a file that cannot be written takes nothing else away.
        if self._wanted.junit is not None:
            write_junit(self._wanted.junit, self.results, self._seconds)

    def _show(self) -> None:
        if self._matrix:
            report.show_matrix(self._matrix)
        if self._hosts:
            hosts.show(self._hosts)
        report.show(self.results, self._seconds)
        for result in self._smaller:
            screen.heading("The smallest plan that still fails")
            screen.say(report.compact(result))

    def _by_chance(self) -> list[Job]:
        wanted = self._wanted
        if wanted.apart is not None:
            return []
        if wanted.plan is not None:
            return [Job(_read_plan(wanted.plan), older=self._older)]
        numbers: Sequence[int] = range(wanted.runs) if wanted.run is None else [wanted.run]
        if any(not 0 <= number <= LAST_NUMBER for number in numbers):
            raise CommandError(f"runs are numbered from 0 to {LAST_NUMBER}", Exit.USAGE)
        return [Job(self._draw(number), self.seed, number, older=self._older) for number in numbers]

    def _draw(self, number: int) -> Plan:
        plan = draw(self.seed, number)
        return plan if self._older is None else with_deploy(plan, self.seed, number)

    async def _play_matrix(self) -> None:
        found = await asyncio.gather(*(self._play_column(process) for process in Process))
        self._matrix = [result for column in found for result in column]

    async def _play_column(self, process: Process) -> list[Result]:
        cells = [cell for cell in self._cells if cell.process is process]
        if not cells:
            return []
        async with AsyncExitStack() as stack:
            site = await self._site(stack)
            shared = sum(not cell.inside_the_company for cell in cells)
            together = matrix.Together(site.kill, shared)
            jobs = [
                Job(cell.plan, kill=None if cell.inside_the_company else together) for cell in cells
            ]
            return await carry_all(site, jobs, self._progress, parallel=len(jobs))

    async def _network(self, stack: AsyncExitStack) -> Network | None:
        wanted = self._wanted.hosts if self._wanted.apart is None else True
        if wanted is False or (wanted is None and self._alone):
            return None
        try:
            network = await stack.enter_async_context(Network(hosts.NAMES))
        except CannotBuild as reason:
            if wanted:
                raise CommandError(f"hosts apart: {reason}", Exit.UNREACHABLE) from None
            self._say(f"hosts apart: skipped, {reason}")
            return None
        self._progress.total += len(self._apart)
        return network

    async def _play_hosts(self, network: Network) -> None:
        async with AsyncExitStack() as stack:
            site = await self._site(stack, network.hosts)
            apart = hosts.HostsApart(site, network, self._apart, self._progress, self._say)
            self._hosts = await apart.play()

    async def _play_random(self) -> None:
        # Who has lost a right has lost it for all runs of the site: those have one of their own.
        taking = [job for job in self._jobs if _takes_a_right(job.plan)]
        others = [job for job in self._jobs if not _takes_a_right(job.plan)]
        both = await asyncio.gather(self._play_on_a_site(others), self._play_on_a_site(taking))
        self._random = sorted(chain(*both), key=lambda result: result.number or 0)

    async def _play_on_a_site(self, jobs: list[Job]) -> list[Result]:
        if not jobs:
            return []
        async with AsyncExitStack() as stack:
            site = await self._site(stack, code=Code(self._older, len(jobs)))
            return await carry_all(site, jobs, self._progress)

    async def _shrink_some(self) -> None:
        failed = [result for result in self._random if result.findings][:_SHRUNK]
        if not failed:
            return
        async with AsyncExitStack() as stack:
            site = await self._site(stack)
            for number, result in enumerate(failed):
                self._say(f"making the plan of {result.plan.order_id} smaller")
                smallest = result.plan
                again = self._fails_on(site, number)
                async for attempt in shrink(result.plan, again, _SHRINK_ATTEMPTS):
                    smallest = attempt.smallest
                    how = "still fails" if attempt.still_fails else "fails no more"
                    self._say(f"  {attempt.number} of {_SHRINK_ATTEMPTS}: {how}")
                self._smaller.append(Result(smallest, result.evidence, result.findings, 0.0))

    def _fails_on(self, site: Site, number: int) -> Callable[[Plan], Awaitable[bool]]:
        """Carries a plan through under a new order, since the site has seen the last one."""
        tried = 0

        async def fails(plan: Plan) -> bool:
            nonlocal tried
            tried += 1
            fresh = plan.model_copy(update={"order_id": f"s{number}-{tried:04d}"})
            (result,) = await carry_all(site, [Job(fresh)], Progress(total=1))
            return bool(result.findings)

        return fails

    async def _site(
        self,
        stack: AsyncExitStack,
        where: Mapping[str, Host] | None = None,
        code: Code | None = None,
    ) -> Site:
        folder = Folder(Path(tempfile.mkdtemp(prefix="refund-drill-")))
        self._folders.append(folder.path)
        lock = stack.enter_context(folder.hold())
        return await stack.enter_async_context(Site(folder, lock, self._temporal, where, code))

    def _say(self, line: str) -> None:
        screen.hint(line)


def _takes_a_right(plan: Plan) -> bool:
    return any(step.do == "lose_right" for step in plan.steps)


def _read_plan(file: Path) -> Plan:
    try:
        return Plan.model_validate_json(file.read_bytes())
    except ValidationError as error:
        problem = error.errors()[0]
        where = ".".join(str(part) for part in problem["loc"]) or "the file"
        raise CommandError(f"{file} is no plan: {where}: {problem['msg']}", Exit.USAGE) from None
