"""`refund start`: one run for a request, and a clear word where there is none."""

import asyncio
import os
import signal
import sys
import uuid
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import WorkflowHandle
from temporalio.service import RPCError

from domain import names
from domain.trail import RunStatus
from starters import runs
from tests.signing import GRACE
from tests.starters.conftest import Done, Typed
from tests.world import LETTER, PATIENCE, Run, World


async def start(typed: Typed, *more: str, order: str = "8890") -> Done:
    """Type `refund start` with a letter."""
    return await typed("start", "--order", order, "--message", LETTER, "--json", *more)


@pytest.fixture
def request_id() -> str:
    """A request id that no other test has used."""
    return f"req-{uuid.uuid4().hex}"


async def executions(world: World, order: str = "8890") -> list[Any]:
    """All runs of an order in this test's time, the newest first."""
    query = f'WorkflowId = "{names.workflow_id(order)}"'
    return [run async for run in world.client.list_workflows(query)]


async def test_a_request_is_taken_up(typed: Typed, world: World) -> None:
    """It returns once the run has looked at the request, which is what was typed, signed."""
    done = await start(typed, "--amount", "100.00")
    assert done.code == 0, done.err
    assert done.data["new"]
    assert done.data["status"]["accepted"]
    handle = world.client.get_workflow_handle("refund-order-8890", result_type=RunStatus)
    description = await handle.describe()
    assert (await description.memo())[names.MEMO_REQUEST_ID] == done.data["request_id"]
    assert await description.static_summary() == "Refund of order 8890"
    status = await runs.ask(handle)
    assert status is not None
    assert status.requester == "sam.okafor@northwind.example"
    assert status.asked is not None
    assert status.asked.amount_minor == 10_000


async def test_a_letter_may_come_from_a_file(typed: Typed, world: World) -> None:
    """A file with a byte order mark and many lines is the letter, and no part of it is markup."""
    file = world.company.data / "letter.txt"
    file.write_text("It *came*\n[broken](http://evil.example)", encoding="utf-8-sig")
    done = await typed("start", "--order", "8890", "--message-file", str(file), "--json")
    assert done.code == 0, done.err
    handle = world.client.get_workflow_handle("refund-order-8890")
    details = await (await handle.describe()).static_details()
    assert details is not None
    assert "\n    It *came*\n    [broken](http://evil.example)" in details


async def test_a_repeat_of_a_request_is_no_mistake(
    typed: Typed, world: World, request_id: str
) -> None:
    """The same request id again: exit code 0, and still one run."""
    first = await start(typed, "--request-id", request_id)
    again = await start(typed, "--request-id", request_id)
    assert (first.code, again.code) == (0, 0)
    assert (first.data["new"], again.data["new"]) == (True, False)
    assert first.data["run_id"] == again.data["run_id"]


@pytest.mark.parametrize("more", [(), ("--request-id", "req-2"), ("--new-request",)])
async def test_another_request_on_a_running_order_is_told(
    typed: Typed, world: World, request_id: str, more: tuple[str, ...]
) -> None:
    """While an order's refund runs, another request ends with exit code 7 and names the first."""
    await start(typed, "--request-id", request_id)
    done = await start(typed, *more)
    assert done.code == 7
    assert request_id in done.err


async def test_a_finished_request_is_not_done_twice(
    typed: Typed, world: World, request_id: str
) -> None:
    """The id of a request that was carried to its end tells the outcome, and starts nothing."""
    first = await start(typed, "--request-id", request_id, "--wait", order="8891")
    later = await start(typed, "--wait", order="8891")
    again = await start(typed, "--request-id", request_id, order="8891")
    assert first.data["status"]["outcome"] == "refunded"
    assert later.data["status"]["outcome"] == "already_refunded"
    assert (again.code, again.data["run_id"]) == (0, first.data["run_id"])
    assert again.data["status"]["outcome"] == "refunded"
    assert await world.refunds("8891") == [(3500, "succeeded")]


async def test_a_run_that_was_ended_is_gone_on_with(
    typed: Typed, world: World, request_id: str
) -> None:
    """After a terminate: no id is refused with the id to use, and that id starts again."""
    await start(typed, "--request-id", request_id, order="8899")
    await world.client.get_workflow_handle("refund-order-8899").terminate()
    refused = await start(typed, order="8899")
    assert refused.code == 3
    assert f"--request-id {request_id}" in refused.err
    assert "--new-request" in refused.err
    again = await start(typed, "--request-id", request_id, order="8899")
    assert (again.code, again.data["new"]) == (0, True)


async def test_a_new_request_after_a_terminate_is_asked_for(
    typed: Typed, world: World, request_id: str
) -> None:
    """`--new-request` begins anew, under another request id."""
    await start(typed, "--request-id", request_id, order="8896")
    await world.client.get_workflow_handle("refund-order-8896").terminate()
    done = await start(typed, "--new-request", order="8896")
    assert done.code == 0, done.err
    assert done.data["request_id"] != request_id


@pytest.mark.parametrize(
    ("order", "more", "reason"),
    [
        ("777", (), "order_unknown"),
        ("08890", (), "order_spelled_differently"),
        ("8890", ("--amount", "420.01"), "amount_above_refundable"),
        ("8893", ("--amount", "1.5"), "amount_invalid"),
        ("8890", ("--amount", "5 EUR"), "amount_invalid"),
        ("8890", ("--as", "victor.hale@northwind.example"), "request_not_authentic"),
    ],
)
async def test_what_only_the_services_know_is_told_too(
    typed: Typed, world: World, order: str, more: tuple[str, ...], reason: str
) -> None:
    """A request that the run does not take up ends with exit code 3 and the run's own reason."""
    done = await start(typed, *more, order=order)
    assert done.code == 3
    assert len(done.err.splitlines()) == 1
    assert reason in done.err


async def test_following_shows_each_step(typed: Typed, world: World) -> None:
    """`--wait` shows the story as it happens, and how it ended."""
    done = await typed("start", "--order", "8891", "--message", LETTER, "--wait")
    assert done.code == 0, done.err
    for row in ("accepted", "assessed", "refund made", "mail sent", "It ended: refunded"):
        assert done.out.count(row) == 1


async def test_whoever_stops_looking_is_told_that_it_goes_on(world: World) -> None:
    """A follower says once what the run waits for; Ctrl-C ends the follower, and not the run."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", "from starters.cli import main; main()"),
        *("start", "--order", "8890", "--message", LETTER, "--wait"),
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    async with asyncio.timeout(PATIENCE):
        while b"refund approve 8890 --as" not in (line := await process.stdout.readline()):
            assert line
        process.send_signal(signal.SIGINT)
        out, err = await process.communicate()
    assert process.returncode == 130
    assert b"refund approve" not in out
    assert len(err.splitlines()) == 1
    assert b"refund-order-8890 goes on" in err
    assert b"refund withdraw 8890" in err
    (run,) = [run for run in await executions(world) if run.close_time is None]
    assert run.id == "refund-order-8890"


async def test_without_a_worker_the_request_waits(typed: Typed, world: World) -> None:
    """Nobody takes it up: exit code 6, and the run is there for the next worker."""
    await world.stop_worker()
    done = await start(typed, "--wait-seconds", "1")
    assert done.code == 6
    assert "nothing is lost" in done.err
    assert len([run for run in await executions(world) if run.close_time is None]) == 1
    await world.start_worker()


async def test_a_server_without_our_attributes_will_do(typed: Typed, bare_world: World) -> None:
    """Unregistered search attributes: a note, a run that knows it, and a refund all the same."""
    done = await start(typed, "--wait", order="8891")
    assert done.code == 0
    assert "Note:" in done.err
    assert "refund doctor" in done.err
    assert done.data["status"]["outcome"] == "refunded"


async def test_a_run_that_was_ended_is_told(typed: Typed, world: World) -> None:
    """Whoever waits for a run that is terminated hears of it: exit code 3, and why."""
    await world.control(
        "faults",
        [{"system": "orders", "operation": "orders.get", "call": "every", "what": "fail_before"}],
    )
    waiting = asyncio.create_task(start(typed, order="8894"))
    handle = world.client.get_workflow_handle("refund-order-8894")
    await world.until(lambda: exists(handle))
    await handle.terminate(reason="wrong customer")
    done = await waiting
    assert done.code == 3
    assert "terminated" in done.err
    assert "wrong customer" in done.err


async def exists(handle: WorkflowHandle[Any, Any]) -> bool:
    """Whether there is such a run."""
    try:
        await handle.describe()
    except RPCError:
        return False
    return True


async def test_a_request_that_waits_for_another_service_is_told(typed: Typed, world: World) -> None:
    """Nobody is sent to look for a worker that is there: the line names what does not answer."""
    await world.control(
        "faults",
        {"system": "orders", "operation": "orders.get", "call": "every", "what": "fail_before"},
    )
    done = await typed("start", "--order", "8891", "--message", "It broke.", "--wait-seconds", "3")
    assert done.code == 6
    assert "waits for another service: read case, attempt" in done.err
    assert "order 8891" in done.err
    await world.http.delete("/control/faults")


async def test_a_run_that_is_started_again_keeps_the_approval_and_asks_about_what_is_new(
    typed: Typed, world: World, request_id: str
) -> None:
    """P4: nothing accepted is lost with a run, and a changed proposal is a round of its own."""
    await start(typed, "--request-id", request_id, order="8892")
    run = await _newest(world, "8892")
    proposal = await run.waiting()
    await run.approve(by=GRACE)
    await run.handle.terminate()
    same = await start(typed, "--request-id", request_id, order="8892")
    assert same.code == 0, same.err
    run = await _newest(world, "8892")
    status = await run.until(lambda s: bool(s.approved_by))
    assert status.proposal == proposal
    assert [person.address for person in status.approved_by] == [GRACE]
    assert (await world.mails())["approval_request.r1"] == 1

    await run.handle.terminate()
    await world.control("hand_refund", {"payment": "pi_8892", "amount_minor": 60_000})
    await start(typed, "--request-id", request_id, order="8892")
    run = await _newest(world, "8892")
    changed = await run.waiting()
    assert (changed.round, changed.amount.amount_minor) == (2, 125_000)
    await world.until(lambda: _is_asked(world))


async def _is_asked(world: World) -> bool:
    return (await world.mails())["approval_request.r2"] == 1


async def _newest(world: World, order: str) -> Run:
    """The newest run of an order."""
    handle = world.client.get_workflow_handle(f"refund-order-{order}", result_type=RunStatus)
    run = Run(world, world.request(order), handle)
    world.runs.append(run)
    return run
