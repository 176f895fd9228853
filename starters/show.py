"""`refund show`: the whole story of one run, with a worker or without one."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from domain import names
from domain.approvals import missing_in_words
from domain.models import Outcome
from domain.request import RefundRequest
from domain.trail import RunStatus
from starters import runs, screen
from starters.connect import connect_by
from workers.settings import Settings

_FIRST_LINES_OF_A_LETTER = 12


@dataclass(frozen=True)
class Work:
    """An Activity that is under way or tried again, as the server tells it."""

    activity: str
    attempt: int
    last_failure: str


@dataclass(frozen=True)
class View:
    """All that is known of a run."""

    found: runs.Found
    request: RefundRequest | None
    status: RunStatus | None
    attributes: dict[str, Any]
    work: list[Work]
    ended_by: str
    """Why the run ended from outside; empty where it did not."""

    @property
    def source(self) -> str:
        """Where the story comes from, and what it may therefore lack."""
        if self.status is not None:
            return "the run itself" if self.found.is_open else "its result"
        if self.found.is_open:
            return "the server's record alone: no worker answered"
        return "the server's record alone: it left no result"


async def show(settings: Settings, run: str, run_id: str | None, *, as_json: bool) -> None:
    """Print what is known of a run.

    Raises:
        CommandError: there is no such run.
    """
    client = await connect_by(settings)
    view = await read_view(await runs.find_or_fail(client, run, run_id))
    if as_json:
        screen.data(_as_data(view))
    else:
        _print(view)


async def read_view(found: runs.Found) -> View:
    """Collect what server, history and worker know."""
    description = found.description
    attributes = {
        pair.key.name: pair.value
        for pair in description.typed_search_attributes.search_attributes
        if pair.key.name in names.ATTRIBUTE_TYPES
    }
    work = [
        Work(info.activity_type.name, info.attempt, info.last_failure.message)
        for info in description.raw_description.pending_activities
    ]
    status = await runs.read(found)
    ended_by = await runs.failure(found) if status is None and not found.is_open else ""
    return View(found, await runs.read_request(found), status, attributes, work, ended_by)


def _as_data(view: View) -> dict[str, Any]:
    found = view.found
    return {
        "workflow_id": found.workflow_id,
        "run_id": found.run_id,
        "state": found.state,
        "started_at": found.description.start_time,
        "closed_at": found.description.close_time,
        "request_id": found.request_id,
        "request": view.request.model_dump(exclude={"statement"}) if view.request else None,
        "search_attributes": view.attributes,
        "source": view.source,
        "ended_by": view.ended_by,
        "under_way": [vars(work) for work in view.work],
        "status": view.status,
    }


def _print(view: View) -> None:
    from rich.rule import Rule
    from rich.text import Text

    screen.show(Text(f"Refund of order {view.found.order_id}", style="bold"))
    screen.show(_facts(view))
    if view.request is not None:
        screen.show(Rule("The customer wrote", align="left", style="dim"))
        screen.show(Text(_letter(view.request.message)))
    if view.status is not None and view.status.assessment is not None:
        assessment = view.status.assessment
        clauses = ", ".join(assessment.cited_clauses)
        title = f"The model says {assessment.recommendation.value} ({assessment.category.value})"
        screen.show(Rule(f"{title} {screen.plain(clauses)}".rstrip(), align="left", style="dim"))
        screen.show(Text(screen.plain(assessment.summary)))
    if view.status is not None:
        screen.show(Rule("What happened", align="left", style="dim"))
        screen.show(screen.timeline(view.status.trail))
    if view.work:
        screen.show(Rule("Under way", align="left", style="dim"))
        for work in view.work:
            again = f", attempt {work.attempt}" if work.attempt > 1 else ""
            why = f": {work.last_failure}" if work.last_failure else ""
            screen.show(Text(screen.plain(f"{screen.words(work.activity)}{again}{why}")))
    if view.status is None:
        screen.show(Text(f"This is {view.source}.", style="dim"))


def _facts(view: View) -> Any:
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True, style="dim")
    table.add_column()
    for name, value in _rows(view):
        if value:
            table.add_row(name, Text(screen.plain(value)))
    return table


def _rows(view: View) -> list[tuple[str, str]]:
    found, status, request = view.found, view.status, view.request
    proposal = status.proposal if status is not None else None
    rows = [("run", f"{found.workflow_id}  {found.run_id}")]
    rows.append(("request", found.request_id))
    rows.append(("handed in by", request.requester if request else ""))
    rows.append(("asked", (request.amount or "all that is left") if request else ""))
    rows.append(("state", _state(view)))
    if proposal is not None:
        amount = screen.money(proposal.amount)
        rows.append(("proposal", f"{amount}, round {proposal.round}, {proposal.proposal_id}"))
        if proposal.taken_before.amount_minor > 0:
            rows.append(("refunded before", screen.money(proposal.taken_before)))
        why = "; ".join(proposal.why_a_person)
        needs = missing_in_words(proposal, ())
        rows.append(("needs", f"{needs}, since {why}" if needs else "no approval"))
    if status is not None and status.approved_by:
        people = ", ".join(person.name for person in status.approved_by)
        missing = f"; still needed: {status.waits_for}" if status.waits_for else ""
        rows.append(("approved by", f"{people}{missing}"))
    if status is not None and found.is_open:
        rows.append(("decide until", screen.deadline(status.deadline)))
    elif status is None and isinstance(deadline := _deadline(view), datetime):
        rows.append(("decide until", screen.deadline(deadline)))
    if status is not None and status.refund is not None:
        refund = status.refund
        rows.append(("refund", f"{screen.money(refund.amount)}, {refund.id}, {refund.status}"))
    if status is not None and status.outcome is Outcome.NEEDS_HUMAN:
        go_on = f"mend the cause (docs/runbook.md), then: refund retry {found.order_id}"
        rows.append(("to go on", go_on))
    rows.append(("started", screen.instant(found.description.start_time)))
    rows.append(("closed", screen.instant(found.description.close_time)))
    if status is not None and status.usage.requests:
        usage = status.usage
        tokens = f"{usage.input_tokens} tokens in, {usage.output_tokens} out"
        rows.append(("model", f"{usage.requests} requests, {tokens}"))
    if status is not None and status.refused:
        counts = ", ".join(f"{words} {count}" for words, count in status.refused.items())
        rows.append(("refused", counts))
    return rows


def _deadline(view: View) -> Any:
    return view.attributes.get(names.ATTRIBUTE_DEADLINE)


def _state(view: View) -> str:
    if view.status is not None:
        return screen.outcome_line(view.status)
    if view.ended_by:
        return f"{view.found.state}: {view.ended_by}"
    stage = view.attributes.get(names.ATTRIBUTE_STAGE)
    return f"{view.found.state}, {screen.words(str(stage))}" if stage else view.found.state


def _letter(message: str) -> str:
    lines = screen.plain(message).splitlines()
    more = len(lines) - _FIRST_LINES_OF_A_LETTER
    shown = lines[:_FIRST_LINES_OF_A_LETTER]
    return "\n".join([*shown, f"… {more} more lines (--json shows all)"] if more > 0 else shown)
