"""How each Activity is called: time-outs and retries, each with its reason.

A call whose Activity gives up for good comes back as None: an outage is a state that the run deals
with, not an exception that fails it. Start-to-close times are longer than the time-outs of the
clients inside (5 to 40 seconds), so that a client's own answer arrives first.
"""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import TypeVar

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError, ApplicationError, is_cancelled_exception

with workflow.unsafe.imports_passed_through():
    from activities.interfaces import (
        Addressees,
        AddresseesQuery,
        AgentActivities,
        CaseActivities,
        CaseQuery,
        MailActivities,
        OrderActivities,
        OrderNotice,
        OrderReceipt,
        PaymentActivities,
        RefundAttempt,
        RefundOrder,
        RefundQuery,
        RefundReading,
        StatementActivities,
        StatementCheck,
        StatementVerdict,
        SweepActivities,
        SweepPage,
        SweepQuery,
        ToolsQuery,
    )
    from domain.agent import ModelAnswer, ModelRequest, ToolResult
    from domain.case import Case
    from domain.mail import MailOrder, MailReceipt
    from domain.models import Refund

Answer = TypeVar("Answer")
GaveUp = Callable[[str], None]

# Outages of the outside last minutes to hours. Five minutes between attempts keep a refund prompt
# after an outage, and an outage of a day costs 300 billed attempts per call, not the 1,440 of one
# each minute.
PATIENT = RetryPolicy(
    initial_interval=timedelta(seconds=1),
    backoff_coefficient=2.0,
    maximum_interval=timedelta(minutes=5),
)
# Facts at the start: after a day without them a person takes over.
FACTS_PATIENCE = timedelta(hours=24)
# The re-check: a directory that is down means wait, never "allowed" (wso2/product-is#25308).
RECHECK_PATIENCE = timedelta(days=7)
# A decision that cannot be checked for a day is refused as such, and its sender sees it.
VERIFY_PATIENCE = timedelta(hours=24)
# After an hour of not knowing, a person is told; later tries are short, since an attempt on facts
# older than 5 minutes sends nothing.
REFUND_PATIENCE = timedelta(hours=1)
REFUND_PATIENCE_LATER = timedelta(minutes=10)
# One reading of a refund; verification comes again on its own timers.
READING_PATIENCE = timedelta(hours=1)
# A mail may wait for a mail server over a weekend.
MAIL_PATIENCE = timedelta(days=3)
# The order service may have a bad day. The run stays open meanwhile and would keep the order from
# a second request, so it is no longer.
ORDER_PATIENCE = timedelta(hours=24)
# The model's tools: it can go on without them.
TOOLS_PATIENCE = timedelta(minutes=1)

# What a sweep does not get done within these, the next one does: they come every six hours, and a
# sweep that waited longer would stand in its way.
SWEEP_PATIENCE = timedelta(hours=1)

TOOLS_ATTEMPT = timedelta(seconds=10)
READ_ATTEMPT = timedelta(seconds=30)
REFUND_ATTEMPT = timedelta(seconds=60)
MAIL_ATTEMPT = timedelta(seconds=60)
# The pages of one reading, and some looks into ledger and Temporal.
SWEEP_ATTEMPT = timedelta(minutes=2)
# A model takes its time for a long answer.
MODEL_ATTEMPT = timedelta(seconds=90)


async def read_case(
    query: CaseQuery, summary: str, patience: timedelta, gave_up: GaveUp
) -> Case | None:
    """Read all facts; None after the patience: they are not to be had."""
    return await _answer_or_none(
        workflow.execute_activity_method(
            CaseActivities.read_case,
            query,
            start_to_close_timeout=READ_ATTEMPT,
            schedule_to_close_timeout=patience,
            retry_policy=PATIENT,
            summary=summary,
        ),
        gave_up,
    )


async def ask_model(
    request: ModelRequest, summary: str, patience: timedelta, gave_up: GaveUp
) -> ModelAnswer | None:
    """Ask the model once; None after the patience: a person decides without it."""
    return await _answer_or_none(
        workflow.execute_activity_method(
            AgentActivities.ask_model,
            request,
            start_to_close_timeout=MODEL_ATTEMPT,
            schedule_to_close_timeout=patience,
            retry_policy=PATIENT,
            summary=summary,
        ),
        gave_up,
    )


async def use_tools(query: ToolsQuery) -> tuple[ToolResult, ...]:
    """Run the model's read-only tools together; a failure is told to the model.

    A regular Activity: local ones cost the same Action, and without a cache they have failed a
    workflow task (temporalio 1.35, "LA marker handling in invalid state").
    """
    answer = await _answer_or_none(
        workflow.execute_activity_method(
            AgentActivities.use_tools,
            query,
            start_to_close_timeout=TOOLS_ATTEMPT,
            schedule_to_close_timeout=TOOLS_PATIENCE,
            retry_policy=PATIENT,
            summary=f"Tools for the model: {', '.join(call.tool for call in query.calls)}"[:200],
        ),
        lambda why: None,
    )
    if answer is not None:
        return answer.results
    content = "Not available right now."
    return tuple(ToolResult(call_id=call.call_id, content=content) for call in query.calls)


async def verify_statement(
    check: StatementCheck, summary: str, gave_up: GaveUp
) -> StatementVerdict | None:
    """Have a signed statement checked; None after a day: it could not be checked."""
    return await _answer_or_none(
        workflow.execute_activity_method(
            StatementActivities.verify_statement,
            check,
            start_to_close_timeout=READ_ATTEMPT,
            schedule_to_close_timeout=VERIFY_PATIENCE,
            retry_policy=PATIENT,
            summary=summary,
        ),
        gave_up,
    )


async def make_refund(
    order: RefundOrder, patience: timedelta, gave_up: GaveUp
) -> RefundAttempt | None:
    """None means that it is *not known* whether the refund was made."""
    return await _answer_or_none(
        workflow.execute_activity_method(
            PaymentActivities.make_refund,
            order,
            start_to_close_timeout=REFUND_ATTEMPT,
            schedule_to_close_timeout=patience,
            retry_policy=PATIENT,
            summary=f"Refund {order.amount} of order {order.order_id}",
        ),
        gave_up,
    )


async def read_refund(environment: str, refund: Refund, gave_up: GaveUp) -> RefundReading | None:
    """Read a refund back; None after an hour: no news, which says nothing about the money."""
    return await _answer_or_none(
        workflow.execute_activity_method(
            PaymentActivities.read_refund,
            RefundQuery(environment=environment, refund_id=refund.id),
            start_to_close_timeout=READ_ATTEMPT,
            schedule_to_close_timeout=READING_PATIENCE,
            retry_policy=PATIENT,
            summary=f"Read {refund.id} back from the provider",
        ),
        gave_up,
    )


async def tell_order_service(notice: OrderNotice, gave_up: GaveUp) -> OrderReceipt | None:
    """Have a refund noted with its order; None after the patience: it is not known to be noted."""
    return await _answer_or_none(
        workflow.execute_activity_method(
            OrderActivities.tell_order_service,
            notice,
            start_to_close_timeout=READ_ATTEMPT,
            schedule_to_close_timeout=ORDER_PATIENCE,
            retry_policy=PATIENT,
            summary=f"Tell the order service of {notice.refund.id}",
        ),
        gave_up,
    )


async def find_failed_refunds(
    query: SweepQuery, number: int, patience: timedelta, gave_up: GaveUp
) -> SweepPage | None:
    """One reading of the provider's refunds; None after the patience: the next sweep will."""
    return await _answer_or_none(
        workflow.execute_activity_method(
            SweepActivities.find_failed_refunds,
            query,
            start_to_close_timeout=SWEEP_ATTEMPT,
            schedule_to_close_timeout=patience,
            retry_policy=PATIENT,
            summary=f"Look for failed refunds since {query.since:%Y-%m-%d}, reading {number}",
        ),
        gave_up,
    )


async def read_addressees(query: AddresseesQuery, gave_up: GaveUp) -> Addressees | None:
    """Whom to write to; None after the patience: operations alone hear of it for now."""
    return await _answer_or_none(
        workflow.execute_activity_method(
            SweepActivities.read_addressees,
            query,
            start_to_close_timeout=READ_ATTEMPT,
            schedule_to_close_timeout=SWEEP_PATIENCE,
            retry_policy=PATIENT,
            summary=f"Whom to write to about order {query.order_id}",
        ),
        gave_up,
    )


async def send_mail(
    order: MailOrder, gave_up: GaveUp, patience: timedelta = MAIL_PATIENCE
) -> MailReceipt | None:
    """Send a mail once; None after the patience: it is not known to have been delivered."""
    return await _answer_or_none(
        workflow.execute_activity_method(
            MailActivities.send_mail,
            order,
            start_to_close_timeout=MAIL_ATTEMPT,
            schedule_to_close_timeout=patience,
            retry_policy=PATIENT,
            summary=f"Mail: {order.purpose.value.replace('_', ' ')}",
        ),
        gave_up,
    )


async def _answer_or_none(call: Awaitable[Answer], gave_up: GaveUp) -> Answer | None:
    try:
        return await call
    except ActivityError as error:
        task = asyncio.current_task()
        if is_cancelled_exception(error) and task is not None and task.cancelling():
            # The step was dropped for a withdrawal: that is no answer of the outside.
            raise asyncio.CancelledError from error
        gave_up(_why(error))
        return None


def _why(error: ActivityError) -> str:
    cause = error.cause
    if isinstance(cause, ApplicationError):
        return f"{cause.type}: {cause.message}"
    # A time-out says what it was; the last attempt's own error, if any, stands behind it.
    last = cause.__cause__ if cause is not None else None
    if isinstance(last, ApplicationError):
        return f"gave up after {last.type}: {last.message}"
    return "gave up: no answer in time"
