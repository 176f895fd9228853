"""The clerk takes up messages, one by one and in order, and gives each its answer in the trail.

Signal handlers only hand messages over. They take raw values under any name, since a handler with
typed arguments loses what does not fit: the SDK logs a payload that it cannot decode and drops it
(temporalio/sdk-python#1322), and a wrong number of arguments fails the workflow task for ever
(temporalio/cli#786).
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeVar

from temporalio import workflow
from temporalio.common import RawValue

with workflow.unsafe.imports_passed_through():
    from pydantic import ValidationError

    from activities.interfaces import StatementCheck, StatementVerdict
    from domain.approvals import Approval, refuse_beside
    from domain.decisions import refuse_decision, refuse_withdrawal
    from domain.models import Outcome, Stage
    from domain.names import SIGNAL_DECIDE, SIGNAL_WITHDRAW
    from domain.outcomes import Close, Reason
    from domain.people import same_person
    from domain.request import Resumed
    from domain.statements import (
        TOKEN_LIMIT,
        AnyClaims,
        DecisionClaims,
        SignedStatement,
        StatementError,
        StatementKind,
        Verdict,
        WithdrawalClaims,
        read_claims,
    )
    from domain.trail import Refusal

from workflows import calls
from workflows.state import RunState, Withdrawal

# A signed statement with its JSON around it. A megabyte of anything is not even looked at.
_PAYLOAD_LIMIT = TOKEN_LIMIT + 200
# Nobody can know the proposal before it is made, but for a run that was reset: a handful is plenty.
_EARLY_LIMIT = 50
# A flood that came while no worker was there lies in one workflow task, and the SDK fails a task
# that computes for two seconds: for ever, since the next attempt computes the same. So the clerk
# ends the task after some messages, by a timer, and goes on in the next one.
_AT_ONCE = 250
_PAUSE = timedelta(milliseconds=1)

_KINDS = {
    SIGNAL_DECIDE: StatementKind.DECISION,
    SIGNAL_WITHDRAW: StatementKind.WITHDRAWAL,
}

Said = TypeVar("Said", DecisionClaims, WithdrawalClaims)


@dataclass(frozen=True)
class Message:
    signal: str
    arguments: Sequence[RawValue]


class Clerk:
    """Judges messages; the only writer of approvals, rejection and withdrawal."""

    def __init__(self) -> None:
        self._waiting: deque[Message] = deque()
        self._early: list[Message] = []
        self._at_hand: Message | None = None

    def receive(self, signal: str, arguments: Sequence[RawValue]) -> None:
        """Put a message into the queue. Never raises."""
        self._waiting.append(Message(signal, arguments))

    @property
    def idle(self) -> bool:
        """Whether every message that has arrived has its answer."""
        return not self._waiting and self._at_hand is None

    def take_over(self, resumed: Resumed | None) -> None:
        """Judge what counted in the run that is retried, once there is a proposal: as of now."""
        for token in resumed.decisions if resumed is not None else ():
            payload = workflow.payload_converter().to_payload(SignedStatement(token=token))
            self._early.append(Message(SIGNAL_DECIDE, [RawValue(payload)]))

    def look_again(self) -> bool:
        """There is a proposal now: judge what came too early, before what came later.

        Returns whether there is any of that.
        """
        has_early = bool(self._early)
        self._waiting.extendleft(reversed(self._early))
        self._early.clear()
        return has_early

    async def work(self, state: RunState) -> None:
        """Judge messages until the run ends."""
        while True:
            await workflow.wait_condition(lambda: bool(self._waiting))
            for _ in range(min(_AT_ONCE, len(self._waiting))):
                self._at_hand = self._waiting.popleft()
                await self._judge(self._at_hand, state)
                self._at_hand = None
            state.show()
            if self._waiting:
                await workflow.sleep(_PAUSE, summary="More messages wait to be judged")

    def refuse_rest(self, state: RunState) -> None:
        """The run closes: what nobody could judge gets its answer too.

        The one at hand is among them: a directory that is down must not keep a run open that has
        ended.
        """
        at_hand = [self._at_hand] if self._at_hand is not None else []
        for message in [*at_hand, *self._early, *self._waiting]:
            self._refuse_closed(message, state)
        self._early.clear()
        self._waiting.clear()
        state.show()

    async def _judge(self, message: Message, state: RunState) -> None:
        kind = _KINDS.get(message.signal)
        if kind is None:
            self._refuse(
                state, Refusal.UNKNOWN_SIGNAL, f"there is no signal {message.signal[:60]!r}"
            )
            return
        try:
            token = _token_of(message)
            claims = read_claims(token, kind)
        except StatementError as error:
            self._refuse(state, Refusal.MALFORMED, f"{message.signal}: {error}")
            return
        if isinstance(claims, DecisionClaims):
            await self._judge_decision(message, token, claims, state)
        elif isinstance(claims, WithdrawalClaims):
            await self._judge_withdrawal(token, claims, state)

    async def _judge_decision(
        self, message: Message, token: str, claims: DecisionClaims, state: RunState
    ) -> None:
        if state.proposal is None and state.closed is None and not state.past_withdrawal:
            self._keep(message, claims, state)
            return
        verdict = await self._verdict_on(
            token, StatementKind.DECISION, claims, state, self._refuse_decision_now
        )
        person, refusal = verdict.person, verdict.refusal
        if state.proposal is not None and person is not None and claims.verdict is Verdict.APPROVE:
            refusal = refusal or refuse_beside(
                state.proposal, state.approvals, person, director=verdict.director
            )
        if refusal is not None or person is None:
            self._refuse_claims(state, claims, refusal or Refusal.UNKNOWN_PERSON)
            return
        state.counted.add(claims.jti)
        if claims.verdict is Verdict.APPROVE:
            state.approvals.append(Approval(person=person, token=token, director=verdict.director))
            detail = _said(claims, verdict, state.missing)
            state.note("approved", detail, who=person.address, message_id=claims.jti)
        else:
            said = f": {claims.comment.rstrip('.')}" if claims.comment else ""
            state.rejection = Close(
                outcome=Outcome.REJECTED,
                reason=Reason.REJECTED_BY_APPROVER,
                explanation=f"Rejected by {person.name}{said}.",
            )
            detail = _said(claims, verdict)
            state.note("rejected", detail, who=person.address, message_id=claims.jti)

    def _keep(self, message: Message, claims: DecisionClaims, state: RunState) -> None:
        if len(self._early) == _EARLY_LIMIT:
            self._refuse_claims(state, claims, Refusal.TOO_EARLY)
            return
        self._early.append(message)
        detail = "came before there was a proposal; judged once there is one"
        state.note("decision_kept", detail, who=claims.iss)

    def _refuse_decision_now(self, claims: DecisionClaims, state: RunState) -> Refusal | None:
        if claims.jti in state.counted:
            return Refusal.DUPLICATE
        if state.closed is not None:
            return Refusal.CLOSED
        proposal, case, deadline = state.proposal, state.case, state.deadline
        if proposal is None or case is None or deadline is None:
            return Refusal.OTHER_PROPOSAL
        refusal = refuse_decision(
            claims, state.request, proposal, case.policy, deadline, workflow.now()
        )
        if refusal is not None:
            return refusal
        if state.decided or state.stage is not Stage.AWAITING_APPROVAL:
            return Refusal.ALREADY_DECIDED
        if any(same_person(claims.iss, a.person.address) for a in state.approvals):
            return Refusal.ALREADY_APPROVED
        return None

    async def _judge_withdrawal(
        self, token: str, claims: WithdrawalClaims, state: RunState
    ) -> None:
        verdict = await self._verdict_on(
            token, StatementKind.WITHDRAWAL, claims, state, self._refuse_withdrawal_now
        )
        person = verdict.person
        if verdict.refusal is not None or person is None:
            self._refuse_claims(state, claims, verdict.refusal or Refusal.UNKNOWN_PERSON)
            return
        state.counted.add(claims.jti)
        state.withdrawal = Withdrawal(
            by=person.name, reason=Reason.WITHDRAWN_BY_STAFF, comment=claims.comment
        )
        detail = _said(claims, verdict)
        state.note("withdrawn", detail, who=person.address, message_id=claims.jti)

    def _refuse_withdrawal_now(self, claims: WithdrawalClaims, state: RunState) -> Refusal | None:
        if claims.jti in state.counted or state.withdrawal is not None:
            return Refusal.DUPLICATE
        if state.closed is not None:
            return Refusal.CLOSED
        if state.past_withdrawal:
            return Refusal.TOO_LATE
        return refuse_withdrawal(claims, state.request)

    async def _verdict_on(
        self,
        token: str,
        kind: StatementKind,
        claims: Said,
        state: RunState,
        refuse_now: Callable[[Said, RunState], Refusal | None],
    ) -> StatementVerdict:
        """Who says it, by signature and right; or why it does not count."""
        if (refusal := refuse_now(claims, state)) is not None:
            return StatementVerdict(refusal=refusal)
        verdict = await self._verify(token, kind, claims.iss, state)
        # The world may have moved on while the directory was asked.
        refusal = verdict.refusal or refuse_now(claims, state)
        return verdict.model_copy(update={"refusal": refusal})

    async def _verify(
        self, token: str, kind: StatementKind, who: str, state: RunState
    ) -> StatementVerdict:
        order = state.case.order if state.case is not None else None
        check = StatementCheck(
            environment=state.request.environment,
            token=token,
            kind=kind,
            proposal=state.proposal if kind is StatementKind.DECISION else None,
            requester=state.request.requester,
            customer=order.customer.email if order is not None else "",
            received_at=workflow.now(),
        )
        verdict = await calls.verify_statement(
            check,
            f"Check the signature and the right of {who[:80]}",
            lambda why: state.note("directory_unavailable", why),
        )
        return verdict or StatementVerdict(refusal=Refusal.COULD_NOT_BE_CHECKED)

    def _refuse_claims(self, state: RunState, claims: AnyClaims, refusal: Refusal) -> None:
        detail = f"{claims.kind} {claims.jti} does not count: {refusal.value}"
        state.note("refused", detail, who=claims.iss, message_id=claims.jti, refusal=refusal)

    def _refuse_closed(self, message: Message, state: RunState) -> None:
        """Answer by the message's own id where it has one."""
        kind = _KINDS.get(message.signal)
        if kind is None:
            self._refuse(state, Refusal.CLOSED, "the run is closed")
            return
        try:
            claims = read_claims(_token_of(message), kind)
        except StatementError as error:
            self._refuse(state, Refusal.MALFORMED, f"{message.signal}: {error}")
            return
        self._refuse_claims(state, claims, Refusal.CLOSED)

    def _refuse(self, state: RunState, refusal: Refusal, detail: str) -> None:
        state.note("refused", detail, refusal=refusal)


def _said(
    claims: DecisionClaims | WithdrawalClaims, verdict: StatementVerdict, missing: str = ""
) -> str:
    """A row for an auditor: the comment, what was checked, and who is still needed."""
    checked = f"({verdict.checked})" if claims.comment else verdict.checked
    said = f"{claims.comment} {checked}".strip()
    return f"{said}; still needed: {missing}" if missing else said


def _token_of(message: Message) -> str:
    if len(message.arguments) != 1:
        raise StatementError(f"one argument is needed, {len(message.arguments)} came")
    payload = message.arguments[0].payload
    if len(payload.data) > _PAYLOAD_LIMIT:
        raise StatementError(f"{len(payload.data)} bytes are too many for a signed statement")
    try:
        return SignedStatement.model_validate_json(payload.data).token
    except ValidationError:
        raise StatementError('not of the form {"token": "<signed statement>"}') from None
