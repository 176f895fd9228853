"""What is asked for, what is proposed, and what one run hands to the next."""

from typing import Annotated

from pydantic import AfterValidator, Field, StringConstraints

from domain.models import Address, Frozen, Identifier
from domain.money import Money

# A letter longer than this is no letter; the history and the model's prompt must hold it.
MESSAGE_LIMIT = 20_000
# Three rounds in each of a thousand retries, and more: a higher one is made up.
_LAST_ROUND = 10_000


class Proposal(Frozen):
    """Exactly what would be paid, and what an approval binds itself to."""

    proposal_id: str
    round: int = Field(ge=1)
    order_id: Identifier
    payment: str
    amount: Money
    taken_before: Money
    """Refunded or pending on the payment when this was proposed, but for this very request."""
    known_refunds: tuple[str, ...] = ()
    policy_version: str
    approvals_needed: int
    """How many different people must approve: none, one, or two."""
    director_needed: bool = False
    """Whether one of them must be a finance director whose limit covers the total."""
    each_up_to: Money | None = None
    """Where two approve together, what the limit of each must reach; None: the total."""
    why_a_person: tuple[str, ...] = ()
    """Why the policy wants a person; empty where none is needed."""

    @property
    def total(self) -> Money:
        """This amount plus earlier refunds on the order: what tiers and limits look at."""
        return self.amount.with_minor(self.amount.amount_minor + self.taken_before.amount_minor)

    @property
    def limit_needed(self) -> Money:
        """What the limit of everybody who approves this must reach."""
        return self.each_up_to or self.total


def _no_made_up_round(proposal: Proposal) -> Proposal:
    if proposal.round > _LAST_ROUND:
        raise ValueError(f"no request has come to round {str(proposal.round)[:12]}")
    return proposal


class Resumed(Frozen):
    """What the next run of a request takes over from the last one.

    That needed a person (`refund retry`) or was ended from outside (`refund start` again).

    Nothing in it gives a right: decisions are judged again, and the proposal is made from the
    facts of now.
    """

    retry: int = Field(ge=0, le=1_000)
    """How often this request was retried, this time included. Part of the keys of mails to staff:
    they are asked and told again, while a customer hears each thing once. 0: it was started again
    after its run had been ended from outside, and staff have the mails of that run."""
    proposal: Annotated[Proposal, AfterValidator(_no_made_up_round)] | None = None
    """The last proposal. Where nothing has changed it is made again, with its id and its key."""
    decisions: Annotated[
        tuple[Annotated[str, StringConstraints(max_length=4_096)], ...], Field(max_length=10)
    ] = ()
    """The signed approvals that counted on that proposal."""


class RefundRequest(Frozen):
    """What starts a run: a customer's letter about an order, handed in by a member of staff."""

    environment: Identifier
    order_id: Identifier
    request_id: Identifier
    message: Annotated[str, StringConstraints(min_length=1, max_length=MESSAGE_LIMIT)]
    amount: Annotated[str, StringConstraints(max_length=40)] | None = None
    """As typed, such as `420.00`; None asks for all that is left of the payment."""
    requester: Address
    statement: Annotated[str, StringConstraints(max_length=4_096)]
    """The requester's signed statement over all of the above (`domain.statements`)."""
    search_attributes: bool = True
    """False where the server does not know them: an upsert would then fail its task for ever."""
    resumes: Resumed | None = None
    """Set where another run of this request was before: by `refund retry` and by `refund start`."""
