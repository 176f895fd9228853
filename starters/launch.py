"""Start a run on the server: one open run per order, with everything that the Web UI shows."""

from temporalio.client import Client
from temporalio.common import (
    SearchAttributeKey,
    SearchAttributePair,
    TypedSearchAttributes,
    WorkflowIDConflictPolicy,
    WorkflowIDReusePolicy,
)
from temporalio.service import RPCError, RPCStatusCode

from domain import names
from domain.models import Stage
from domain.request import RefundRequest
from domain.trail import RunStatus
from starters import screen
from starters.connect import RPC_TIMEOUT

# The server refuses larger details; the whole letter is in the run's input.
_LETTER_IN_DETAILS = 1_500


async def launch(client: Client, request: RefundRequest) -> None:
    """Start the run of a signed request.

    Raises:
        WorkflowAlreadyStartedError: a run on this order is open.
    """
    try:
        await _send_start(client, request, search_attributes=True)
    except RPCError as error:
        if error.status is not RPCStatusCode.INVALID_ARGUMENT:
            raise
        if "search attribute" not in error.message:
            raise
        screen.hint(
            f"Note: {error.message}; the run starts without search attributes, so `refund list` "
            "and the Web UI tell less of it. `refund doctor` says how to register them."
        )
        await _send_start(client, request, search_attributes=False)


async def _send_start(client: Client, request: RefundRequest, *, search_attributes: bool) -> None:
    request = request.model_copy(update={"search_attributes": search_attributes})
    stage = SearchAttributeKey.for_keyword(names.ATTRIBUTE_STAGE)
    await client.start_workflow(
        names.REFUND_WORKFLOW,
        args=[request],
        id=names.workflow_id(request.order_id),
        task_queue=names.TASK_QUEUE,
        result_type=RunStatus,
        id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE,
        id_conflict_policy=WorkflowIDConflictPolicy.FAIL,
        memo={names.MEMO_REQUEST_ID: request.request_id},
        search_attributes=(
            TypedSearchAttributes([SearchAttributePair(stage, Stage.INVESTIGATING.value)])
            if search_attributes
            else TypedSearchAttributes.empty
        ),
        static_summary=f"Refund of order {request.order_id}",
        static_details=_details(request),
        rpc_timeout=RPC_TIMEOUT,
    )


def _details(request: RefundRequest) -> str:
    """Markdown for the Web UI. The letter is indented, which makes it code: nothing in it acts."""
    letter = request.message[:_LETTER_IN_DETAILS]
    more = "…" if len(request.message) > _LETTER_IN_DETAILS else ""
    retry = request.resumes.retry if request.resumes is not None else 0
    rows = [
        f"Refund of order **{request.order_id}**, {request.amount or 'all that is left'}",
        "",
        f"- request id: `{request.request_id}`",
        f"- handed in by: {request.requester}",
        f"- environment: `{request.environment}`",
        *([f"- retry: {retry}"] if retry else []),
        "",
        "The customer wrote:",
        "",
        *(f"    {line}" for line in screen.plain(letter + more).splitlines()),
    ]
    return "\n".join(rows)
