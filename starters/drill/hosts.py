"""Hosts apart: two workers, the company and the server, each on a host of its own, and cut off.

A worker that is cut off is not dead. It lives on and knows nothing: it sends what it was about to
send, and answers for Activities that the server has long given to the other worker. What of this
arrives in the end, when it is joined again, must change nothing.

The workers share a SQLite ledger. On machines of their own they could not; here all hosts have one
kernel and one file system, whose locks hold between network namespaces as between any processes.
So what is tried is what a worker does with its ledger, not a database's network.
"""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial

from domain import names
from starters import screen
from starters.drill.apart import Case, Cut, cases
from starters.drill.collect import collect
from starters.drill.driver import Driver
from starters.drill.engine import Job, Progress, judge
from starters.drill.evidence import Finding
from starters.drill.gate import Hold
from starters.drill.network import Network
from starters.drill.outside import Outside
from starters.drill.place import company_place
from starters.drill.results import Result
from starters.drill.site import SECOND_WORKER, Site
from starters.installation import COMPANY, TEMPORAL, WORKER

NAMES = (TEMPORAL, COMPANY, WORKER, SECOND_WORKER)
# From the start of the runs until the last stands at its place: 5 s where nothing else runs. An
# Activity that times out meanwhile is held again.
_MEETING_SECONDS = 90.0
# Longer than the clients' longest time-out but the model's (20 s): what was sent is given up, and
# its packets still come when the company is back.
_COMPANY_AWAY_SECONDS = 25.0
# The workers' attempts to report are in the dark for a while, and come in time.
_SERVER_AWAY_SECONDS = 10.0
# The company closes a connection on which nothing was said for 5 s, whatever is on its way there.
# So what is to arrive late needs a new one.
_SILENCE_SECONDS = 6.0
# A connection and its first words, on a narrow network. The clients wait for 15 s or more.
_BEGIN_SECONDS = 3.0
# A packet is sent again within a second where the kernel can be told so, else within two minutes
# (`network`).
_LATE_SECONDS = 130.0
_PAUSE_SECONDS = 0.2


@dataclass
class _Run:
    """One case on its way."""

    case: Case
    driver: Driver
    hold: Hold
    """Not in use where the company is held."""
    company: asyncio.Task[None] | None
    """Done as soon as the company stands at its place, where that is what is held."""
    carrying: asyncio.Task[float]
    missed: str = ""
    """Why it has shown nothing: nobody stood at its place when the cut came, or nothing came late
    of what should have."""

    @property
    def is_there(self) -> bool:
        """Whether somebody stands at its place."""
        return self.hold.reached.is_set() if self.company is None else self.company.done()


class _Group:
    """Runs that are cut at one time, each at its own place."""

    def __init__(self, site: Site, cases: Sequence[Case]) -> None:
        """Start all; whoever comes to a run's place is held there."""
        self._site = site
        self.runs = [self._start(case) for case in cases]

    def _start(self, case: Case) -> _Run:
        plan = case.plan
        # The driver lets the run go its way, and the cut is ours, for all of them at one time.
        driver = Driver(self._site, plan.model_copy(update={"steps": ()}))
        driver.evidence.plan = plan
        inside = company_place(case.where)
        hold, company = Hold(), None
        if inside is None:
            hold = self._site.gate.hold(plan.order_id, case.where, again=True)
        else:
            holding = Outside(self._site, plan).hold_company(inside, driver.evidence.request_id)
            company = asyncio.create_task(holding)
        return _Run(case, driver, hold, company, asyncio.create_task(_carry(driver)))

    async def meet(self) -> None:
        """Wait until all stand at their places, but not for ever."""
        gives_up = time.monotonic() + _MEETING_SECONDS
        while not all(run.is_there for run in self.runs) and time.monotonic() < gives_up:  # noqa: ASYNC110 - all at one time
            await asyncio.sleep(_PAUSE_SECONDS)
        for run in self.runs:
            if not run.is_there:
                run.missed = f"nobody came to {run.case.where} in {_MEETING_SECONDS:g} s"
            # From now on only those are held that stand here.
            run.hold.again = False

    def release(self, which: Callable[[_Run], bool] = lambda _run: True) -> None:
        """Let those go on that are held."""
        for run in self.runs:
            if which(run):
                run.hold.release()

    async def end(self) -> list[float]:
        """Wait until all have closed; how many seconds each took."""
        return await asyncio.gather(*(run.carrying for run in self.runs))

    async def results(self, progress: Progress) -> list[Result]:
        """What the outside books say about each run.

        Raises:
            RPCError: Temporal did not come back.
            httpx.HTTPError: the company did not answer.
        """
        seconds = await self.end()
        await collect(self._site, [run.driver for run in self.runs])
        progress.done += len(self.runs)
        return [_judge(run, took, progress) for run, took in zip(self.runs, seconds, strict=True)]

    async def close(self) -> None:
        """End what still goes on."""
        self.release()
        tasks = [run.carrying for run in self.runs]
        companies = [run.company for run in self.runs if run.company is not None]
        for task in (*tasks, *companies):
            task.cancel()
        await asyncio.gather(*tasks, *companies, return_exceptions=True)


async def _carry(driver: Driver) -> float:
    began = time.monotonic()
    await driver.carry()
    return time.monotonic() - began


def _judge(run: _Run, seconds: float, progress: Progress) -> Result:
    result = replace(judge(run.driver, Job(run.case.plan), seconds, progress), apart=True)
    if not run.missed:
        return result
    progress.findings += 1
    return replace(result, findings=(*result.findings, Finding("stuck", run.missed)))


def show(results: Sequence[Result]) -> None:
    """A line for each effect and moment, a column for each cut: `ok` or what was found."""
    from rich.table import Table

    found = {result.plan.name: result for result in results}
    rows: dict[str, dict[Cut, str]] = {}
    for cut in Cut:
        for case in cases(cut):
            result = found.get(case.plan.name)
            if result is not None:
                kinds = ", ".join(dict.fromkeys(finding.kind for finding in result.findings))
                row = rows.setdefault(f"{case.effect}: {case.moment.value}", {})
                row[cut] = kinds or "ok"
    table = Table(title="Hosts apart: who was cut off, and when", title_justify="left")
    table.add_column("effect", no_wrap=True)
    for cut in Cut:
        table.add_column(cut.value)
    for name, row in rows.items():
        table.add_row(name, *(row.get(cut, "") for cut in Cut))
    screen.show(table)


class HostsApart:
    """Cuts hosts off one after the other, in the middle of effects."""

    def __init__(
        self,
        site: Site,
        network: Network,
        cases: Sequence[Case],
        progress: Progress,
        say: Callable[[str], None],
    ) -> None:
        """Note where; the second worker does not run yet.

        Args:
            site: Its processes are on the network's hosts.
            network: With the hosts `NAMES`.
            cases: What to carry out.
            progress: Is kept up to date.
            say: Takes one line about each step.
        """
        self._site, self._network, self._cases = site, network, cases
        self._progress, self._say = progress, say

    async def play(self) -> list[Result]:
        """All cases; what became of each.

        Raises:
            RPCError: Temporal did not come back.
            httpx.HTTPError: the company did not answer.
            CommandError: a process could not be started again.
        """
        results: list[Result] = []
        for cuts, carry_out in (
            ((Cut.GOES_ON, Cut.STANDS_STILL), self._worker_away),
            ((Cut.COMPANY,), partial(self._away, COMPANY, _COMPANY_AWAY_SECONDS)),
            ((Cut.SERVER,), partial(self._away, TEMPORAL, _SERVER_AWAY_SECONDS)),
            ((Cut.RESTART,), self._restart),
        ):
            wanted = [case for case in self._cases if case.cut in cuts]
            if wanted:
                async with self._group(wanted) as group:
                    await group.meet()
                    await carry_out(group)
                    results += await group.results(self._progress)
        return results

    async def _worker_away(self, group: _Group) -> None:
        """A worker is cut off until the other has done all of its work."""
        await asyncio.sleep(_SILENCE_SECONDS)
        # What it sends now stays on its way until it is joined again.
        await self._network.narrow(COMPANY)
        group.release(lambda run: run.case.comes_late)
        await asyncio.sleep(_BEGIN_SECONDS)
        await self._network.cut(WORKER)
        await self._network.widen(COMPANY)
        self._say(f"{WORKER} is cut off in the middle of {len(group.runs)} runs")
        group.release(lambda run: run.case.cut is Cut.GOES_ON)
        # Had it been there before, it might have come to some of the places.
        await self._site.join_worker()
        await group.end()
        self._say(f"{SECOND_WORKER} has brought all to their end; {WORKER} is joined again")
        before = await self._asked(group)
        await self._network.join(WORKER)
        group.release()
        await self._until_late(group, before)
        # Drained, it has nothing left that could come even later.
        await self._drain(WORKER, lambda: None)
        late = await self._asked(group) - before
        self._say(f"late, of the worker that was cut off: {late.total()} effects")
        for run in group.runs:
            if run.case.comes_late and not run.missed and not late[run.case.name]:
                run.missed = f"nothing came late of {run.case.effect}"

    async def _away(self, host: str, seconds: float, group: _Group) -> None:
        """A host that all need is cut off for a while."""
        await self._network.cut(host)
        self._say(f"{host} is cut off in the middle of {len(group.runs)} runs")
        group.release()
        await asyncio.sleep(seconds)
        await self._network.join(host)
        self._say(f"{host} is joined again")

    async def _restart(self, group: _Group) -> None:
        """Each worker is drained in the middle of its effects and started again."""
        # A case alone has had no need of it yet.
        await self._site.join_worker()
        for name in (WORKER, SECOND_WORKER):
            pid = self._site.installation.pids[name]
            held = [run for run in group.runs if run.hold.pid == pid]
            self._say(f"{name} is drained in the middle of {len(held)} runs")
            await self._drain(name, partial(group.release, held.__contains__))

    async def _drain(self, name: str, at_term: Callable[[], None]) -> None:
        """Send SIGTERM, let go on what is held, wait for the end, and start it again."""
        stopping = asyncio.create_task(self._site.installation.stop_one(name))
        # The task takes its first step, which asks the worker.
        await asyncio.sleep(0)
        at_term()
        await stopping
        await self._site.installation.start_one(name)

    @asynccontextmanager
    async def _group(self, cases: Sequence[Case]) -> AsyncIterator[_Group]:
        group = _Group(self._site, cases)
        try:
            yield group
        finally:
            await group.close()

    async def _until_late(self, group: _Group, before: Counter[str]) -> None:
        """Wait until what should come late has come, but not for ever."""
        late = {run.case.name for run in group.runs if run.case.comes_late and not run.missed}
        gives_up = time.monotonic() + _LATE_SECONDS
        while not late <= (await self._asked(group) - before).keys():
            if time.monotonic() > gives_up:
                return
            await asyncio.sleep(_PAUSE_SECONDS)

    async def _asked(self, group: _Group) -> Counter[str]:
        """How often refunds were asked for and mails sent, by order, over all runs."""
        faults = await self._site.read("/control/faults")
        mails = (await self._site.read("/mailbox.json"))["messages"]
        asked: Counter[str] = Counter()
        for order_id in (run.case.name for run in group.runs):
            ours = f"/{names.workflow_id(order_id)}/"
            asked[order_id] += sum(row["seen"] for row in faults if row["about"] == order_id)
            asked[order_id] += sum(m["deliveries"] for m in mails if ours in (m["key"] or ""))
        return asked
