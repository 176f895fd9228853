"""`refund doctor`: what is wrong with the set-up, and how to mend each."""

import asyncio
import shlex
import stat
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from temporalio.api.enums.v1 import IndexedValueType, TaskQueueType
from temporalio.api.operatorservice.v1 import ListSearchAttributesRequest
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import (
    DescribeNamespaceRequest,
    PollWorkflowTaskQueueRequest,
)
from temporalio.client import Client
from temporalio.service import RPCError

from domain import names
from starters import pollers, schedule, screen
from starters.connect import RPC_TIMEOUT, Target, connect, find_target
from starters.errors import CommandError, Exit, in_one_line, is_namespace_missing
from starters.mending import MENDS, RETENTION_DAYS
from starters.statements import people_with_keys, read_key
from workers.settings import Settings, SettingsError, load_settings

# A statement is refused where the signer's clock is off by more (`skew_minutes` of the policy).
_CLOCK_SECONDS = 30.0
# The shortest poll that the server takes; it answers one second before its end.
_SCRATCH_POLL = timedelta(seconds=2.1)


@dataclass(frozen=True)
class Finding:
    """One check: what was looked at, whether it is well, and how to mend it."""

    check: str
    ok: bool
    detail: str
    mend: str = ""
    fixed: str = ""
    """What `--fix` has done about it, in words."""


async def doctor(*, fix: bool, keys: bool, as_json: bool) -> None:
    """Check everything that can be checked from here, and mend what is safe to mend.

    Raises:
        CommandError: something is wrong.
    """
    findings = await examine(fix=fix, keys=keys)
    if as_json:
        screen.data([_as_data(finding) for finding in findings])
    else:
        _print(findings)
    wrong = sum(not finding.ok for finding in findings)
    if wrong:
        raise CommandError(f"{wrong} of {len(findings)} checks found something", Exit.CHECK_FAILED)


def _as_data(finding: Finding) -> dict[str, Any]:
    """A finding for scripts; what is well has no mend."""
    return asdict(replace(finding, mend="") if finding.ok else finding)


async def examine(*, fix: bool = False, keys: bool = True) -> list[Finding]:
    """All findings, in the order in which to mend them; with `fix`, as they are afterwards.

    Without `keys`, those that people sign with are left out: a worker's machine has none.
    """
    try:
        settings = load_settings()
    except SettingsError as error:
        return [Finding("settings", False, str(error), "Set or unset what is named.")]
    findings = [_settings(settings)]
    if keys:
        findings.append(await asyncio.to_thread(_keys, settings))
    try:
        target = find_target(settings)
        client = await connect(target)
    except CommandError as error:
        mend = "Start it (`refund up`), or set TEMPORAL_ADDRESS."
        return [*findings, Finding("server", False, str(error), mend)]
    findings.append(Finding("server", True, f"{target.address}, from {target.said_by}"))
    return findings + await _server_checks(client, target, settings, fix=fix)


async def _server_checks(
    client: Client, target: Target, settings: Settings, *, fix: bool
) -> list[Finding]:
    try:
        await _namespace(client)
    except RPCError as error:
        mend = f"temporal operator namespace create {_at(client)} --retention {RETENTION_DAYS}d"
        if not is_namespace_missing(error):
            mend = "See the server's log."
        return [Finding("namespace", False, error.message, mend)]
    findings = []
    checks: list[Callable[[], Awaitable[Finding]]] = [
        lambda: _namespace(client),
        lambda: _search_attributes(client),
        lambda: _sweep(client, settings.environment),
        lambda: _queue(client),
        lambda: _clock(client),
        lambda: _ledger(client, settings),
    ]
    for check in checks:
        try:
            finding = await check()
            if fix and not finding.ok and (mends := MENDS.get(finding.check)) is not None:
                done = await mends(client, settings.environment)
                finding = replace(await check(), fixed=done)
            findings.append(finding)
        except RPCError as error:
            said = in_one_line(error)
            mend_it = "Ask for the right to read, and with --fix to change, the namespace."
            findings.append(Finding("permission", False, str(said), mend_it))
    return findings


def _at(client: Client) -> str:
    """The options by which the `temporal` program reaches this very namespace."""
    address = shlex.quote(client.service_client.config.target_host)
    return f"--address {address} --namespace {shlex.quote(client.namespace)}"


async def _namespace(client: Client) -> Finding:
    answer = await client.workflow_service.describe_namespace(
        DescribeNamespaceRequest(namespace=client.namespace), timeout=RPC_TIMEOUT
    )
    kept = answer.config.workflow_execution_retention_ttl.ToTimedelta()
    days = kept.total_seconds() / 86_400
    return Finding(
        "retention",
        kept >= timedelta(days=RETENTION_DAYS),
        f"namespace {client.namespace} keeps closed runs for {days:g} days",
        f"temporal operator namespace update {_at(client)} --retention {RETENTION_DAYS}d",
    )


async def _search_attributes(client: Client) -> Finding:
    answer = await client.operator_service.list_search_attributes(
        ListSearchAttributesRequest(namespace=client.namespace), timeout=RPC_TIMEOUT
    )
    there = {
        name: IndexedValueType.Name(kind).removeprefix("INDEXED_VALUE_TYPE_").title()
        for name, kind in answer.custom_attributes.items()
    }
    missing = [name for name, kind in names.ATTRIBUTE_TYPES.items() if there.get(name) != kind]
    create = " ".join(f"--name {name} --type {names.ATTRIBUTE_TYPES[name]}" for name in missing)
    return Finding(
        "search attributes",
        not missing,
        f"missing: {', '.join(missing)}" if missing else f"all {len(names.ATTRIBUTE_TYPES)}",
        f"temporal operator search-attribute create {_at(client)} {create}",
    )


async def _sweep(client: Client, environment: str) -> Finding:
    """Whether the Schedule is there that finds refunds which fail after their confirmation."""
    schedule_id = names.sweep_id(environment)
    on_it = f"{_at(client)} --schedule-id {schedule_id}"
    found = await schedule.find(client, environment)
    if found is None:
        return Finding("sweep", False, f"there is no schedule {schedule_id}", "refund doctor --fix")
    if what := schedule.differs(found.schedule, environment):
        detail = f"schedule {schedule_id} has another {what}"
        return Finding("sweep", False, detail, "refund doctor --fix")
    if found.schedule.state.paused:
        why = screen.plain(found.schedule.state.note or "no reason given")
        mend = f'temporal schedule toggle {on_it} --unpause --reason "…"'
        return Finding("sweep", False, f"schedule {schedule_id} is paused: {why}", mend)
    if failure := await schedule.last_failure(client, found):
        mend = f"See the run's failure in the Web UI; then: temporal schedule trigger {on_it}"
        return Finding("sweep", False, f"the last sweep has not come to its end: {failure}", mend)
    return Finding("sweep", True, f"schedule {schedule_id}, every {schedule.EVERY}")


async def _queue(client: Client) -> Finding:
    """Whether those poll to whom the server gives tasks."""
    polled = await pollers.look(client, names.TASK_QUEUE)
    return Finding("worker", *pollers.tell(polled, names.TASK_QUEUE, _at(client)))


async def _clock(client: Client) -> Finding:
    """Compare clocks: the server notes when it saw a poller, and we poll a queue of our own."""
    queue = f"refund-doctor-{uuid.uuid4().hex}"
    before = datetime.now(UTC)
    await client.workflow_service.poll_workflow_task_queue(
        PollWorkflowTaskQueueRequest(
            namespace=client.namespace, task_queue=TaskQueue(name=queue), identity="refund doctor"
        ),
        timeout=_SCRATCH_POLL,
    )
    polls = await pollers.pollers_of(client, queue, TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW)
    if not polls:
        return Finding("clock", False, "the server did not tell its time", "Try again.")
    return compare_clocks(before, pollers.seen(polls[0]), datetime.now(UTC))


def compare_clocks(before: datetime, seen: datetime, after: datetime) -> Finding:
    """How far this computer's clock is off the server's, at the least.

    Args:
        before: This computer's time before it polled.
        seen: The server's time of that poll.
        after: This computer's time after it was told.
    """
    off = max((before - seen).total_seconds(), (seen - after).total_seconds(), 0.0)
    way = "ahead of" if seen < before else "behind"
    return Finding(
        "clock",
        off <= _CLOCK_SECONDS,
        f"{off:.0f} s {way} the server's" if off >= 1 else "agrees with the server's",
        "Set this computer's clock (NTP): what it signs would be refused.",
    )


async def _ledger(client: Client, settings: Settings) -> Finding:
    kind = TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY
    polls = await pollers.pollers_of(client, names.TASK_QUEUE, kind)
    hosts = sorted({poller.identity.rpartition("@")[2] for poller in polls})
    url = settings.ledger_url.get_secret_value()
    shared_file = url.startswith("sqlite") and len(hosts) > 1
    detail = "SQLite" if url.startswith("sqlite") else "a database server"
    return Finding(
        "ledger",
        not shared_file,
        f"{detail}, workers on: {', '.join(hosts) or 'no host'}",
        "Workers on several hosts need one PostgreSQL: set NORTHWIND_LEDGER_URL for all of them.",
    )


def _settings(settings: Settings) -> Finding:
    """Good for commands; what only a worker needs may be set on another machine."""
    detail = f"environment {settings.environment}"
    if lacks := settings.lacks_for_a_worker():
        detail += f"; a worker would not start with them: {', '.join(lacks)}"
    return Finding("settings", True, detail)


def _keys(settings: Settings) -> Finding:
    folder = settings.keys_dir
    people = people_with_keys(folder)
    mend = "Put <address>.pem there (Ed25519, PKCS8): chmod 600. Or set NORTHWIND_KEYS_DIR."
    if not folder.exists():
        mend = f"Go to the folder where `refund up` runs, or set NORTHWIND_DATA_DIR. Or: {mend}"
    if not people:
        return Finding("keys", False, f"no private keys in {folder}", mend)
    for person in people:
        file = folder / f"{person}.pem"
        try:
            read_key(file)
        except (CommandError, OSError) as error:
            return Finding("keys", False, str(error), mend)
        if stat.S_IMODE(file.stat().st_mode) & 0o077:
            return Finding("keys", False, f"others can read {file}", f"chmod 600 {file}")
    return Finding("keys", True, f"{len(people)} in {folder}")


def _print(findings: list[Finding]) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 2))
    for finding in findings:
        mark = Text("ok", style="green") if finding.ok else Text("mend", style="bold red")
        table.add_row(mark, finding.check, Text(screen.plain(finding.detail)))
        if finding.fixed:
            table.add_row("", "", Text(f"fixed: {finding.fixed}", style="green"))
        if not finding.ok:
            table.add_row("", "", Text(f"-> {finding.mend}", style="yellow"))
    screen.show(table)
