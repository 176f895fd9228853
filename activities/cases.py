"""The facts of a request: order, payment, policy, people and their rights, read at one moment."""

import asyncio

from temporalio import activity

from activities.clock import Clock, system_clock
from activities.decisions import contact, refuse_request, standing_of
from activities.interfaces import CaseActivities, CaseQuery
from activities.ledger import Ledger
from activities.orders import Orders
from activities.payments import StripePayments
from activities.staff import People, StaffDirectory
from activities.watch import NoWatch, Watch
from domain.approvals import Standing
from domain.case import Case
from domain.models import Approver, Order, Outcome, Payment, Role
from domain.moments import Moment
from domain.names import idempotency_key, request_scope
from domain.outcomes import FINAL_FOR_THE_CUSTOMER
from domain.people import same_person
from domain.request import RefundRequest


class Cases(CaseActivities):
    """Puts a case together from the systems that know its parts."""

    def __init__(
        self,
        orders: Orders,
        payments: StripePayments,
        staff: StaffDirectory,
        ledger: Ledger,
        clock: Clock = system_clock,
        watch: Watch | None = None,
    ) -> None:
        """Read from these systems, and tell by this clock when it was read.

        The watch is told of each reading.
        """
        self._ledger = ledger
        self._orders = orders
        self._payments = payments
        self._staff = staff
        self._clock = clock
        self._watch = watch or NoWatch()

    @activity.defn
    async def read_case(self, query: CaseQuery) -> Case:
        """Read order, payment with all its refunds, policy and rights, as they are now.

        Raises:
            OutsideError: one of the systems cannot be read. A part of the facts allows nothing.
        """
        effect = "facts" if query.proposal is None else "recheck"
        await self._watch.at(effect, Moment.BEFORE)
        # Before the first read: facts are as old as the oldest of them.
        read_at = self._clock()
        order, policy, people = await asyncio.gather(
            self._orders.read_order(query.request.order_id),
            self._orders.read_policy(),
            self._staff.read_people(),
        )
        requester = people.find(query.request.requester)
        # On a re-check the request was taken up long ago, and its key may have run out since.
        arrived = read_at if query.proposal is None else None
        case = Case(
            order=order,
            payment=await self._read_payment(query, order),
            policy=policy,
            requester=contact(requester) if requester is not None else None,
            requester_refusal=refuse_request(query.request, requester, arrived),
            approvers=_people_of(Role.MANAGER, people, query, order),
            directors=_people_of(Role.FINANCE_DIRECTOR, people, query, order),
            standings=_standings(query, people, order),
            told=await self._read_told(query.request),
            read_at=read_at,
        )
        await self._watch.at(effect, Moment.DONE)
        return case

    async def _read_told(self, request: RefundRequest) -> tuple[Outcome, ...]:
        """The final ends of which the ledger has a mail to the customer under this request.

        A run that was started again or reset after its end must not undo it: an approval that had
        come too late would count there.
        """
        scope = request_scope(request.environment, request.order_id, request.request_id)
        mails = {
            idempotency_key(scope, f"mail.{outcome.value}"): outcome
            for outcome in FINAL_FOR_THE_CUSTOMER
        }
        found = await self._ledger.look_up(mails)
        return tuple(outcome for key, outcome in mails.items() if key in found)

    async def _read_payment(self, query: CaseQuery, order: Order | None) -> Payment | None:
        """The order's payment; the proposal's own where that has a refund of this request.

        An order that was paid anew meanwhile must not hide the refund that we have made.
        """
        proposal = query.proposal
        if proposal is None and query.request.resumes is not None:
            proposal = query.request.resumes.proposal
        current = order.payment if order is not None else None
        if proposal is not None and proposal.payment != current:
            proposed = await self._payments.read_payment(proposal.payment)
            if proposed is not None and _has_ours(query, proposed):
                return proposed
        return await self._payments.read_payment(current) if current is not None else None


def _has_ours(query: CaseQuery, payment: Payment) -> bool:
    request = query.request
    scope = request_scope(request.environment, request.order_id, request.request_id)
    return any(r.key is not None and r.key.startswith(scope) for r in payment.refunds)


def _people_of(
    role: Role, people: People, query: CaseQuery, order: Order | None
) -> tuple[Approver, ...]:
    """Everybody with this role who is neither requester nor customer."""
    involved = [query.request.requester, *([order.customer.email] if order is not None else [])]
    return tuple(
        Approver(**contact(person).model_dump(), limits=person.limits)
        for person in people.people
        if person.active
        and role in person.roles
        and not any(same_person(person.address, other) for other in involved)
    )


def _standings(query: CaseQuery, people: People, order: Order | None) -> tuple[Standing, ...]:
    if query.proposal is None:
        return ()
    customer = order.customer.email if order is not None else ""
    return tuple(
        standing_of(token, query.proposal, people, query.request.requester, customer)
        for token in query.approvals
    )
