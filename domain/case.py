"""The facts of a request, read from the outside at one moment."""

from domain.approvals import Approval, Standing
from domain.instants import Instant
from domain.models import Approver, Contact, Frozen, Order, Outcome, Payment, Policy, Refund
from domain.money import Money
from domain.outcomes import Close, Reason
from domain.people import covers, same_person
from domain.request import Proposal
from domain.trail import Refusal


class Ours(Frozen):
    """The refund exists: an earlier attempt, or an earlier run of this request, made it."""

    refund: Refund


class Case(Frozen):
    """What order service, payment provider, staff directory and policy say right now."""

    order: Order | None
    """None: the order service has no such order."""
    payment: Payment | None
    """None: there is no order, or the provider has no such payment."""
    policy: Policy
    requester: Contact | None = None
    requester_refusal: Refusal | None = None
    """Why the signed request does not count; None where it does."""
    approvers: tuple[Approver, ...] = ()
    """The managers, but for requester and customer."""
    directors: tuple[Approver, ...] = ()
    """The next level: the finance directors."""
    standings: tuple[Standing, ...] = ()
    """On a re-check: what each approval that counted before is worth now, in the order asked."""
    told: tuple[Outcome, ...] = ()
    """How this very request has ended before, as far as its customer was told of a final end."""
    read_at: Instant
    """When the first of these facts was read, by the clock of the reading worker."""

    def to_ask(
        self, proposal: Proposal, approvals: tuple[Approval, ...] = ()
    ) -> tuple[Contact, ...]:
        """Whose approval would help beside those given; nobody's where it cannot be complete.

        One approval: the managers, or the directors where no manager's limit reaches. Two: both,
        until the one that is missing is a director's.
        """
        directors = self.next_level(proposal)
        managers = _able(self.approvers, proposal.limit_needed)
        if not proposal.director_needed:
            return managers or directors
        both = tuple(dict.fromkeys((*managers, *directors)))
        if not directors or len(both) < proposal.approvals_needed:
            return ()
        given = [approval.person.address for approval in approvals]
        only_director = bool(given) and not any(approval.director for approval in approvals)
        return tuple(
            person
            for person in (directors if only_director else both)
            if not any(same_person(person.address, address) for address in given)
        )

    def next_level(self, proposal: Proposal) -> tuple[Contact, ...]:
        """The directors who can approve all of this, asked too when nobody decides for long."""
        return _able(self.directors, proposal.total)

    def find_ours(self, scope: str, proposal: Proposal | None = None) -> Ours | Close | None:
        """The refund that this very request has made, in any round, if there is one.

        Only an exact match is adopted: our mark on another amount or payment is a contradiction
        that a person must look at.
        """
        refunds = self.payment.refunds if self.payment is not None else ()
        made = [
            refund for refund in refunds if refund.key is not None and refund.key.startswith(scope)
        ]
        if not made:
            return None
        refund = made[0]
        if len(made) == 1 and (
            proposal is None
            or (refund.amount == proposal.amount and refund.payment == proposal.payment)
        ):
            return Ours(refund=refund)
        listed = ", ".join(f"{other.id} of {other.amount}" for other in made)
        words = f"The provider has refunds under this request that do not fit it: {listed}."
        return Close(
            outcome=Outcome.NEEDS_HUMAN,
            reason=Reason.REFUND_CONTRADICTORY,
            explanation=words,
        )


def _able(people: tuple[Approver, ...], amount: Money) -> tuple[Contact, ...]:
    able = (person for person in people if covers(person.limits, amount))
    return tuple(Contact.model_validate(person.model_dump()) for person in able)
