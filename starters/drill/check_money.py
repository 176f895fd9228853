"""Money: never twice, never wrong, never without authority (promises P1 and P2)."""

from collections import Counter
from collections.abc import Iterator

from domain.models import Outcome
from domain.names import read_refund_key, request_scope
from starters.drill.evidence import Finding, Refund
from starters.drill.expect import Offer
from starters.drill.look import UNDONE, Story
from starters.drill.rules import REQUESTER, are_enough, people_needed

_SAYS_NO_REFUND = (
    Outcome.DECLINED,
    Outcome.REJECTED,
    Outcome.EXPIRED,
    Outcome.WITHDRAWN,
    Outcome.ALREADY_REFUNDED,
)


def duplicate_refunds(story: Story) -> Iterator[Finding]:
    """More than one refund of ours: for one proposal, or for the request at all."""
    for proposal, count in Counter(refund.proposal_id for refund in story.ours).items():
        if count > 1:
            yield Finding("duplicate", f"{count} refunds for proposal {proposal}")
    if len(story.ours) > 1:
        yield Finding("duplicate", f"{len(story.ours)} refunds of ours: {_listed(story.ours)}")


def wrong_refunds(story: Story) -> Iterator[Finding]:
    """Amount, payee, order, sum and authority of what is in the provider's books."""
    evidence, plan = story.evidence, story.plan
    if (evidence.captured_minor, evidence.currency) != (plan.total_minor, plan.currency):
        paid = f"{evidence.captured_minor} {evidence.currency}"
        yield _wrong(f"{paid} was captured, {plan.total_minor} {plan.currency} was the order's")
    held = sum(refund.amount_minor for refund in evidence.refunds if refund.status not in UNDONE)
    if held > evidence.captured_minor:
        yield _wrong(f"{held} of {evidence.captured_minor} captured is refunded")
    if evidence.foreign_refunds:
        yield _wrong(f"refunds on other payments: {_listed(evidence.foreign_refunds)}")
    for refund in story.ours:
        yield from _wrong_mark(story, refund)
        offers = story.expected.offers_of(refund.amount_minor)
        if not offers:
            allowed = sorted(offer.amount_minor for offer in story.expected.offers)
            yield _wrong(f"{refund.amount_minor} was refunded; the rules allow {allowed or 'none'}")
        elif not any(_has_authority(story, refund, offer) for offer in offers):
            yield _wrong(f"no authority for {refund.amount_minor}: {_said(story, refund)}")


def wrong_outcome(story: Story) -> Iterator[Finding]:
    """The run's own word, held against the rules and the books."""
    status, expected = story.evidence.status, story.expected
    if status is None or status.outcome is None:
        return
    outcome = status.outcome
    if outcome not in expected.outcomes:
        allowed = ", ".join(sorted(expected.outcomes))
        yield _wrong(f"{outcome.value} ({status.reason}); the rules allow {allowed}")
    if outcome in _SAYS_NO_REFUND and story.ours:
        yield _wrong(f"{outcome.value}, and the books have {_listed(story.ours)}")
    if outcome is Outcome.ALREADY_REFUNDED and not any(
        refund.status == "succeeded" for refund in story.by_hand
    ):
        yield _wrong("already_refunded, and nobody else has refunded anything")
    if outcome is Outcome.REFUND_FAILED and [r.status in UNDONE for r in story.ours] != [True]:
        yield _wrong(f"refund_failed, and the books have {_listed(story.ours) or 'no refund'}")
    if outcome is Outcome.REFUNDED:
        yield from _not_refunded(story)
    yield from _other_than_the_books(story)


def _not_refunded(story: Story) -> Iterator[Finding]:
    """`refunded` means exactly one refund of ours, and that it succeeded."""
    now = "failed" if story.plan.fails_late else "succeeded"
    if [refund.status for refund in story.ours] != [now]:
        yield _wrong(f"refunded, and the books have {_listed(story.ours) or 'no refund of ours'}")


def _other_than_the_books(story: Story) -> Iterator[Finding]:
    status = story.evidence.status
    if status is None or status.refund is None:
        if story.ours and status is not None and status.outcome is Outcome.REFUNDED:
            yield _wrong("refunded, and the run names no refund")
        return
    said = status.refund
    found = [refund for refund in story.evidence.refunds if refund.refund_id == said.id]
    if not found:
        if Outcome.NEEDS_HUMAN is not status.outcome:
            yield _wrong(f"the run names refund {said.id}, which the books do not have")
        return
    in_books = (found[0].amount_minor, story.evidence.currency)
    if (said.amount.amount_minor, said.amount.currency) != in_books:
        yield _wrong(f"the run says {said.amount} of {said.id}, the books {in_books[0]}")
    settled = status.outcome in (Outcome.REFUNDED, Outcome.REFUND_FAILED)
    if settled and said.status != found[0].status and not story.plan.fails_late:
        yield _wrong(f"the run says {said.id} {said.status}, the books {found[0].status}")


def _wrong_mark(story: Story, refund: Refund) -> Iterator[Finding]:
    """Whose refund it is, as its key and its metadata say."""
    order_id, request_id = story.plan.order_id, story.evidence.request_id
    key = read_refund_key(refund.key)
    if key is None or key.scope != request_scope(key.environment, order_id, request_id):
        yield _wrong(f"{refund.refund_id} has the key {refund.key!r}, which is not this request's")
    if refund.order_id != order_id:
        yield _wrong(f"{refund.refund_id} names order {refund.order_id!r}")


def _has_authority(story: Story, refund: Refund, offer: Offer) -> bool:
    currency = story.plan.currency
    needed = people_needed(offer.total_minor, currency)
    if any(mail.purpose.startswith("mail.approval_request.") for mail in story.evidence.mails):
        # Somebody was asked, for a reason of the run's: then somebody must have answered.
        needed = max(needed, 1)
    return are_enough(_approved_by(story, refund), offer.total_minor, currency, needed)


def _approved_by(story: Story, refund: Refund) -> set[str]:
    """Who has approved exactly this proposal and had the right to when the money moved."""
    return {
        sent.by
        for sent in story.evidence.sent
        if (sent.kind, sent.verdict) == ("decision", "approve")
        and sent.proposal_id == refund.proposal_id
        and sent.by != REQUESTER
        and sent.message_id not in story.evidence.voided
    }


def _said(story: Story, refund: Refund) -> str:
    people = ", ".join(sorted(_approved_by(story, refund)))
    return f"approvals of proposal {refund.proposal_id} by {people or 'nobody'}"


def _listed(refunds: list[Refund]) -> str:
    return ", ".join(f"{r.refund_id} of {r.amount_minor} {r.status}" for r in refunds)


def _wrong(what: str) -> Finding:
    return Finding("wrong", what)
