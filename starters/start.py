"""`refund start`: hand in a customer's letter, signed, and see that the run takes it up."""

import asyncio
import math
import time
from collections.abc import Callable
from dataclasses import dataclass

from temporalio.client import Client
from temporalio.exceptions import WorkflowAlreadyStartedError

from domain import names
from domain.models import Stage
from domain.outcomes import MISTAKES_OF_THE_REQUESTER, Reason
from domain.request import RefundRequest
from domain.trail import RunStatus
from starters import runs, screen
from starters.connect import RPC_TIMEOUT, connect_by
from starters.draft import Wanted, check
from starters.errors import CommandError, Exit
from starters.launch import launch
from starters.resume import goes_on
from starters.statements import Signer
from workers.settings import Settings

# What a run knows already is judged by then, with a worker and a directory that answer.
_JUDGED_SECONDS = 10.0
_NOT_REFUNDABLE_LIKE_THIS = MISTAKES_OF_THE_REQUESTER | {Reason.REQUEST_NOT_AUTHENTIC}


@dataclass(frozen=True)
class Begun:
    """A run that was started, or that was there already under the same request id."""

    found: runs.Found
    new: bool


async def start(
    settings: Settings, wanted: Wanted, *, wait: bool, wait_seconds: float, as_json: bool
) -> None:
    """Check what was typed, start the run, and return once it has taken the request up.

    Raises:
        CommandError: wrong input, refused, running already, or not taken up in time.
    """
    draft = check(settings, wanted)
    signer = Signer(settings.keys_dir, draft.requester)
    client = await connect_by(settings)
    begun = await begin(
        client,
        signer,
        draft,
        repeats=wanted.request_id is not None,
        anew=wanted.new_request,
    )
    if not as_json:
        _say_begun(begun)
    await follow(client, begun, wait=wait, wait_seconds=wait_seconds, as_json=as_json)


async def follow(
    client: Client, begun: Begun, *, wait: bool, wait_seconds: float, as_json: bool
) -> None:
    """See that a run takes its request up, or with `wait` how it ends, and print that.

    Raises:
        CommandError: not taken up in time, refused, or ended from outside.
    """
    try:
        status = await _until_taken_up(client, begun.found, wait_seconds)
        if wait and status.stage is not Stage.CLOSED:
            status = await _until_closed(client, begun.found, quiet=as_json)
    except asyncio.CancelledError:
        order_id = begun.found.order_id
        screen.hint(
            f"{begun.found.workflow_id} goes on without this command; see `refund show {order_id}`,"
            f" or stop it: `refund withdraw {order_id} --as ADDRESS`"
        )
        raise
    if as_json:
        screen.data(
            {
                "workflow_id": begun.found.workflow_id,
                "run_id": begun.found.description.run_id,
                "request_id": status.request_id,
                "new": begun.new,
                "status": status,
            }
        )
    if status.reason in _NOT_REFUNDABLE_LIKE_THIS:
        raise CommandError(f"not taken up: {status.explanation} ({status.reason})", Exit.REFUSED)
    if not as_json:
        _say_status(begun.found, status)


async def _until_taken_up(client: Client, found: runs.Found, seconds: float) -> RunStatus:
    """What the run says once it has looked at the request.

    Raises:
        CommandError: it has not within the time, or it was ended from outside.
    """
    if not found.is_open:
        status = await runs.result(found)
        if status is None:
            raise await _ended_from_outside(client, found)
        return status
    status = await runs.follow(
        client, found, lambda s: s.accepted or s.outcome is not None, seconds
    )
    if status is not None:
        return status
    again = await runs.find(client, found.workflow_id, found.run_id)
    if again is not None and not again.is_open:
        raise await _ended_from_outside(client, again)
    if again is not None and (trouble := runs.trouble(again)):
        raise CommandError(
            f"{found.workflow_id} is started and waits for another service: {trouble}; nothing is "
            f"lost, it goes on when that is mended: see `refund show {found.order_id}`",
            Exit.NOT_TAKEN_UP,
        )
    raise CommandError(
        f"{found.workflow_id} is started and nobody has taken it up within {seconds:g} seconds; "
        "nothing is lost, it waits for a worker: `refund doctor` says what is missing",
        Exit.NOT_TAKEN_UP,
    )


async def _until_closed(client: Client, found: runs.Found, *, quiet: bool) -> RunStatus:
    """Show the run's story as it happens, and what it says at its end.

    Raises:
        CommandError: it was ended from outside.
    """
    show = (lambda _status: None) if quiet else _teller(found)
    status = await runs.follow(client, found, lambda s: s.stage is Stage.CLOSED, None, show)
    if status is None:
        raise await _ended_from_outside(client, found)
    return status


def _teller(found: runs.Found) -> Callable[[RunStatus], None]:
    """Shows what is new of a run, and says once that it waits for a person."""
    follower = screen.Follower()
    waits_since = math.inf
    has_asked = False

    def tell(status: RunStatus) -> None:
        nonlocal waits_since, has_asked
        follower.show(status)
        if status.stage is not Stage.AWAITING_APPROVAL:
            waits_since = math.inf
            return
        waits_since = min(waits_since, time.monotonic())
        # It judges first what it knows already, such as an approval that a retry has brought.
        asks = any(entry.detail.startswith("approval_request") for entry in status.trail)
        is_long = time.monotonic() - waits_since > _JUDGED_SECONDS
        if (asks or is_long) and not has_asked:
            has_asked = True
            screen.say(
                f"It waits for {status.waits_for}, until {screen.deadline(status.deadline)}: "
                f"`refund approve {found.order_id} --as ADDRESS` in another terminal, or `reject`"
            )

    return tell


async def _ended_from_outside(client: Client, found: runs.Found) -> CommandError:
    ended = await runs.find(client, found.workflow_id, found.run_id) or found
    why = await runs.failure(ended)
    line = f"{ended.workflow_id} was ended from outside ({ended.state}): {why}"
    return CommandError(line, Exit.REFUSED)


def _say_begun(begun: Begun) -> None:
    found = begun.found
    if begun.new:
        screen.say(f"Started {found.workflow_id}, request id {found.request_id}")
    else:
        state = "is running already" if found.is_open else "was carried to its end before"
        screen.say(f"Request {found.request_id} {state}: {found.workflow_id}")


def _say_status(found: runs.Found, status: RunStatus) -> None:
    if status.outcome is not None:
        screen.say(f"It ended: {screen.outcome_line(status)}")
    else:
        screen.say(f"It is taken up and goes on by itself; see `refund show {found.order_id}`")


async def begin(
    client: Client,
    signer: Signer,
    draft: RefundRequest,
    *,
    repeats: bool = False,
    anew: bool = False,
) -> Begun:
    """Start the run, or find that this very request runs already or is done.

    Args:
        client: Connected to Temporal.
        signer: The requester's.
        draft: The request, not yet signed.
        repeats: Whether the request id was given, so that a repeat of it is no mistake.
        anew: Whether to begin another request where the last run was ended from outside.

    Raises:
        CommandError: another request on the order runs, or its last run was ended from outside.
    """
    last = await runs.find(client, names.workflow_id(draft.order_id))
    if last is not None and last.is_open:
        return _the_same(last, draft, repeats)
    says_which = repeats or anew
    if last is not None and last.was_ended and not says_which:
        raise CommandError(_how_to_go_on(last), Exit.REFUSED)
    if repeats and last is not None:
        done = await _completed_before(client, draft, last)
        if done is not None:
            return Begun(done, new=False)
        draft = await _after(last, draft)
    try:
        await launch(client, draft.model_copy(update={"statement": signer.request(draft)}))
    except WorkflowAlreadyStartedError:
        running = await runs.find(client, names.workflow_id(draft.order_id))
        if running is None or not running.is_open:
            raise CommandError(
                "a run on this order ended this moment; try again", Exit.ALREADY_RUNNING
            ) from None
        return _the_same(running, draft, repeats)
    return Begun(await runs.find_or_fail(client, draft.order_id), new=True)


async def _after(last: runs.Found, draft: RefundRequest) -> RefundRequest:
    """The draft, going on where this very request's last run was ended from outside.

    Else a changed world would be asked about under the keys of mails that were sent long ago, and
    an approval that was accepted would be lost.

    Raises:
        CommandError: no worker tells what was approved.
    """
    before = await runs.read_request(last)
    if before is None or last.request_id != draft.request_id:
        return draft
    retried = before.resumes.retry if before.resumes is not None else 0
    status = await runs.last_words(last)
    if status is None:
        # Nobody can tell what was approved: staff are asked anew, under the keys of a retry.
        retried += 1
    return draft.model_copy(update={"resumes": await goes_on(last, before, status, retried)})


def _the_same(running: runs.Found, draft: RefundRequest, repeats: bool) -> Begun:
    if repeats and running.request_id == draft.request_id:
        return Begun(running, new=False)
    raise CommandError(
        f"a refund of order {running.order_id} is already running, under request id "
        f"{running.request_id}; see `refund show {running.order_id}`",
        Exit.ALREADY_RUNNING,
    )


def _how_to_go_on(last: runs.Found) -> str:
    again = f"--request-id {last.request_id}" if last.request_id else "its request id"
    return (
        f"the last run of order {last.order_id} was ended from outside ({last.state}) and may "
        f"have paid: go on with {again}, so that nothing is done twice, or say --new-request"
    )


async def _completed_before(
    client: Client, draft: RefundRequest, last: runs.Found
) -> runs.Found | None:
    """The run that has carried this very request to its end, if there is one."""
    if last.request_id == draft.request_id:
        return None if last.was_ended else last
    workflow_id = last.workflow_id
    query = f'WorkflowId = "{workflow_id}" AND ExecutionStatus = "Completed"'
    async for run in client.list_workflows(query, rpc_timeout=RPC_TIMEOUT):
        if (await run.memo()).get(names.MEMO_REQUEST_ID) == draft.request_id:
            return await runs.find(client, workflow_id, run.run_id)
    return None
