"""What one refund costs and how long it takes: `make bench`. Nothing is asserted here.

All runs in processes of its own, as in production. Times within a refund are read from histories:
they are the server's, and nobody who looks from outside slows them down.
"""

import argparse
import asyncio
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import AsyncExitStack
from pathlib import Path

from temporalio.api.enums.v1 import EventType
from temporalio.client import Client, WorkflowHistory

from domain.models import Stage
from domain.names import SIGNAL_DECIDE
from domain.request import RefundRequest
from domain.statements import Verdict
from domain.trail import RunStatus
from starters import books, processes, runs, screen
from starters.demo import LETTER
from starters.folder import Folder
from starters.installation import Installation, local_environment
from starters.start import begin
from starters.statements import Signer
from tests.counting import cost_of
from tests.world import PATIENCE, temporal_program
from workers.sandbox import build_replayer
from workers.settings import LOCAL

REFUND = (sys.executable, "-c", "from starters.cli import main; main()")
BY_NEW = "decision taken up after SIGKILL, by a worker started afterwards, s"
BY_SECOND = "decision taken up after SIGKILL, by a second worker, s"
AIMS = {
    "refund --help, s": 0.25,
    "refund demo, s": 30,
    "billed Actions": 16,
    "history events": 90,
    "history bytes": 40_000,
    BY_NEW: 2,
    BY_SECOND: 2,
}
REPLAYS, HELPS = 50, 7


class Bench:
    """An installation in a folder of its own, and refunds in it."""

    def __init__(self, stack: AsyncExitStack) -> None:
        data = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="refund-bench-")))
        self.stack, self.folder = stack, Folder(data)
        self.lock = stack.enter_context(self.folder.hold())
        program, say = Path(temporal_program()), screen.hint
        self.installation = Installation(
            self.folder, self.lock, program, environment=os.environ, usual_ports=False, say=say
        )
        stack.push_async_callback(self.installation.stop)

    def signer(self, address: str) -> Signer:
        return Signer(self.folder.path / "keys", address)

    async def waiting(self, client: Client, order: str) -> tuple[runs.Found, RunStatus]:
        """A run that waits for a decision and has told everybody so."""
        request = RefundRequest(
            environment=LOCAL,
            order_id=order,
            request_id=f"bench-{order}",
            message=LETTER,
            requester=books.REQUESTER,
            statement="",
        )
        begun = await begin(client, self.signer(books.REQUESTER), request)
        status = await runs.follow(client, begun.found, waits, PATIENCE)
        assert status is not None, f"order {order} shows nothing"
        assert waits(status), f"order {order} does not wait"
        return begun.found, status

    async def approve(self, found: runs.Found, status: RunStatus) -> WorkflowHistory:
        """Approve, and wait for the end; all that happened."""
        assert status.proposal is not None
        signer = self.signer(books.APPROVER)
        statement = signer.decision(LOCAL, status.proposal, Verdict.APPROVE, "")
        await found.handle.signal(SIGNAL_DECIDE, statement)
        await asyncio.wait_for(found.handle.result(), PATIENCE)
        return await found.handle.fetch_history()

    async def start_worker(self, name: str) -> processes.Child:
        """One more worker process, once it polls."""
        environment = local_environment(os.environ, self.folder, self.installation.links)
        module = processes.python_module("workers")
        child = await processes.start(name, self.folder, module, environment, self.lock)
        self.stack.push_async_callback(child.stop)
        await child.ready_line()
        return child


def waits(status: RunStatus) -> bool:
    """Whether the run waits, and both mails about that are out."""
    mails = sum(entry.what == "mail_sent" for entry in status.trail)
    return status.stage is Stage.AWAITING_APPROVAL and mails == 2


def seconds(history: WorkflowHistory, first: str, then: str) -> float:
    """From the first event of one type to the next event of another."""
    events = iter(history.events)
    one, other = (EventType.Value(f"EVENT_TYPE_{name}") for name in (first, then))
    start = next(event for event in events if event.event_type == one)
    end = next(event for event in events if event.event_type == other)
    return float(end.event_time.ToNanoseconds() - start.event_time.ToNanoseconds()) / 1e9


def taken_up(history: WorkflowHistory) -> float:
    """From a decision to the end of the first workflow task that has seen it."""
    return seconds(history, "WORKFLOW_EXECUTION_SIGNALED", "WORKFLOW_TASK_COMPLETED")


async def refunds(bench: Bench) -> dict[str, float]:
    """Two refunds without a kill, and two with one."""
    client = await bench.installation.start()
    found: dict[str, float] = {}
    for order, which in (("8890", "first refund of a worker"), ("8899", "later refund")):
        screen.hint(f"… {which}")
        history = await bench.approve(*await bench.waiting(client, order))
        start = seconds(history, "WORKFLOW_EXECUTION_STARTED", "TIMER_STARTED")
        end = seconds(history, "WORKFLOW_EXECUTION_SIGNALED", "WORKFLOW_EXECUTION_COMPLETED")
        found[f"start to waiting, {which}, s"] = start
        found[f"decision to confirmed, {which}, s"] = end
    cost = cost_of(history)
    found["billed Actions"], found["history events"] = cost.actions, cost.events
    found["history bytes"] = cost.size
    screen.hint("… replay")
    replayer = build_replayer()
    began = time.monotonic()
    for _ in range(REPLAYS):
        await replayer.replay_workflow(history)
    found["histories replayed per second"] = REPLAYS / (time.monotonic() - began)
    screen.hint("… SIGKILL, then a new worker")
    waiting = await bench.waiting(client, "8893")
    os.kill(bench.installation.pids["worker"], signal.SIGKILL)
    began = time.monotonic()
    second = await bench.start_worker("second")
    found["new worker process until it polls, s"] = time.monotonic() - began
    found[BY_NEW] = taken_up(await bench.approve(*waiting))
    screen.hint("… SIGKILL beside a second worker")
    workers = {worker.pid: worker for worker in (second, await bench.start_worker("third"))}
    waiting = await bench.waiting(client, "8896")
    history = await waiting[0].handle.fetch_history()
    tasks = [event.workflow_task_started_event_attributes.identity for event in history.events]
    holder = next(identity for identity in reversed(tasks) if identity)
    await workers[int(holder.partition("@")[0])].kill()
    found[BY_SECOND] = taken_up(await bench.approve(*waiting))
    return found


def command(*arguments: str) -> float:
    """How long a command takes."""
    began = time.monotonic()
    subprocess.run([*REFUND, *arguments], check=True, stdout=subprocess.DEVNULL)
    return time.monotonic() - began


async def main() -> None:
    """Measure all, and print it beside what is aimed at."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print data as JSON")
    as_json = parser.parse_args().json
    screen.hint("… refund --help, refund demo")
    helps = await asyncio.to_thread(lambda: [command("--help") for _ in range(HELPS)])
    found = {"refund --help, s": statistics.median(helps)}
    found["refund demo, s"] = await asyncio.to_thread(command, "demo")
    async with AsyncExitStack() as stack:
        found |= await refunds(Bench(stack))
    if as_json:
        screen.data([{"what": k, "measured": v, "aim": AIMS.get(k)} for k, v in found.items()])
        return
    for what, value in found.items():
        aim = f"{value / AIMS[what]:.0%} of the aim, {AIMS[what]:,}" if what in AIMS else ""
        number = f"{value:,.2f}".removesuffix(".00")
        screen.say(f"{what:68}{number:>9}  {aim}".rstrip())


if __name__ == "__main__":
    asyncio.run(main())
