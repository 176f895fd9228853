"""The paths of a refund on which the provider fails, is slow, or says what is not so."""

from tests.replay.courses import Course, to_the_refund, wait
from tests.replay.driven import CREATE, LOOK_UP, READ_BACK, Driven, Kept


async def refund_retried(driven: Driven) -> Course:
    """The provider fails for a while, and nothing is done meanwhile."""
    await wait(driven)
    yield Kept.WAITING
    await driven.decide()
    yield Kept.DECIDED
    await driven.hold(CREATE)
    await driven.try_to_pay()
    yield Kept.REFUNDING
    await driven.hold(READ_BACK)
    await driven.release(CREATE)
    await driven.rest(lambda s: s.refund is not None)
    yield Kept.REFUNDED
    yield await driven.end()


async def unknown_then_adopted(driven: Driven) -> Course:
    """The answer is lost after the effect, and the refund is found by looking it up."""
    await wait(driven)
    yield Kept.WAITING
    await driven.decide()
    yield Kept.DECIDED
    await driven.fault("refunds.create", "drop_after")
    # Two looks are let through: the one of the re-check, and the one before the create.
    await driven.hold(LOOK_UP, call=3, times=1_000)
    await driven.try_to_pay()
    yield Kept.REFUNDING
    await driven.hold(READ_BACK)
    await driven.release(LOOK_UP)
    await driven.rest(lambda s: s.refund is not None)
    yield Kept.REFUNDED
    yield await driven.end()


async def unknown_for_an_hour(driven: Driven) -> Course:
    """The provider is down for longer than an hour: operations hear of it meanwhile."""
    await wait(driven)
    yield Kept.WAITING
    await driven.decide()
    yield Kept.DECIDED
    await driven.hold(CREATE)
    await driven.try_to_pay()
    await driven.run.move_on(minutes=65)
    await driven.rest(lambda s: "refund_unknown" in [entry.what for entry in s.trail])
    yield Kept.REFUNDING
    await driven.hold(READ_BACK)
    await driven.release(CREATE)
    await driven.run.move_on(minutes=20)
    await driven.rest(lambda s: s.refund is not None)
    yield Kept.REFUNDED
    yield await driven.end()


async def pending_for_days(driven: Driven) -> Course:
    """The bank takes its time."""
    await wait(driven)
    await driven.world.control(f"payments/{driven.payment}", {"next_refund_status": "pending"})
    async for stage in to_the_refund(driven):
        yield stage
    await driven.release(READ_BACK)
    await driven.run.move_on(days=2)
    status = await driven.rest(lambda s: s.refund is not None)
    yield Kept.PENDING
    assert status.refund is not None
    await driven.world.control(f"refunds/{status.refund.id}", {"status": "succeeded"})
    await driven.run.move_on(days=2)
    yield await driven.end()


async def refund_failed(driven: Driven) -> Course:
    """The provider takes the request, and the bank does not."""
    await wait(driven)
    await driven.world.control(f"payments/{driven.payment}", {"next_refund_status": "failed"})
    async for stage in to_the_refund(driven):
        yield stage
    yield await driven.end()


async def never_found(driven: Driven) -> Course:
    """The provider says yes and does nothing: a person must look."""
    await wait(driven)
    await driven.fault("refunds.create", "ok_without_effect")
    async for stage in to_the_refund(driven):
        yield stage
    await driven.release(READ_BACK)
    await driven.run.move_on(hours=2)
    yield await driven.end()
