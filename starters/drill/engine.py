"""Runs plans on sites, several beside each other, and gathers and checks what is left of each."""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from starters.drill.checks import check
from starters.drill.collect import collect
from starters.drill.driver import Driver, Kill
from starters.drill.evidence import as_data
from starters.drill.plan import Plan
from starters.drill.results import Result
from starters.drill.site import Site

# Runs at one time on one site: most of them wait for a killed worker's Activity to time out.
PARALLEL = 24
# Between the starts of two of them, so that they do not all do the same at the same time.
_STAGGER_SECONDS = 0.3
_LOOK_SECONDS = 0.5


@dataclass(frozen=True)
class Job:
    """A plan to carry through."""

    plan: Plan
    seed: int | None = None
    """What the plan was drawn by, and under which number; None where it was not drawn."""
    number: int | None = None
    older: Path | None = None
    """With which release's code workers begin; None: with the code that is here."""
    kill: Kill | None = None
    """How to end processes, where several runs share the moment."""


@dataclass
class Progress:
    """What a drill has done so far."""

    total: int
    done: int = 0
    findings: int = 0
    sites: list[Site] = field(default_factory=list)
    began: float = field(default_factory=time.monotonic)

    def __str__(self) -> str:
        kills = sum(site.kills for site in self.sites)
        return (
            f"{self.seconds:4.0f} s  {self.done} of {self.total} runs, "
            f"{kills} processes killed, {self.findings} findings"
        )

    async def until(self, done: int) -> None:
        """Wait until so many runs are done."""
        while self.done < done:  # noqa: ASYNC110 - half a second more or less is nothing here
            await asyncio.sleep(_LOOK_SECONDS)

    @property
    def seconds(self) -> float:
        """Since it began, by the real clock."""
        return time.monotonic() - self.began


async def carry_all(
    site: Site, jobs: Sequence[Job], progress: Progress, parallel: int = PARALLEL
) -> list[Result]:
    """Carry plans through on one site, then hold the outside books against each.

    Args:
        site: Shared by all: a process that one plan kills is killed for all.
        jobs: What to do.
        progress: Is kept up to date.
        parallel: How many at one time.

    Raises:
        RPCError: Temporal did not come back.
        CommandError: a process could not be started again.
    """
    if site not in progress.sites:
        progress.sites.append(site)
    drivers = [Driver(site, job.plan, job.kill) for job in jobs]
    seconds = await _carry(drivers, progress, parallel)
    if any(job.plan.fails_late for job in jobs):
        await site.sweep()
    await collect(site, drivers)
    return [
        judge(driver, job, took, progress)
        for job, driver, took in zip(jobs, drivers, seconds, strict=True)
    ]


def judge(driver: Driver, job: Job, seconds: float, progress: Progress) -> Result:
    """Hold the outside books against one run, whose evidence is gathered."""
    findings = tuple(check(driver.evidence))
    progress.findings += len(findings)
    return Result(
        job.plan, as_data(driver.evidence), findings, seconds, job.seed, job.number, job.older
    )


async def _carry(drivers: list[Driver], progress: Progress, parallel: int) -> list[float]:
    places = asyncio.Semaphore(parallel)

    starting = asyncio.Lock()

    async def carry(driver: Driver) -> float:
        async with places:
            async with starting:
                await asyncio.sleep(_STAGGER_SECONDS)
            began = time.monotonic()
            await driver.carry()
            progress.done += 1
            return time.monotonic() - began

    return await asyncio.gather(*(carry(driver) for driver in drivers))


async def tell(progress: Progress, say: Callable[[str], None], every_seconds: float) -> None:
    """Say how far it is, now and then, until cancelled."""
    while True:
        await asyncio.sleep(every_seconds)
        say(str(progress))
