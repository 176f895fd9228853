"""The sweep: what was confirmed and failed later is corrected once, and never paid again by itself.

A Schedule starts it every few hours (`starters.schedule`). It remembers nothing: what was said
before is in the ledger, so a sweep may be repeated, reset or started by hand at any time.
"""

import asyncio
from dataclasses import dataclass, field
from datetime import datetime

from temporalio import workflow
from temporalio.common import RawValue
from temporalio.exceptions import ApplicationError

with workflow.unsafe.imports_passed_through():
    from pydantic import ValidationError

    from activities.interfaces import Addressees, AddresseesQuery, SweepQuery
    from domain.mail import MailFacts, MailOrder, MailPurpose, MailReceipt, MailState
    from domain.models import Contact
    from domain.names import (
        SWEEP_WORKFLOW,
        RefundKey,
        idempotency_key,
        sweep_scope,
        workflow_id,
    )
    from domain.sweep import (
        ALERT,
        CORRECTION,
        WINDOW,
        Duty,
        FailedRefund,
        SweepOrder,
        SweepOutcome,
        SweepReport,
    )

from workflows import calls

# Of 2,500 refunds each: fifty thousand in sixty days.
READINGS_LIMIT = 20
# As many as this in one sweep are no accident of single banks: operations should know of the heap.
FAILED_LIMIT = 20
_UNKNOWN = (
    "No open run tells of it and the ledger has no confirmation of it, so no corrective mail goes "
    "to the customer."
)


@dataclass
class _Finding:
    """What the readings have brought so far."""

    outcome: SweepOutcome = SweepOutcome.COMPLETE
    explanation: str = ""
    looked_at: int = 0
    failed: list[FailedRefund] = field(default_factory=list)

    def stop(self, outcome: SweepOutcome, explanation: str) -> None:
        self.outcome, self.explanation = outcome, explanation


# Any error fails the run instead of its workflow task: a sweep that hangs would keep all later ones
# from starting, and the next one does the work of one that failed.
@workflow.defn(name=SWEEP_WORKFLOW, failure_exception_types=[Exception])
class RefundSweep:
    """Finds refunds of one environment that failed after their confirmation, and tells people."""

    @workflow.run
    async def run(self, given: RawValue) -> SweepReport:
        """Look once at all recent refunds. The one input is a `SweepOrder`."""
        environment = _read_order(given).environment
        since = workflow.now() - WINDOW
        finding = await _find(environment, since)
        await asyncio.gather(*(_tell(environment, failed) for failed in finding.failed))
        report = SweepReport(
            outcome=finding.outcome,
            since=since,
            looked_at=finding.looked_at,
            found=tuple(failed.refund.id for failed in finding.failed),
            explanation=finding.explanation,
        )
        workflow.set_current_details(_details(report))
        if report.outcome is not SweepOutcome.COMPLETE:
            await _tell_trouble(environment, report)
        return report


async def _find(environment: str, since: datetime) -> _Finding:
    """Read on until there are no more refunds, within bounds of time and number."""
    finding = _Finding()
    give_up_at = workflow.now() + calls.SWEEP_PATIENCE
    after = ""
    for number in range(1, READINGS_LIMIT + 1):
        page = await calls.find_failed_refunds(
            SweepQuery(environment=environment, since=since, after=after),
            number,
            give_up_at - workflow.now(),
            lambda why: finding.stop(SweepOutcome.UNREADABLE, why),
        )
        if page is None:
            return finding
        finding.looked_at += page.looked_at
        finding.failed += page.failed
        after = page.next_after
        if not after:
            return finding
        if len(finding.failed) >= FAILED_LIMIT:
            words = f"{len(finding.failed)} refunds failed, or more; the next sweep goes on."
            finding.stop(SweepOutcome.TOO_MANY_FAILED, words)
            return finding
        if workflow.now() >= give_up_at:
            words = f"{finding.looked_at} refunds took more than {calls.SWEEP_PATIENCE}."
            finding.stop(SweepOutcome.UNREADABLE, words)
            return finding
    words = f"Only the newest {finding.looked_at} refunds of {WINDOW.days} days were looked at."
    finding.stop(SweepOutcome.TOO_MANY_REFUNDS, words)
    return finding


async def _tell(environment: str, failed: FailedRefund) -> None:
    """One corrective mail to the customer, where one is due, and one alert to operations."""
    people = await calls.read_addressees(
        AddresseesQuery(environment=environment, order_id=failed.order_id), _log
    )
    told = await _correct(environment, failed, people) if failed.duty is Duty.CORRECT else _UNKNOWN
    # The alert goes out also where nobody could say to whom; the adapter knows.
    to = (people.operations,) if people is not None else ()
    facts = _facts(failed, f"{_said(failed)} {told} Nothing is paid again by itself.")
    await _send(_mail(environment, failed, MailPurpose.ALERT, ALERT, to, facts))


async def _correct(environment: str, failed: FailedRefund, people: Addressees | None) -> str:
    """Tell the customer; what operations should know of that, in a sentence."""
    if people is None or people.customer is None:
        why = "order service or policy did not answer" if people is None else "no such order exists"
        return f"The customer believes that it was made and could not be told yet: {why}."
    customer = people.customer
    to = (Contact(name=customer.name, address=customer.email),)
    facts = _facts(failed).model_copy(update={"customer": customer.name, "locale": customer.locale})
    receipt = await _send(_mail(environment, failed, MailPurpose.CORRECTION, CORRECTION, to, facts))
    if receipt is None:
        return "The customer believes that it was made; no mail could be delivered to them yet."
    if receipt.state is MailState.REFUSED:
        return "The customer believes that it was made: the mail to them was refused for good."
    return "The customer had been told that it was made, and has been told now that it was not."


async def _tell_trouble(environment: str, report: SweepReport) -> None:
    """Operations hear of a sweep that is not complete, once a day for each outcome.

    Raises:
        ApplicationError: they could not be told; the failed run is what shows it then.
    """
    word = report.outcome.value
    scope = sweep_scope(environment, f"{workflow.now():%Y-%m-%d}")
    mail = MailOrder(
        environment=environment,
        key=idempotency_key(scope, f"mail.alert.{word}"),
        purpose=MailPurpose.SWEEP_ALERT,
        to=(),
        facts=MailFacts(
            order_id="",
            workflow_id=workflow.info().workflow_id,
            reason=word,
            explanation=report.explanation,
        ),
    )
    receipt = await _send(mail)
    if receipt is None or receipt.state is MailState.REFUSED:
        words = f"{word}: {report.explanation} And operations could not be told."
        raise ApplicationError(words, type="sweep_incomplete", non_retryable=True)


def _facts(failed: FailedRefund, explanation: str = "") -> MailFacts:
    return MailFacts(
        order_id=failed.order_id,
        workflow_id=workflow_id(failed.order_id),
        request_id=failed.request_id,
        amount=failed.refund.amount,
        refund=failed.refund,
        reason="refund_failed_later",
        explanation=explanation,
    )


def _mail(
    environment: str,
    failed: FailedRefund,
    purpose: MailPurpose,
    name: str,
    to: tuple[Contact, ...],
    facts: MailFacts,
) -> MailOrder:
    scope = RefundKey(environment, failed.order_id, failed.request_id).scope
    return MailOrder(
        environment=environment,
        key=idempotency_key(scope, name),
        purpose=purpose,
        to=to,
        facts=facts,
    )


async def _send(mail: MailOrder) -> MailReceipt | None:
    """Send a mail once; None where that is not known: the next sweep tries again."""
    return await calls.send_mail(mail, _log, calls.SWEEP_PATIENCE)


def _log(why: str) -> None:
    workflow.logger.warning("The sweep leaves it to the next one: %s", why)


def _said(failed: FailedRefund) -> str:
    reason = f" ({failed.failure_reason})" if failed.failure_reason else ""
    return f"The provider now says of this refund: {failed.refund.status}{reason}."


def _read_order(given: RawValue) -> SweepOrder:
    try:
        return SweepOrder.model_validate_json(given.payload.data)
    except ValidationError:
        words = 'the input is no order to sweep: it must look like {"environment": "local"}'
        raise ApplicationError(words, type="bad_request", non_retryable=True) from None


def _details(report: SweepReport) -> str:
    how = report.outcome.value.replace("_", " ")
    lines = [
        f"**{how}**: {report.looked_at} refunds since {report.since:%Y-%m-%d}",
        *(f"- `{refund}` failed after its run had ended" for refund in report.found),
    ]
    return "\n".join(lines)
