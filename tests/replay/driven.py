"""A run that is driven through one path and held still at each of its stages.

The company's fault plan holds it: what the next step would read is refused as long as a row stands.
Every row is about this run's order alone, so that many runs are held in one world.
"""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any

from temporalio.api.enums.v1 import PendingActivityState

from domain import names
from domain.models import Stage
from domain.trail import RunStatus
from tests.faults.support import fault, set_faults
from tests.signing import MARIA, SAM
from tests.world import LETTER, Run, World

# What a step needs from outside, and the Activity that then comes again and again.
ASK_MODEL = ("chat", "ask_model")
RECHECK = ("orders.get", "read_case")
LOOK_UP = ("refunds.list", "make_refund")
CREATE = ("refunds.create", "make_refund")
READ_BACK = ("refunds.retrieve", "read_refund")
Hold = tuple[str, str]

# Seconds of the real clock that a test waits for the next try of an Activity.
_SOON = 5
# Each look asks the server, and many runs are driven at once.
_BETWEEN_LOOKS = 0.1
_WAITS_FOR_NEXT_TRY = PendingActivityState.PENDING_ACTIVITY_STATE_SCHEDULED


class Kept(StrEnum):
    """Where on its way a run was when its history was saved."""

    INVESTIGATING = "investigating"
    """The model has used its tools, and has not given its assessment."""
    WAITING = "waiting"
    REMINDED = "reminded"
    ESCALATED = "escalated"
    HALF_APPROVED = "half_approved"
    """One of two people has approved."""
    DECIDED = "decided"
    """Decided, and the world not yet looked at again."""
    WAITING_AGAIN = "waiting_again"
    DECIDED_AGAIN = "decided_again"
    REFUNDING = "refunding"
    """The provider was asked for the refund, and what came of it is not known."""
    REFUNDED = "refunded"
    """The refund is known, and has not been read back yet."""
    PENDING = "pending"
    """Read back for days, and neither made nor failed."""
    CLOSED = "closed"


class Driven:
    """The run of one order that exists for it alone."""

    run: Run

    def __init__(self, world: World, order: str, staff: asyncio.Lock) -> None:
        """Note where to be.

        Args:
            world: With a worker, of whatever code.
            order: An id that no other order's contains.
            staff: Held while somebody of the staff, who are everybody's, is changed.
        """
        self.world, self.order, self.staff = world, order, staff
        self._held: set[Hold] = set()

    @property
    def payment(self) -> str:
        return f"pi_{self.order}"

    async def place(self, minor: int = 42_000, *, delivered_days_ago: int = 6) -> None:
        """Place the order: dollars in minor units, from a customer of the company."""
        delivered = datetime.now(UTC) - timedelta(days=delivered_days_ago)
        order = {
            "id": self.order,
            "customer": {"name": "Ada Park", "email": "ada.park@customers.example"},
            "payment": self.payment,
            "total": {"amount_minor": minor, "currency": "USD"},
            "items": [{"name": "Espresso machine"}],
            "placed_at": (delivered - timedelta(days=4)).isoformat(),
            "delivered_at": delivered.isoformat(),
        }
        await self.world.control("orders", order)

    async def start(self) -> None:
        """Ask for the whole of the order, as Sam of support would."""
        self.run = await self.world.start(
            self.order, message=LETTER, requester=SAM, request_id=f"request-{self.order}"
        )

    async def fault(self, operation: str, what: str, **more: Any) -> None:
        """Have the next call about this order go wrong, or others."""
        await set_faults(self.world, fault(operation, what, about=self.order, **more))

    async def hold(self, hold: Hold, **more: Any) -> None:
        """Refuse an operation to this run, so that it stands still before the next step."""
        operation, _ = hold
        self._held.add(hold)
        await self.fault(operation, "fail_before", **{"call": "every", **more})

    async def release(self, hold: Hold) -> None:
        """Let the run go on. All other faults of the operation are over with it."""
        operation, _ = hold
        self._held.discard(hold)
        which = {"operation": operation, "about": self.order}
        (await self.world.http.delete("/control/faults", params=which)).raise_for_status()
        await self._hurry()

    async def _hurry(self) -> None:
        """Let time go by until the next try, where a run was held so long that this is far off."""
        found = (await self.run.handle.describe()).raw_description
        pauses = [one.current_retry_interval.ToSeconds() for one in found.pending_activities]
        if (longest := max(pauses, default=0)) > _SOON:
            await self.run.move_on(seconds=longest)

    async def rest(self, happened: Callable[[RunStatus], bool]) -> RunStatus:
        """Wait until something shows, and until the run can do nothing but wait or try again."""
        status = await self.run.until(happened)
        await self.world.until(self._rests, _BETWEEN_LOOKS)
        return status

    async def _rests(self) -> bool:
        found = (await self.run.handle.describe()).raw_description
        held = {activity for _, activity in self._held}
        return not found.HasField("pending_workflow_task") and all(
            one.activity_type.name in held and one.state == _WAITS_FOR_NEXT_TRY and one.attempt > 1
            for one in found.pending_activities
        )

    async def waits(self, round_number: int = 1) -> None:
        """Rest where people must decide, with all mails about that sent."""
        await self.rest(
            lambda s: (
                (s.stage, s.round) == (Stage.AWAITING_APPROVAL, round_number)
                and s.proposal is not None
            )
        )

    async def approve(self, by: str = MARIA) -> None:
        """Approve what is proposed, and see it counted."""
        assert (await self.run.approve(by=by)).what == "approved"

    async def decide(self, by: str = MARIA) -> None:
        """Approve, and rest before the world is looked at again."""
        await self.hold(RECHECK)
        await self.approve(by)
        await self.rest(lambda s: s.stage is Stage.RECHECKING)

    async def pay(self) -> None:
        """Look again and refund, and rest before the refund is read back."""
        await self.hold(READ_BACK)
        await self.release(RECHECK)
        await self.rest(lambda s: s.stage is Stage.VERIFYING)

    async def try_to_pay(self) -> None:
        """Look again and ask for the refund, and rest where a hold keeps its answer away."""
        await self.release(RECHECK)
        await self.rest(lambda s: s.stage is Stage.REFUNDING)

    async def end(self) -> Kept:
        """Hold nothing any more, and wait for the end."""
        for hold in sorted(self._held):
            await self.release(hold)
        await self.run.result()
        return Kept.CLOSED

    async def withdraw(self) -> None:
        """Withdraw the request, and see it answered."""
        withdrawal = self.world.signer.withdrawal(self.run.request)
        await self.run.send(withdrawal, names.SIGNAL_WITHDRAW)

    async def refund_by_hand(self, minor: int) -> None:
        """A colleague refunds a part, or all, in the provider's dashboard."""
        body = {"payment": self.payment, "amount_minor": minor}
        await self.world.control("hand_refund", body)
