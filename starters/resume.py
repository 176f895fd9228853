"""What the next run of a request takes over from its last one."""

from temporalio.api.enums.v1 import EventType

from domain import names
from domain.request import RefundRequest, Resumed
from domain.statements import (
    DecisionClaims,
    SignedStatement,
    StatementError,
    StatementKind,
    read_claims,
)
from domain.trail import RunStatus
from starters import runs
from starters.connect import RPC_TIMEOUT


async def goes_on(
    found: runs.Found, request: RefundRequest, status: RunStatus | None, retry: int
) -> Resumed:
    """The last proposal of a request's run, and the approvals that counted on it.

    Args:
        found: The run, which has ended.
        request: Its input.
        status: What it says of itself; None where nobody could ask it.
        retry: The number of the retry that follows.
    """
    if status is None or status.proposal is None:
        # It came to no proposal, so the one before still is the last.
        before = request.resumes or Resumed(retry=0)
        return before.model_copy(update={"retry": retry})
    return Resumed(
        retry=retry,
        proposal=status.proposal,
        decisions=await _approvals(found, request, status),
    )


async def _approvals(
    found: runs.Found, request: RefundRequest, status: RunStatus
) -> tuple[str, ...]:
    """The signed approvals that counted on the run's last proposal, from its history."""
    counted = {entry.message_id for entry in status.trail if entry.what == "approved"}
    tokens = list(request.resumes.decisions) if request.resumes is not None else []
    async for event in found.handle.fetch_history_events(rpc_timeout=RPC_TIMEOUT):
        if event.event_type != EventType.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED:
            continue
        signal = event.workflow_execution_signaled_event_attributes
        if signal.signal_name == names.SIGNAL_DECIDE and len(signal.input.payloads) == 1:
            tokens.append(_token(signal.input.payloads[0].data))
    wanted = status.proposal.proposal_id if status.proposal is not None else ""
    return tuple(token for token in dict.fromkeys(tokens) if _is_approval(token, wanted, counted))[
        :10
    ]


def _token(data: bytes) -> str:
    try:
        return SignedStatement.model_validate_json(data).token
    except ValueError:
        return ""


def _is_approval(token: str, proposal_id: str, counted: set[str]) -> bool:
    try:
        claims = read_claims(token, StatementKind.DECISION)
    except StatementError:
        return False
    return (
        isinstance(claims, DecisionClaims)
        and claims.proposal == proposal_id
        and claims.jti in counted
    )
