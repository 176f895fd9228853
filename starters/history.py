"""`refund history`: runs' events, as the Temporal Web UI and the `temporal` program save them."""

import asyncio
import os
from pathlib import Path
from urllib.parse import quote

from temporalio.client import WorkflowHistory

from starters import runs, screen
from starters.connect import RPC_TIMEOUT, connect_by
from starters.errors import CommandError, Exit, in_one_line
from starters.fetch import Fetched, count, fetch_all, select
from starters.progress import Progress
from workers.settings import Settings


def check_usage(
    run: str | None, run_id: str | None, output: Path | None, query: str | None, *, all_runs: bool
) -> None:
    """One run, or many into a folder.

    Raises:
        CommandError: what was typed is neither.
    """
    wrong = ""
    if all_runs == (run is not None):
        wrong = "name one RUN, or say --all, and not both"
    elif all_runs and output is None:
        wrong = "--all needs a folder: -o FOLDER"
    elif all_runs and run_id is not None:
        wrong = "--run-id names a run of one order; it does not go with --all"
    elif not all_runs and query is not None:
        wrong = "--query goes with --all"
    if wrong:
        raise CommandError(wrong, Exit.USAGE)


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


async def save_histories(settings: Settings, query: str | None, folder: Path) -> None:
    """Write the history of each run to a file of its own; one that fails does not stop the others.

    Raises:
        CommandError: the query fits no run, or some could not be saved.
        OSError: the folder cannot be made.
    """
    client = await connect_by(settings)
    selected = select(query)
    total = await count(client, selected)
    if total == 0:
        raise CommandError("no run fits, so nothing was saved", Exit.NO_SUCH_RUN)
    # Letters, names and addresses are in there; a folder that is there keeps its mode.
    await asyncio.to_thread(folder.mkdir, mode=0o700, parents=True, exist_ok=True)
    saved, problems = 0, list[CommandError]()
    with Progress("histories saved", total) as progress:
        async for fetched in fetch_all(client, selected):
            problem = await asyncio.to_thread(_save, fetched, folder)
            if problem is None:
                saved += 1
            else:
                problems.append(problem)
                screen.hint(f"not saved: {fetched.workflow_id} {fetched.run_id}: {problem}")
            progress.step()
    screen.say(f"{_histories(saved)} saved in {folder}")
    if problems:
        line = f"{_histories(len(problems))} could not be saved; the first: {problems[0]}"
        raise CommandError(line, problems[0].exit_code)


def _save(fetched: Fetched, folder: Path) -> CommandError | None:
    """Write one; the reason where that was not possible."""
    if fetched.history is None:
        return fetched.problem
    try:
        _replace(folder / file_name(fetched.workflow_id, fetched.run_id), fetched.history)
    except OSError as error:
        return in_one_line(error)
    return None


def file_name(workflow_id: str, run_id: str) -> str:
    """The file of one run: an order's later run has another, and no id leads out of a folder."""
    return f"{quote(workflow_id, safe='')}.{run_id}.json"


def _replace(file: Path, history: WorkflowHistory) -> None:
    """Write beside it first: whoever reads meanwhile, or after a crash, finds a whole one."""
    half = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        half.write_text(f"{history.to_json()}\n")
        half.replace(file)
    finally:
        half.unlink(missing_ok=True)


def _histories(number: int) -> str:
    return f"{number} {'history' if number == 1 else 'histories'}"
