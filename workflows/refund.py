"""The refund of one order, from a customer's letter to the confirmed money.

`RefundWorkflow.run` is the story; each step is a helper below it or a module beside this one:
`investigation` (step 1), `waiting` (3 and 4), `paying` (5 to 7), `orders` (8), `notices` (who is
told), `clerk` (messages). What the steps decide is in `domain`.
"""

import asyncio
from collections.abc import Coroutine, Sequence
from datetime import timedelta
from typing import Any, TypeVar

from temporalio import workflow
from temporalio.common import RawValue
from temporalio.exceptions import ApplicationError

with workflow.unsafe.imports_passed_through():
    from pydantic import ValidationError

    from activities.interfaces import CaseQuery
    from domain.case import Case, Ours
    from domain.models import Outcome, Stage
    from domain.names import PATCH_WHO_DECIDES, QUERY_STATUS, REFUND_WORKFLOW, workflow_id
    from domain.outcomes import Close, Reason
    from domain.policy import propose, propose_first, take_up
    from domain.recheck import Changed, Clear, RightLost
    from domain.request import Proposal, RefundRequest
    from domain.trail import RunStatus

from workflows import calls, notices
from workflows.clerk import Clerk
from workflows.investigation import investigate
from workflows.orders import tell_order_service
from workflows.paying import pay, recheck_now, verify
from workflows.postbox import Postbox
from workflows.state import RunState, Withdrawal
from workflows.waiting import wait_for_decision

Step = TypeVar("Step")

_EARLY_PATIENCE = timedelta(minutes=1)
_SAYS_NO_REFUND = (
    Outcome.DECLINED,
    Outcome.REJECTED,
    Outcome.EXPIRED,
    Outcome.WITHDRAWN,
    Outcome.ALREADY_REFUNDED,
)


@workflow.defn(dynamic=True)
class RefundWorkflow:
    """Pays a refund once, with the authority it needs, and tells everybody how it ended.

    Dynamic, so that a run which was started with the wrong type, with no input, with two or with
    one that does not decode fails with a clear message; a typed one would fail its workflow task
    for ever and hold the order's workflow id (docs/decisions/0003-raw-input.md).
    """

    def __init__(self) -> None:
        self._clerk = Clerk()
        self._postbox = Postbox()
        self._state: RunState | None = None

    @workflow.run
    async def run(self, inputs: Sequence[RawValue]) -> RunStatus:
        """Carry one request to its end. The one input is a `RefundRequest`."""
        state = self._state = RunState(request=_read_request(inputs))
        clerk = asyncio.create_task(self._clerk.work(state))
        story = asyncio.create_task(self._story(state))
        while not story.done():
            try:
                await workflow.wait_condition(lambda: story.done() or clerk.done())
                if clerk.done():
                    await clerk  # It ends only by a fault of ours, which must not go unseen.
            except asyncio.CancelledError:
                # Nothing of the story is cancelled by Temporal: a refund that is on its way stays
                # awaited (temporalio/sdk-python#700). Before that, a cancel is a withdrawal.
                self._take_cancel(state)
        close = await story
        clerk.cancel()
        await workflow.wait_condition(workflow.all_handlers_finished)
        self._clerk.refuse_rest(state)
        state.show_closed(close)
        return state.status(workflow.now())

    @workflow.signal(dynamic=True)
    def receive(self, signal: str, arguments: Sequence[RawValue]) -> None:
        """Take any message under any name; the clerk judges it in the main loop."""
        self._clerk.receive(signal, arguments)

    @workflow.query(name=QUERY_STATUS)
    def status(self) -> RunStatus:
        """Stage, proposal, deadline, trail, outcome and token use, as of the run's own time."""
        return self._state.status(workflow.now()) if self._state is not None else RunStatus()

    async def _story(self, state: RunState) -> Close:
        request = state.request
        resumes = request.resumes
        again = f", retry {resumes.retry}" if resumes is not None and resumes.retry else ""
        state.note("asked", f"request {request.request_id}{again}", who=request.requester)
        self._clerk.take_over(resumes)
        step = await self._unless_withdrawn(state, self._until_proposal(state))
        while not isinstance(step, Close):
            if isinstance(step, Ours):
                step = await verify(state, step.refund)
            else:
                step = await self._one_round(state, step)
        step = await self._sure_of_no_refund(state, step)
        return await self._tell_the_end(state, step)

    async def _until_proposal(self, state: RunState) -> Close | Ours | Proposal:
        """Steps 1 and 2: facts, the model's look at them, and what the policy makes of both."""
        case = await self._read_facts(state)
        if case is None:
            return _facts_unavailable()
        state.case = case
        claim = take_up(state.request, case, workflow.now())
        if isinstance(claim, Close):
            return claim
        state.accepted = True
        if isinstance(claim, Ours):
            state.note("refund_found", f"{claim.refund.id} was made by an earlier run")
            return claim
        state.claim = claim
        state.note("accepted", f"{claim.amount} of order {state.request.order_id}")
        state.assessment = await investigate(state, case.policy)
        # Asked once for the whole run, and not in each round.
        state.names_deciders = workflow.patched(PATCH_WHO_DECIDES)
        return propose_first(state.request, case, claim, state.assessment)

    async def _one_round(self, state: RunState, proposal: Proposal) -> Close | Ours | Proposal:
        """Steps 3 to 6 for one proposal; a changed world makes another one."""
        await self._begin_round(state, proposal)
        while True:
            agreed = await self._unless_withdrawn(state, self._until_agreed(state))
            if agreed is None:
                agreed = await pay(state, self._postbox)
            if isinstance(agreed, RightLost):
                self._wait_again(state, agreed)
            elif isinstance(agreed, Changed):
                return await self._next_proposal(state, agreed)
            else:
                return agreed

    async def _until_agreed(self, state: RunState) -> Close | Ours | Changed | RightLost | None:
        """Wait for the decisions that the proposal needs and look at the world again.

        None: all is agreed, and the run is past the point where it could be withdrawn.
        """
        if not state.decided:
            state.enter(Stage.AWAITING_APPROVAL)
            state.show_waiting()
            if (expired := await wait_for_decision(state, self._clerk, self._postbox)) is not None:
                return expired
        if state.rejection is not None:
            return state.rejection
        state.enter(Stage.RECHECKING)
        finding = await recheck_now(state)
        # A withdrawal that has arrived is judged before the money moves.
        await workflow.wait_condition(lambda: self._clerk.idle)
        if state.withdrawal is not None:
            return _withdrawn(state.withdrawal)
        if not isinstance(finding, Clear):
            return finding
        state.enter(Stage.REFUNDING)
        return None

    async def _begin_round(self, state: RunState, proposal: Proposal) -> None:
        if state.case is None:
            raise RuntimeError("a proposal is made from facts")
        policy = state.case.policy
        state.begin_round(proposal, workflow.now() + policy.time_to_decide)
        needs = "; ".join(proposal.why_a_person) or "no approval needed"
        rule = f"policy {proposal.policy_version}: {needs}"
        state.note("proposed", f"{proposal.amount}, round {proposal.round}, {rule}")
        if not proposal.approvals_needed:
            self._clerk.look_again()
            return
        state.enter(Stage.AWAITING_APPROVAL)
        if not state.names_deciders:
            self._postbox.send(state, notices.under_review_unnamed(state))
        if self._clerk.look_again():
            await self._judge_what_came_early()
        if state.decided:
            return
        if state.names_deciders:
            self._postbox.send(state, notices.under_review(state))
        self._postbox.send(state, notices.approval_request(state))

    async def _judge_what_came_early(self) -> None:
        """Whoever has decided already is not asked. A directory that is down delays no mail."""
        try:
            await workflow.wait_condition(
                lambda: self._clerk.idle,
                timeout=_EARLY_PATIENCE,
                timeout_summary="Judge what came before the proposal",
            )
        except TimeoutError:
            return

    def _wait_again(self, state: RunState, lost: RightLost) -> None:
        state.lose_approvals(lost.standings)
        self._postbox.send(state, notices.approver_lost(state, state.lost_approvals))

    async def _next_proposal(self, state: RunState, changed: Changed) -> Close | Proposal:
        if state.case is None or state.proposal is None:
            raise RuntimeError("only a proposal can change")
        state.claim = changed.claim
        state.changed = changed.what
        state.note("changed", changed.what)
        if state.rounds >= state.case.policy.max_rounds:
            words = f"The order changed in each of {state.rounds} rounds: {changed.what}."
            return Close(
                outcome=Outcome.NEEDS_HUMAN, reason=Reason.TOO_MANY_ROUNDS, explanation=words
            )
        next_round = state.proposal.round + 1
        return propose(state.request, state.case, changed.claim, state.assessment, next_round)

    async def _read_facts(self, state: RunState) -> Case | None:
        query = CaseQuery(environment=state.request.environment, request=state.request)
        return await calls.read_case(
            query,
            f"Read order {state.request.order_id}, payment, policy and staff",
            calls.FACTS_PATIENCE,
            lambda why: state.note("facts_unavailable", why),
        )

    async def _unless_withdrawn(
        self, state: RunState, step: Coroutine[Any, Any, Step]
    ) -> Step | Close:
        """Do a step before the money, and drop it where the request is withdrawn meanwhile."""
        task = asyncio.create_task(step)
        await workflow.wait_condition(lambda: task.done() or state.withdrawal is not None)
        if task.done() or state.withdrawal is None:
            return await task
        task.cancel()
        return _withdrawn(state.withdrawal)

    def _take_cancel(self, state: RunState) -> None:
        if state.closed is not None:
            state.note("cancel_refused", "the run has come to its end and tells it")
        elif state.past_withdrawal:
            state.note("cancel_refused", "the refund is under way and is carried to its end")
        elif state.withdrawal is None:
            state.withdrawal = Withdrawal(
                by="Temporal", reason=Reason.CANCELLED_IN_TEMPORAL, comment=""
            )
            state.note("withdrawn", "cancelled in Temporal")

    async def _sure_of_no_refund(self, state: RunState, close: Close) -> Close:
        """An end that says "no refund of ours" after an unknown attempt looks once more."""
        if not state.unresolved or close.outcome not in _SAYS_NO_REFUND:
            return close
        finding = await recheck_now(state)
        if isinstance(finding, Ours):
            return await verify(state, finding.refund)
        if isinstance(finding, Close) and finding.outcome is Outcome.NEEDS_HUMAN:
            return finding
        return close

    async def _tell_the_end(self, state: RunState, close: Close) -> Close:
        """Step 8: say how it ended, to everybody who must hear it, and only then close."""
        state.closed = close
        state.note("ended", f"{close.outcome.value}: {close.explanation}")
        # Side by side: an order service that is down keeps no mail back, nor the other way round.
        told = asyncio.create_task(tell_order_service(state, self._postbox, close))
        await self._postbox.empty()
        self._postbox.send(state, notices.end(state, close))
        await told
        await self._postbox.empty()
        state.enter(Stage.CLOSED)
        return close


def _read_request(inputs: Sequence[RawValue]) -> RefundRequest:
    info = workflow.info()
    if info.workflow_type != REFUND_WORKFLOW:
        raise _bad_request(f"there is no workflow type {info.workflow_type!r}")
    if len(inputs) != 1:
        raise _bad_request(f"one input is needed, a refund request; {len(inputs)} came")
    try:
        request = RefundRequest.model_validate_json(inputs[0].payload.data)
    except ValidationError as error:
        where = "; ".join(
            f"{'.'.join(str(part) for part in problem['loc']) or 'input'}: {problem['msg']}"
            for problem in error.errors(include_input=False, include_url=False)[:5]
        )
        raise _bad_request(f"the input is no refund request: {where}") from None
    if info.workflow_id != workflow_id(request.order_id):
        belongs = workflow_id(request.order_id)
        raise _bad_request(f"order {request.order_id} is refunded under id {belongs} alone")
    return request


def _bad_request(words: str) -> ApplicationError:
    return ApplicationError(words, type="bad_request", non_retryable=True)


def _withdrawn(withdrawal: Withdrawal) -> Close:
    said = withdrawal.comment.rstrip(".")
    comment = f": {said}" if said else ""
    return Close(
        outcome=Outcome.WITHDRAWN,
        reason=withdrawal.reason,
        explanation=f"Withdrawn by {withdrawal.by}{comment}.",
    )


def _facts_unavailable() -> Close:
    return Close(
        outcome=Outcome.NEEDS_HUMAN,
        reason=Reason.FACTS_UNAVAILABLE,
        explanation="Order, payment, staff or policy could not be read for a day.",
    )
