"""`refund approve`, `reject`, `withdraw`: never "done" before the run says so."""

import asyncio
import json
import shlex
from pathlib import Path

import pytest

from domain import names
from domain.trail import Refusal
from starters.refusals import IN_WORDS
from tests.signing import MARIA, SAM, TOM, VICTOR
from tests.starters.conftest import Typed
from tests.world import World, temporal_program

MODEL_IS_DOWN = {"system": "model", "operation": "chat", "call": "every", "what": "fail_before"}


async def test_an_approval_counts(typed: Typed, world: World) -> None:
    """Exit code 0 only after the run shows the approval as counted; then the money moves, once."""
    run = await world.start()
    await run.waiting()
    done = await typed("approve", "8890", "--as", MARIA, "--comment", "clearly broken")
    assert done.code == 0, done.err
    assert "$420.00" in done.out
    status = await run.result()
    [approved] = [entry for entry in status.trail if entry.what == "approved"]
    assert approved.who == MARIA
    assert approved.detail.startswith("clearly broken (signed 20")
    assert await world.refunds() == [(42000, "succeeded")]


async def test_a_rejection_counts(typed: Typed, world: World) -> None:
    """A rejection ends the run, and no money moves."""
    run = await world.start()
    await run.waiting()
    assert (await typed("reject", run.handle.id, "--as", MARIA)).code == 0
    assert (await run.result()).outcome == "rejected"
    assert await world.refunds() == []


async def test_a_withdrawal_counts(typed: Typed, world: World) -> None:
    """The requester may withdraw what they handed in."""
    run = await world.start()
    await run.waiting()
    done = await typed("withdraw", "8890", "--as", SAM, "--json")
    assert done.code == 0, done.err
    assert done.data["answer"]["what"] == "withdrawn"
    assert (await run.result()).outcome == "withdrawn"


@pytest.mark.parametrize(
    ("person", "refusal"), [(SAM, Refusal.IS_REQUESTER), (VICTOR, Refusal.KEY_NOT_VALID)]
)
async def test_what_does_not_count_is_told_with_its_reason(
    typed: Typed, world: World, person: str, refusal: Refusal
) -> None:
    """An approval without the right ends with exit code 3 and the run's reason in words."""
    run = await world.start()
    await run.waiting()
    done = await typed("approve", "8890", "--as", person)
    assert done.code == 3
    assert done.out == ""
    assert refusal.value in done.err
    assert IN_WORDS[refusal] in done.err
    assert await world.refunds() == []


def test_every_refusal_has_words() -> None:
    """Whatever reason the run gives, its sender can read what to do."""
    assert set(IN_WORDS) == set(Refusal)


async def test_nothing_is_decided_before_there_is_a_proposal(typed: Typed, world: World) -> None:
    """A run that proposes nothing within the time: refused here, exit code 3, and never sent."""
    await world.control("faults", [MODEL_IS_DOWN])
    run = await world.start()
    await run.until(lambda status: status.accepted)
    done = await typed("approve", "8890", "--as", MARIA, "--wait-seconds", "1")
    assert done.code == 3
    assert "nothing to decide yet" in done.err
    assert not [event for event in (await run.history()).events if "SIGNALED" in str(event)]


async def test_an_approval_may_come_at_once(typed: Typed, world: World) -> None:
    """Whoever approves right after the start waits for the proposal, and approves just that."""
    await world.control("faults", [MODEL_IS_DOWN])
    run = await world.start()
    approving = asyncio.create_task(typed("approve", "8890", "--as", MARIA))
    await run.until(lambda status: status.accepted)
    await world.http.delete("/control/faults")
    done = await approving
    assert done.code == 0, done.err
    assert "$420.00" in done.out
    assert (await run.result()).outcome == "refunded"


async def test_a_run_may_close_before_it_proposes(typed: Typed, world: World) -> None:
    """Whoever waits for a proposal hears how the run ended instead: exit code 4."""
    await world.control("faults", [MODEL_IS_DOWN])
    run = await world.start()
    approving = asyncio.create_task(typed("approve", "8890", "--as", MARIA))
    await run.until(lambda status: status.accepted)
    await run.handle.cancel()
    done = await approving
    assert done.code == 4, done.err
    assert "withdrawn" in done.err


async def test_printing_names_the_command_that_sends_it(
    typed: Typed, world: World, tmp_path: Path
) -> None:
    """The command below `--print` works as it stands, wherever the server listens."""
    run = await world.start()
    await run.waiting()
    done = await typed("reject", "8890", "--as", TOM, "--print")
    command = shlex.split(done.err.splitlines()[-1])
    (tmp_path / "decision.json").write_text(done.out)
    sending = await asyncio.create_subprocess_exec(
        temporal_program(), *command[1:], cwd=tmp_path, stdout=asyncio.subprocess.DEVNULL
    )
    assert await sending.wait() == 0
    assert (await run.result()).outcome == "rejected"


async def test_printing_sends_nothing(typed: Typed, world: World) -> None:
    """`--print` gives JSON that counts once it is sent by other means, and not before."""
    run = await world.start()
    await run.waiting()
    done = await typed("approve", "8890", "--as", TOM, "--print")
    assert done.code == 0
    assert not [e for e in (await run.status()).trail if e.what == "approved"]
    await run.handle.signal(names.SIGNAL_DECIDE, json.loads(done.out))
    assert (await run.result()).outcome == "refunded"


async def test_a_closed_run_takes_no_decision(typed: Typed, world: World) -> None:
    """Exit code 4 and how it ended, for approval, rejection and withdrawal alike."""
    run = await world.start()
    await run.approve()
    await run.result()
    for command in ("approve", "reject", "withdraw"):
        done = await typed(command, "8890", "--as", TOM)
        assert done.code == 4
        assert "refunded" in done.err


async def test_an_unknown_run_is_told(typed: Typed, world: World) -> None:
    """Exit code 4 where there is no such run, and 2 where there can be none."""
    assert (await typed("approve", "no-such-order", "--as", MARIA)).code == 4
    assert (await typed("withdraw", "no-such-order", "--as", SAM)).code == 4
    assert (await typed("approve", "no such order", "--as", MARIA)).code == 2


async def test_an_approval_needs_a_worker_to_be_signed(typed: Typed, world: World) -> None:
    """Without a worker the proposal cannot be read: exit code 5, and nothing was sent."""
    run = await world.start()
    await run.waiting()
    await world.stop_worker()
    done = await typed("approve", "8890", "--as", MARIA, "--wait-seconds", "1")
    assert done.code == 5
    assert "nothing was sent" in done.err
    await world.start_worker()


async def test_a_message_that_nobody_took_up_is_kept(typed: Typed, world: World) -> None:
    """Sent to a run without a worker: exit code 6; it is judged once a worker is back."""
    run = await world.start()
    await run.waiting()
    await world.stop_worker()
    done = await typed("withdraw", "8890", "--as", SAM, "--wait-seconds", "1")
    assert done.code == 6
    assert "it is kept" in done.err
    await world.start_worker()
    assert (await run.result()).outcome == "withdrawn"
