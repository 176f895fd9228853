"""The `refund` command itself: its name, its options, and how its commands run."""

import os
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from workers.settings import Settings

app = typer.Typer(
    name="refund",
    help="Refunds that survive crashes: hand in, approve, look at, run.",
    epilog="Exit codes: 0 done, 1 a check failed, 2 wrong input, 3 refused or not counted, "
    "4 no such run or closed, 5 cannot be reached, 6 not taken up in time, 7 already running, "
    "70 a mistake of ours, 130 interrupted.",
    invoke_without_command=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def options(
    context: typer.Context,
    debug: Annotated[
        bool, typer.Option("--debug", envvar="NORTHWIND_DEBUG", help="Show tracebacks.")
    ] = False,
) -> None:
    """Refunds that survive crashes: hand in, approve, look at, run."""
    if debug:
        os.environ["NORTHWIND_DEBUG"] = "1"
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def do(work: Coroutine[Any, Any, None]) -> None:
    """Run a command's work to its end."""
    import asyncio

    asyncio.run(work)


def settings(**given: str | None) -> "Settings":
    """The settings of the environment. They are loaded when a command runs.

    Args:
        given: Options of the command that are settings too, by field; None where they are not set.

    Raises:
        SettingsError: one of them is wrong.
    """
    from workers.settings import load_settings

    return load_settings(**{name: value for name, value in given.items() if value is not None})
