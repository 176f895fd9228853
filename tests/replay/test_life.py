"""The life of a change, step by step, against runs that began before it (P6, docs/versioning.md).

Each history is of a real run under the release that is named. Each step is a copy of the code, and
`refund replay` of that copy says which runs it would break.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from temporalio.api.enums.v1 import EventType
from temporalio.client import WorkflowHistory
from temporalio.testing import WorkflowEnvironment

from domain.names import PATCH_TELL_ORDER_SERVICE, PATCH_WHO_DECIDES
from domain.request import Resumed
from tests import worker_process
from tests.patch_lint import check
from tests.replay import releases
from tests.signing import GRACE, MARIA
from tests.trees import Change, copy_with, refund
from tests.world import Run, World

NOT_NOW = {"system": "mail", "operation": "send", "what": "status", "status": 451, "call": "every"}
UPSERTED = EventType.EVENT_TYPE_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES


@dataclass
class Runs:
    """What was seen of the runs."""

    histories: dict[str, WorkflowHistory] = field(default_factory=dict)
    noted: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    """What the order service was told in the end, by order."""
    letters: dict[str, str] = field(default_factory=dict)
    """The text of each order's "under review" mail."""


@pytest.fixture(scope="module")
async def runs(server: WorkflowEnvironment, tmp_path_factory: pytest.TempPathFactory) -> Runs:
    """Runs that began under release 1, under this code, and after both patches were deprecated."""
    folder = tmp_path_factory.mktemp("life")
    seen = Runs()
    async with World(server, folder / "world") as world:
        await world.stop_worker()
        async with _worker(world, releases.release_1(folder / "one")):
            waiting, ending, early = await _under_release_1(world, seen)
        await world.start_worker()
        await waiting.approve()
        await waiting.result()
        seen.histories["1, goes on under 2"] = await waiting.history()
        await early.approve(by=GRACE)
        await early.result()
        seen.histories["1, decided early, goes on under 2"] = await early.history()
        await world.http.delete("/control/faults")
        await ending.move_on(minutes=10)
        await ending.result()
        await _carry(world, seen, "8893", "2")
        await world.stop_worker()
        deprecated = (releases.WHO_DEPRECATED, releases.TELL_DEPRECATED)
        async with _worker(world, releases.with_steps(folder / "deprecated", *deprecated)):
            await _carry(world, seen, "8899", "deprecated")
        seen.noted = (await world.books())["orders"]
        for mail in (await world.http.get("/mailbox.json")).json()["messages"]:
            if mail["key"].endswith("/mail.under_review"):
                seen.letters[mail["key"].split("/")[1].removeprefix("refund-order-")] = mail["text"]
    return seen


@asynccontextmanager
async def _worker(world: World, tree: Path) -> AsyncIterator[asyncio.subprocess.Process]:
    """A worker of another release, in the place of the world's own."""
    settings = world.settings
    environment = {
        "TEMPORAL_ADDRESS": world.client.service_client.config.target_host,
        "NORTHWIND_DATA_DIR": str(settings.data_dir),
        "NORTHWIND_COMPANY_URL": settings.company_url,
        "NORTHWIND_SMTP_URL": settings.smtp_url.get_secret_value(),
    }
    async with worker_process.worker(tree, **environment) as process:
        yield process


async def _under_release_1(world: World, seen: Runs) -> tuple[Run, Run, Run]:
    """One run that waits, one that tells its end, and one that took over an approval and waits."""
    waiting = await world.start()
    await _asked(waiting)
    seen.histories["1, waits"] = await waiting.history()

    await world.control("faults", NOT_NOW | {"about": "refund-order-8891"})
    ending = await world.start("8891")
    await ending.until(lambda s: any(entry.what == "ended" for entry in s.trail))
    seen.histories["1, tells its end"] = await ending.history()

    first = await world.start("8892")
    proposal = await first.waiting()
    approval = world.signer.decision(proposal, by=MARIA)
    await first.send(approval)
    await first.handle.terminate("to be started again")
    resumes = Resumed(retry=0, proposal=proposal, decisions=(approval.token,))
    early = await world.start_with(first.request.model_copy(update={"resumes": resumes}))
    await _asked(early)
    seen.histories["1, decided early, waits"] = await early.history()
    return waiting, ending, early


async def _carry(world: World, seen: Runs, order: str, release: str) -> None:
    run = await world.start(order)
    await _asked(run)
    seen.histories[f"{release}, waits"] = await run.history()
    await run.approve()
    await run.result()
    seen.histories[f"{release}, closed"] = await run.history()


async def _asked(run: Run) -> None:
    """Wait until the run waits, and both mails about it are out."""
    await run.waiting()
    await run.until(lambda s: [e.what for e in s.trail if e.what.startswith("mail_")][1:] != [])


def markers(history: WorkflowHistory) -> set[str]:
    """The patches of a run, as the search attribute of its last update names them."""
    found: set[str] = set()
    for event in history.events:
        if event.event_type == UPSERTED:
            upsert = event.upsert_workflow_search_attributes_event_attributes
            payload = upsert.search_attributes.indexed_fields.get("TemporalChangeVersion")
            found = set(json.loads(payload.data)) if payload is not None else found
    return found


def test_a_run_that_waits_takes_the_old_path_before_the_wait_and_the_new_one_after_it(
    runs: Runs,
) -> None:
    """It was past the one place when the code changed, and comes to the other one now."""
    assert markers(runs.histories["1, waits"]) == set()
    for name in ("1, goes on under 2", "1, decided early, goes on under 2"):
        assert markers(runs.histories[name]) == {PATCH_TELL_ORDER_SERVICE}
    for order in ("8890", "8892"):
        assert "a member of our team is looking at it" in runs.letters[order]
        assert len(runs.noted[order]) == 1


def test_a_run_past_the_new_step_is_not_led_back_to_it(runs: Runs) -> None:
    """It ended under release 1 and only told its end: the order service hears nothing of it."""
    assert "8891" not in runs.noted


@pytest.mark.parametrize(("order", "under"), [("8893", "2"), ("8899", "deprecated")])
def test_a_new_run_takes_both_new_paths(runs: Runs, order: str, under: str) -> None:
    """Also where the old paths are gone."""
    both = {PATCH_WHO_DECIDES, PATCH_TELL_ORDER_SERVICE}
    assert markers(runs.histories[f"{under}, waits"]) == {PATCH_WHO_DECIDES}
    assert markers(runs.histories[f"{under}, closed"]) == both
    assert "will decide on it" in runs.letters[order]
    assert len(runs.noted[order]) == 1


_OLD_PATH = "send_mail"
_WHO, _TELL = f"marker of the patch '{PATCH_WHO_DECIDES}'", f"'{PATCH_TELL_ORDER_SERVICE}'"
# What does not replay with the code after these steps, and where it differs. All others replay.
LIFE: dict[str, tuple[tuple[str, ...], dict[str, str]]] = {
    "patched": ((), {}),
    "who-decides deprecated": (
        (releases.WHO_DEPRECATED,),
        {
            "1, decided early, waits": _OLD_PATH,
            "1, decided early, goes on under 2": _OLD_PATH,
        },
    ),
    "who-decides gone": (
        (releases.WHO_DEPRECATED, releases.WHO_GONE),
        {
            "1, decided early, waits": _OLD_PATH,
            "1, decided early, goes on under 2": _OLD_PATH,
            "2, waits": _WHO,
            "2, closed": _WHO,
        },
    ),
    "tell-order-service deprecated": (
        (releases.TELL_DEPRECATED,),
        {"1, tells its end": _OLD_PATH},
    ),
    "tell-order-service gone": (
        (releases.TELL_DEPRECATED, releases.TELL_GONE),
        {
            "1, tells its end": _OLD_PATH,
            "1, goes on under 2": _TELL,
            "1, decided early, goes on under 2": _TELL,
            "2, closed": _TELL,
        },
    ),
}


@pytest.mark.parametrize(("steps", "broken"), LIFE.values(), ids=LIFE)
async def test_each_step_breaks_the_runs_that_must_be_gone_before_it(
    runs: Runs, tmp_path: Path, steps: tuple[str, ...], broken: dict[str, str]
) -> None:
    """Runs on the old path before `deprecate_patch`, runs with a full marker before it goes."""
    tree = releases.with_steps(tmp_path / "tree", *steps)
    assert check(tree) == []
    results = await _replay(tree, runs, tmp_path)
    failing = {name: why for name, (result, why) in results.items() if result != "ok"}
    assert failing.keys() == broken.keys()
    for name, says in broken.items():
        assert says in failing[name], failing[name]


async def test_release_1_has_neither_change(runs: Runs, tmp_path: Path) -> None:
    """The copy of it replays what began under it, and nothing that has a marker of `patched`.

    The marker of `deprecate_patch` alone would be borne with, where the steps are the same.
    """
    results = await _replay(releases.release_1(tmp_path / "tree"), runs, tmp_path)
    good = {"1, waits", "1, tells its end", "1, decided early, waits", "deprecated, waits"}
    assert {name for name, (result, _) in results.items() if result == "ok"} == good


async def test_a_new_field_needs_a_default(runs: Runs, tmp_path: Path) -> None:
    """Without one no run goes on whose Activity wrote its answer before; with one all do."""
    place = "    read_at: Instant\n"
    for name, new, broken in (
        ("required", "    region: str\n", set(runs.histories)),
        ("optional", '    region: str = ""\n', set()),
    ):
        tree = copy_with(tmp_path / name, Change("domain/case.py", place, place + new))
        results = await _replay(tree, runs, tmp_path)
        assert {history for history, (result, _) in results.items() if result != "ok"} == broken


async def _replay(tree: Path, runs: Runs, folder: Path) -> dict[str, tuple[str, str]]:
    """What `refund replay` of a copy makes of each history, and where it differs, in words."""
    saved = folder / "histories"
    saved.mkdir(exist_ok=True)
    for name, history in runs.histories.items():
        (saved / f"{name}.json").write_text(history.to_json())
    _, out, err = await refund(tree, "replay", str(saved), "--json")
    rows = json.loads(out)
    assert len(rows) == len(runs.histories), err
    return {
        Path(row["source"]).stem: (row["result"], json.dumps(row["difference"] or row["error"]))
        for row in rows
    }
