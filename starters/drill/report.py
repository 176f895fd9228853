"""What people read at the end of a drill."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

from domain.moments import Moment
from starters import screen
from starters.drill.matrix import EFFECTS, cells
from starters.drill.plan import AT_WAIT, Process
from starters.drill.results import Result, summary

if TYPE_CHECKING:
    from rich.table import Table


def show(results: list[Result], seconds: float) -> None:
    """The counts, and each run that failed."""
    told = summary(results, seconds)
    screen.heading("What went wrong, in how many runs")
    screen.show(_counts(told["kinds"]))
    screen.heading("How the runs ended")
    screen.show(_counts(told["outcomes"]))
    for result in results:
        if result.findings:
            show_failure(result)
    screen.heading(last_line(results, seconds))


def last_line(results: list[Result], seconds: float) -> str:
    """All of it in one line: each kind of finding has its count, also where that is 0."""
    told = summary(results, seconds)
    counts = ", ".join(f"{told['findings'][kind]} {words}" for kind, words in _FINDINGS.items())
    other = {kind: count for kind, count in told["findings"].items() if kind not in _FINDINGS}
    counts += "".join(f", {count} {kind}" for kind, count in other.items())
    seeds = ", ".join(str(seed) for seed in told["seeds"])
    by = f" (seed {seeds})" if seeds else ""
    runs = "1 run" if told["runs"] == 1 else f"{told['runs']} runs"
    return f"{runs}{by} in {seconds:.0f} s, {told['runs_a_minute'] or 0:g} a minute: {counts}"


_FINDINGS = {
    "duplicate": "duplicates",
    "lost": "lost",
    "silent": "silent",
    "wrong": "wrong",
    "stuck": "stuck",
}


def _counts(counts: dict[str, int]) -> "Table":
    from rich.table import Table

    table = Table.grid(padding=(0, 2))
    table.add_column(justify="right", no_wrap=True)
    table.add_column()
    for what, count in counts.items():
        table.add_row(str(count), screen.plain(what))
    return table


def show_failure(result: Result, saved: Path | None = None) -> None:
    """What was broken, by which plan, and how to run it again."""
    screen.heading(f"FAILED: {result.plan.order_id} ({screen.plain(result.plan.name)})")
    for finding in result.findings:
        screen.say(f"  {finding.kind}: {finding.what}")
    screen.say(f"  outcome: {screen.words(result.outcome)}")
    if result.seed is not None:
        screen.say(f"  seed: {result.seed}, run {result.number}")
    screen.say(f"  plan: {compact(result)}")
    screen.say(f"  again: {result.again(saved)}")


def compact(result: Result) -> str:
    """The plan in one line of JSON, in ASCII, without what is as in every plan."""
    said = result.plan.model_dump(mode="json", exclude_defaults=True)
    return json.dumps(said, separators=(",", ":"))


_OK = "ok"
_STYLES = {_OK: "green", "": ""}


def show_matrix(results: list[Result]) -> None:
    """A line for each effect, a column for each process and moment: `ok` or what was found.

    The wait has but one moment, which stands in each process's first column.
    """
    from rich.table import Table
    from rich.text import Text

    found = _by_cell(results)
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("effect", no_wrap=True)
    for process in Process:
        for moment in Moment:
            named = process.value if moment is Moment.BEFORE else ""
            table.add_column(f"{named}\n{moment.value}", no_wrap=True)
    for effect in (*(effect.name for effect in EFFECTS), AT_WAIT):
        words = [
            found.get((process, moment.value, effect))
            or (found.get((process, AT_WAIT, effect), "") if moment is Moment.BEFORE else "")
            for process in Process
            for moment in Moment
        ]
        if any(words):
            table.add_row(effect, *(Text(word, _STYLES.get(word, "red")) for word in words))
    screen.heading("Killed around each effect")
    screen.show(table)


def _by_cell(results: list[Result]) -> dict[tuple[Process, str, str], str]:
    """What was found in each cell that was run, by process, moment and effect."""
    by_order = {result.plan.order_id: result for result in results}
    return {
        (cell.process, cell.moment, cell.effect): _kinds(by_order[cell.plan.order_id])
        for cell in cells()
        if cell.plan.order_id in by_order
    }


def _kinds(result: Result) -> str:
    return ", ".join(dict.fromkeys(finding.kind for finding in result.findings)) or _OK
