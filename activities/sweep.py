"""What a sweep reads: refunds of ours that failed, what was said of each, and whom to write to."""

import asyncio
from datetime import timedelta

from temporalio import activity
from temporalio.service import RPCError, RPCStatusCode

from activities.interfaces import (
    Addressees,
    AddresseesQuery,
    SweepActivities,
    SweepPage,
    SweepQuery,
)
from activities.ledger import Ledger
from activities.orders import Orders
from activities.payments import StripePayments
from domain.errors import Unreachable
from domain.models import Contact
from domain.names import (
    MEMO_REQUEST_ID,
    RefundKey,
    idempotency_key,
    purpose_of,
    read_refund_key,
    workflow_id,
)
from domain.sweep import WATCHED, Duty, FailedRefund, duty

# A result goes into the history. The next reading goes on where this one stopped.
FOUND_LIMIT = 20
# Temporal answers in milliseconds, or the whole reading is tried again.
_DESCRIBE_SECONDS = 5.0
_REASON_LIMIT = 100


class Sweep(SweepActivities):
    """Joins what the provider says with what the ledger knows to have been said."""

    def __init__(self, payments: StripePayments, ledger: Ledger, orders: Orders) -> None:
        """Read from these; whether a run is open, the worker's own Temporal tells."""
        self._payments = payments
        self._ledger = ledger
        self._orders = orders

    @activity.defn
    async def find_failed_refunds(self, query: SweepQuery) -> SweepPage:
        """Read some pages of the provider's refunds, newest first, and keep what needs telling.

        Raises:
            OutsideError: provider, ledger or Temporal cannot be read; nothing was told.
        """
        listed = await self._payments.list_undone(query.since, query.after)
        found: list[FailedRefund] = []
        for refund, reason in listed.undone:
            key = read_refund_key(refund.key or "")
            # One account may serve several environments: each sweeps its own.
            if key is None or key.environment != query.environment:
                continue
            left = await self._left_to_do(key)
            if left is Duty.NOTHING:
                continue
            found.append(
                FailedRefund(
                    refund=refund,
                    failure_reason=reason[:_REASON_LIMIT],
                    order_id=key.order_id,
                    request_id=key.request_id,
                    duty=left,
                )
            )
            if len(found) == FOUND_LIMIT:
                return SweepPage(
                    failed=tuple(found), looked_at=listed.looked_at, next_after=refund.id
                )
        return SweepPage(
            failed=tuple(found), looked_at=listed.looked_at, next_after=listed.next_after
        )

    @activity.defn
    async def read_addressees(self, query: AddresseesQuery) -> Addressees:
        """Read whom to write to about an order.

        Raises:
            OutsideError: order service or policy cannot be read.
        """
        order, policy = await asyncio.gather(
            self._orders.read_order(query.order_id), self._orders.read_policy()
        )
        return Addressees(
            customer=order.customer if order is not None else None,
            operations=Contact(name="Refund operations", address=policy.operations),
        )

    async def _left_to_do(self, key: RefundKey) -> Duty:
        if await self._duty(key) is Duty.NOTHING or await _is_open(key):
            return Duty.NOTHING
        # Again: the run may have told it and closed since the first look.
        return await self._duty(key)

    async def _duty(self, key: RefundKey) -> Duty:
        keys = [idempotency_key(key.scope, purpose) for purpose in WATCHED]
        rows = await self._ledger.look_up(keys)
        return duty({purpose_of(row): finished for row, finished in rows.items()})


async def _is_open(key: RefundKey) -> bool:
    """Whether the run of this very request is open: it reads its refund itself, and tells it.

    Raises:
        Unreachable: Temporal did not say.
    """
    handle = activity.client().get_workflow_handle(workflow_id(key.order_id))
    try:
        run = await handle.describe(rpc_timeout=timedelta(seconds=_DESCRIBE_SECONDS))
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            return False
        raise Unreachable(f"the run of order {key.order_id}: {error.status.name}") from None
    if run.close_time is not None:
        return False
    # A run that was started without the memo may be this request's, and is believed to be.
    request_id = (await run.memo()).get(MEMO_REQUEST_ID, key.request_id)
    return bool(request_id == key.request_id)
