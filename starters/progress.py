"""How far a long command is: on stderr, in place on a terminal, now and then elsewhere."""

import sys
import time
from types import TracebackType
from typing import Self

from starters import screen

_REDRAW_SECONDS = 0.2
# A log wants to know that something happens, and not each time.
_LOG_SECONDS = 10.0


class Progress:
    """Counts what is done. It clears its line at the end, since a summary follows."""

    def __init__(self, what: str, total: int) -> None:
        """Begin; `what` is such as "histories saved"."""
        self._what, self._total = what, total
        self._done = 0
        self._terminal = sys.stderr.isatty()
        self._pause = _REDRAW_SECONDS if self._terminal else _LOG_SECONDS
        self._told_at = time.monotonic()

    def __enter__(self) -> Self:
        """Count within a block."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Clear the line, whatever has happened."""
        if self._terminal:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()

    def step(self, done: int = 1) -> None:
        """Some more are done."""
        self._done += done
        now = time.monotonic()
        # Of the last one the summary tells.
        if now - self._told_at < self._pause or self._done == self._total:
            return
        self._told_at = now
        # The server counts before it lists, so there may be more of them in the end.
        line = f"{self._done} of {max(self._done, self._total)} {self._what}"
        if self._terminal:
            sys.stderr.write(f"\r\x1b[K{line}")
            sys.stderr.flush()
        else:
            screen.hint(line)
