"""`refund doctor --patches`: what open runs on a real server still need of the code's patches."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from temporalio.testing import WorkflowEnvironment

from domain.names import PATCH_TELL_ORDER_SERVICE, PATCH_WHO_DECIDES, PatchStage
from starters import patches
from starters.patches import OpenRun, judge
from tests import worker_process
from tests.replay import releases
from tests.starters.conftest import Typed, end_all, use
from tests.world import World

NOON = datetime(2026, 8, 1, 12, tzinfo=UTC)
LATER = NOON + timedelta(hours=1)
ONE = "one"


def run(name: str, *full: str, deprecated: str = "", at: datetime = NOON) -> OpenRun:
    """An open run with these markers of `patched`, and perhaps one of `deprecate_patch`."""
    markers = frozenset([*full, *([deprecated] if deprecated else [])])
    return OpenRun(name, at, markers, frozenset(full))


OLD, NEW = run("old"), run("new", ONE)
SLOW = run("slow", at=LATER)
SOFT = run("soft", deprecated=ONE)
CASES: dict[str, tuple[PatchStage, list[OpenRun], datetime | None, tuple[bool, bool, str]]] = {
    "nothing is open": (PatchStage.PATCHED, [], None, (True, True, "")),
    "all have it": (PatchStage.PATCHED, [NEW], None, (True, True, "")),
    "one lacks it": (PatchStage.PATCHED, [NEW, SLOW, OLD], None, (False, True, "old")),
    "one lacks it and began later": (PatchStage.PATCHED, [NEW, SLOW], LATER, (True, True, "")),
    "one lacks it and began before": (PatchStage.PATCHED, [SLOW, OLD], LATER, (False, True, "old")),
    "full marker": (PatchStage.DEPRECATED, [NEW, OLD], None, (False, True, "new")),
    "full marker, whenever it began": (PatchStage.DEPRECATED, [NEW], NOON, (False, True, "new")),
    "deprecated markers": (PatchStage.DEPRECATED, [SOFT, OLD], None, (True, True, "")),
    "gone in time": (PatchStage.GONE, [SOFT, OLD], None, (False, True, "")),
    "gone too early": (PatchStage.GONE, [SOFT, NEW], None, (False, False, "new")),
}


@pytest.mark.parametrize(("stage", "runs", "since", "wanted"), CASES.values(), ids=CASES)
def test_each_step_waits_for_the_runs_that_it_would_break(
    stage: PatchStage,
    runs: list[OpenRun],
    since: datetime | None,
    wanted: tuple[bool, bool, str],
) -> None:
    """`deprecate_patch` for runs that may be on the old path, its end for full markers."""
    [verdict] = judge(runs, {ONE: stage}, since)
    assert (verdict.may, verdict.ok, verdict.oldest) == wanted
    assert verdict.with_marker + verdict.without_marker == len(runs)
    assert verdict.in_the_way == 0 or str(verdict.in_the_way) in verdict.words


def test_a_marker_that_this_code_never_had_is_told_apart() -> None:
    """Another release wrote it: with a full marker the run stands still, with the other it goes."""
    assert [(v.patch, v.stage, v.ok) for v in judge([NEW], {}, None)] == [(ONE, "unknown", False)]
    assert [(v.patch, v.stage, v.ok) for v in judge([SOFT], {}, None)] == [(ONE, "unknown", True)]


async def told(typed: Typed, *more: str) -> dict[str, dict[str, Any]]:
    """What is said of each patch."""
    done = await typed("doctor", "--patches", "--json", *more)
    assert done.code == 0, done.err
    return {verdict["patch"]: verdict for verdict in done.data}


def counts(verdict: dict[str, Any]) -> tuple[int, int, int, bool]:
    """What matters of a verdict."""
    return (
        verdict["with_marker"],
        verdict["without_marker"],
        verdict["in_the_way"],
        verdict["may"],
    )


async def test_runs_of_two_releases_are_counted(
    server: WorkflowEnvironment, tmp_path: Path, typed: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that waits since release 1, and one that waits since this code: by their markers."""
    async with World(server, tmp_path / "world") as world:
        use(world, monkeypatch)
        await world.stop_worker()
        environment = {
            "TEMPORAL_ADDRESS": world.client.service_client.config.target_host,
            "NORTHWIND_DATA_DIR": str(world.settings.data_dir),
            "NORTHWIND_COMPANY_URL": world.company.http_url,
            "NORTHWIND_SMTP_URL": world.company.smtp_url,
        }
        old_code = releases.release_1(tmp_path / "one")
        async with worker_process.worker(old_code, **environment):
            old = await world.start()
            await old.waiting()
            # A mail in the hands of the worker that is killed would hold the run's end up.
            await old.until(lambda s: [entry.what for entry in s.trail].count("mail_sent") == 2)
        await world.start_worker()
        new = await world.start("8893")
        await new.waiting()

        async def are_listed() -> bool:
            # The list of runs is a little behind.
            return counts((await told(typed))[PATCH_WHO_DECIDES])[:2] == (1, 1)

        await world.until(are_listed)
        found = await told(typed)
        assert counts(found[PATCH_WHO_DECIDES]) == (1, 1, 1, False)
        assert found[PATCH_WHO_DECIDES]["oldest"] == old.handle.id
        assert counts(found[PATCH_TELL_ORDER_SERVICE]) == (0, 2, 2, False)
        began = (await new.handle.describe()).start_time
        since = await told(typed, "--since", f"{began:%Y-%m-%dT%H:%M:%S}+0000")
        assert counts(since[PATCH_TELL_ORDER_SERVICE]) == (0, 2, 1, False)
        for_people = (await typed("doctor", "--patches")).out
        assert "2 refunds are open." in for_people
        assert "deprecate: not yet" in for_people
        assert f"(the oldest: {old.handle.id})" in for_people

        await old.approve()
        await old.result()

        async def may_go() -> bool:
            return bool((await told(typed))[PATCH_WHO_DECIDES]["may"])

        await world.until(may_go)
        await _full_and_deprecated(typed, monkeypatch)
        await end_all(world)


async def _full_and_deprecated(typed: Typed, monkeypatch: pytest.MonkeyPatch) -> None:
    """The marker of the run that is left is one of `patched`: its history says so."""
    for stage, code in ((PatchStage.DEPRECATED, 0), (PatchStage.GONE, 1)):
        monkeypatch.setattr(patches, "PATCHES", {PATCH_WHO_DECIDES: stage})
        done = await typed("doctor", "--patches", "--json")
        assert done.code == code
        [verdict] = done.data
        assert (verdict["stage"], verdict["in_the_way"], verdict["may"]) == (stage, 1, False)
    assert f"for want of a patch: {PATCH_WHO_DECIDES}" in done.err


async def test_a_server_that_is_not_there_is_one_line(
    typed: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody could be counted, so nothing is said to be free: exit code 5."""
    monkeypatch.setenv("TEMPORAL_ADDRESS", "127.0.0.1:1")
    done = await typed("doctor", "--patches", "--json")
    assert (done.code, done.out, len(done.err.splitlines())) == (5, "", 1)


@pytest.mark.parametrize(
    "arguments",
    [["--since", "2026-08-01"], ["--patches", "--fix"], ["--patches", "--since", "yesterday"]],
)
async def test_wrong_usage_is_told(typed: Typed, arguments: list[str]) -> None:
    """What would be ignored is refused."""
    done = await typed("doctor", *arguments)
    assert (done.code, done.out) == (2, "")
