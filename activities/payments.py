"""The payment provider, through its official SDK: read a payment, make a refund once, read it back.

Stripe forgets an idempotency key after 24 hours, so the key alone does not keep a refund from
happening twice: every attempt first looks for a refund of this request by its metadata.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Self, TypeVar

import stripe
from temporalio import activity

from activities.clock import Clock, system_clock
from activities.interfaces import (
    AttemptState,
    PaymentActivities,
    RefundAttempt,
    RefundOrder,
    RefundQuery,
    RefundReading,
)
from activities.payment_errors import outside_error
from activities.payment_wire import (
    WirePayment,
    WireRefund,
    WireRefundPage,
    WireRow,
    WireRowPage,
    provider_amount,
    read_wire,
)
from activities.watch import NoWatch, Watch
from domain.errors import BadAnswer, OutsideError, Refused, Unreachable
from domain.models import Payment, Refund
from domain.moments import Moment
from domain.names import METADATA_KEY, METADATA_ORDER, METADATA_PROPOSAL, purpose_of

if TYPE_CHECKING:
    from stripe.params import RefundCreateParams, RefundListParams

# For one request. A refund may take its bank a while.
REQUEST_SECONDS = 20.0
# For all requests of one reading, and of one refund. A case may take two readings within its
# start-to-close time of 30 s, a refund has 60 s.
READ_SECONDS = 12.0
REFUND_SECONDS = 50.0
# For the pages of one reading of a sweep, 2,500 refunds.
SWEEP_SECONDS = 60.0
SWEEP_PAGES = 25
# The provider's largest page.
PAGE = 100
# Facts older than this allow nothing: what they say may have changed meanwhile.
FACTS_FRESH = timedelta(minutes=5)

_VERIFICATION = "verification"

AnyPage = TypeVar("AnyPage", WireRefundPage, WireRowPage)


@dataclass(frozen=True)
class Undone:
    """A part of the provider's refunds, with those of ours that failed or were canceled."""

    undone: tuple[tuple[Refund, str], ...]
    """Each with the provider's word for the reason, which may be empty."""
    looked_at: int
    next_after: str
    """After which refund to go on; empty where there are no more."""


class StripePayments(PaymentActivities):
    """Payments at Stripe, or at whatever speaks its API at `base_url`."""

    def __init__(
        self,
        api_key: str,
        base_url: str | None = None,
        clock: Clock = system_clock,
        watch: Watch | None = None,
    ) -> None:
        """Open no connection yet.

        Args:
            api_key: Shown to nobody but the provider.
            base_url: Where the API is; None for Stripe itself.
            clock: By which the age of facts is measured.
            watch: Is told of each refund and of each verification.
        """
        # It would write a file below the home folder and send timings of our requests.
        stripe.enable_telemetry = False
        self._transport = stripe.HTTPXClient(timeout=REQUEST_SECONDS)
        self._stripe = stripe.StripeClient(
            api_key,
            base_addresses={"api": base_url} if base_url else None,
            http_client=self._transport,
            # Temporal retries; a second retry loop below it would only hide attempts.
            max_network_retries=0,
        )
        self._clock = clock
        self._watch = watch or NoWatch()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._transport.close_async()  # type: ignore[no-untyped-call] # the SDK has no types there

    async def read_payment(self, payment: str) -> Payment | None:
        """A payment with all its refunds; None where the provider does not know it.

        Raises:
            OutsideError: the provider cannot be read.
        """
        async with _provider(f"payment {payment}", READ_SECONDS):
            return await self._read_payment(payment)

    @activity.defn
    async def read_refund(self, query: RefundQuery) -> RefundReading:
        """Read one refund back from the provider."""
        await self._watch.at(_VERIFICATION, Moment.BEFORE)
        reading = await self._read_refund(query)
        await self._watch.at(_VERIFICATION, Moment.DONE)
        return reading

    @activity.defn
    async def make_refund(self, order: RefundOrder) -> RefundAttempt:
        """Look for our refund, adopt an exact match, else make it under the saved key.

        Raises:
            OutsideError: it is not known what happened, or not the time for it: come again with the
                same order.
        """
        async with _provider(f"refund for order {order.order_id}", REFUND_SECONDS):
            result = await self._attempt(order)
        number = activity.info().attempt if activity.in_activity() else 1
        return result.model_copy(update={"attempt": number})

    async def list_undone(self, since: datetime, after: str) -> Undone:
        """Look at some pages of all refunds made since then, newest first.

        Refunds of others may look in any way; one of ours that cannot be read is an error.

        Raises:
            OutsideError: the provider cannot be read.
        """
        what = "the recent refunds"
        params: RefundListParams = {"created": {"gte": int(since.timestamp())}, "limit": PAGE}
        if after:
            params["starting_after"] = after
        rows: list[WireRow] = []
        more, pages = True, 0
        async with _provider(what, SWEEP_SECONDS):
            while more and pages < SWEEP_PAGES:
                page = await self._read_page(what, params, WireRowPage)
                rows += page.data
                more, pages = page.has_more, pages + 1
        undone = tuple(row.read(what) for row in rows if row.is_undone and row.is_ours)
        return Undone(undone, len(rows), rows[-1].id if more else "")

    async def _read_refund(self, query: RefundQuery) -> RefundReading:
        what = f"refund {query.refund_id}"
        async with _provider(what, READ_SECONDS):
            try:
                answer = await self._stripe.v1.refunds.retrieve_async(query.refund_id)
            except stripe.InvalidRequestError as error:
                if _is_missing(error):
                    return RefundReading(refund=None)
                raise
            return RefundReading(refund=read_wire(what, answer, WireRefund).to_domain())

    async def _attempt(self, order: RefundOrder) -> RefundAttempt:
        payment = await self._read_payment(order.payment)
        found = _find_ours(order, payment)
        if found is not None:
            return found
        if self._clock() - order.checked_at > FACTS_FRESH:
            return RefundAttempt(
                state=AttemptState.STALE, detail="the facts are older than 5 minutes"
            )
        return _reason_to_refuse(order, payment) or await self._create(order)

    async def _create(self, order: RefundOrder) -> RefundAttempt:
        amount = provider_amount(order.amount)
        if amount is None:
            return _refused("amount_not_expressible", f"the provider cannot pay {order.amount}")
        params: RefundCreateParams = {
            "payment_intent": order.payment,
            "amount": amount,
            "metadata": {
                METADATA_KEY: order.key,
                METADATA_ORDER: order.order_id,
                METADATA_PROPOSAL: order.proposal_id,
            },
        }
        effect = purpose_of(order.key)
        await self._watch.at(effect, Moment.BEFORE)
        try:
            answer = await self._stripe.v1.refunds.create_async(
                params, {"idempotency_key": order.key}
            )
        except stripe.IdempotencyError as error:
            # Somebody used our key for another refund: not a no to this one, but for a person.
            detail = error.user_message or "the key was used with other parameters"
            return RefundAttempt(
                state=AttemptState.CONTRADICTORY, code="idempotency_error", detail=detail[:300]
            )
        except stripe.StripeError as error:
            known = outside_error("the refund", error)
            if isinstance(known, Refused):
                return _refused(known.code, str(known))
            raise known from None
        await self._watch.at(effect, Moment.DONE)
        made = read_wire("the refund", answer, WireRefund).to_domain()
        return _judge(order, [made], AttemptState.MADE)

    async def _read_payment(self, payment: str) -> Payment | None:
        what = f"payment {payment}"
        try:
            # The list first: what comes in between then shows in the payment's own sum.
            refunds = await self._list_refunds(payment)
            answer = await self._stripe.v1.payment_intents.retrieve_async(
                payment, {"expand": ["latest_charge"]}
            )
        except stripe.InvalidRequestError as error:
            if _is_missing(error):
                return None
            raise
        return read_wire(what, answer, WirePayment).to_domain(refunds)

    async def _list_refunds(self, payment: str) -> tuple[Refund, ...]:
        """Every refund on a payment, over all pages, newest first."""
        what = f"the refunds of {payment}"
        params: RefundListParams = {"payment_intent": payment, "limit": PAGE}
        refunds: list[Refund] = []
        while True:
            page = await self._read_page(what, params, WireRefundPage)
            refunds += [refund.to_domain() for refund in page.data]
            if not page.has_more:
                return tuple(refunds)

    async def _read_page(
        self, what: str, params: "RefundListParams", kind: type[AnyPage]
    ) -> AnyPage:
        """One page of refunds; moves the parameters on to the next one."""
        answer = await self._stripe.v1.refunds.list_async(params)
        page = read_wire(what, answer, kind)
        if page.data:
            params["starting_after"] = page.data[-1].id
        elif page.has_more:
            raise BadAnswer(f"{what}: an empty page, and more to follow")
        return page


def _find_ours(order: RefundOrder, payment: Payment | None) -> RefundAttempt | None:
    """What an earlier attempt, or an earlier run of this request, has made in any round."""
    refunds = payment.refunds if payment is not None else ()
    ours = [
        refund
        for refund in refunds
        if refund.key is not None and refund.key.startswith(order.scope)
    ]
    return _judge(order, ours, AttemptState.FOUND) if ours else None


def _judge(order: RefundOrder, ours: list[Refund], fits: AttemptState) -> RefundAttempt:
    """Adopt the one refund that is exactly what was ordered; anything else is for a person."""
    refund = ours[0]
    exact = refund.amount == order.amount and refund.payment == order.payment
    if len(ours) == 1 and exact:
        return RefundAttempt(state=fits, refund=refund)
    listed = ", ".join(f"{other.id} of {other.amount}" for other in ours)
    return RefundAttempt(
        state=AttemptState.CONTRADICTORY,
        refund=refund,
        code="other_refund_of_ours",
        detail=f"{order.amount} was ordered, and the provider has {listed}",
    )


def _reason_to_refuse(order: RefundOrder, payment: Payment | None) -> RefundAttempt | None:
    """What the facts of this moment forbid, whatever was true when the refund was approved."""
    if payment is None:
        return _refused("payment_unknown", f"the provider does not know {order.payment}")
    if payment.disputed:
        return _refused("charge_disputed", f"{payment.id} is in dispute")
    if not payment.all_in(order.amount.currency):
        return _refused("currency_mismatch", f"{payment.id} is not all in {order.amount.currency}")
    if payment.left.amount_minor == 0:
        return _refused("nothing_left", f"nothing of {payment.captured} is left")
    if order.amount.amount_minor > payment.left.amount_minor:
        return _refused("amount_above_left", f"{payment.left} is left, less than {order.amount}")
    newer = [r.id for r in payment.refunds if r.takes_money and r.id not in order.known_refunds]
    if newer:
        # In the very race: somebody refunded since the re-check. What is left is judged anew.
        return _refused("payment_changed", f"newer refunds: {', '.join(newer[:5])}")
    return None


def _refused(code: str, detail: str) -> RefundAttempt:
    return RefundAttempt(state=AttemptState.REFUSED, code=code, detail=detail)


def _is_missing(error: stripe.InvalidRequestError) -> bool:
    return error.http_status == 404 and error.code == "resource_missing"


@asynccontextmanager
async def _provider(what: str, seconds: float) -> AsyncIterator[None]:
    """Bound the time of a few requests, and turn the SDK's errors into ours."""
    try:
        async with asyncio.timeout(seconds):
            yield
    except OutsideError:
        raise
    except stripe.StripeError as error:
        raise outside_error(what, error) from None
    except TimeoutError:
        raise Unreachable(f"{what}: no answer within {seconds:.0f} s") from None
