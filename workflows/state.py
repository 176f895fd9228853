"""All that a run remembers, and how it shows itself."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from temporalio import workflow
from temporalio.common import SearchAttributeKey, SearchAttributeUpdate

with workflow.unsafe.imports_passed_through():
    from domain import names
    from domain.approvals import (
        Approval,
        Standing,
        is_complete,
        missing_in_words,
        still_counting,
    )
    from domain.case import Case
    from domain.models import Assessment, Refund, Stage, TokenUsage
    from domain.money import Money
    from domain.outcomes import Close, Reason
    from domain.policy import Claim
    from domain.request import Proposal, RefundRequest
    from domain.trail import DETAIL_LIMIT, Entry, Refusal, RunStatus, Trail

STAGE = SearchAttributeKey.for_keyword(names.ATTRIBUTE_STAGE)
OUTCOME = SearchAttributeKey.for_keyword(names.ATTRIBUTE_OUTCOME)
WAITS_FOR = SearchAttributeKey.for_keyword(names.ATTRIBUTE_WAITS_FOR)
CURRENCY = SearchAttributeKey.for_keyword(names.ATTRIBUTE_CURRENCY)
AMOUNT_MINOR = SearchAttributeKey.for_int(names.ATTRIBUTE_AMOUNT_MINOR)
DEADLINE = SearchAttributeKey.for_datetime(names.ATTRIBUTE_DEADLINE)


@dataclass(frozen=True)
class Withdrawal:
    by: str
    reason: Reason
    comment: str


@dataclass
class RunState:
    """The run's memory. Every change is made by the story or by the clerk, never by a handler."""

    request: RefundRequest
    stage: Stage = Stage.INVESTIGATING
    accepted: bool = False
    case: Case | None = None
    claim: Claim | None = None
    assessment: Assessment | None = None
    names_deciders: bool = False
    """Whether the "under review" mail says who will decide; a run of release 1 sent it before."""
    proposal: Proposal | None = None
    rounds: int = 0
    """How many proposals this run has made."""
    changed: str = ""
    deadline: datetime | None = None
    approvals: list[Approval] = field(default_factory=list)
    rejection: Close | None = None
    withdrawal: Withdrawal | None = None
    lost_approvals: int = 0
    """How often an approval lost its right before the money."""
    counted: set[str] = field(default_factory=set)
    refund: Refund | None = None
    unresolved: bool = False
    """Whether an attempt to refund was cut off: "not refunded" then needs another look."""
    closed: Close | None = None
    usage: TokenUsage = field(default_factory=TokenUsage)
    trail: Trail = field(default_factory=Trail)

    @property
    def scope(self) -> str:
        return names.request_scope(
            self.request.environment, self.request.order_id, self.request.request_id
        )

    def key(self, purpose: str) -> str:
        return names.idempotency_key(self.scope, purpose)

    @property
    def amount(self) -> Money | None:
        """What was refunded, or would be."""
        if self.refund is not None:
            return self.refund.amount
        if self.proposal is not None:
            return self.proposal.amount
        return self.claim.amount if self.claim is not None else None

    @property
    def decided(self) -> bool:
        """Whether the proposal has all the approvals that it needs, or one rejection."""
        if self.proposal is None:
            return False
        return self.rejection is not None or is_complete(self.proposal, self.approvals)

    @property
    def missing(self) -> str:
        """Whose approval the proposal still waits for, in words; empty where nobody's."""
        if self.proposal is None or self.rejection is not None:
            return ""
        return missing_in_words(self.proposal, self.approvals)

    @property
    def past_withdrawal(self) -> bool:
        """Whether a withdrawal would come too late to be true."""
        return self.stage in (Stage.REFUNDING, Stage.VERIFYING, Stage.CLOSED)

    def note(
        self,
        what: str,
        detail: str = "",
        *,
        who: str = "",
        message_id: str = "",
        refusal: Refusal | None = None,
    ) -> None:
        """Add a row to the trail, and show it to whoever looks at the run in the Web UI.

        A refused message is shown with all that came with it, by `show`: garbage comes in floods,
        and writing the details anew is what costs most.
        """
        self.trail.add(
            Entry(
                at=workflow.now(),
                what=what,
                detail=_clip(detail, DETAIL_LIMIT),
                who=_clip(who, 254),
                message_id=message_id,
                refusal=refusal,
            )
        )
        if refusal is None:
            self.show()

    def show(self) -> None:
        """Write the run's current details, as the Web UI shows them."""
        workflow.set_current_details(self._details())

    def enter(self, stage: Stage) -> None:
        self.stage = stage
        self.show()

    def begin_round(self, proposal: Proposal, deadline: datetime) -> None:
        """A new proposal: nothing that was said about an older one carries over."""
        self.proposal = proposal
        self.rounds += 1
        self.deadline = deadline
        self.approvals.clear()
        self.rejection = None

    def lose_approvals(self, standings: Sequence[Standing]) -> None:
        """Back to waiting for the same proposal, under the same deadline.

        An approval that still holds stays: only the others must be given anew.
        """
        if self.proposal is None:
            return
        left = still_counting(self.proposal, self.approvals, standings)
        held = {approval.token for approval in left}
        lost = []
        for approval, now in zip(self.approvals, standings, strict=True):
            if approval.token not in held:
                lost.append(f"{approval.person.name} ({(now.refusal or Refusal.NEEDS_DIRECTOR)})")
        self.approvals = list(left)
        self.lost_approvals += 1
        self.changed = f"an approval does not count any more: {', '.join(lost)}"
        self.note("approval_lost", self.changed)

    def show_waiting(self) -> None:
        if self.proposal is None or self.deadline is None or not self.request.search_attributes:
            return
        workflow.upsert_search_attributes(
            [
                STAGE.value_set(Stage.AWAITING_APPROVAL.value),
                WAITS_FOR.value_set(self.missing),
                CURRENCY.value_set(self.proposal.amount.currency),
                AMOUNT_MINOR.value_set(self.proposal.amount.amount_minor),
                DEADLINE.value_set(self.deadline),
            ]
        )

    def show_closed(self, close: Close) -> None:
        if not self.request.search_attributes:
            return
        updates: list[SearchAttributeUpdate[Any]] = [
            STAGE.value_set(Stage.CLOSED.value),
            OUTCOME.value_set(close.outcome.value),
            WAITS_FOR.value_unset(),
        ]
        if (amount := self.amount) is not None:
            # An approval-free refund never waited, so its amount is not set yet.
            updates.append(CURRENCY.value_set(amount.currency))
            updates.append(AMOUNT_MINOR.value_set(amount.amount_minor))
        workflow.upsert_search_attributes(updates)

    def status(self, now: datetime) -> RunStatus:
        return RunStatus(
            order_id=self.request.order_id,
            request_id=self.request.request_id,
            requester=self.request.requester,
            environment=self.request.environment,
            stage=self.stage,
            accepted=self.accepted,
            outcome=self.closed.outcome if self.closed else None,
            reason=self.closed.reason if self.closed else "",
            explanation=self.closed.explanation if self.closed else "",
            round=self.proposal.round if self.proposal else 0,
            proposal=self.proposal,
            assessment=self.assessment,
            approved_by=tuple(approval.person for approval in self.approvals),
            waits_for=self.missing if self.stage is Stage.AWAITING_APPROVAL else "",
            deadline=self.deadline,
            now=now,
            refund=self.refund,
            asked=self.claim.amount if self.claim else None,
            trail=self.trail.entries,
            refused=dict(self.trail.refused),
            usage=self.usage,
        )

    def _details(self) -> str:
        lines = [f"**Order {self.request.order_id}**: {self.stage.value.replace('_', ' ')}"]
        if self.proposal is not None:
            lines.append(f"- amount: {self.proposal.amount}, round {self.proposal.round}")
            lines.append(f"- proposal: `{self.proposal.proposal_id}`")
        if self.deadline is not None and self.stage is Stage.AWAITING_APPROVAL:
            lines.append(f"- waits for {self.missing}, until {self.deadline:%Y-%m-%d %H:%M} UTC")
        if self.closed is not None:
            lines.append(f"- outcome: **{self.closed.outcome.value}** ({self.closed.reason.value})")
        lines.extend(
            f"- {entry.at:%m-%d %H:%M:%S} {entry.what}: {_plain(entry.detail)}"
            for entry in self.trail.entries[-12:]
        )
        return "\n".join(lines)


def _clip(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _plain(text: str) -> str:
    """Words of customers and models must not become links or markup in the Web UI."""
    return "".join(" " if char in "[]()<>`*_#!|\\\n\r" else char for char in text)[:160]
