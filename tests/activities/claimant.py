"""A worker's process that claims a key of a ledger, says so, and does not end by itself."""

import asyncio
import sys
from datetime import timedelta

from activities.ledger import Ledger


async def main(url: str, hold_seconds: float) -> None:
    """Claim, and hold."""
    async with Ledger(url) as ledger:
        entry = await ledger.claim("key", "digest", "first", timedelta(seconds=hold_seconds))
        sys.stdout.write(f"{entry.state}\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], float(sys.argv[2])))
