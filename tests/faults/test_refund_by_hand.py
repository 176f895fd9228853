"""Others refund too: before the run, while it waits, and in the very race with it (R7, R8)."""

import asyncio
from dataclasses import dataclass
from typing import Literal

import pytest

from domain.models import Outcome, Stage
from domain.outcomes import Reason
from tests.faults.support import (
    by_hand,
    calls,
    fault,
    fired,
    set_faults,
)
from tests.signing import MARIA, TOM
from tests.world import Run, World

ORDER_MARK = "local/refund-order-8890/"


@dataclass(frozen=True)
class Row:
    """A refund by hand on order 8890 ($420.00), and what becomes of the request."""

    when: Literal["before", "waiting", "between look-up and create"]
    minor: int
    mark: Literal["none", "ours", "another request's"]
    outcome: Outcome
    reason: Reason
    refunds: list[int]
    rounds: int = 1


BY_HAND = {
    "before, in full": Row(
        "before", 42000, "none", Outcome.ALREADY_REFUNDED, Reason.REFUNDED_BEFORE, [42000], 0
    ),
    "before, in part": Row(
        "before", 12000, "none", Outcome.REFUNDED, Reason.VERIFIED, [12000, 30000]
    ),
    "before, with our mark": Row(
        "before", 42000, "ours", Outcome.REFUNDED, Reason.VERIFIED, [42000], 0
    ),
    "waiting, with our mark": Row(
        "waiting", 42000, "ours", Outcome.REFUNDED, Reason.VERIFIED, [42000]
    ),
    "waiting, in part with our mark": Row(
        "waiting", 12000, "ours", Outcome.NEEDS_HUMAN, Reason.REFUND_CONTRADICTORY, [12000]
    ),
    "waiting, with another request's mark": Row(
        "waiting", 42000, "another request's", Outcome.ALREADY_REFUNDED, Reason.REFUNDED_BY_HAND,
        [42000],
    ),
    "in the race, in full": Row(
        "between look-up and create", 42000, "none", Outcome.ALREADY_REFUNDED,
        Reason.REFUNDED_BY_HAND, [42000],
    ),
    "in the race, in part": Row(
        "between look-up and create", 12000, "none", Outcome.REFUNDED, Reason.VERIFIED,
        [12000, 30000], 2,
    ),
    "in the race, with our mark": Row(
        "between look-up and create", 42000, "ours", Outcome.REFUNDED, Reason.VERIFIED, [42000]
    ),
    "in the race, in part with our mark": Row(
        "between look-up and create", 12000, "ours", Outcome.NEEDS_HUMAN,
        Reason.REFUND_CONTRADICTORY, [12000],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BY_HAND, ids=[n.replace(" ", "-") for n in BY_HAND])
async def test_a_refund_by_hand_is_never_paid_over(world: World, name: str) -> None:
    """R7: no more than was asked for moves, ours is ours by its mark, and the end says which."""
    row = BY_HAND[name]
    request = world.request()
    marks = {"ours": request.request_id, "another request's": "req-other"}
    key = f"{ORDER_MARK}{marks.get(row.mark)}/refund.r1"
    marked = {"northwind_key": key} if row.mark in marks else {}
    if row.when == "before":
        await by_hand(world, row.minor, metadata=marked)
    run = await world.start_with(request)
    if row.rounds:
        await run.waiting()
        if row.when == "waiting":
            await by_hand(world, row.minor, metadata=marked)
        elif row.when == "between look-up and create":
            await set_faults(world, fault("refunds.create", "delay", seconds=0.5))
        await run.approve()
    if row.when == "between look-up and create":
        await fired(world)
        await by_hand(world, row.minor, metadata=marked)
    if row.rounds == 2:
        await run.until(lambda s: s.round == 2 and s.stage is Stage.AWAITING_APPROVAL)
        await run.approve(by=TOM)
    ended = await run.result()

    assert (ended.outcome, ended.reason) == (row.outcome, row.reason)
    assert sorted(minor for minor, _ in await world.refunds()) == row.refunds
    assert (await world.mails())["refunded"] == (row.outcome is Outcome.REFUNDED)


@pytest.mark.parametrize("minor", [0, 12000, 42000], ids=["unchanged", "in-part", "in-full"])
async def test_an_attempt_on_a_stale_re_check_sends_nothing(world: World, minor: int) -> None:
    """P1: the worker sleeps over its look-up, the world moves on, and the run looks again."""
    run = await world.start()
    await run.waiting()
    # The first list is read for the re-check, the second one by the attempt itself.
    await set_faults(world, fault("refunds.list", "delay", call=2, seconds=1))
    await run.approve()
    await fired(world)
    world.clock.advance(minutes=6)
    if minor:
        await by_hand(world, minor)
    if minor == 12000:
        await run.until(lambda s: s.round == 2 and s.stage is Stage.AWAITING_APPROVAL)
        await run.approve(by=TOM)
    ended = await run.result()

    assert "refund_stale" in [entry.what for entry in ended.trail]
    assert sum(amount for amount, _ in await world.refunds()) == 42000
    ours = 1 if minor < 42000 else 0
    assert await calls(world, "refunds.create") == ours
    assert (await world.mails())["refunded"] == ours


@pytest.mark.parametrize(
    ("minor", "outcome", "stand"),
    [(60000, Outcome.ALREADY_REFUNDED, 1), (40000, Outcome.REFUNDED, 2)],
    ids=["room-for-one", "room-for-both"],
)
async def test_a_race_on_a_payment_with_room(
    world: World, minor: int, outcome: Outcome, stand: int
) -> None:
    """The limit: by hand and by us in one second, and the provider refuses only what is not left.

    Where $1,000.00 have room for both, both stand: whoever refunds by hand has to look for ours.
    """
    run = await world.start("8899", amount=f"{minor // 100}.00")
    await run.waiting()
    await set_faults(world, fault("refunds.create", "delay", seconds=0.5))
    await run.approve()
    await fired(world)
    await by_hand(world, minor, "8899")

    assert (await run.result()).outcome is outcome
    assert await world.refunds("8899") == [(minor, "succeeded")] * stand


async def _two_on_one_payment(world: World, amount: str) -> tuple[Run, Run]:
    """Runs of two orders that one payment of $1,000.00 has paid for, both waiting."""
    order = (await world.http.get("/orders/8896")).json()
    total = order["total"] | {"amount_minor": 70000}
    await world.control("orders/8896", {"payment": "pi_8899", "total": total})
    runs = [await world.start(number, amount=amount) for number in ("8896", "8899")]
    for run in runs:
        await run.waiting()
    return runs[0], runs[1]


async def test_two_runs_on_one_payment_never_pay_more_than_is_left(world: World) -> None:
    """R8: $600.00 twice of $1,000.00, both sent at once: one is paid, the other is a person's."""
    one, two = await _two_on_one_payment(world, "600.00")
    await set_faults(world, fault("refunds.create", "delay", call=1, times=2, seconds=0.5))
    await asyncio.gather(one.approve(by=MARIA), two.approve(by=MARIA))
    ended = await asyncio.gather(one.result(), two.result())

    assert sorted(status.outcome for status in ended if status.outcome) == [
        Outcome.NEEDS_HUMAN, Outcome.REFUNDED,
    ]  # fmt: skip
    assert await world.refunds("8899") == [(60000, "succeeded")]


async def test_the_other_orders_refund_on_one_payment_covers_nothing_of_ours(world: World) -> None:
    """R8: $300.00 each of $1,000.00: the second is asked for anew, since the payment changed."""
    one, two = await _two_on_one_payment(world, "300.00")
    await one.approve(by=MARIA)
    assert (await one.result()).outcome is Outcome.REFUNDED
    await two.approve(by=MARIA)
    await two.until(lambda s: s.round == 2 and s.stage is Stage.AWAITING_APPROVAL)
    assert (await two.waiting()).amount.amount_minor == 30000
    await two.approve(by=MARIA)

    assert (await two.result()).outcome is Outcome.REFUNDED
    assert await world.refunds("8899") == [(30000, "succeeded")] * 2
