"""What came of each replay, for people and for scripts."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from temporalio.client import WorkflowHistory

from starters import screen
from starters.errors import CommandError

if TYPE_CHECKING:
    from starters.rehearsal import Finding

# More rows than this are no table that anybody reads: only what fails is listed then.
_ROWS = 40
# Failures have few causes, so the first ones tell what there is; `--json` has all.
_TOLD_IN_FULL = 10
# Shorter runs say nothing about a rate.
_RATE_AFTER_SECONDS = 5.0
_RESULTS = {
    "ok": "ok",
    "differs": "failing: differs",
    "error": "failing: error in the code",
    "unreadable": "not replayed",
}


@dataclass(frozen=True)
class Judged:
    """A history, without its events, and what came of its replay."""

    source: str
    """The file, or the workflow id."""
    workflow_id: str
    run_id: str
    workflow_type: str
    problem: CommandError | None
    """Why there was nothing to replay."""
    finding: "Finding | None"
    """None where there was nothing to replay."""

    @property
    def result(self) -> str:
        """A word for scripts."""
        if self.finding is None:
            return "unreadable"
        if self.finding.difference is not None:
            return "differs"
        return "ok" if self.finding.ok else "error"


def judge(
    source: str,
    history: WorkflowHistory | None,
    problem: CommandError | None,
    finding: "Finding | None",
) -> Judged:
    """Keep what is told of a history; its events would fill the memory where they are many."""
    if history is None:
        return Judged(source, "", "", "", problem, finding)
    started = history.events[0].workflow_execution_started_event_attributes
    name = started.workflow_type.name
    return Judged(source, history.workflow_id, history.run_id, name, problem, finding)


def as_data(one: Judged) -> dict[str, Any]:
    """For scripts."""
    finding = one.finding
    return {
        "source": one.source,
        "workflow_id": one.workflow_id,
        "run_id": one.run_id,
        "workflow_type": one.workflow_type,
        "stage": finding.stage if finding is not None else "",
        "result": one.result,
        "difference": asdict(finding.difference) if finding and finding.difference else None,
        "error": asdict(finding.mistake) if finding and finding.mistake else None,
        "problem": str(one.problem) if one.problem is not None else None,
    }


def print_all(judged: Sequence[Judged], seconds: float) -> None:
    """A table, what fails in full, and a last line."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    if len(judged) == 1 and judged[0].finding is None:
        return  # The one line that says why is all there is to say.
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name in ("history", "workflow", "stage", "result"):
        table.add_column(name, overflow="fold")
    for one in judged:
        if len(judged) > _ROWS and one.result == "ok":
            continue
        stage = screen.words(one.finding.stage) if one.finding is not None else ""
        colour = "green" if one.result == "ok" else "bold red"
        result = Text(_RESULTS[one.result], style=colour)
        table.add_row(screen.plain(one.source), one.workflow_type, stage, result)
    if table.row_count:
        screen.show(table)
    failing = [one for one in judged if one.result in ("differs", "error")]
    for one in failing[:_TOLD_IN_FULL]:
        _print_failing(one)
    if len(failing) > _TOLD_IN_FULL:
        screen.say(f"\n{len(failing) - _TOLD_IN_FULL} more fail; --json tells of all.")
    well = sum(one.result == "ok" for one in judged)
    rate = f", {len(judged) / seconds:.0f} a second" if seconds > _RATE_AFTER_SECONDS else ""
    screen.say(f"{well} of {len(judged)} replay with this code ({seconds:.1f} s{rate}).")


def _print_failing(one: Judged) -> None:
    from rich.table import Table
    from rich.text import Text

    if one.finding is None:
        return
    rows: list[tuple[str, str]] = []
    if (difference := one.finding.difference) is not None:
        where = f"event {difference.event_id}, {difference.event}" if difference.event_id else ""
        rows = [
            ("differs at", where),
            ("the history has", difference.history),
            ("the code asks for", difference.code),
            ("usually mended by", difference.mend),
        ]
    elif (mistake := one.finding.mistake) is not None:
        rows = [
            ("the code fails with", f"{mistake.kind}: {mistake.message}"),
            ("at", mistake.place),
            ("usually mended by", mistake.mend),
        ]
    screen.heading(screen.plain(one.source))
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True, style="dim")
    table.add_column()
    for name, value in rows:
        if value:
            table.add_row(name, Text(screen.plain(value)))
    screen.show(table)
