"""Which approvals a proposal needs, and which of those given still count (promise P2).

One manager up to the end of their tier; above it two different people, one of them a finance
director whose own limit covers the total. The other one's limit must reach the end of the
one-manager tier: who may not approve that much alone is no second pair of eyes for more.
"""

from collections.abc import Sequence

from domain.models import Contact, Frozen, Person, Role
from domain.people import covers, same_person
from domain.request import Proposal
from domain.trail import Refusal


class Approval(Frozen):
    """A decision to approve that counts, with its proof for the re-check."""

    person: Contact
    token: str
    director: bool = False
    """Whether it can be the finance director's that a proposal over the one-manager tier needs."""


class Standing(Frozen):
    """What an approval that counted before is worth now."""

    refusal: Refusal | None = None
    director: bool = False


def is_director_for(person: Person, proposal: Proposal) -> bool:
    """Whether this person's approval can be the finance director's."""
    return Role.FINANCE_DIRECTOR in person.roles and covers(person.limits, proposal.total)


def is_complete(proposal: Proposal, approvals: Sequence[Approval | Standing]) -> bool:
    """Whether these approvals, all of them valid and of different people, are enough."""
    if len(approvals) < proposal.approvals_needed:
        return False
    return not proposal.director_needed or any(approval.director for approval in approvals)


def stand(proposal: Proposal, standings: Sequence[Standing]) -> bool:
    """Whether the approvals that were complete before still are."""
    return all(now.refusal is None for now in standings) and (
        not proposal.director_needed or any(now.director for now in standings)
    )


def refuse_beside(
    proposal: Proposal, approvals: Sequence[Approval], person: Contact, *, director: bool
) -> Refusal | None:
    """Why an approval adds nothing to those given; None where it does.

    Args:
        proposal: What is decided on.
        approvals: What counts already.
        person: Who approves now.
        director: Whether theirs can be the finance director's.
    """
    if any(same_person(person.address, other.person.address) for other in approvals):
        return Refusal.ALREADY_APPROVED
    with_this = [*approvals, Approval(person=person, token="", director=director)]
    is_last = len(with_this) == proposal.approvals_needed
    if is_last and not is_complete(proposal, with_this):
        return Refusal.NEEDS_DIRECTOR
    return None


def still_counting(
    proposal: Proposal, approvals: Sequence[Approval], standings: Sequence[Standing]
) -> tuple[Approval, ...]:
    """The approvals that are left where they do not stand any more; others must join them."""
    pairs = list(zip(approvals, standings, strict=True))
    left = [
        approval.model_copy(update={"director": now.director})
        for approval, now in pairs
        if now.refusal is None
    ]
    if len(left) < proposal.approvals_needed or is_complete(proposal, left):
        return tuple(left)
    # All of them may still approve, and nobody is a finance director any more: that place is free.
    return tuple(
        approval.model_copy(update={"director": False})
        for approval, _ in pairs
        if not approval.director
    )


def missing_in_words(proposal: Proposal, approvals: Sequence[Approval]) -> str:
    """Whom a proposal still waits for; empty where it is complete."""
    left = proposal.approvals_needed - len(approvals)
    if left <= 0:
        return ""
    if not proposal.director_needed:
        return "a manager or a finance director"
    if left > 1:
        return "two people, one of them a finance director"
    has_director = any(approval.director for approval in approvals)
    return "one more person" if has_director else "a finance director"
