"""How a run is driven through each path: each yields the stage at which the run rests."""

from collections.abc import AsyncIterator

from domain import names
from domain.request import Resumed
from tests.replay.driven import (
    ASK_MODEL,
    CREATE,
    READ_BACK,
    RECHECK,
    Driven,
    Kept,
)
from tests.signing import GRACE, TOM

Course = AsyncIterator[Kept]
_HAS_LOST = "approval_lost"


async def to_the_refund(driven: Driven) -> Course:
    """One approval that is enough, to where the refund is made."""
    yield Kept.WAITING
    await driven.decide()
    yield Kept.DECIDED
    await driven.pay()
    yield Kept.REFUNDED


async def wait(driven: Driven, minor: int = 42_000) -> None:
    """Place an order, ask for its refund, and rest where people must decide."""
    await driven.place(minor)
    await driven.start()
    await driven.waits()


async def one_approval(driven: Driven) -> Course:
    """The story: one manager approves."""
    await wait(driven)
    async for stage in to_the_refund(driven):
        yield stage
    yield await driven.end()


async def auto_approved(driven: Driven) -> Course:
    """A small amount, for which nobody is asked."""
    await driven.place(3_500)
    # The first request of two: the tools, which read the order too, are done then.
    await driven.hold(ASK_MODEL, call=2, times=1_000)
    await driven.start()
    await driven.rest(lambda s: s.accepted and s.usage.requests == 1)
    yield Kept.INVESTIGATING
    await driven.hold(RECHECK)
    await driven.release(ASK_MODEL)
    await driven.rest(lambda s: s.round == 1)
    yield Kept.DECIDED
    await driven.pay()
    yield Kept.REFUNDED
    yield await driven.end()


async def two_approvers(driven: Driven) -> Course:
    """Above the tier of one manager."""
    await wait(driven, 185_000)
    yield Kept.WAITING
    await driven.approve()
    await driven.rest(lambda s: len(s.approved_by) == 1)
    yield Kept.HALF_APPROVED
    await driven.decide(GRACE)
    yield Kept.DECIDED
    await driven.pay()
    yield Kept.REFUNDED
    yield await driven.end()


async def started_again(driven: Driven) -> Course:
    """One of two had approved when the run was ended from outside: the next run takes that over."""
    await wait(driven, 185_000)
    proposal = await driven.run.waiting()
    approval = driven.world.signer.decision(proposal)
    await driven.run.send(approval)
    await driven.run.handle.terminate("to be started again")
    resumes = Resumed(retry=0, proposal=proposal, decisions=(approval.token,))
    request = driven.run.request.model_copy(update={"resumes": resumes})
    driven.run = await driven.world.start_with(request)
    await driven.rest(lambda s: len(s.approved_by) == 1)
    yield Kept.HALF_APPROVED
    await driven.decide(GRACE)
    yield Kept.DECIDED
    await driven.pay()
    yield Kept.REFUNDED
    yield await driven.end()


async def model_down(driven: Driven) -> Course:
    """The model is down for longer than the policy allows: a person decides without it."""
    await driven.place()
    await driven.hold(ASK_MODEL)
    await driven.start()
    await driven.rest(lambda s: s.accepted)
    yield Kept.INVESTIGATING
    await driven.run.move_on(minutes=31)
    await driven.waits()
    async for stage in to_the_refund(driven):
        yield stage
    yield await driven.end()


async def refused_messages(driven: Driven) -> Course:
    """Garbage, a decision on something else, and one sent twice, before what counts."""
    await wait(driven)
    yield Kept.WAITING
    proposal = await driven.run.waiting()
    other = proposal.model_copy(update={"proposal_id": "another"})
    await driven.run.handle.signal(names.SIGNAL_DECIDE, "approve, please")
    await driven.run.send(driven.world.signer.decision(other))
    await driven.hold(RECHECK)
    decision = driven.world.signer.decision(proposal)
    await driven.run.send(decision)
    await driven.run.handle.signal(names.SIGNAL_DECIDE, decision)
    await driven.rest(lambda s: sum(s.refused.values()) == 3)
    yield Kept.DECIDED
    await driven.pay()
    yield Kept.REFUNDED
    yield await driven.end()


async def declined(driven: Driven) -> Course:
    """A rule of the policy says no."""
    await driven.place(delivered_days_ago=75)
    await driven.start()
    yield await driven.end()


async def rejected(driven: Driven) -> Course:
    """A person says no."""
    await wait(driven)
    yield Kept.WAITING
    await driven.run.approve(verdict="reject")
    yield await driven.end()


async def expired(driven: Driven) -> Course:
    """Nobody decides, reminder and escalation notwithstanding."""
    await wait(driven)
    yield Kept.WAITING
    await driven.run.move_on(hours=25)
    await driven.rest(lambda s: any("reminder" in entry.detail for entry in s.trail))
    yield Kept.REMINDED
    await driven.run.move_on(hours=24)
    await driven.rest(lambda s: any("escalation" in entry.detail for entry in s.trail))
    yield Kept.ESCALATED
    await driven.run.move_on(days=6)
    yield await driven.end()


async def withdrawn(driven: Driven) -> Course:
    """The customer thinks better of it in time."""
    await wait(driven)
    yield Kept.WAITING
    await driven.withdraw()
    yield await driven.end()


async def withdrawn_at_the_last_moment(driven: Driven) -> Course:
    """All has been approved, and nothing paid yet."""
    await wait(driven)
    yield Kept.WAITING
    await driven.decide()
    yield Kept.DECIDED
    await driven.withdraw()
    yield await driven.end()


async def withdrawn_too_late(driven: Driven) -> Course:
    """The withdrawal comes while the refund is under way, and another when it is made."""
    await wait(driven)
    yield Kept.WAITING
    await driven.decide()
    yield Kept.DECIDED
    await driven.hold(CREATE)
    await driven.try_to_pay()
    await driven.withdraw()
    await driven.rest(lambda s: sum(s.refused.values()) == 1)
    yield Kept.REFUNDING
    await driven.hold(READ_BACK)
    await driven.release(CREATE)
    await driven.rest(lambda s: s.refund is not None)
    await driven.withdraw()
    await driven.rest(lambda s: sum(s.refused.values()) == 2)
    yield Kept.REFUNDED
    yield await driven.end()


async def cancelled(driven: Driven) -> Course:
    """Temporal's own cancel, which is a withdrawal."""
    await wait(driven)
    yield Kept.WAITING
    await driven.run.handle.cancel()
    yield await driven.end()


async def refunded_before(driven: Driven) -> Course:
    """Somebody else has refunded the order before anybody asks."""
    await driven.place()
    await driven.refund_by_hand(42_000)
    await driven.start()
    yield await driven.end()


async def refunded_by_hand(driven: Driven) -> Course:
    """Somebody else refunds the order during the wait."""
    await wait(driven)
    yield Kept.WAITING
    await driven.decide()
    yield Kept.DECIDED
    await driven.refund_by_hand(42_000)
    await driven.release(RECHECK)
    yield await driven.end()


async def new_round(driven: Driven) -> Course:
    """A part is refunded by hand during the wait: the rest is a new proposal."""
    await wait(driven)
    yield Kept.WAITING
    await driven.decide()
    yield Kept.DECIDED
    await driven.refund_by_hand(12_000)
    await driven.release(RECHECK)
    await driven.waits(round_number=2)
    yield Kept.WAITING_AGAIN
    await driven.decide()
    yield Kept.DECIDED_AGAIN
    await driven.pay()
    yield Kept.REFUNDED
    yield await driven.end()


async def too_many_rounds(driven: Driven) -> Course:
    """A part is refunded by hand in each of three rounds: a person must look at it."""
    await wait(driven)
    yield Kept.WAITING
    for number in (2, 3):
        await driven.decide()
        await driven.refund_by_hand(1_000)
        await driven.release(RECHECK)
        await driven.waits(round_number=number)
    yield Kept.WAITING_AGAIN
    await driven.decide()
    yield Kept.DECIDED_AGAIN
    await driven.refund_by_hand(1_000)
    await driven.release(RECHECK)
    yield await driven.end()


async def approver_lost(driven: Driven) -> Course:
    """The approver loses the right before the money: another one must approve."""
    await wait(driven)
    yield Kept.WAITING
    async with driven.staff:
        await driven.decide(TOM)
    yield Kept.DECIDED
    async with driven.staff:
        await driven.world.control(f"staff/{TOM}", {"active": False})
        await driven.release(RECHECK)
        await driven.rest(lambda s: _HAS_LOST in [entry.what for entry in s.trail])
        await driven.world.control(f"staff/{TOM}", {"active": True})
    yield Kept.WAITING_AGAIN
    await driven.decide()
    yield Kept.DECIDED_AGAIN
    await driven.pay()
    yield Kept.REFUNDED
    yield await driven.end()
