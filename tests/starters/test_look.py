"""`refund show`, `list`, `history`: what there is, with a worker and without one."""

import json
from pathlib import Path

from temporalio.client import WorkflowHistory

from domain.models import Stage
from tests.signing import MARIA
from tests.starters.conftest import Typed
from tests.world import World
from workers.sandbox import build_replayer


async def test_a_waiting_run_is_told_whole(typed: Typed, world: World) -> None:
    """People see letter, proposal, deadline, the model's words and every row of the trail."""
    run = await world.start(amount="100.00")
    await run.until(lambda s: [entry.what for entry in s.trail].count("mail_sent") == 2)
    done = await typed("show", "8890")
    assert done.code == 0, done.err
    status = await run.status()
    assert status.proposal is not None
    assert status.assessment is not None
    words = " ".join(done.out.split())
    assert run.request.message in words
    assert status.assessment.summary in words
    for told in ("$100.00", status.proposal.proposal_id, "awaiting approval"):
        assert told in done.out
    assert done.out.count("mail sent") == 2


async def test_what_a_proposal_needs_is_told(typed: Typed, world: World) -> None:
    """A small amount that needs a manager stands beside what was refunded before it."""
    run = await world.start("8896", amount="25.00")
    await run.waiting()
    words = " ".join((await typed("show", "8896")).out.split())
    assert "proposal $25.00" in words
    assert "refunded before $120.00" in words
    assert "needs a manager or a finance director, since more than 50.00 USD in all" in words


async def test_a_waiting_run_is_told_without_a_worker(typed: Typed, world: World) -> None:
    """No worker: the request, the stage and the deadline are shown from the server's record."""
    run = await world.start()
    await run.waiting()
    await world.stop_worker()
    done = await typed("show", "8890")
    data = (await typed("show", "8890", "--json")).data
    await world.start_worker()
    assert done.code == 0, done.err
    assert run.request.message in " ".join(done.out.split())
    assert "awaiting approval" in done.out
    assert "no worker answered" in done.out
    assert data["status"] is None
    assert data["search_attributes"]["RefundStage"] == Stage.AWAITING_APPROVAL
    assert data["request"]["request_id"] == run.request.request_id
    assert "statement" not in data["request"]


async def test_a_closed_run_needs_no_worker(typed: Typed, world: World) -> None:
    """The result of a closed run is read from its history, trail and all."""
    run = await world.start("8891")
    await run.result()
    await world.stop_worker()
    done = await typed("show", "8891", "--json")
    await world.start_worker()
    assert done.code == 0, done.err
    assert done.data["source"] == "its result"
    assert done.data["status"]["outcome"] == "refunded"
    assert [row["what"] for row in done.data["status"]["trail"]][-1] == "mail_sent"


async def test_what_is_tried_again_is_shown(typed: Typed, world: World) -> None:
    """While a service is down, `show` says which step waits for it and why."""
    await world.control(
        "faults",
        [{"system": "orders", "operation": "orders.get", "call": "every", "what": "fail_before"}],
    )
    await world.start("8892")
    shown: list[dict[str, object]] = []

    async def tried_again() -> bool:
        shown[:] = (await typed("show", "8892", "--json")).data["under_way"]
        return any(work["last_failure"] for work in shown)

    await world.until(tried_again)
    assert [work["activity"] for work in shown] == ["read_case"]
    assert "read case, attempt" in (await typed("show", "8892")).out
    await world.http.delete("/control/faults")


async def test_words_of_customers_do_not_steer_the_terminal(typed: Typed, world: World) -> None:
    """Escape sequences, markup and bidi overrides of a letter are shown as harmless text."""
    run = await world.start(message="\x1b[2J\x1b]0;owned\x07[bold red]free[/] \u202erefund")
    await run.waiting()
    done = await typed("show", "8890")
    assert done.code == 0, done.err
    assert not {"\x1b", "\x07", "\u202e"} & set(done.out)
    assert "[bold red]free[/]" in done.out


async def test_an_unknown_run_is_told(typed: Typed, world: World) -> None:
    """Exit code 4 where there is no such run."""
    for command in ("show", "history"):
        done = await typed(command, "no-such-order")
        assert (done.code, len(done.err.splitlines())) == (4, 1)


async def test_the_list_can_be_narrowed(typed: Typed, world: World) -> None:
    """By what waits, by order and by outcome; amounts and stages come from the attributes."""
    waiting = await world.start("8890")
    await waiting.waiting()
    await (await world.start("8891")).result()

    async def shows_both() -> bool:
        rows = (await typed("list", "--json")).data
        return {("8890", "awaiting_approval"), ("8891", "closed")} <= {
            (row["order_id"], row["stage"]) for row in rows
        }

    await world.until(shows_both)
    only = (await typed("list", "--waiting", "--json")).data
    assert [(row["order_id"], row["amount_minor"]) for row in only] == [("8890", 42000)]
    refunded = (await typed("list", "--outcome", "refunded", "--order", "8891", "--json")).data
    assert {row["outcome"] for row in refunded} == {"refunded"}
    assert {row["order_id"] for row in refunded} == {"8891"}
    for_people = await typed("list", "--waiting")
    assert "$420.00" in for_people.out
    assert "manager" in for_people.out


async def test_the_list_does_without_attributes(typed: Typed, bare_world: World) -> None:
    """On a server without the attributes each run is asked, and the list says so."""
    run = await bare_world.start(search_attributes=False)
    await run.waiting()
    refunded = await bare_world.start("8891", search_attributes=False)
    await refunded.result()
    done = await typed("list", "--waiting", "--json")
    assert done.code == 0, done.err
    assert "does not know the search attributes" in done.err
    assert [(row["order_id"], row["amount_minor"]) for row in done.data] == [("8890", 42000)]
    closed = await typed("list", "--outcome", "refunded", "--limit", "1", "--json")
    assert [row["order_id"] for row in closed.data] == ["8891"]


async def test_a_saved_history_replays(typed: Typed, world: World, tmp_path: Path) -> None:
    """What `history` saves is what the Web UI saves: the replayer takes it."""
    run = await world.start()
    await run.approve(by=MARIA)
    await run.result()
    file = tmp_path / "history.json"
    done = await typed("history", "8890", "-o", str(file))
    assert (done.code, done.out) == (0, "")
    saved = WorkflowHistory.from_json(run.handle.id, file.read_text())
    await build_replayer().replay_workflow(saved)
    printed = json.loads((await typed("history", "8890")).out)
    assert printed == json.loads(file.read_text())


async def test_a_history_that_cannot_be_written_is_told(typed: Typed, world: World) -> None:
    """A folder that does not exist: exit code 2 and one line that names the file."""
    await (await world.start("8891")).result()
    done = await typed("history", "8891", "-o", "no/such/folder/history.json")
    assert done.code == 2
    assert len(done.err.splitlines()) == 1
    assert "no/such/folder/history.json" in done.err


async def test_an_earlier_run_of_an_order_can_be_looked_at(
    typed: Typed, world: World, tmp_path: Path
) -> None:
    """The list names the runs of an order; `show` and `history` take each of them."""
    start = ("start", "--order", "8891", "--message", "It broke.", "--wait", "--json")
    first, second = (await typed(*start)).data, (await typed(*start)).data
    listed = (await typed("list", "--order", "8891", "--json")).data
    assert {first["run_id"], second["run_id"]} <= {row["run_id"] for row in listed}
    assert first["run_id"] in (await typed("list", "--order", "8891")).out

    earlier = ("8891", "--run-id", first["run_id"])
    shown = (await typed("show", *earlier, "--json")).data
    assert shown["status"]["outcome"] == "refunded"
    newest = (await typed("show", "8891", "--json")).data
    assert newest["status"]["outcome"] == "already_refunded"
    file = tmp_path / "first.json"
    assert (await typed("history", *earlier, "-o", str(file))).code == 0
    assert first["run_id"] in file.read_text()
    assert second["run_id"] not in file.read_text()


async def test_a_run_id_that_is_none_is_told(typed: Typed, world: World) -> None:
    """P7: one that can be none, and one that is another's."""
    await (await world.start("8891")).result()
    wrong = await typed("show", "8891", "--run-id", "../8890")
    assert (wrong.code, "can be no run id" in wrong.err) == (2, True)
    other = await typed("show", "8891", "--run-id", "00000000-0000-4000-8000-000000000000")
    assert (other.code, "has no run" in other.err) == (4, True)
