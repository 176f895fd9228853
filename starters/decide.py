"""`refund approve`, `reject`, `withdraw`: say it signed, and see that it counts."""

import json
import shlex
from dataclasses import dataclass

from temporalio.client import Client
from temporalio.service import RPCError

from domain import names
from domain.models import Stage
from domain.request import Proposal
from domain.statements import SignedStatement, StatementKind, Verdict, read_claims
from domain.trail import Entry, RunStatus
from starters import runs, screen
from starters.connect import RPC_TIMEOUT, connect_by
from starters.errors import CommandError, Exit
from starters.refusals import IN_WORDS
from starters.statements import Signer
from workers.settings import Settings

_SIGNALS = {
    StatementKind.DECISION: names.SIGNAL_DECIDE,
    StatementKind.WITHDRAWAL: names.SIGNAL_WITHDRAW,
}

# Stages in which the first proposal may still come.
_BEFORE_A_PROPOSAL = frozenset({Stage.INVESTIGATING, Stage.RECHECKING})


@dataclass(frozen=True)
class Saying:
    """What was typed: who says what about which run."""

    run: str
    person: str
    comment: str
    print_only: bool = False
    wait_seconds: float = 30.0
    as_json: bool = False


async def decide(settings: Settings, saying: Saying, verdict: Verdict) -> None:
    """Approve or reject the proposal that waits now, or that comes within the time to wait.

    Raises:
        CommandError: no such run, nothing to decide, not counted, or not taken up in time.
    """
    signer = Signer(settings.keys_dir, saying.person)
    client = await connect_by(settings)
    found = await _open_run(client, saying.run)
    proposal = await _proposal(client, found, saying.wait_seconds)
    statement = signer.decision(settings.environment, proposal, verdict, saying.comment)
    what = f"{verdict.value} {screen.money(proposal.amount)} for order {proposal.order_id}"
    await _say(client, found, saying, StatementKind.DECISION, statement, what)


async def withdraw(settings: Settings, saying: Saying) -> None:
    """Withdraw the request of a run, before its money moves.

    Raises:
        CommandError: no such run, not counted, or not taken up in time.
    """
    signer = Signer(settings.keys_dir, saying.person)
    client = await connect_by(settings)
    found = await _open_run(client, saying.run)
    request = await runs.read_request(found)
    if request is None:
        raise CommandError(f"the input of {found.workflow_id} is no refund request", Exit.REFUSED)
    statement = signer.withdrawal(
        settings.environment, request.order_id, request.request_id, saying.comment
    )
    what = f"withdraw request {request.request_id} for order {request.order_id}"
    await _say(client, found, saying, StatementKind.WITHDRAWAL, statement, what)


async def _open_run(client: Client, run: str) -> runs.Found:
    found = await runs.find_or_fail(client, run)
    if found.is_open:
        return found
    raise _closed(found, await runs.result(found))


def _closed(found: runs.Found, status: RunStatus | None) -> CommandError:
    how = screen.outcome_line(status) if status is not None else found.state
    return CommandError(f"{found.workflow_id} is closed: {how}", Exit.NO_SUCH_RUN)


async def _proposal(client: Client, found: runs.Found, seconds: float) -> Proposal:
    """What there is to decide on; a run that has just begun is given time to propose it."""
    last: RunStatus | None = None

    def keep(status: RunStatus) -> None:
        nonlocal last
        last = status

    status = await runs.follow(client, found, _is_past_looking, seconds, keep)
    if status is None:
        again = await runs.find(client, found.workflow_id, found.run_id)
        if again is not None and not again.is_open:
            raise _closed(again, await runs.result(again))
        status = last
    if status is None:
        raise CommandError(
            f"no worker answered within {seconds:g} seconds, so what is proposed cannot be read; "
            "nothing was sent (`refund doctor` says what is missing)",
            Exit.UNREACHABLE,
        )
    if status.stage is Stage.CLOSED:
        raise _closed(found, status)
    if status.proposal is None:
        raise CommandError(
            f"there is nothing to decide yet: {found.workflow_id} is "
            f"{screen.words(status.stage.value)}",
            Exit.REFUSED,
        )
    return status.proposal


def _is_past_looking(status: RunStatus) -> bool:
    return status.proposal is not None or status.stage not in _BEFORE_A_PROPOSAL


async def _say(
    client: Client,
    found: runs.Found,
    saying: Saying,
    kind: StatementKind,
    statement: SignedStatement,
    what: str,
) -> None:
    if saying.print_only:
        screen.say(json.dumps(statement.model_dump()))
        screen.hint(
            f"Signed, not sent: {what}. Send it as Signal `{_SIGNALS[kind]}` to "
            f"{found.workflow_id} in the Web UI, or from the file that you save it in:"
        )
        screen.hint(_ready_command(client, found, kind))
        return
    status, answer = await send(client, found, kind, statement, saying.wait_seconds)
    if saying.as_json:
        screen.data({"answer": answer, "stage": status.stage, "outcome": status.outcome})
    if answer.refusal is not None:
        words = IN_WORDS[answer.refusal]
        raise CommandError(f"not counted, {answer.refusal.value}: {words}", Exit.REFUSED)
    if not saying.as_json:
        screen.say(f"Counted: {what}, as {answer.who}. {_what_now(status)}")


def _ready_command(client: Client, found: runs.Found, kind: StatementKind) -> str:
    """What sends a printed statement to the server that this command is connected to."""
    options = {
        "--address": client.service_client.config.target_host,
        "--namespace": client.namespace,
        "--workflow-id": found.workflow_id,
        "--name": _SIGNALS[kind],
        "--input-file": f"{kind.name.lower()}.json",
    }
    words = [word for option in options.items() for word in option]
    return shlex.join(["temporal", "workflow", "signal", *words])


async def send(
    client: Client,
    found: runs.Found,
    kind: StatementKind,
    statement: SignedStatement,
    seconds: float,
) -> tuple[RunStatus, Entry]:
    """Send a signed message, and wait for the run's own word on it.

    Raises:
        CommandError: there is none within the time, or the run closed without one.
    """
    message_id = read_claims(statement.token, kind).jti
    await found.handle.signal(_SIGNALS[kind], statement, rpc_timeout=RPC_TIMEOUT)
    try:
        status = await runs.follow(
            client, found, lambda s: s.answer_to(message_id) is not None, seconds
        )
    except RPCError as error:
        raise CommandError(
            f"sent, and Temporal went away before the run could answer ({error.message}); see "
            f"`refund show {found.order_id}` before sending it again",
            Exit.NOT_TAKEN_UP,
        ) from None
    answer = status.answer_to(message_id) if status is not None else None
    if status is not None and answer is not None:
        return status, answer
    again = await runs.find(client, found.workflow_id, found.run_id)
    if again is not None and not again.is_open:
        raise CommandError(f"{found.workflow_id} closed without taking it up", Exit.NO_SUCH_RUN)
    raise CommandError(
        f"sent, and not taken up within {seconds:g} seconds; it is kept and will be judged when a "
        f"worker is there: see `refund show {found.order_id}` before sending it again",
        Exit.NOT_TAKEN_UP,
    )


def _what_now(status: RunStatus) -> str:
    if status.outcome is not None:
        return f"The run ended: {screen.outcome_line(status)}"
    missing = f" and waits for {status.waits_for}" if status.waits_for else ""
    return f"The run is now {screen.words(status.stage.value)}{missing}."
