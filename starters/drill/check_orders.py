"""The order service: told of each verified refund once, and of nothing else; or people know."""

from collections.abc import Iterator

from domain.models import Outcome
from domain.names import ORDER_PURPOSE, purpose_of
from starters.drill.evidence import Finding
from starters.drill.look import Story, ended_before_the_deploy
from starters.drill.plan import Fault

_NOTE = "orders.note_refund"
_ALERT = "mail.alert.order_not_told"


def untold_orders(story: Story) -> Iterator[Finding]:
    """A refund that was confirmed, and neither the order service nor operations hear of it."""
    status = story.evidence.status
    if status is None or status.outcome is not Outcome.REFUNDED or story.evidence.noted:
        return
    if any(fault.what == "ok_without_effect" for fault in _faults(story)):
        return  # It said that it had noted it.
    if story.evidence.histories and ended_before_the_deploy(story.evidence.histories[-1]):
        return
    if not story.mails(_ALERT):
        yield Finding("silent", "refunded, and neither order service nor operations were told")


def wrong_orders(story: Story) -> Iterator[Finding]:
    """The order service has more than one refund of the request, or one that is not so."""
    evidence = story.evidence
    if len(evidence.noted) > 1:
        keys = ", ".join(noted.key for noted in evidence.noted)
        yield Finding("duplicate", f"the order service has {len(evidence.noted)} refunds: {keys}")
    scope = f"/refund-order-{story.plan.order_id}/{evidence.request_id}/"
    # One that fails after it was confirmed had succeeded when the order service was told.
    good = ("succeeded", "failed") if story.plan.fails_late else ("succeeded",)
    made = {refund.refund_id: refund for refund in story.ours if refund.status in good}
    for noted in evidence.noted:
        refund = made.get(noted.refund_id)
        if refund is None:
            words = f"the order service was told of {noted.refund_id}, which has not succeeded"
            yield Finding("wrong", words)
        elif refund.amount_minor != noted.amount_minor:
            words = f"the order service has {noted.amount_minor} of {noted.refund_id}"
            yield Finding("wrong", f"{words}, the provider {refund.amount_minor}")
        if scope not in noted.key or purpose_of(noted.key) != ORDER_PURPOSE:
            yield Finding("wrong", f"the order service has a refund under {noted.key!r}")


def _faults(story: Story) -> list[Fault]:
    return [fault for fault in story.plan.faults if fault.operation == _NOTE]
