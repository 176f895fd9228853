"""`refund start` after a run was ended from outside: what had been approved is never dropped."""

import uuid
from pathlib import Path

import pytest

from starters import runs
from tests.signing import GRACE
from tests.starters.conftest import Done, Typed
from tests.trees import Change, copy_with
from tests.worker_process import real_worker
from tests.world import LETTER, Run, World

ORDER = "8892"
READ_FACTS = "        case = await self._read_facts(state)\n"


@pytest.fixture
def request_id() -> str:
    """A request id that no other test has used."""
    return f"req-{uuid.uuid4().hex}"


async def start(typed: Typed, request_id: str, *more: str) -> Done:
    """Start the request, or start it again."""
    letter = ("--message", LETTER, "--json")
    return await typed("start", "--order", ORDER, "--request-id", request_id, *letter, *more)


async def newest(world: World) -> Run:
    """The newest run of the order."""
    found = await runs.find_or_fail(world.client, ORDER)
    run = Run(world, world.request(ORDER), found.handle)
    world.runs.append(run)
    return run


async def approved_and_terminated(typed: Typed, world: World, request_id: str) -> Run:
    """A run that had one of two approvals when somebody ended it."""
    done = await start(typed, request_id)
    assert done.code == 0, done.err
    run = await newest(world)
    entry = await run.approve(by=GRACE)
    assert entry.what == "approved"
    await run.handle.terminate()
    return run


async def test_nothing_starts_until_a_worker_tells_what_was_approved(
    typed: Typed, world: World, request_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P4: a run that began without the approvals would ask for them again, and ask nobody."""
    last = await approved_and_terminated(typed, world, request_id)
    await world.stop_worker()
    with monkeypatch.context() as impatient:
        impatient.setattr(runs, "LAST_WORDS_SECONDS", 1.0)
        refused = await start(typed, request_id)
    assert refused.code == 6
    assert "no worker tells what had been approved" in refused.err
    assert (await newest(world)).handle.run_id == last.handle.run_id

    await world.start_worker()
    again = await start(typed, request_id)
    assert (again.code, again.data["new"]) == (0, True)
    status = await (await newest(world)).until(lambda s: bool(s.approved_by))
    assert [person.address for person in status.approved_by] == [GRACE]
    assert (await world.mails())["approval_request.r1"] == 1


async def test_a_run_that_nobody_took_up_holds_nothing_up(
    typed: Typed, world: World, request_id: str
) -> None:
    """No worker has ever looked at it, so nothing was approved in it."""
    await world.stop_worker()
    first = await start(typed, request_id, "--wait-seconds", "0.5")
    assert first.code == 6
    await (await newest(world)).handle.terminate()
    again = await start(typed, request_id, "--wait-seconds", "0.5")
    assert again.code == 6
    assert "is started and nobody has taken it up" in again.err
    await world.start_worker()
    await (await newest(world)).waiting()


async def test_where_the_code_has_changed_the_approvers_are_asked_anew(
    typed: Typed, world: World, request_id: str, tmp_path: Path
) -> None:
    """Today's code cannot follow the run that was ended, so nobody can tell what counted."""
    await approved_and_terminated(typed, world, request_id)
    change = Change("workflows/refund.py", READ_FACTS, READ_FACTS + READ_FACTS)
    tree = copy_with(tmp_path / "tree", change)
    async with real_worker(world, tree):
        again = await start(typed, request_id)
        assert (again.code, again.data["new"]) == (0, True)
        run = await newest(world)
        await run.waiting()
        await world.until(lambda: _is_asked_anew(world))
        await run.handle.cancel()
        await run.result()
        world.runs.clear()


async def _is_asked_anew(world: World) -> bool:
    mails = await world.mails()
    return mails["approval_request.r1"] == 1 and mails["approval_request.r1.retry1"] == 1
