"""`refund replay`: whether this code would go on with runs that began under another one."""

import time
from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from temporalio.client import Client, WorkflowHistory

from starters import fetch, runs, screen
from starters.connect import RPC_TIMEOUT, connect_by
from starters.errors import CommandError, Exit, in_one_line
from starters.exports import check, read_export
from starters.progress import Progress
from starters.verdicts import Judged, as_data, judge, print_all
from workers.settings import load_settings


@dataclass(frozen=True)
class Source:
    """A history, or why there is none."""

    name: str
    """The file, or the workflow id."""
    history: WorkflowHistory | None = None
    problem: CommandError | None = None


async def replay(given: Sequence[str], *, all_open: bool, as_json: bool) -> None:
    """Replay histories against this code, and print what came of each.

    Args:
        given: Files, folders, order ids, workflow ids.
        all_open: All runs that are open on the server, instead.
        as_json: Print data.

    Raises:
        CommandError: one fails (1), or could not be replayed, or there is none (2).
    """
    if all_open == bool(given):
        line = "name files, folders or runs to replay, or say --open, and not both"
        raise CommandError(line, Exit.USAGE)
    files, wanted = _sort_out(given)
    client = await connect_by(load_settings()) if wanted or all_open else None
    opened = await fetch.count(client, fetch.select(fetch.OPEN)) if client and all_open else 0
    sources = _sources(files, wanted, client, all_open=all_open)
    began = time.monotonic()
    expected = len(files) + len(wanted) + opened
    judged = [one async for one in _judge(sources, expected)] if expected else []
    seconds = time.monotonic() - began
    if as_json:
        screen.data([as_data(one) for one in judged])
    elif judged:
        print_all(judged, seconds)
    elif client is not None:
        at = client.service_client.config.target_host
        screen.say(f"No run is open at {at}, namespace {client.namespace}: nothing to replay.")
    _end(judged)


def _sort_out(given: Sequence[str]) -> tuple[list[Path], list[str]]:
    """Files, those of folders too, and runs. What exists in the file system is meant as such.

    Raises:
        CommandError: a file does not exist, or a folder holds no histories.
    """
    files: list[Path] = []
    wanted: list[str] = []
    for one in given:
        path = Path(one)
        if path.is_dir():
            found = sorted(path.rglob("*.json"))
            if not found:
                raise CommandError(f"nothing to replay: {one} holds no file *.json", Exit.USAGE)
            files += found
        elif path.exists():
            files.append(path)
        elif "/" in one or path.suffix == ".json":
            raise CommandError(f"there is no file {one}", Exit.USAGE)
        else:
            wanted.append(runs.resolve(one))
    return files, wanted


async def _sources(
    files: Sequence[Path], wanted: Sequence[str], client: Client | None, *, all_open: bool
) -> AsyncIterator[Source]:
    for file in files:
        try:
            yield Source(str(file), read_export(file))
        except (CommandError, OSError) as error:
            yield Source(str(file), problem=in_one_line(error))
    if client is None:
        return
    for run in wanted:
        found = await runs.find_or_fail(client, run)
        history = await found.handle.fetch_history(rpc_timeout=RPC_TIMEOUT)
        yield _checked(fetch.Fetched(found.workflow_id, found.run_id, history))
    if all_open:
        async for fetched in fetch.fetch_all(client, fetch.select(fetch.OPEN)):
            yield _checked(fetched)


def _checked(fetched: fetch.Fetched) -> Source:
    name = fetched.workflow_id
    if fetched.history is None:
        return Source(name, problem=fetched.problem)
    try:
        return Source(name, check(fetched.history, name))
    except CommandError as problem:
        return Source(name, problem=problem)


async def _judge(sources: AsyncIterator[Source], expected: int) -> AsyncIterator[Judged]:
    rehearse = _load_rehearsal()
    read: deque[Source] = deque()

    async def histories() -> AsyncIterator[WorkflowHistory | None]:
        async for source in sources:
            read.append(source)
            yield source.history

    with Progress("histories replayed", expected) as progress:
        async with aclosing(rehearse(histories(), expected)) as findings:
            async for finding in findings:
                source = read.popleft()
                yield judge(source.name, source.history, source.problem, finding)
                progress.step()


def _load_rehearsal() -> Any:
    """Load the workflows, which are what is examined here: they may be broken altogether.

    Raises:
        CommandError: they are.
    """
    try:
        from starters.rehearsal import rehearse
    except Exception as error:
        words = f"this code cannot be loaded: {type(error).__name__}: {error}"
        raise CommandError(words, Exit.CHECK_FAILED) from error
    return rehearse


def _end(judged: Sequence[Judged]) -> None:
    failing = [one for one in judged if one.finding is not None and not one.finding.ok]
    problems = [one.problem for one in judged if one.problem is not None]
    if len(problems) > 1 or (problems and len(judged) > 1):
        for problem in problems:
            screen.hint(f"not replayed: {problem}")
    if failing:
        line = f"{len(failing)} of {len(judged)} fail with this code"
        raise CommandError(line, Exit.CHECK_FAILED)
    if len(judged) == 1 and problems:
        raise problems[0]
    if problems:
        line = f"{len(problems)} of {len(judged)} could not be replayed"
        raise CommandError(line, problems[0].exit_code)
