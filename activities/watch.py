"""Moments around an effect at which a fault drill may hold this process, to end it just there.

The adapters pass each moment by; outside a drill that does nothing. In a drill (`refund drill`) the
process asks the drill over a Unix socket whether to go on, and waits for its word: so a SIGKILL
comes exactly between an effect and its record, and no test has to guess how long something takes.
"""

import asyncio
import json
import os
from pathlib import Path
from typing import Protocol

from temporalio import activity

from domain.moments import Moment, place


class Watch(Protocol):
    """Somebody who is told of each moment, and may hold the process there."""

    async def at(self, effect: str, moment: Moment) -> None:
        """Tell that an effect, such as `mail.under_review`, has come so far; go on on return."""


class NoWatch:
    """Outside a drill: nobody is told."""

    async def at(self, effect: str, moment: Moment) -> None:
        """Go on."""


class DrillWatch:
    """Asks the drill at its Unix socket, which lives on the same machine."""

    def __init__(self, socket: Path) -> None:
        """Note where the drill listens."""
        self._socket = socket

    async def at(self, effect: str, moment: Moment) -> None:
        """Wait for the drill's word; where there is no drill any more, go on."""
        info = activity.info()
        told = {
            "place": place(effect, moment),
            "workflow_id": info.workflow_id,
            "attempt": info.attempt,
            "pid": os.getpid(),
        }
        try:
            reader, writer = await asyncio.open_unix_connection(str(self._socket))
        except OSError:
            return
        try:
            writer.write(f"{json.dumps(told)}\n".encode())
            # An answer, or the end of the drill: both mean to go on.
            await reader.readline()
        except OSError:
            return
        finally:
            writer.close()
