"""A manager's right to decide, which is taken away for a moment and given back."""

import asyncio
import math
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from starters.drill.messages import MANAGER

Control = Callable[[str, Any], Awaitable[Any]]

_LOST_SECONDS = 3.0


@dataclass
class Loss:
    """One time that the right was taken away; instants are of the monotonic clock, in seconds."""

    asked_at: float
    """From when it may have been lost."""
    since: float = math.inf
    """From when it was lost for certain."""
    until: float = math.inf
    """Up to when nobody had begun to give it back."""
    back_at: float = math.inf
    """From when it had been given back for certain: the company may have been down meanwhile."""


class Rights:
    """Takes the right away on a site, for all runs there, and remembers when."""

    def __init__(self, control: Control, seconds: float = _LOST_SECONDS) -> None:
        """Change the staff directory by this call; the right is gone for so long each time."""
        self._control, self._seconds = control, seconds
        self.losses: list[Loss] = []
        self._returns: set[asyncio.Task[None]] = set()

    async def lose(self) -> None:
        """The manager may not decide for a while.

        Raises:
            CommandError: the company refused it.
        """
        loss = Loss(time.monotonic())
        self.losses.append(loss)
        await self._control(f"staff/{MANAGER}", {"active": False})
        loss.since = time.monotonic()
        back = asyncio.create_task(self._give_back(loss))
        self._returns.add(back)
        back.add_done_callback(self._returns.discard)

    async def _give_back(self, loss: Loss) -> None:
        await asyncio.sleep(self._seconds)
        loss.until = time.monotonic()
        await self._control(f"staff/{MANAGER}", {"active": True})
        loss.back_at = time.monotonic()

    async def until_back(self) -> None:
        """Wait until nobody's plan has it taken away."""
        while self._returns:
            await asyncio.wait(set(self._returns))

    async def close(self) -> None:
        """Give nothing back any more: the company ends."""
        for back in self._returns:
            back.cancel()
        await asyncio.gather(*self._returns, return_exceptions=True)

    def was_lost(self, start: float, end: float) -> bool:
        """Whether it was lost for certain all the time from one instant to another.

        What one plan has taken away, the end of another plan's time may give back.
        """
        taken = max((loss.since for loss in self.losses if loss.since <= start), default=math.inf)
        given_back = min((loss.until for loss in self.losses if loss.back_at > taken), default=0.0)
        return taken <= start and end <= given_back
