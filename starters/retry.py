"""`refund retry`: go on with a request whose last run ended with a person."""

from temporalio.exceptions import WorkflowAlreadyStartedError

from domain.models import Outcome
from domain.request import RefundRequest
from starters import runs, screen
from starters.connect import connect_by
from starters.errors import CommandError, Exit
from starters.launch import launch
from starters.resume import goes_on
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
    retried = request.resumes.retry if request.resumes is not None else 0
    resumes = await goes_on(found, request, status, retried + 1)
    return request.model_copy(update={"resumes": resumes})
