"""The matrix: every process, ended with SIGKILL at every moment of every effect of a run."""

import asyncio
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from domain.moments import Moment, place
from domain.names import ORDER_PURPOSE
from starters.drill.driver import Kill
from starters.drill.place import Company
from starters.drill.plan import AT_END, AT_WAIT, Plan, Process, Step
from starters.drill.site import AtEnd

# Runs that are not at their place by then are left out of the kill that the others wait for.
_MEETING_SECONDS = 20.0


@dataclass(frozen=True)
class Effect:
    """One effect of a run, and where a process can be held around it."""

    name: str
    worker: dict[Moment, str]
    """Where a worker stands at each moment. Where the history is the only record, "recorded" is
    the beginning of what the run does next."""
    company: dict[Moment, str]
    """Where the company stands itself, in the middle of the call."""


def _with_ledger(name: str, operation: str, purpose: str = "") -> Effect:
    inside = (Moment.BEFORE, Moment.DONE)
    return Effect(
        name,
        {moment: place(name, moment) for moment in Moment},
        {moment: Company(operation, purpose, moment).place for moment in inside},
    )


def _with_history(name: str, operation: str, then: str) -> Effect:
    inside = (Moment.BEFORE, Moment.DONE)
    worker = {moment: place(name, moment) for moment in inside}
    return Effect(
        name,
        {**worker, Moment.RECORDED: then},
        {moment: Company(operation, "", moment).place for moment in inside} if operation else {},
    )


# In the order of the story.
EFFECTS = (
    _with_ledger("model", "chat"),
    _with_ledger("mail.under_review", "send", "mail.under_review"),
    _with_ledger("mail.approval_request.r1", "send", "mail.approval_request.r1"),
    # Who asks the staff directory about whose decision cannot be seen there: the worker is held.
    _with_history("decision", "", then=place("recheck", Moment.BEFORE)),
    _with_history("refund.r1", "refunds.create", then=place("verification", Moment.BEFORE)),
    _with_history("verification", "refunds.retrieve", then=place("mail.refunded", Moment.BEFORE)),
    # Beside the confirmation: what comes next is the end.
    _with_history(ORDER_PURPOSE, "orders.note_refund", then=AT_END),
    _with_ledger("mail.refunded", "send", "mail.refunded"),
)


@dataclass(frozen=True)
class Cell:
    """One square of the matrix."""

    process: Process
    moment: str
    """A moment of an effect, or `wait`."""
    effect: str
    plan: Plan

    @property
    def inside_the_company(self) -> bool:
        """Whether the company itself is held, in the middle of a call."""
        return self.plan.steps[0].at.startswith("company/")


def cells() -> Iterator[Cell]:
    """All squares, the ones that come last in the story first: they take longest to get there."""
    for process in Process:
        for effect in reversed(EFFECTS):
            for moment in reversed(Moment):
                where = effect.worker[moment]
                if process is Process.COMPANY:
                    where = effect.company.get(moment, where)
                yield _cell(process, moment.value, effect.name, where)
        yield _cell(process, AT_WAIT, "wait", AT_WAIT)


def _cell(process: Process, moment: str, effect: str, where: str) -> Cell:
    number = f"{effect}.{moment}".replace("_", "-")
    plan = Plan(
        name=f"{process.value} killed, {effect}: {moment}",
        order_id=f"m1-{process.value}-{number}",
        total_minor=42_000,
        steps=(Step(at=where, do="kill", who=(process,)),),
    )
    return Cell(process, moment, effect, plan)


class Together:
    """Ends a process once for all runs that stand at their places, each at its own."""

    def __init__(self, kill: Kill, expected: int) -> None:
        """Wait for so many runs, and then kill."""
        self._kill, self._expected = kill, expected
        self._waiting: list[AtEnd] = []
        self._striking = False
        self._done = asyncio.Event()

    async def __call__(
        self, processes: Iterable[Process], at_end: AtEnd, by: str, pid: int = 0
    ) -> None:
        """Wait for the others, and end the processes when all are there."""
        if self._has_struck():
            # Too late for the others: it has an end of its own.
            await self._kill(processes, at_end, by, pid)
            return
        self._waiting.append(at_end)
        if len(self._waiting) < self._expected:
            try:
                async with asyncio.timeout(_MEETING_SECONDS):
                    await self._done.wait()
                return
            except TimeoutError:
                if self._has_struck():
                    await self._done.wait()
                    return
        self._striking = True
        try:
            await self._kill(processes, self._release, by, pid)
        finally:
            # Not before: whoever is let go leaves its place.
            self._done.set()

    def _has_struck(self) -> bool:
        return self._striking

    def _release(self) -> None:
        for at_end in self._waiting:
            at_end()
