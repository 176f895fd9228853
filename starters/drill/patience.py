"""Asks a server that is killed now and then."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from temporalio.service import RPCError, RPCStatusCode

Answer = TypeVar("Answer")

_PAUSE_SECONDS = 0.1
_AWAY = frozenset(
    {
        RPCStatusCode.UNAVAILABLE,
        RPCStatusCode.DEADLINE_EXCEEDED,
        RPCStatusCode.CANCELLED,
        RPCStatusCode.UNKNOWN,
        RPCStatusCode.INTERNAL,
        RPCStatusCode.RESOURCE_EXHAUSTED,
        RPCStatusCode.ABORTED,
    }
)


async def patiently(ask: Callable[[], Awaitable[Answer]], seconds: float) -> Answer:
    """Ask Temporal, and ask again while it is away, for so long.

    Raises:
        RPCError: its answer, or that it did not come back in time.
    """
    gives_up = time.monotonic() + seconds
    while True:
        try:
            return await ask()
        except RPCError as error:
            if error.status not in _AWAY or time.monotonic() > gives_up:
                raise
            await asyncio.sleep(_PAUSE_SECONDS)
