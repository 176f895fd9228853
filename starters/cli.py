"""The process behind the `refund` command: exit codes, one line for what went wrong, its end."""

import contextlib
import os
import sys
import traceback
from collections.abc import Sequence
from typing import NoReturn

import typer

from starters import screen
from starters.commands import app
from starters.errors import Exit, in_one_line


def main() -> NoReturn:
    """Run this process's command line, and end the process.

    At once, without the interpreter's own clean-up: threads of the Temporal SDK may be in the
    middle of something, and abort or hang the process then.
    """
    _open_what_is_closed()
    code = run(sys.argv[1:])
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError):
            stream.flush()
    os._exit(code)


def run(arguments: Sequence[str]) -> int:
    """Run a command line; its exit code. Nothing expected ends in a traceback."""
    try:
        code: int = app(args=arguments, prog_name="refund", standalone_mode=False) or Exit.DONE
        sys.stdout.flush()
    except typer.TyperException as error:
        return _end(f"{error.format_message()} (--help shows what there is)", Exit.USAGE)
    except (KeyboardInterrupt, typer.Abort):
        return Exit.INTERRUPTED
    except (BrokenPipeError, SystemExit):
        # Whoever reads our output has seen enough (typer and rich make an exit of that), and that
        # is no mistake.
        return Exit.DONE
    except Exception as error:  # noqa: BLE001 - nobody else is left to say it in one line
        if os.environ.get("NORTHWIND_DEBUG", "0") not in ("", "0"):
            traceback.print_exc()
        known = in_one_line(error)
        if known is not None:
            return _end(str(known), known.exit_code)
        line = f"unexpected {type(error).__name__}: {error} (--debug shows where)"
        return _end(line, Exit.UNEXPECTED)
    return code


def _end(line: str, code: Exit) -> Exit:
    # Reasons may quote what somebody else has written, such as the comment of a withdrawal.
    screen.hint(f"refund: {' '.join(line.split())}")
    return code


def _open_what_is_closed() -> None:
    """Whoever starts us may have closed our output: let it swallow what we say."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: PTH123, SIM115 - until we end
