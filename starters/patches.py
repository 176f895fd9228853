"""`refund doctor --patches`: which open runs have the marker of which change, and what may go.

Temporal keeps the patch ids of a run in the search attribute `TemporalChangeVersion`. It tells
neither whether a marker is one of `patched` or of `deprecate_patch`, which the run's history does,
nor whether a run without a marker is still to come to the place or has passed it under older code.
That depends on when it began: `--since` names the moment from which only this code was at work.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime

from temporalio.client import Client
from temporalio.common import SearchAttributeKey

from domain.names import PATCHES, REFUND_WORKFLOW, PatchStage
from starters import fetch, screen
from starters.connect import RPC_TIMEOUT, connect_by
from starters.difference import full_patches
from starters.errors import CommandError, Exit
from workers.settings import Settings

_CHANGE_VERSION = SearchAttributeKey.for_keyword_list("TemporalChangeVersion")
_OPEN = fetch.select(f'{fetch.OPEN} AND WorkflowType = "{REFUND_WORKFLOW}"')
_MARKED = f"{_CHANGE_VERSION.name} IS NOT NULL"
_UNKNOWN = "unknown"
# The next step of a change, and what is said where nothing is in its way, and where something is.
_STEPS = {
    PatchStage.PATCHED: (
        "deprecate",
        "every open run that may have met older code has its marker",
        "{} without its marker may have passed its place under older code",
    ),
    PatchStage.DEPRECATED: (
        "remove",
        "no open run has a marker of `patched`",
        "{} with a marker of `patched` would stand still without the call",
    ),
    PatchStage.GONE: (
        "",
        "no call is left, and no open run needs one",
        "{} with a marker of `patched` cannot go on: put `deprecate_patch` back",
    ),
    _UNKNOWN: (
        "",
        "this code does not know it, and no open run needs it",
        "{} with a marker of `patched` that this code does not know cannot go on",
    ),
}


@dataclass(frozen=True)
class OpenRun:
    """An open run."""

    workflow_id: str
    started_at: datetime
    markers: frozenset[str] = frozenset()
    """The patch ids of all its markers."""
    full: frozenset[str] = frozenset()
    """Those of them that are of `patched`, where it matters; the others are deprecated."""


@dataclass(frozen=True)
class Verdict:
    """What the open runs mean for one change."""

    patch: str
    stage: str
    """Where this code has it: `patched`, `deprecated`, `gone`, or `unknown` to it."""
    with_marker: int
    without_marker: int
    in_the_way: int
    """How many open runs the next step waits for; where no step is left, those that stand still."""
    oldest: str
    """The workflow id of the one among them that began first; empty where there is none."""
    next_step: str
    """`deprecate` or `remove`; empty where none is left."""
    may: bool
    """Whether that step may be taken now."""
    ok: bool
    """Whether no open run stands still for this change."""
    words: str


async def patches(settings: Settings, since: datetime | None, *, as_json: bool) -> None:
    """Count the markers of open runs and say what they allow.

    Args:
        settings: Where to look.
        since: From when on only this code was at work; None where nobody said.
        as_json: Print data.

    Raises:
        CommandError: an open run has a marker that this code has no place for (1), or Temporal
            cannot be reached (5).
    """
    client = await connect_by(settings)
    runs = await _open_runs(client)
    verdicts = judge(runs, PATCHES, since)
    if as_json:
        screen.data([asdict(verdict) for verdict in verdicts])
    else:
        _print(verdicts, len(runs))
    bad = [verdict.patch for verdict in verdicts if not verdict.ok]
    if bad:
        line = f"open runs stand still for want of a patch: {', '.join(bad)}"
        raise CommandError(line, Exit.CHECK_FAILED)


async def _open_runs(client: Client) -> list[OpenRun]:
    """All open refunds. Of those with a marker that may not be of `patched`, the history is read.

    One whose history cannot be read counts as one with full markers: nothing goes because of it.
    """
    found = {
        run.run_id: OpenRun(
            run.id,
            run.start_time,
            frozenset(run.typed_search_attributes.get(_CHANGE_VERSION) or ()),
        )
        async for run in client.list_workflows(_OPEN, rpc_timeout=RPC_TIMEOUT)
    }
    asked = {marker for run in found.values() for marker in run.markers} - {
        patch for patch, stage in PATCHES.items() if stage is PatchStage.PATCHED
    }
    full: dict[str, frozenset[str]] = {}
    if asked:
        async for fetched in fetch.fetch_all(client, f"{_OPEN} AND {_MARKED}"):
            if fetched.history is not None:
                full[fetched.run_id] = full_patches(fetched.history)
    return [
        OpenRun(run.workflow_id, run.started_at, run.markers, full.get(run_id, run.markers))
        for run_id, run in found.items()
    ]


def judge(
    runs: Sequence[OpenRun], known: dict[str, PatchStage], since: datetime | None
) -> list[Verdict]:
    """What the open runs mean for each change that this code knows, and for each other marker."""
    stages: dict[str, str] = dict(known)
    stages |= {
        marker: _UNKNOWN
        for marker in sorted({marker for run in runs for marker in run.markers})
        if marker not in known
    }
    return [_verdict(patch, stage, runs, since) for patch, stage in stages.items()]


def _verdict(patch: str, stage: str, runs: Sequence[OpenRun], since: datetime | None) -> Verdict:
    lacks = [run for run in runs if patch not in run.markers]
    if stage == PatchStage.PATCHED:
        blocks = [run for run in lacks if since is None or run.started_at < since]
    else:
        blocks = [run for run in runs if patch in run.full]
    step, free, blocked = _STEPS[stage]
    return Verdict(
        patch=patch,
        stage=stage,
        with_marker=len(runs) - len(lacks),
        without_marker=len(lacks),
        in_the_way=len(blocks),
        oldest=min(blocks, key=lambda run: run.started_at).workflow_id if blocks else "",
        next_step=step,
        may=bool(step) and not blocks,
        ok=bool(step) or not blocks,
        words=blocked.format(_runs(len(blocks))) if blocks else free,
    )


def _runs(count: int) -> str:
    return "1 open run" if count == 1 else f"{count} open runs"


def _print(verdicts: Sequence[Verdict], count: int) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name in ("patch", "in this code", "with marker", "without", "next step"):
        table.add_column(name, justify="right" if name.startswith("with") else "left")
    for verdict in verdicts:
        may = f"{verdict.next_step}: {'now' if verdict.may else 'not yet'}"
        table.add_row(
            screen.plain(verdict.patch),
            verdict.stage,
            str(verdict.with_marker),
            str(verdict.without_marker),
            may if verdict.next_step else "",
        )
    screen.say("1 refund is open." if count == 1 else f"{count} refunds are open.")
    screen.show(table)
    for verdict in verdicts:
        oldest = f" (the oldest: {verdict.oldest})" if verdict.oldest else ""
        screen.say(f"{verdict.patch}: {verdict.words}{oldest}.")
