"""`refund retry`: go on with a request whose last run ended with a person."""

from temporalio.api.enums.v1 import EventType
from temporalio.exceptions import WorkflowAlreadyStartedError

from domain import names
from domain.models import Outcome, RefundRequest, Resumed
from domain.statements import (
    DecisionClaims,
    SignedStatement,
    StatementError,
    StatementKind,
    read_claims,
)
from domain.trail import RunStatus
from starters import runs, screen
from starters.connect import RPC_TIMEOUT, connect_by
from starters.errors import CommandError, Exit
from starters.launch import launch
from starters.start import Begun, follow
from workers.settings import Settings


async def retry(
    settings: Settings, run: str, *, wait: bool, wait_seconds: float, as_json: bool
) -> None:
    """Start the same request again, with its id, its keys and the approvals that counted.

    The requester's own signature is used again: nothing of what they asked for can change.

    Raises:
        CommandError: no such run, still open, ended otherwise, or not taken up in time.
    """
    client = await connect_by(settings)
    found = await runs.find_or_fail(client, run)
    request = await _resumed(found)
    try:
        await launch(client, request)
    except WorkflowAlreadyStartedError:
        line = f"a refund of order {found.order_id} is running already"
        raise CommandError(line, Exit.ALREADY_RUNNING) from None
    begun = Begun(await runs.find_or_fail(client, found.workflow_id), new=True)
    if not as_json and request.resumes is not None:
        screen.say(f"Request {request.request_id} goes on, retry {request.resumes.retry}")
    await follow(client, begun, wait=wait, wait_seconds=wait_seconds, as_json=as_json)


async def _resumed(found: runs.Found) -> RefundRequest:
    """The request of a run that ended with a person, to be started again.

    Raises:
        CommandError: the run is open, or ended otherwise.
    """
    if found.is_open:
        line = f"{found.workflow_id} is still running: there is nothing to retry"
        raise CommandError(line, Exit.ALREADY_RUNNING)
    status, request = await runs.result(found), await runs.read_request(found)
    if status is None or request is None:
        line = (
            f"{found.workflow_id} was ended from outside ({found.state}): go on with "
            f"`refund start --request-id {found.request_id or 'ID'}`"
        )
        raise CommandError(line, Exit.REFUSED)
    if status.outcome is not Outcome.NEEDS_HUMAN:
        line = f"only what ended as needs human can be retried: {screen.outcome_line(status)}"
        raise CommandError(line, Exit.REFUSED)
    before = request.resumes
    if status.proposal is None and before is not None:
        # That retry came to no proposal, so the one before still is the last.
        resumes = before.model_copy(update={"retry": before.retry + 1})
    else:
        resumes = Resumed(
            retry=before.retry + 1 if before is not None else 1,
            proposal=status.proposal,
            decisions=await _approvals(found, request, status),
        )
    return request.model_copy(update={"resumes": resumes})


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
