"""`refund history`: a run's events, as the Temporal Web UI and the `temporal` program save them."""

import asyncio
from pathlib import Path

from starters import runs, screen
from starters.connect import RPC_TIMEOUT, connect_by
from workers.settings import Settings


async def save_history(settings: Settings, run: str, run_id: str | None, file: Path | None) -> None:
    """Write the history as JSON to a file, or to standard output.

    It holds the customer's words, as the run does.

    Raises:
        CommandError: there is no such run.
        OSError: the file cannot be written.
    """
    client = await connect_by(settings)
    found = await runs.find_or_fail(client, run, run_id)
    history = await found.handle.fetch_history(rpc_timeout=RPC_TIMEOUT)
    text = history.to_json()
    if file is None:
        screen.say(text)
        return
    await asyncio.to_thread(file.write_text, f"{text}\n")
    screen.hint(f"{len(history.events)} events, {len(text):,} bytes of JSON: {file}")
