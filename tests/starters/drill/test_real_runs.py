"""The checkers on real runs: what the provider, the mailbox and the history really look like."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflowservice.v1 import ResetWorkflowExecutionRequest
from temporalio.client import Client

from domain import names
from domain.models import Outcome
from domain.request import Proposal
from starters.drill.checks import check
from starters.drill.collect import mail_of, noted_of, refund_of
from starters.drill.evidence import Evidence, Sent
from starters.drill.plan import Decision, Plan, Step
from tests.signing import GRACE, MARIA, SAM, TOM, statement_id
from tests.world import Run, World, event_types


class Drill:
    """One plan on a real run, with everything that was sent."""

    def __init__(self, world: World, plan: Plan) -> None:
        """Nothing has happened yet."""
        self.world, self.plan = world, plan
        self.sent: list[Sent] = []
        self.run: Run

    async def begin(self) -> None:
        """Make the order, and start the run."""
        plan = self.plan
        delivered = datetime.now(UTC) - timedelta(days=plan.delivered_days_ago)
        order = {
            "id": plan.order_id,
            "customer": {
                "name": "Ada Park",
                "email": f"{plan.order_id}@customers.example",
                "locale": "en_US",
            },
            "payment": f"pi_{plan.order_id}",
            "total": {"amount_minor": plan.total_minor, "currency": plan.currency},
            "items": [{"name": "Lamp"}],
            "placed_at": (delivered - timedelta(days=4)).isoformat(),
            "delivered_at": delivered.isoformat(),
        }
        await self.world.control("orders", order)
        if plan.first_status != "succeeded":
            change = {"next_refund_status": plan.first_status}
            await self.world.control(f"payments/pi_{plan.order_id}", change)
        self.run = await self.world.start(plan.order_id, amount=plan.asked, message=plan.letter)

    async def hand_refund(self, minor: int) -> None:
        """A colleague refunds something in the provider's dashboard."""
        body = {"payment": f"pi_{self.plan.order_id}", "amount_minor": minor}
        await self.world.control("hand_refund", body)

    async def decide(self, on: Proposal, verdict: str = "approve", by: str = MARIA) -> None:
        """Somebody decides."""
        statement = self.world.signer.decision(on, verdict, by=by)
        self.sent.append(Sent(statement_id(statement), "decision", by, verdict, on.proposal_id))
        await self.run.send(statement)

    async def forge(self, on: Proposal) -> None:
        """Somebody decides in another's name."""
        statement = self.world.signer.decision(on, by=TOM, key_of=SAM)
        self.sent.append(Sent(statement_id(statement), "forged", TOM, "approve", on.proposal_id))
        await self.run.send(statement)

    async def garbage(self) -> None:
        """Nobody can read these."""
        await self.run.handle.signal(names.SIGNAL_DECIDE, {"not": "a statement"})
        await self.run.handle.signal(names.SIGNAL_DECIDE)
        await self.run.handle.signal("praise", "well done")
        self.sent += [Sent("", "garbage"), Sent("", "nothing"), Sent("", "unknown_signal")]

    async def withdraw(self) -> None:
        """The requester takes it back."""
        statement = self.world.signer.withdrawal(self.run.request)
        self.sent.append(Sent(statement_id(statement), "withdrawal", SAM))
        await self.run.send(statement, names.SIGNAL_WITHDRAW)

    async def reset(self) -> None:
        """Somebody resets the run to its first workflow task."""
        history = await self.run.history()
        first = next(
            e for e in history.events if e.workflow_task_completed_event_attributes.identity
        )
        client: Client = self.world.client
        await client.workflow_service.reset_workflow_execution(
            ResetWorkflowExecutionRequest(
                namespace=client.namespace,
                workflow_execution=WorkflowExecution(
                    workflow_id=self.run.handle.id,
                    run_id=self.run.handle.first_execution_run_id or "",
                ),
                reason="a drill",
                request_id="reset-1",
                workflow_task_finish_event_id=first.event_id,
            )
        )

    async def evidence(self) -> Evidence:
        """What is left after the end."""
        plan, client = self.plan, self.world.client
        last = client.get_workflow_handle(self.run.handle.id)
        ended = Run(self.world, self.run.request, last)
        status = await ended.result()
        histories = []
        async for one in client.list_workflows(f"WorkflowId = '{last.id}'"):
            handle = client.get_workflow_handle(one.id, run_id=one.run_id)
            histories.append((one.start_time, await handle.fetch_history()))
        all_books = await self.world.books()
        books = all_books["payments"][f"pi_{plan.order_id}"]
        messages = (await self.world.http.get("/mailbox.json")).json()["messages"]
        scope = f"local/refund-order-{plan.order_id}/"
        return Evidence(
            plan=plan,
            request_id=self.run.request.request_id,
            sent=self.sent,
            histories=[history for _, history in sorted(histories, key=lambda pair: pair[0])],
            status=status,
            refunds=[refund_of(refund) for refund in books["refunds"]],
            noted=[noted_of(row) for row in all_books["orders"].get(plan.order_id, [])],
            captured_minor=books["captured"]["amount_minor"],
            currency=books["captured"]["currency"],
            mails=[mail_of(m) for m in messages if (m["key"] or "").startswith(scope)],
        )


async def approved(drill: Drill) -> None:
    """Approved between messages that do not count."""
    proposal = await drill.run.waiting()
    await drill.garbage()
    await drill.forge(proposal)
    await drill.decide(proposal)


async def approved_by_two(drill: Drill) -> None:
    """Approved by a manager and the finance director."""
    proposal = await drill.run.waiting()
    await drill.decide(proposal)
    await drill.decide(proposal, by=GRACE)


async def refunded_in_part_by_hand(drill: Drill) -> None:
    """A part was refunded by hand, and the rest is decided anew."""
    proposal = await drill.run.waiting()
    await drill.hand_refund(12_000)
    await drill.decide(proposal)
    status = await drill.run.until(lambda s: s.round == 2 and s.proposal is not None)
    assert status.proposal is not None
    await drill.decide(status.proposal)


async def refunded_by_hand(drill: Drill) -> None:
    """All of it was refunded by hand."""
    proposal = await drill.run.waiting()
    await drill.hand_refund(42_000)
    await drill.decide(proposal)


async def rejected(drill: Drill) -> None:
    """A manager says no."""
    await drill.decide(await drill.run.waiting(), "reject")


async def withdrawn(drill: Drill) -> None:
    """The requester takes it back."""
    await drill.run.waiting()
    await drill.withdraw()


async def cancelled(drill: Drill) -> None:
    """Somebody cancels the run in Temporal."""
    await drill.run.waiting()
    await drill.run.handle.cancel()
    drill.sent.append(Sent("", "cancel"))


async def expired(drill: Drill) -> None:
    """Nobody decides."""
    await drill.run.waiting()
    await drill.run.move_on(hours=169)


async def reset(drill: Drill) -> None:
    """The run is reset after it had ended."""
    await approved(drill)
    await drill.run.result()
    await drill.reset()


async def untouched(drill: Drill) -> None:
    """Nobody does anything."""


def step(do: str, at: str = "wait", **how: Any) -> Step:
    """Something that happens to the run."""
    return Step.model_validate({"do": do, "at": at, **how})


STORIES: dict[str, tuple[Outcome, Callable[[Drill], Awaitable[None]], dict[str, Any]]] = {
    "approved": (Outcome.REFUNDED, approved, {}),
    "two": (Outcome.REFUNDED, approved_by_two, {"total_minor": 185_000}),
    "small": (Outcome.REFUNDED, untouched, {"total_minor": 3_500}),
    "part": (
        Outcome.REFUNDED,
        refunded_in_part_by_hand,
        {"steps": [step("hand_refund", minor=12_000)]},
    ),
    "by-hand": (
        Outcome.ALREADY_REFUNDED,
        refunded_by_hand,
        {"steps": [step("hand_refund", minor=42_000)]},
    ),
    "rejected": (Outcome.REJECTED, rejected, {"decision": Decision.REJECT}),
    "withdrawn": (Outcome.WITHDRAWN, withdrawn, {"decision": Decision.WITHDRAW}),
    "cancelled": (Outcome.WITHDRAWN, cancelled, {"decision": Decision.CANCEL}),
    "expired": (Outcome.EXPIRED, expired, {"decision": Decision.NOBODY}),
    "declined": (Outcome.DECLINED, untouched, {"delivered_days_ago": 75}),
    "too-much": (Outcome.DECLINED, untouched, {"asked": "420.01"}),
    "failed": (Outcome.REFUND_FAILED, approved, {"first_status": "failed"}),
    "unknown": (Outcome.NEEDS_HUMAN, approved, {"first_status": "on_hold"}),
    "nobody": (Outcome.NEEDS_HUMAN, untouched, {"total_minor": 5_000_001}),
    "reset": (Outcome.REFUNDED, reset, {"steps": [step("reset", "end")]}),
}


@pytest.mark.parametrize("story", STORIES)
async def test_a_real_run_that_kept_its_promises_has_no_finding(world: World, story: str) -> None:
    """What the company and the server really write down is what the checkers know how to read."""
    outcome, happen, changes = STORIES[story]
    fields: dict[str, Any] = {"name": story, "order_id": f"d-1-{story}", "total_minor": 42_000}
    drill = Drill(world, Plan.model_validate(fields | changes))
    await drill.begin()
    await happen(drill)
    evidence = await drill.evidence()
    assert evidence.status is not None
    assert evidence.status.outcome is outcome
    assert check(evidence) == []
    if story == "approved":
        assert event_types(evidence.histories[-1])["WORKFLOW_EXECUTION_SIGNALED"] == 5
