"""Carries one plan through on a site: the requester, the managers, and everything that goes wrong.

The driver acts as people would: it looks at what the run shows of itself and answers. What really
happened is judged by others, from the outside books (`checks`).
"""

import asyncio
import time
from collections.abc import Awaitable, Iterable, Iterator
from contextlib import aclosing
from datetime import timedelta
from typing import Protocol

from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import WorkflowExecutionDescription
from temporalio.service import RPCError

from domain.models import Stage
from domain.request import Proposal, RefundRequest
from starters import runs
from starters.drill.evidence import Evidence
from starters.drill.follow import Follower, begins_to_wait, reads_a_refund
from starters.drill.leap import LEAP_SECONDS, leap
from starters.drill.messages import REQUESTER
from starters.drill.outside import Outside
from starters.drill.people import People
from starters.drill.place import Company, company_place
from starters.drill.plan import AT_END, AT_START, AT_WAIT, Decision, Plan, Process, Step
from starters.drill.site import AtEnd, Site
from starters.errors import CommandError, Exit
from starters.start import begin
from starters.statements import Signer
from workers.settings import LOCAL

# No progress for so long, in seconds of the real clock, is a finding. The longest honest wait is
# an Activity of a killed worker, which the server gives up after its start-to-close time (90 s);
# another plan of the site may kill the next worker too.
PATIENCE_SECONDS = 200.0
# All of a run, in seconds of the real clock and in hours of its own.
_ALL_SECONDS = 900.0
_ALL_HOURS = 24.0 * 45
# How time is passed then, in hours: short at first, so that a retry comes before a deadline does.
_LEAPS_HOURS = (0.05, 0.2, 1.0, 3.0, 6.0, 12.0, 24.0)
_FIRST_LONG_LEAP = 5
# What a plan lets go by may be days with several mails in them.
_PLANNED_LEAP_SECONDS = 20.0
# A worker that has just started loads its libraries first.
_QUERY_SECONDS = 10.0
_IDLE_SECONDS = 10.0
_PAUSE_SECONDS = 0.2


class Kill(Protocol):
    """How processes are ended: at once, or together with those that others want to end."""

    def __call__(
        self, processes: Iterable[Process], at_end: AtEnd, by: str, pid: int = 0
    ) -> Awaitable[None]:
        """End them, call `at_end`, and start them again."""


class Driver:
    """One plan on its way."""

    def __init__(self, site: Site, plan: Plan, kill: Kill | None = None) -> None:
        """Prepare; nothing has happened yet.

        Args:
            site: Where.
            plan: What.
            kill: How to end processes, where others share the moment.
        """
        self._site, self._plan = site, plan
        self._kill = kill or site.kill
        self._outside = Outside(site, plan)
        self.evidence = Evidence(plan, request_id=f"r-{plan.order_id}")
        self._people = People(site, self.evidence)
        self._found: runs.Found | None = None
        self.run_ids: list[str] = []
        """All runs of the order, oldest first."""
        self._been_at_wait = False
        self._waits = False
        """Whether a proposal waits that nothing was done about yet."""
        self._follower = Follower()
        self._decided: set[tuple[str, int]] = set()
        self._leaps = 0
        self._passed = 0.0
        """How much time we have let go by, in hours."""
        self._settled = False
        self._missed = set(range(len(plan.steps)))
        self._begun: set[asyncio.Task[None]] = set()
        """Whose place has been reached."""
        self._said_before: list[tuple[float, tuple[str, ...]]] = []
        """What the manager had said when the plan took their right away, by the monotonic clock."""
        self._time = (0.0, 0.0)
        """From when to when it went, by the site's clock."""

    async def carry(self) -> Evidence:
        """Go through the whole plan; what went wrong on the way stands in the evidence."""
        places = [
            asyncio.create_task(self._at_place(place))
            for place in dict.fromkeys(step.at for step in self._plan.steps)
            if place not in (AT_START, AT_WAIT, AT_END)
        ]
        began = time.monotonic()
        try:
            async with asyncio.timeout(_ALL_SECONDS):
                self._follower.progress = time.monotonic()
                await self._outside.prepare(self.evidence.request_id)
                await self._start()
                await self._steps(AT_START)
                await self._live()
                await self._steps(AT_END)
                if self._plan.fails_late:
                    await self._outside.fail_refunds()
                    self._did("the refund failed late")
        except TimeoutError:
            self.evidence.driver_trouble = f"no end within {_ALL_SECONDS:g} s"
        except (CommandError, RPCError, RuntimeError, OSError) as error:
            self.evidence.driver_trouble = f"{type(error).__name__}: {error}"
        finally:
            for task in places:
                # What has begun is carried to its end: a kill that nobody noted would be held
                # against the run as if it had not been.
                if task not in self._begun:
                    task.cancel()
            await asyncio.gather(*places, return_exceptions=True)
        self._time = (began, time.monotonic())
        self.evidence.missed = tuple(sorted(self._missed))
        return self.evidence

    def tell_of_others(self) -> None:
        """Note what other plans of the site did to this run, and what its own could do."""
        began, done = self._time
        others = [
            end
            for end in self._site.ended
            if began <= end.at <= done and end.by != self._plan.order_id and end.cuts_off
        ]
        self.evidence.cut_off_beside = len(others)
        losses = self._site.rights.losses
        self.evidence.right_lost_beside = any(began <= loss.asked_at <= done for loss in losses)
        self.evidence.voided = tuple(self._voided())

    def _voided(self) -> Iterator[str]:
        """What was said before a loss that the run's re-check must have seen.

        A worker that is killed meanwhile reads again, perhaps when the right has been given back.
        """
        readings = self._site.gate.readings(self._plan.order_id, "recheck")
        lost = [start for start, end in readings if self._site.rights.was_lost(start, end)]
        for at, message_ids in self._said_before:
            if any(at <= start for start in lost):
                yield from message_ids

    def _did(self, what: str) -> None:
        self.evidence.did.append(what)

    async def _start(self) -> None:
        plan = self._plan
        draft = RefundRequest(
            environment=LOCAL,
            order_id=plan.order_id,
            request_id=self.evidence.request_id,
            message=plan.letter,
            amount=plan.asked,
            requester=REQUESTER,
            statement="",
        )
        signer = Signer(self._site.keys, REQUESTER)
        begun = await self._site.patiently(
            lambda: begin(self._site.client, signer, draft, repeats=True)
        )
        self._now_at(begun.found)

    def _now_at(self, found: runs.Found) -> None:
        self._found = found
        if found.run_id not in self.run_ids:
            self.run_ids.append(found.run_id)

    @property
    def _run(self) -> runs.Found:
        if self._found is None:
            raise RuntimeError("the run is not started")
        return self._found

    async def _live(self) -> None:
        """Follow the run, and act where people would, until it has closed."""
        while await self._is_open():
            before = self._run.run_id
            async with aclosing(self._follower.events(self._run)) as events:
                async for event in events:
                    await self._react(event)
                    if self._run.run_id != before:
                        break

    async def _is_open(self) -> bool:
        last = await self._site.patiently(
            lambda: runs.find(self._site.client, self._run.workflow_id)
        )
        if last is None:
            raise RuntimeError("the run is gone")
        self._now_at(last)
        return last.is_open

    async def _react(self, event: HistoryEvent | None) -> None:
        if time.monotonic() - self._follower.progress > PATIENCE_SECONDS:
            raise RuntimeError(f"no progress within {PATIENCE_SECONDS:g} s")
        if self._passed > _ALL_HOURS:
            raise RuntimeError(f"no end within {_ALL_HOURS / 24:g} days of its own time")
        if event is None and not self._waits:
            await self._let_time_pass()
        if event is not None and reads_a_refund(event) and self._plan.settles:
            self._settled = self._settled or await self._outside.settle()
        self._waits = self._waits or (event is not None and begins_to_wait(event))
        if self._waits:
            self._waits = not await self._at_the_wait()

    async def _at_the_wait(self) -> bool:
        """Do what is planned about a proposal that waits; whether that is done."""
        status = await self._site.patiently(lambda: runs.ask(self._run.handle, _QUERY_SECONDS))
        if status is None:
            return not await self._is_open()
        if status.stage is not Stage.AWAITING_APPROVAL or status.proposal is None:
            return True
        if not self._been_at_wait:
            self._been_at_wait = True
            if any(step.at == AT_WAIT for step in self._plan.steps):
                await self._until_idle()
            before = self._run.run_id
            await self._steps(AT_WAIT, status.proposal)
            if self._run.run_id != before:
                return False
        lost = sum(entry.what == "approval_lost" for entry in status.trail)
        if (status.proposal.proposal_id, lost) not in self._decided:
            self._decided.add((status.proposal.proposal_id, lost))
            self._leaps = _FIRST_LONG_LEAP if self._plan.decision is Decision.NOBODY else 0
            await self._people.decide(self._run, status.proposal, self._plan.decision)
        return True

    async def _until_idle(self) -> None:
        """Wait, with a bound, until the mails about the wait are out: no Activity is at work."""
        gives_up = time.monotonic() + _IDLE_SECONDS
        while time.monotonic() < gives_up:
            described = await self._site.patiently(self._describe)
            if not described.raw_description.pending_activities:
                return
            await asyncio.sleep(_PAUSE_SECONDS)

    async def _describe(self) -> WorkflowExecutionDescription:
        return await self._run.handle.describe()

    async def _let_time_pass(self) -> None:
        hours = _LEAPS_HOURS[min(self._leaps, len(_LEAPS_HOURS) - 1)]
        if await self._pass(hours, LEAP_SECONDS):
            self._leaps += 1

    async def _pass(self, hours: float, seconds: float) -> bool:
        """Let time go by for this run alone; whether all of it has, within so many seconds."""
        how_long = timedelta(hours=hours)
        passed = await leap(self._site.skipper, self._run.handle, how_long, seconds)
        if passed:
            self._passed += hours
        return passed

    async def _at_place(self, place: str) -> None:
        """Wait until a process stands at a place of the plan, and do there what is planned."""
        inside = company_place(place)
        if inside is not None:
            await self._inside_the_company(place, inside)
            return
        hold = self._site.gate.hold(self._plan.order_id, place)
        try:
            await hold.reached.wait()
            self._did(f"held at {place}")
            self._note_begun()
            await self._steps(place, release=hold.release, pid=hold.pid)
        finally:
            hold.release()

    async def _inside_the_company(self, place: str, inside: Company) -> None:
        await self._outside.hold_company(inside, self.evidence.request_id)
        self._did(f"the company held at {place}")
        self._note_begun()
        await self._steps(place)

    def _note_begun(self) -> None:
        task = asyncio.current_task()
        if task is not None:
            self._begun.add(task)

    async def _steps(
        self,
        place: str,
        proposal: Proposal | None = None,
        release: AtEnd = lambda: None,
        pid: int = 0,
    ) -> None:
        for index, step in enumerate(self._plan.steps):
            if step.at == place and await self._do(step, proposal, release, pid):
                self._missed.discard(index)

    async def _do(self, step: Step, proposal: Proposal | None, release: AtEnd, pid: int) -> bool:
        """Do one thing of the plan; whether the world took it."""
        started = time.monotonic()
        taken = True
        match step.do:
            case "kill":
                await self._kill(step.who, release, self._plan.order_id, pid)
            case "stop":
                await self._site.stop_worker(release, self._plan.order_id, pid)
            case "deploy":
                taken = await self._site.deploy(release, self._plan.order_id)
            case "cut":
                raise CommandError("only `--hosts` cuts a process off", Exit.USAGE)
            case "join":
                await self._site.join_worker()
            case "send" if step.message is not None:
                await self._people.send_bad(self._run, step.message, proposal)
            case "pass_time":
                await self._pass(step.hours, _PLANNED_LEAP_SECONDS)
            case "reset" | "terminate":
                await self._begin_anew(step.do)
            case _:
                if step.do == "lose_right":
                    self._said_before.append((started, self._people.said_by_manager()))
                taken = await self._outside.do(step)
        who = ", ".join(step.who) or (step.message.value if step.message else "")
        seconds = time.monotonic() - started
        self._did(f"{step.at}: {step.do} {who}".rstrip() + f" ({seconds:.1f} s)")
        return taken

    async def _begin_anew(self, how: str) -> None:
        if how == "terminate":
            await self._site.patiently(lambda: self._run.handle.terminate("drill"))
            # Nobody knows whether what was said to it had counted.
            self._decided.clear()
            await self._start()
            return
        run_id = await self._site.patiently(lambda: self._people.reset(self._run))
        found = await self._site.patiently(
            lambda: runs.find_or_fail(self._site.client, self._run.workflow_id, run_id)
        )
        self._now_at(found)
        # Whoever had decided in the run that was reset need not do so again.
