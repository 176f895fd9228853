"""What is cut off, and when: the cases of hosts apart, each with a run of its own."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from domain.moments import Moment
from starters.drill.matrix import EFFECTS, Effect
from starters.drill.plan import Fault, Plan, Process, Step
from starters.errors import CommandError, Exit

# A delay that nobody feels, at each call: so the company counts the refunds that were asked for.
_COUNTED = Fault(operation="refunds.create", what="delay", call="every", seconds=0.001)


class Cut(StrEnum):
    """What happens in the middle of an effect; the words are the heads of the table."""

    GOES_ON = "worker cut off, goes on"
    """It sends and answers into the dark, until it is joined again; what it has sent arrives then,
    when the other has long done its work."""
    STANDS_STILL = "worker cut off, stands still"
    """It goes on after it is joined again, when the other has long done its work."""
    COMPANY = "company cut off"
    SERVER = "server cut off"
    RESTART = "rolling restart"
    """Each worker is drained by SIGTERM and started again, one after the other."""


_STEPS: dict[Cut, tuple[Literal["cut", "stop"], Process]] = {
    Cut.GOES_ON: ("cut", Process.WORKER),
    Cut.STANDS_STILL: ("cut", Process.WORKER),
    Cut.COMPANY: ("cut", Process.COMPANY),
    Cut.SERVER: ("cut", Process.TEMPORAL),
    Cut.RESTART: ("stop", Process.WORKER),
}


@dataclass(frozen=True)
class Case:
    """One square of the table."""

    cut: Cut
    effect: str
    moment: Moment
    where: str
    """The place at which a worker is held meanwhile, or the company."""

    @property
    def comes_late(self) -> bool:
        """Whether a refund is asked for, or a mail sent, that arrives after the other worker's."""
        return self.cut is Cut.GOES_ON and self.moment is Moment.BEFORE and _sends(self.effect)

    @property
    def name(self) -> str:
        """By which it is asked for, and its order's id."""
        return f"h-{self.cut.name}.{self.effect}.{self.moment.value}".lower().replace("_", "-")

    @property
    def plan(self) -> Plan:
        """A run in which nothing else goes wrong."""
        do, who = _STEPS[self.cut]
        return Plan(
            name=f"hosts apart: {self.cut.value}, {self.effect}: {self.moment.value}",
            order_id=self.name,
            # A half: where all is refunded, no provider would make a second refund.
            total_minor=84_000,
            asked="420",
            steps=(Step(at=self.where, do=do, who=(who,)),),
            faults=(_COUNTED,),
        )


def cases(cut: Cut) -> list[Case]:
    """Every effect, cut before it and after it, in the order of the story."""
    return [
        Case(cut, effect.name, moment, _where(cut, effect, moment))
        for effect in EFFECTS
        for moment in (Moment.BEFORE, Moment.DONE)
        if cut is not Cut.STANDS_STILL or _sends(effect.name)
    ]


def find_cases(name: str | None) -> list[Case]:
    """The case by that name; all where there is none.

    Raises:
        CommandError: no case has that name.
    """
    found = [case for cut in Cut for case in cases(cut) if name in (None, case.name)]
    if not found:
        example = cases(Cut.GOES_ON)[0].name
        raise CommandError(f"no case of hosts apart is {name!r}; one is {example}", Exit.USAGE)
    return found


def _sends(effect: str) -> bool:
    """Whether it could be seen outside that it came late."""
    return effect.startswith(("refund", "mail"))


def _where(cut: Cut, effect: Effect, moment: Moment) -> str:
    # Before: the worker's request is lost, or late. Done: the company's answer is.
    if cut is Cut.COMPANY and moment is Moment.DONE:
        return effect.company.get(moment, effect.worker[moment])
    return effect.worker[moment]
