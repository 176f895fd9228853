"""The people of a plan: they decide on proposals, and somebody sends what must not count."""

import asyncio
import uuid
from typing import Any

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import EventType
from temporalio.api.workflowservice.v1 import ResetWorkflowExecutionRequest
from temporalio.service import RPCError, RPCStatusCode

from domain import names
from domain.request import Proposal
from domain.statements import SignedStatement, StatementError, StatementKind, Verdict, read_claims
from domain.trail import Entry, Refusal
from starters import runs
from starters.connect import RPC_TIMEOUT
from starters.drill import messages
from starters.drill.evidence import Evidence, Sent
from starters.drill.messages import DIRECTOR, MANAGER, REQUESTER
from starters.drill.plan import Decision, Message
from starters.drill.site import Site
from starters.statements import Signer
from workers.settings import LOCAL

# What one approval of the manager's may cover, in minor units, as the company was founded.
_MANAGERS_LIMIT = {"USD": 100_000, "EUR": 100_000, "JPY": 150_000}
# Another plan may have taken the manager's right for a moment: then it is said again.
_FOR_A_MOMENT = (Refusal.NOT_ACTIVE, Refusal.NO_RIGHT, Refusal.OVER_LIMIT)
_TRIES = 20
_PAUSE_SECONDS = 0.5
_QUERY_SECONDS = 10.0


class People:
    """Everybody who sends something to one plan's run."""

    def __init__(self, site: Site, evidence: Evidence) -> None:
        """Take everybody's keys, which only a drill may have in one place."""
        self._site, self._evidence = site, evidence
        self._said = ""
        """The last approval, to be repeated by somebody."""
        self._loses_rights = any(step.do == "lose_right" for step in evidence.plan.steps)

    async def decide(self, run: runs.Found, proposal: Proposal, decision: Decision) -> None:
        """Do what the plan says about a proposal that waits.

        Raises:
            RPCError: Temporal did not come back.
        """
        match decision:
            case Decision.APPROVE:
                for person in self._approvers(proposal):
                    await self._approve(run, proposal, person)
            case Decision.APPROVE_AT_ONCE:
                both = {*self._approvers(proposal), MANAGER, DIRECTOR}
                await asyncio.gather(
                    *(self._approve(run, proposal, person) for person in sorted(both))
                )
            case Decision.REJECT:
                await self._say(run, proposal, DIRECTOR, Verdict.REJECT)
            case Decision.BOTH:
                await asyncio.gather(
                    self._say(run, proposal, MANAGER, Verdict.APPROVE),
                    self._say(run, proposal, DIRECTOR, Verdict.REJECT),
                )
            case Decision.WITHDRAW:
                await self._withdraw(run)
            case Decision.CANCEL:
                await self._site.patiently(lambda: run.handle.cancel(rpc_timeout=RPC_TIMEOUT))
                self._evidence.sent.append(Sent("", "cancel"))
            case Decision.NOBODY:
                return

    def said_by_manager(self) -> tuple[str, ...]:
        """The ids of what the manager has said so far."""
        return tuple(sent.message_id for sent in self._evidence.sent if sent.by == MANAGER)

    async def send_bad(self, run: runs.Found, message: Message, proposal: Proposal | None) -> None:
        """Send a message that must not count."""
        if proposal is None:
            status = await self._site.patiently(lambda: runs.ask(run.handle))
            proposal = status.proposal if status is not None else None
        order_id = run.order_id
        signal = messages.make(message, self._site.keys, order_id, proposal, self._said)
        if not await self._signal(run, signal.name, signal.arguments):
            return
        sent = Sent(_id_of(signal.arguments), message.value, signal.by, "", signal.proposal_id)
        self._evidence.sent.append(sent)

    async def reset(self, run: runs.Found) -> str:
        """Reset the run to the end of its last workflow task; the new run's id."""
        completed = EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED
        history = await run.handle.fetch_history(rpc_timeout=RPC_TIMEOUT)
        last = max(event.event_id for event in history.events if event.event_type == completed)
        answer = await self._site.client.workflow_service.reset_workflow_execution(
            ResetWorkflowExecutionRequest(
                namespace=self._site.client.namespace,
                workflow_execution=WorkflowExecution(
                    workflow_id=run.workflow_id, run_id=run.run_id
                ),
                reason="drill",
                workflow_task_finish_event_id=last,
                request_id=str(uuid.uuid4()),
            ),
            timeout=RPC_TIMEOUT,
        )
        return answer.run_id

    def _approvers(self, proposal: Proposal) -> list[str]:
        """Whom it takes: one manager, or the director where their limit is too low, or both."""
        if proposal.approvals_needed > 1:
            return [MANAGER, DIRECTOR]
        limit = _MANAGERS_LIMIT.get(proposal.amount.currency, 0)
        return [MANAGER if proposal.total.amount_minor <= limit else DIRECTOR]

    async def _approve(self, run: runs.Found, proposal: Proposal, person: str) -> None:
        """Approve; where rights come and go, look at the answer, and say it again."""
        for _ in range(_TRIES):
            message_id = await self._say(run, proposal, person, Verdict.APPROVE)
            if not message_id or not self._loses_rights:
                return
            answer = await self._answer(run, message_id)
            if answer is None or answer.refusal not in _FOR_A_MOMENT:
                return
            await self._site.rights.until_back()

    async def _say(self, run: runs.Found, proposal: Proposal, person: str, verdict: Verdict) -> str:
        """Send a signed decision; its id, or nothing where the run has closed."""
        statement = Signer(self._site.keys, person).decision(LOCAL, proposal, verdict, "")
        message_id = _id_of((statement,))
        if not await self._signal(run, names.SIGNAL_DECIDE, (statement,)):
            return ""
        sent = Sent(message_id, "decision", person, verdict.value, proposal.proposal_id)
        self._evidence.sent.append(sent)
        if verdict is Verdict.APPROVE:
            self._said = statement.token
        return message_id

    async def _withdraw(self, run: runs.Found) -> None:
        statement = Signer(self._site.keys, REQUESTER).withdrawal(
            LOCAL, run.order_id, self._evidence.request_id, ""
        )
        if await self._signal(run, names.SIGNAL_WITHDRAW, (statement,)):
            self._evidence.sent.append(Sent(_id_of((statement,)), "withdrawal", REQUESTER))

    async def _signal(self, run: runs.Found, name: str, arguments: tuple[Any, ...]) -> bool:
        """Send a signal; whether the server took it: it takes none for a run that has closed."""
        try:
            await self._site.patiently(
                lambda: run.handle.signal(name, args=arguments, rpc_timeout=RPC_TIMEOUT)
            )
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                return False
            raise
        return True

    async def _answer(self, run: runs.Found, message_id: str) -> Entry | None:
        """The run's word on a message; None where it did not come in time."""
        for _ in range(_TRIES):
            await asyncio.sleep(_PAUSE_SECONDS)
            status = await self._site.patiently(lambda: runs.ask(run.handle, _QUERY_SECONDS))
            if status is not None and (answer := status.answer_to(message_id)) is not None:
                return answer
        return None


def _id_of(arguments: tuple[Any, ...]) -> str:
    """The id of a signed decision or withdrawal; empty where it has none that can be read."""
    if len(arguments) != 1 or not isinstance(arguments[0], SignedStatement):
        return ""
    for kind in (StatementKind.DECISION, StatementKind.WITHDRAWAL):
        try:
            return read_claims(arguments[0].token, kind).jti
        except StatementError:
            continue
    return ""
