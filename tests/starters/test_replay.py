"""`refund replay`: what it says of good, changed and unusable histories."""

import asyncio
import base64
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from temporalio.testing import WorkflowEnvironment

from domain.models import Stage
from tests import sweeping
from tests.signing import MARIA
from tests.starters.conftest import Typed
from tests.trees import Change, copy_with, refund
from tests.worker_process import worker
from tests.world import World, temporal_program

Saved = dict[str, str]
OURS = ("NORTHWIND_", "TEMPORAL_")
READ_FACTS = "        case = await self._read_facts(state)\n"
CLOSE = "        state.enter(Stage.CLOSED)\n"


@pytest.fixture(scope="module")
async def saved(server: WorkflowEnvironment, tmp_path_factory: pytest.TempPathFactory) -> Saved:
    """Histories of real runs, as JSON: waiting, the same run refunded, and a sweep.

    The world ends with this: a task queue has one worker of a client at a time.
    """
    async with World(server, tmp_path_factory.mktemp("saved")) as world:
        run = await world.start()
        await run.waiting()
        await run.until(lambda s: [entry.what for entry in s.trail].count("mail_sent") == 2)
        waiting = (await run.history()).to_json()
        await run.approve(by=MARIA)
        await run.result()
        sweep = await sweeping.begin(world)
        await sweeping.end_of(sweep)
        return {
            "waiting": waiting,
            "refunded": (await run.history()).to_json(),
            "sweep": (await sweep.fetch_history()).to_json(),
            "program": await shown(world, run.handle.id),
        }


async def shown(world: World, workflow_id: str) -> str:
    """What the `temporal` program saves of a run."""
    address = world.client.service_client.config.target_host
    process = await asyncio.create_subprocess_exec(
        *(temporal_program(), "workflow", "show", "--output", "json"),
        *("--address", address, "--workflow-id", workflow_id),
        stdout=asyncio.subprocess.PIPE,
    )
    out, _ = await process.communicate()
    return out.decode()


def write(folder: Path, saved: Saved, *names: str) -> list[str]:
    """Histories as files; their paths."""
    files = [folder / f"{name}.json" for name in names]
    for file in files:
        file.write_text(saved[file.stem])
    return [str(file) for file in files]


async def test_histories_of_this_code_replay(typed: Typed, saved: Saved, tmp_path: Path) -> None:
    """P6: a folder of histories of each kind is green, and says how far each run had come."""
    write(tmp_path, saved, "waiting", "refunded", "sweep")
    done = await typed("replay", str(tmp_path), "--json")
    assert done.code == 0, done.err
    assert {Path(row["source"]).stem: (row["result"], row["stage"]) for row in done.data} == {
        "waiting": ("ok", Stage.AWAITING_APPROVAL),
        "refunded": ("ok", Stage.CLOSED),
        "sweep": ("ok", ""),
    }
    for_people = await typed("replay", str(tmp_path))
    assert "3 of 3 replay with this code" in for_people.out
    assert "awaiting approval" in for_people.out


def with_old_names(text: str) -> str:
    """As older Web UIs saved it: event types and the like in camel case."""
    exported = json.loads(text)
    for event in exported["events"]:
        parts = event["eventType"].removeprefix("EVENT_TYPE_").split("_")
        event["eventType"] = "".join(part.title() for part in parts)
    started = exported["events"][0]["workflowExecutionStartedEventAttributes"]
    started["taskQueue"]["kind"] = "Normal"
    return json.dumps(exported)


@pytest.mark.parametrize(
    "export",
    [
        lambda saved: saved["program"],
        lambda saved: with_old_names(saved["refunded"]),
        lambda saved: json.dumps(json.loads(saved["refunded"])["events"]),
    ],
    ids=["temporal workflow show", "old names", "events alone"],
)
async def test_exports_of_others_replay(
    typed: Typed, saved: Saved, tmp_path: Path, export: Callable[[Saved], str]
) -> None:
    """What the `temporal` program and the Web UI save is taken as what we save."""
    file = tmp_path / "export.json"
    file.write_text(export(saved))
    done = await typed("replay", str(file), "--json")
    assert done.code == 0, done.err
    assert [row["stage"] for row in done.data] == ["closed"]


def edit(change: Callable[[list[dict[str, Any]]], Any]) -> Callable[[str], str]:
    """Change the events of a history; what `change` returns, if anything, stands for them."""

    def edited(text: str) -> str:
        events = json.loads(text)["events"]
        returned = change(events)
        return json.dumps({"events": events if returned is None else returned})

    return edited


def started(events: list[dict[str, Any]]) -> dict[str, Any]:
    """What the first event says."""
    attributes: dict[str, Any] = events[0]["workflowExecutionStartedEventAttributes"]
    return attributes


def decode(value: Any) -> Any:
    """Everything that was sent in clear, as the Web UI's decoded download has it."""
    if isinstance(value, list):
        return [decode(item) for item in value]
    if not isinstance(value, dict):
        return value
    if value.keys() == {"metadata", "data"}:
        return json.loads(base64.b64decode(value["data"]))
    return {name: decode(inner) for name, inner in value.items()}


def in_short(events: list[dict[str, Any]]) -> None:
    """The input as some versions of the `temporal` program print it for people."""
    payloads = started(events)["input"]["payloads"]
    started(events)["input"] = decode(payloads)


UNUSABLE: dict[str, tuple[Callable[[str], str], str]] = {
    "empty": (lambda text: "", "is empty"),
    "blank": (lambda text: " \n", "is empty"),
    "no JSON": (lambda text: "hello", "is no JSON"),
    "cut off": (lambda text: text[: len(text) // 2], "cut off"),
    "nested without end": (lambda text: "[" * 100_000, "is JSON, and no history"),
    "a number": (lambda text: "17", "is JSON, and no history"),
    "another document": (lambda text: '{"order": "8890"}', "is JSON, and no history"),
    "events that are none": (lambda text: '{"events": [1]}', "is JSON, and no history"),
    "no events": (lambda text: '{"events": []}', "holds no events"),
    "events without anything": (lambda text: '{"events": [{}]}', "is not whole"),
    "decoded": (lambda text: json.dumps(decode(json.loads(text))), "was decoded"),
    "decoded in short": (edit(in_short), "was decoded"),
    "newest first": (edit(lambda events: events.reverse()), "is not whole"),
    "an event lost": (edit(lambda events: [*events[:9], *events[10:]]), "event 10 is missing"),
    "the start lost": (
        edit(lambda events: events[0].pop("workflowExecutionStartedEventAttributes") and None),
        "no start of a workflow",
    ),
    "an unknown event": (
        edit(lambda events: events[5].update(eventType="EVENT_TYPE_NONSENSE")),
        "event 6 is of no kind",
    ),
    "bytes that are none": (
        edit(lambda events: started(events)["input"]["payloads"][0].update(data="~")),
        "is damaged",
    ),
    "an event that says nothing": (
        edit(lambda events: events[3].pop("workflowTaskCompletedEventAttributes") and None),
        "event 4 is of no kind",
    ),
    "a time that is none": (
        edit(lambda events: events[3].update(eventTime="yesterday")),
        "is damaged",
    ),
    "another workflow": (
        edit(lambda events: started(events)["workflowType"].update(name="Payroll")),
        "is a history of 'Payroll'",
    ),
    "another project's": (
        edit(lambda events: started(events)["taskQueue"].update(name="theirs")),
        "is another project's",
    ),
    "no workflow id": (
        edit(lambda events: started(events).pop("workflowId") and None),
        "does not name its workflow id",
    ),
}


@pytest.mark.parametrize(("spoil", "says"), UNUSABLE.values(), ids=UNUSABLE)
async def test_what_cannot_be_replayed_is_told_in_one_line(
    typed: Typed, saved: Saved, tmp_path: Path, spoil: Callable[[str], str], says: str
) -> None:
    """P7: never a green, never a traceback: exit code 2 and a line with the file and the reason."""
    file = tmp_path / "history.json"
    file.write_text(spoil(saved["waiting"]))
    done = await typed("replay", str(file))
    assert (done.code, done.out) == (2, "")
    assert len(done.err.splitlines()) == 1
    assert str(file) in done.err
    assert says in done.err


async def test_bytes_that_are_no_text(typed: Typed, tmp_path: Path) -> None:
    """A picture is no history."""
    (tmp_path / "picture.json").write_bytes(b"\x89PNG\xff\xfe")
    done = await typed("replay", str(tmp_path / "picture.json"))
    assert (done.code, "is no text" in done.err) == (2, True)


async def test_one_unusable_file_stops_no_other(typed: Typed, saved: Saved, tmp_path: Path) -> None:
    """The rest is replayed, and the whole is no green all the same."""
    write(tmp_path, saved, "refunded", "waiting")
    (tmp_path / "second.json").write_text("")
    done = await typed("replay", str(tmp_path), "--json")
    assert [row["result"] for row in done.data] == ["ok", "unreadable", "ok"]
    assert done.code == 2
    assert "second.json is empty" in done.err
    assert "1 of 3 could not be replayed" in done.err


async def test_many_are_shared_out_and_come_back_in_order(
    typed: Typed, saved: Saved, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Several processes replay them; each result stays with its file."""
    monkeypatch.setattr("starters.rehearsal.WORTH_A_PROCESS", 4)
    monkeypatch.setattr("starters.rehearsal.CHUNK", 2)
    for number in range(9):
        name = "waiting" if number % 2 else "refunded"
        (tmp_path / f"{number}.json").write_text(saved[name] if number != 4 else "")
    done = await typed("replay", str(tmp_path), "--json")
    open_, closed = Stage.AWAITING_APPROVAL.value, Stage.CLOSED.value
    expected = [closed, open_, closed, open_, "", open_, closed, open_, closed]
    assert [row["stage"] for row in done.data] == expected
    assert [row["result"] for row in done.data].count("ok") == 8
    assert done.code == 2


async def test_what_is_open_is_replayed(typed: Typed, world: World) -> None:
    """`--open` takes the runs that are open, and RUN any run, by order or workflow id."""
    await (await world.start("8891")).result()
    none = await typed("replay", "--open")
    assert (none.code, "No run is open at" in none.out) == (0, True)
    run = await world.start()
    await run.waiting()

    async def is_listed() -> bool:
        opened = await typed("replay", "--open", "--json")
        assert opened.code == 0, opened.err
        return [row["source"] for row in opened.data] == [run.handle.id]

    await world.until(is_listed)
    named = (await typed("replay", "8891", run.handle.id, "--json")).data
    assert [(row["source"], row["stage"]) for row in named] == [
        ("refund-order-8891", "closed"),
        (run.handle.id, "awaiting_approval"),
    ]
    unknown = await typed("replay", "no-such-order")
    assert (unknown.code, len(unknown.err.splitlines())) == (4, 1)


# For each change: results of the waiting and of the refunded history, and what is said of the last.
CHANGES: dict[str, tuple[Change, list[str], dict[str, str]]] = {
    "a step before the wait": (
        Change(
            "workflows/refund.py", READ_FACTS, f"        await workflow.sleep(60)\n{READ_FACTS}"
        ),
        ["differs", "differs"],
        {
            "event": "ActivityTaskScheduled",
            "history": "Activity read_case",
            "code": "timer of 0:01",
        },
    ),
    "a step after the wait": (
        Change("workflows/refund.py", CLOSE, f"        await workflow.sleep(1)\n{CLOSE}"),
        ["ok", "differs"],
        {"history": "search attributes RefundAmountMinor", "code": "timer of 0:00:01"},
    ),
    "a step taken out": (
        Change(
            "workflows/refund.py",
            "            self._postbox.send(state, notices.under_review(state))",
            "            pass",
        ),
        ["differs", "differs"],
        {"history": "send_mail (Mail: approval request)", "mend": "workflow.patched()"},
    ),
    "an Activity renamed": (
        Change("workflows/calls.py", "CaseActivities.read_case,", '"read_the_case",'),
        ["differs", "differs"],
        {"code": "Activity read_the_case", "mend": "keep the name 'read_case'"},
    ),
    "a condition turned round": (
        Change(
            "workflows/refund.py",
            "if not proposal.approvals_needed:",
            "if proposal.approvals_needed:",
        ),
        ["differs", "differs"],
        {"history": "send_mail (Mail: under review)", "code": "search attributes"},
    ),
    "an end that comes too early": (
        Change(
            "workflows/refund.py",
            "        step = await self._sure_of_no_refund(state, step)\n",
            "        return step\n",
        ),
        ["ok", "differs"],
        {"history": "marker of the patch 'tell-order-service'", "code": "search attributes"},
    ),
    "an exception": (
        Change("workflows/refund.py", READ_FACTS, f'{READ_FACTS}        int("x")\n'),
        ["error", "error"],
        {"kind": "ValueError", "place": "workflows/refund.py:", "message": "invalid literal"},
    ),
    "a field that an Activity never wrote": (
        Change(
            "domain/case.py", "    read_at: Instant\n", "    read_at: Instant\n    region: str\n"
        ),
        ["error", "error"],
        {"kind": "ValidationError", "message": "region Field required", "mend": "needs a default"},
    ),
    "a field that no request has": (
        Change(
            "domain/request.py",
            "    amount: Annotated[",
            "    region: str\n    amount: Annotated[",
        ),
        ["error", "error"],
        {"kind": "bad_request", "message": "region: Field required", "mend": "needs a default"},
    ),
    "a look at the clock": (
        Change(
            "workflows/refund.py",
            READ_FACTS,
            f"        __import__('datetime').datetime.now()\n{READ_FACTS}",
        ),
        ["error", "error"],
        {"kind": "RestrictedWorkflowAccessError", "mend": "workflow.now()"},
    ),
    "no way back": (
        Change("workflows/refund.py", CLOSE, f"        while True:\n            pass\n{CLOSE}"),
        ["ok", "error"],
        {"kind": "Deadlock", "mend": "two seconds"},
    ),
    "a query that fails": (
        Change(
            "workflows/state.py",
            "    def status(self, now: datetime) -> RunStatus:\n",
            "    def status(self, now: datetime) -> RunStatus:\n        int('x')\n",
        ),
        ["error", "error"],
        {"kind": "ValueError"},
    ),
    "a patch": (
        Change(
            "workflows/refund.py",
            READ_FACTS,
            f'        if workflow.patched("t"):\n            await workflow.sleep(1)\n{READ_FACTS}',
        ),
        ["ok", "ok"],
        {},
    ),
    "another summary": (
        Change("workflows/calls.py", 'summary=f"Mail: {', 'summary=f"Letter: {'),
        ["ok", "ok"],
        {},
    ),
}


@pytest.mark.parametrize(("change", "results", "says"), CHANGES.values(), ids=CHANGES)
async def test_changed_code_is_held_against_histories(
    saved: Saved, tmp_path: Path, change: Change, results: list[str], says: dict[str, str]
) -> None:
    """P6: what would break an open run is found, in words; what would not is green."""
    tree = copy_with(tmp_path / "tree", change)
    files = write(tmp_path, saved, "waiting", "refunded")
    code, out, err = await refund(tree, "replay", *files, "--json")
    assert "Traceback" not in err
    rows = json.loads(out)
    assert [row["result"] for row in rows] == results
    assert code == (0 if results == ["ok", "ok"] else 1)
    told = rows[1]["difference"] or rows[1]["error"] or {}
    for name, words in says.items():
        assert words in told[name], told


BROKEN = {
    "a syntax error": (
        Change("workflows/clerk.py", "from temporalio import workflow\n", "x = (\n"),
        "this code cannot be loaded: SyntaxError",
    ),
    "a clock at import": (
        Change(
            "workflows/refund.py",
            "Step = TypeVar",
            "import datetime\ndatetime.datetime.now()\nStep = TypeVar",
        ),
        "the sandbox does not take this code: RestrictedWorkflowAccessError",
    ),
}


@pytest.mark.parametrize(("change", "says"), BROKEN.values(), ids=BROKEN)
async def test_code_that_cannot_be_loaded_is_told(
    saved: Saved, tmp_path: Path, change: Change, says: str
) -> None:
    """No worker would start with it: exit code 1 and one line."""
    tree = copy_with(tmp_path / "tree", change)
    code, out, err = await refund(tree, "replay", *write(tmp_path, saved, "waiting"))
    assert (code, out, len(err.splitlines())) == (1, "", 1)
    assert says in err


async def test_a_failing_run_is_told_to_people(saved: Saved, tmp_path: Path) -> None:
    """The table names it, and below stands where it differs and what usually mends it."""
    change, _, _ = CHANGES["a step after the wait"]
    tree = copy_with(tmp_path / "tree", change)
    write(tree, saved, "waiting", "refunded")
    code, out, err = await refund(tree, "replay", "waiting.json", "refunded.json")
    words = " ".join(out.split())
    assert code == 1
    assert "refunded.json RefundWorkflow verifying failing: differs" in words
    assert "waiting.json RefundWorkflow awaiting approval ok" in words
    assert "the code asks for timer of 0:00:01" in words
    assert "1 of 2 fail with this code" in err


PATCHED = '        if workflow.patched("told-first"):\n            state.note("told", "")\n'


async def test_a_marker_must_stay_as_long_as_runs_have_it(
    world: World, tmp_path: Path, typed: Typed
) -> None:
    """R23: `patched()` taken out is found, and `deprecate_patch` comes first."""
    change = Change("workflows/refund.py", READ_FACTS, PATCHED + READ_FACTS)
    patched = copy_with(tmp_path / "patched", change)
    await world.stop_worker()
    environment = {name: value for name, value in os.environ.items() if name.startswith(OURS)}
    async with worker(patched, **environment):
        await (await world.start("8891")).result()
    file = tmp_path / "marked.json"
    assert (await typed("history", "8891", "-o", str(file))).code == 0

    taken_out = await typed("replay", str(file), "--json")
    assert taken_out.code == 1
    told = taken_out.data[0]["difference"]
    assert told["history"] == "marker of the patch 'told-first'"
    assert "deprecate_patch" in told["mend"]
    deprecated = '        workflow.deprecate_patch("told-first")\n        state.note("told", "")\n'
    change = Change("workflows/refund.py", READ_FACTS, deprecated + READ_FACTS)
    for tree in (patched, copy_with(tmp_path / "deprecated", change)):
        code, _, err = await refund(tree, "replay", str(file))
        assert code == 0, err
