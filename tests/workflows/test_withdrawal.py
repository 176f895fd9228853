"""A request is withdrawn, or cancelled in Temporal, at each stage (R16)."""

import pytest

from domain.models import Outcome, Stage
from domain.outcomes import Reason
from domain.trail import Refusal
from tests.signing import GRACE, MARIA, SAM
from tests.world import Run, World

HOLD_MODEL = [{"system": "model", "operation": "chat", "call": "every", "what": "fail_before"}]
HOLD_REFUND = [
    {"system": "payments", "operation": "refunds.create", "call": "every", "what": "fail_before"}
]
HOLD_ORDERS = [
    {"system": "orders", "operation": "orders.get", "call": "every", "what": "fail_before"}
]


async def test_withdrawn_while_the_model_is_asked(world: World) -> None:
    """The run ends at once, though the model would be waited for; the customer hears of it."""
    await world.control("faults", HOLD_MODEL)
    run = await world.start()
    await run.until(lambda s: s.accepted)
    answer = await run.send(world.signer.withdrawal(run.request), "withdraw")
    ended = await run.result()

    assert (answer.what, ended.outcome) == ("withdrawn", Outcome.WITHDRAWN)
    assert await world.refunds() == []


async def test_withdrawn_during_the_re_check(world: World) -> None:
    """An approved refund is not paid when the request is withdrawn before the money."""
    run = await world.start()
    await run.waiting()
    await world.control("faults", HOLD_ORDERS)
    await run.approve()
    await run.until(lambda s: s.stage is Stage.RECHECKING)
    await run.send(world.signer.withdrawal(run.request), "withdraw")

    assert (await run.result()).outcome is Outcome.WITHDRAWN
    assert await world.refunds() == []


@pytest.mark.parametrize("how", ["withdraw", "cancel"])
async def test_too_late_while_the_refund_is_under_way(world: World, how: str) -> None:
    """R16: never "withdrawn" for money that moves: the answer says too late, the refund is made."""
    run = await world.start()
    await run.waiting()
    await world.control("faults", HOLD_REFUND)
    await run.approve()
    await run.until(lambda s: s.stage is Stage.REFUNDING)
    if how == "withdraw":
        answer = await run.send(world.signer.withdrawal(run.request), "withdraw")
        assert answer.refusal is Refusal.TOO_LATE
    else:
        await run.handle.cancel()
        await run.until(lambda s: "cancel_refused" in [entry.what for entry in s.trail])
    await world.http.delete("/control/faults")
    ended = await run.result()

    assert (ended.outcome, await world.refunds()) == (Outcome.REFUNDED, [(42000, "succeeded")])


async def test_too_late_while_the_refund_is_verified(world: World) -> None:
    """A pending refund is carried to its end whatever anybody withdraws."""
    await world.control("payments/pi_8890", {"next_refund_status": "pending"})
    run = await world.start()
    await run.approve()
    status = await run.until(lambda s: s.refund is not None and s.refund.status == "pending")
    answer = await run.send(world.signer.withdrawal(run.request), "withdraw")
    assert answer.refusal is Refusal.TOO_LATE
    assert status.refund is not None
    await world.control(f"refunds/{status.refund.id}", {"status": "succeeded"})
    await run.move_on(days=1)

    assert (await run.result()).outcome is Outcome.REFUNDED


async def test_cancelled_before_the_first_task(world: World) -> None:
    """A cancel that is there before anything ran ends as withdrawn, and somebody hears of it."""
    await world.stop_worker()
    run: Run = await world.start()
    await run.handle.cancel()
    await world.start_worker()
    ended = await run.result()

    assert (ended.outcome, ended.reason) == (Outcome.WITHDRAWN, Reason.CANCELLED_IN_TEMPORAL)
    assert (await world.mails()).total() == 1
    assert await world.refunds() == []


@pytest.mark.parametrize("first", ["decide", "withdraw"])
async def test_a_withdrawal_and_an_approval_in_one_task_the_withdrawal_wins(
    world: World, first: str
) -> None:
    """Withdrawal wins until the refund is under way, in whatever order the two arrive."""
    run = await world.start()
    proposal = await run.waiting()
    await world.stop_worker()
    signals = {
        "decide": world.signer.decision(proposal, by=MARIA),
        "withdraw": world.signer.withdrawal(run.request, by=SAM),
    }
    for name in sorted(signals, key=lambda name: name != first):
        await run.handle.signal(name, signals[name])
    await world.start_worker()

    assert (await run.result()).outcome is Outcome.WITHDRAWN
    assert await world.refunds() == []


async def test_a_withdrawal_that_came_before_the_money_is_judged_before_it(world: World) -> None:
    """The re-check is done first where the directory is slow to tell who withdraws."""
    run = await world.start()
    proposal = await run.waiting()
    await world.stop_worker()
    slow = {"system": "staff", "operation": "staff.get", "what": "delay", "seconds": 2.0}
    await world.control("faults", [{**slow, "about": GRACE}])
    await run.handle.signal("decide", world.signer.decision(proposal, by=MARIA))
    await run.handle.signal("withdraw", world.signer.withdrawal(run.request, by=GRACE))
    await world.start_worker()

    assert (await run.result()).outcome is Outcome.WITHDRAWN
    assert await world.refunds() == []


async def test_a_directory_that_is_down_keeps_no_ended_run_open(world: World) -> None:
    """A decision that cannot be checked gets its answer when the run ends for another reason."""
    run = await world.start()
    proposal = await run.waiting()
    row = {"system": "staff", "operation": "staff.get", "call": "every", "what": "fail_before"}
    await world.control("faults", [row])
    await run.handle.signal("decide", world.signer.decision(proposal))
    await run.handle.cancel()
    ended = await run.result()

    assert ended.outcome is Outcome.WITHDRAWN
    assert ended.refused == {Refusal.CLOSED: 1}


async def test_a_withdrawal_of_another_request_is_refused(world: World) -> None:
    """A withdrawal names its request: an old one does not end a new run of the same order."""
    run = await world.start()
    await run.waiting()
    other = world.signer.withdrawal(run.request, request="some-other-request")
    assert (await run.send(other, "withdraw")).refusal is Refusal.OTHER_REQUEST
    assert (await run.status()).stage is Stage.AWAITING_APPROVAL
