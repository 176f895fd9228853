"""Who may ask, who may decide (promise P2). Pure functions over the staff directory's words."""

import unicodedata

from domain.models import APPROVER_ROLES, Person
from domain.money import Money
from domain.request import Proposal
from domain.statements import Verdict
from domain.trail import Refusal


def same_person(one: str, other: str) -> bool:
    """Whether two addresses reach one mailbox: case, spaces and a `+tag` make no other person.

    bcgov/sbc-pay#2248: a requester approved their own request by spelling the address otherwise.
    """
    return _mailbox(one) == _mailbox(other)


def _mailbox(address: str) -> str:
    plain = unicodedata.normalize("NFKC", "".join(address.split())).casefold()
    local, _, host = plain.rpartition("@")
    return f"{local.partition('+')[0]}@{host}"


def may_request(person: Person | None) -> Refusal | None:
    """Why this person may not hand in a refund; None where they may."""
    if person is None:
        return Refusal.UNKNOWN_PERSON
    return None if person.active else Refusal.NOT_ACTIVE


def may_decide(
    person: Person | None, verdict: Verdict, proposal: Proposal, requester: str, customer: str
) -> Refusal | None:
    """Why this person may not decide on this proposal today; None where they may.

    The limit covers the amount *and* the earlier refunds on the order, else a large refund could
    be approved in slices; what it must reach where two approve together, the proposal says. It
    binds approvals alone: saying no takes no limit.
    """
    if person is None:
        return Refusal.UNKNOWN_PERSON
    if not person.active:
        return Refusal.NOT_ACTIVE
    if same_person(person.address, requester):
        return Refusal.IS_REQUESTER
    if same_person(person.address, customer):
        return Refusal.IS_CUSTOMER
    if not any(role in person.roles for role in APPROVER_ROLES):
        return Refusal.NO_RIGHT
    if verdict is Verdict.APPROVE:
        return None if covers(person.limits, proposal.limit_needed) else Refusal.OVER_LIMIT
    return None


def covers(limits: tuple[Money, ...], amount: Money) -> bool:
    """Whether these limits, one per currency, reach for an amount."""
    return any(
        limit.currency == amount.currency and limit.amount_minor >= amount.amount_minor
        for limit in limits
    )
