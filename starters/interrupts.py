"""Ctrl-C and SIGTERM as an event, so that what was started is ended in order."""

import asyncio
import signal
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def ending() -> Iterator[asyncio.Event]:
    """An event that is set when the user or the system wants the command to end."""
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    for number in numbers:
        loop.add_signal_handler(number, ended.set)
    try:
        yield ended
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)


async def unless(ended: asyncio.Event, work: Coroutine[Any, Any, None]) -> bool:
    """Do some work until it is done or somebody wants an end; whether it was done.

    Raises:
        Exception: what the work raises.
    """
    waiting = asyncio.create_task(ended.wait())
    working = asyncio.create_task(work)
    try:
        await asyncio.wait({waiting, working}, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            await working
        return working.done()
    finally:
        for task in (waiting, working):
            task.cancel()
        await asyncio.gather(waiting, working, return_exceptions=True)
