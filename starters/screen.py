"""What people see: tables, timelines, amounts. Words of customers and models are data here too."""

import json
import sys
import unicodedata
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table
    from rich.text import Text

    from domain.money import Money
    from domain.trail import Entry, RunStatus

# Without a terminal, rich would wrap at 80 columns, which no script or log wants.
_WIDTH_OF_A_FILE = 120

# Rows that come one by one are in line with each other.
_LONGEST_WORD = 16

_COLOURS = {
    "refunded": "green",
    "approved": "green",
    "proposed": "cyan",
    "ended": "bold",
    "refused": "yellow",
    "rejected": "red",
    "withdrawn": "yellow",
    "mail_refused": "red",
    "mail_given_up": "red",
    "order_not_told": "red",
    "refund_unknown": "red",
}


def console() -> "Console":
    """The console for what people read."""
    from rich.console import Console

    return Console(
        file=sys.stdout,
        highlight=False,
        markup=False,
        emoji=False,
        width=None if sys.stdout.isatty() else _WIDTH_OF_A_FILE,
    )


def show(*parts: "RenderableType") -> None:
    """Tables and the like; without the spaces at the ends of lines where it is no terminal."""
    out = console()
    if out.is_terminal:
        for part in parts:
            out.print(part)
        return
    with out.capture() as captured:
        for part in parts:
            out.print(part)
    for line in captured.get().splitlines():
        typer.echo(line.rstrip())


def heading(text: str) -> None:
    """A line that begins a part."""
    from rich.text import Text

    show(Text(f"\n{text}", style="bold"))


def say(line: str) -> None:
    """One line of output."""
    typer.echo(plain(line))


def hint(line: str) -> None:
    """One line beside the output: on stderr, so that it never gets into a pipe."""
    typer.echo(plain(line), err=True)


def data(value: Any) -> None:
    """Data for scripts, as JSON."""
    typer.echo(json.dumps(value, indent=2, default=_jsonable))


def _jsonable(value: Any) -> Any:
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    return str(value)


def plain(text: str) -> str:
    """Text without what would steer a terminal: escapes, carriage returns, bidi overrides."""
    return "".join(
        char if char in "\n\t" or unicodedata.category(char) not in ("Cc", "Cf") else "·"
        for char in text
    )


def money(amount: "Money") -> str:
    """An amount as people write it, such as $420.00."""
    from babel.numbers import format_currency

    return format_currency(amount.decimal, amount.currency, locale="en_US")


def instant(value: datetime | None) -> str:
    """An instant in the reader's own time zone."""
    return f"{value.astimezone():%Y-%m-%d %H:%M:%S}" if value is not None else ""


def deadline(value: datetime | None) -> str:
    """A deadline in the reader's own time zone, which it names."""
    return f"{value.astimezone():%a %Y-%m-%d %H:%M %Z}" if value is not None else ""


def words(name: str) -> str:
    """A stable word such as `awaiting_approval`, for reading."""
    return name.replace("_", " ")


def timeline(entries: Iterable["Entry"]) -> "Table":
    """All rows of a trail; the day is shown where the story takes longer than one."""
    from rich.table import Table

    rows = list(entries)
    days = {entry.at.astimezone().date() for entry in rows}
    clock = "%H:%M:%S" if len(days) < 2 else "%m-%d %H:%M:%S"
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True, style="dim")
    table.add_column(no_wrap=True, min_width=_LONGEST_WORD)
    table.add_column()
    for entry in rows:
        table.add_row(f"{entry.at.astimezone():{clock}}", _what(entry), _detail(entry))
    return table


def _what(entry: "Entry") -> "Text":
    from rich.text import Text

    return Text(words(entry.what), style=_COLOURS.get(entry.what, ""))


def _detail(entry: "Entry") -> "Text":
    from rich.text import Text

    detail = Text(plain(entry.detail))
    if entry.who:
        detail.append(f"{'  ' if entry.detail else ''}{plain(entry.who)}", style="dim")
    return detail


class Follower:
    """Shows each row of a run's trail once, as it comes."""

    def __init__(self, *, quiet: bool = False, indent: int = 0) -> None:
        """Begin with an empty screen; `quiet` shows nothing at all."""
        self._indent = indent
        self._quiet = quiet
        self._seen: set[Entry] = set()

    def show(self, status: "RunStatus") -> None:
        """Show what is new."""
        new = [entry for entry in status.trail if entry not in self._seen]
        self._seen.update(new)
        if new and not self._quiet:
            from rich.padding import Padding

            show(Padding(timeline(new), (0, 0, 0, self._indent)))


def outcome_line(status: "RunStatus") -> str:
    """How a run ended, in one line."""
    if status.outcome is None:
        return f"{words(status.stage.value)}"
    return f"{words(status.outcome.value)} ({status.reason}): {status.explanation}"
