"""`refund list`: the refunds that there are."""

from dataclasses import asdict, dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from temporalio.client import Client, WorkflowExecution, WorkflowExecutionStatus
from temporalio.service import RPCError, RPCStatusCode

from domain import names
from domain.models import Outcome, Stage
from domain.money import Money
from starters import runs, screen
from starters.connect import RPC_TIMEOUT, connect_by
from starters.errors import CommandError, Exit
from workers.settings import Settings

if TYPE_CHECKING:
    from domain.trail import RunStatus


@dataclass(frozen=True)
class Filter:
    """Which runs to show."""

    waiting: bool = False
    order: str | None = None
    outcome: Outcome | None = None
    limit: int = 50


def make_filter(*, waiting: bool, order: str | None, outcome: str | None, limit: int) -> Filter:
    """What was typed, as a filter.

    Raises:
        CommandError: there is no such outcome.
    """
    try:
        return Filter(waiting, order, Outcome(outcome) if outcome is not None else None, limit)
    except ValueError:
        known = ", ".join(Outcome)
        raise CommandError(f"--outcome: {outcome} is none of {known}", Exit.USAGE) from None


@dataclass(frozen=True)
class Row:
    """One run, as the list shows it."""

    workflow_id: str
    run_id: str
    order_id: str
    state: str
    stage: str
    outcome: str
    waits_for: str
    amount_minor: int | None
    currency: str
    deadline: datetime | None
    started_at: datetime
    request_id: str

    def money(self) -> str:
        if self.amount_minor is None or not self.currency:
            return ""
        return screen.money(Money(amount_minor=self.amount_minor, currency=self.currency))


async def list_runs(settings: Settings, wanted: Filter, *, as_json: bool) -> None:
    """Print the runs that fit, newest first.

    Raises:
        CommandError: Temporal cannot be reached, or the order id is none.
    """
    client = await connect_by(settings)
    try:
        rows = await _by_attributes(client, wanted)
    except RPCError as error:
        if error.status is not RPCStatusCode.INVALID_ARGUMENT:
            raise
        screen.hint(
            "Note: this namespace does not know the search attributes, so each run is asked one "
            "by one; `refund doctor` says how to register them."
        )
        rows = await _one_by_one(client, wanted)
    if as_json:
        screen.data([asdict(row) for row in rows])
    elif rows:
        _print(rows, with_run_ids=wanted.order is not None)
        if len(rows) == wanted.limit:
            screen.hint(f"The newest {wanted.limit} are shown; --limit shows more.")
    else:
        screen.say(_nothing(wanted))


def _nothing(wanted: Filter) -> str:
    if wanted == Filter():
        return "There are no refunds."
    if wanted == Filter(waiting=True, limit=wanted.limit):
        return "No refund waits for a decision."
    return "There is no such refund."


async def _by_attributes(client: Client, wanted: Filter) -> list[Row]:
    query = _query(wanted)
    if wanted.waiting:
        query += f' AND {names.ATTRIBUTE_STAGE} = "{Stage.AWAITING_APPROVAL.value}"'
    if wanted.outcome is not None:
        query += f' AND {names.ATTRIBUTE_OUTCOME} = "{wanted.outcome.value}"'
    # Without a filter the server would not look at the attributes, and not say that it has none.
    if not wanted.waiting and wanted.outcome is None:
        await client.count_workflows(f'{names.ATTRIBUTE_STAGE} = ""', rpc_timeout=RPC_TIMEOUT)
    return [
        await _row(run, None)
        async for run in client.list_workflows(query, limit=wanted.limit, rpc_timeout=RPC_TIMEOUT)
    ]


async def _one_by_one(client: Client, wanted: Filter) -> list[Row]:
    rows: list[Row] = []
    async for run in client.list_workflows(_query(wanted), rpc_timeout=RPC_TIMEOUT):
        found = await runs.find(client, run.id, run.run_id)
        row = await _row(run, await runs.read(found) if found is not None else None)
        if wanted.waiting and row.stage != Stage.AWAITING_APPROVAL:
            continue
        if wanted.outcome is not None and row.outcome != wanted.outcome:
            continue
        rows.append(row)
        if len(rows) == wanted.limit:
            break
    return rows


def _query(wanted: Filter) -> str:
    query = f'WorkflowType = "{names.REFUND_WORKFLOW}"'
    if wanted.order is not None:
        query += f' AND WorkflowId = "{runs.resolve(wanted.order)}"'
    if wanted.waiting:
        query += ' AND ExecutionStatus = "Running"'
    return query


async def _row(run: WorkflowExecution, status: "RunStatus | None") -> Row:
    shown: dict[str, Any] = {
        pair.key.name: pair.value for pair in run.typed_search_attributes.search_attributes
    }
    amount = status.proposal.amount if status is not None and status.proposal else None
    memo = await run.memo()
    closed = run.status is not WorkflowExecutionStatus.RUNNING
    stage = status.stage.value if status is not None else shown.get(names.ATTRIBUTE_STAGE, "")
    outcome = status.outcome.value if status is not None and status.outcome else ""
    return Row(
        workflow_id=run.id,
        run_id=run.run_id,
        order_id=names.order_of_workflow(run.id) or run.id,
        state=run.status.name.lower() if run.status is not None else "unknown",
        stage=Stage.CLOSED.value if closed else stage,
        outcome=outcome or shown.get(names.ATTRIBUTE_OUTCOME, ""),
        waits_for=shown.get(names.ATTRIBUTE_WAITS_FOR, ""),
        amount_minor=(amount.amount_minor if amount else shown.get(names.ATTRIBUTE_AMOUNT_MINOR)),
        currency=amount.currency if amount else shown.get(names.ATTRIBUTE_CURRENCY, ""),
        deadline=status.deadline if status is not None else shown.get(names.ATTRIBUTE_DEADLINE),
        started_at=run.start_time,
        request_id=str(memo.get(names.MEMO_REQUEST_ID, "")),
    )


def _print(rows: list[Row], *, with_run_ids: bool) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name in ("order", "how it stands", "amount", "waits for", "decide until", "started"):
        table.add_column(name, justify="right" if name == "amount" else "left")
    if with_run_ids:
        # One order's runs differ by nothing else that a person could name.
        table.add_column("run id", no_wrap=True)
    for row in rows:
        open_deadline = row.deadline if row.stage == Stage.AWAITING_APPROVAL else None
        table.add_row(
            screen.plain(row.order_id),
            screen.words(_how(row)),
            row.money(),
            row.waits_for,
            screen.deadline(open_deadline),
            screen.instant(row.started_at),
            *([row.run_id] if with_run_ids else []),
        )
    screen.show(table)


def _how(row: Row) -> str:
    if row.state not in ("running", "completed"):
        return f"{row.state} from outside"
    return row.outcome or row.stage or row.state
