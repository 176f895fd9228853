"""The processes of a drill: Temporal, the company and workers, which can be ended one by one."""

import asyncio
import os
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self, TypeVar

import httpx
from temporalio.client import Client
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.testing import TimeSkipper, TimeSkippingConfig

from domain import names
from starters.drill.deploy import Code
from starters.drill.gate import Gate
from starters.drill.patience import patiently
from starters.drill.plan import Process
from starters.drill.rights import Rights
from starters.errors import CommandError, Exit
from starters.folder import Folder
from starters.installation import NAMESPACE, Host, Installation
from starters.runtime import quiet_runtime
from workers.settings import LOCAL

Answer = TypeVar("Answer")
AtEnd = Callable[[], None]

# A process that was ended is back within seconds; what asks meanwhile tries again for so long.
PATIENCE_SECONDS = 60.0
_PAUSE_SECONDS = 0.1
# Runs can be moved on in time, and the server looks at its timers often enough for that.
_SERVER_OPTIONS = (
    *("--dynamic-config-value", "frontend.WorkflowTimeSkippingEnabled=true"),
    *("--dynamic-config-value", 'history.timerProcessorMaxTimeShift="10ms"'),
)
SECOND_WORKER = "worker-2"


@dataclass(frozen=True)
class Ended:
    """Some processes were ended at one moment."""

    at: float
    """By the monotonic clock, in seconds."""
    by: str
    """The order whose plan it was in."""
    cuts_off: bool
    """Whether an Activity may have been cut off: a worker, or the company, was among them."""


def _future() -> "asyncio.Future[None]":
    return asyncio.get_running_loop().create_future()


@dataclass(frozen=True)
class _Wanted:
    """A kill that a plan wants."""

    processes: tuple[Process, ...]
    at_end: AtEnd
    by: str
    pid: int
    done: "asyncio.Future[None]" = field(default_factory=_future)


class Site:
    """Real processes in a folder of their own, and the drill's hand in the outside world."""

    def __init__(
        self,
        folder: Folder,
        lock: int,
        temporal: Path,
        hosts: Mapping[str, Host] | None = None,
        code: Code | None = None,
    ) -> None:
        """Note where to be; nothing runs yet.

        Args:
            folder: For everything that is written.
            lock: The folder's lock.
            temporal: The `temporal` program.
            hosts: Where processes run, by name; all others run here.
            code: What workers run, where a deploy changes it on the way.
        """
        self._code = code or Code()
        self.folder = folder
        self.keys = folder.path / "keys"
        # A socket's path may have 107 characters, and a folder of temporary files may have more.
        self._short = tempfile.TemporaryDirectory(prefix="drill-", dir="/tmp")
        self.gate = Gate(Path(self._short.name) / "gate")
        environment = {
            name: value for name, value in os.environ.items() if not name.startswith("NORTHWIND_")
        }
        self.installation = Installation(
            folder,
            lock,
            temporal,
            environment={**environment, "NORTHWIND_DRILL_SOCKET": str(self.gate.socket)},
            usual_ports=False,
            say=lambda _line: None,
            server_options=_SERVER_OPTIONS,
            hosts=hosts,
            start=self._code.start,
        )
        self.kills = 0
        """How many processes were ended with SIGKILL so far."""
        self.ended: list[Ended] = []
        """Each end of processes."""
        self.rights = Rights(self.control)
        self._drains: list[asyncio.Task[None]] = []
        self._wanted: list[_Wanted] = []
        self._killing: asyncio.Task[None] | None = None
        # Nothing is asked of the company in the middle of its end, and one end comes at a time.
        self._steady = asyncio.Lock()

    async def __aenter__(self) -> Self:
        await self.gate.__aenter__()
        try:
            await self.installation.start()
            client = await Client.connect(
                self.installation.links.temporal,
                namespace=NAMESPACE,
                data_converter=pydantic_data_converter,
                runtime=quiet_runtime(),
            )
            self._skipper = TimeSkipper(client, config=TimeSkippingConfig(enabled=False))
            self._http = httpx.AsyncClient(base_url=self.installation.links.company, timeout=30)
        except BaseException:
            await self.installation.stop()
            await self.gate.__aexit__()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.rights.close()
        await self._http.aclose()
        await self.gate.__aexit__()
        # Nothing in this folder is needed any more, and a drain would wait for held Activities.
        await self.installation.kill()
        await asyncio.gather(*self._drains, return_exceptions=True)
        self._short.cleanup()

    @property
    def client(self) -> Client:
        """A client of the server; it finds the server again after a restart."""
        return self._skipper.client

    @property
    def skipper(self) -> TimeSkipper:
        """Moves single runs on in time."""
        return self._skipper

    async def kill(
        self, processes: Iterable[Process], at_end: AtEnd, by: str, pid: int = 0
    ) -> None:
        """End processes with SIGKILL, all at once, and start them again.

        Args:
            processes: Which.
            at_end: Called when they have ended and before they come again: lets those go on that
                were held for this, so that they meet the gap.
            by: The order whose plan it is in; all runs of the site are hit.
            pid: The worker that is held for this; of several, this one is ended.
        """
        wanted = _Wanted(tuple(processes), at_end, by, pid)
        self._wanted.append(wanted)
        if self._killing is None or self._killing.done():
            self._killing = asyncio.create_task(self._kill_wanted())
        # Whoever wants it may be cancelled meanwhile; what was killed must come back all the same.
        await asyncio.shield(wanted.done)

    async def _kill_wanted(self) -> None:
        """Kill for all who want it at this moment at once: each start costs seconds."""
        while self._wanted:
            async with self._steady:
                together, self._wanted = self._wanted, []
                killing = asyncio.create_task(self._kill_for(together))
                await asyncio.wait({killing})
                for wanted in together:
                    # Whatever went wrong: nobody waits for ever, and the next have their turn.
                    if (error := killing.exception()) is not None:
                        wanted.done.set_exception(error)
                    else:
                        wanted.done.set_result(None)

    async def _kill_for(self, together: "list[_Wanted]") -> None:
        victims = {self._name(which, one.pid) for one in together for which in one.processes}
        await asyncio.gather(*(self.installation.kill_one(name) for name in victims))
        self.kills += len(victims)
        for wanted in together:
            cuts_off = set(wanted.processes) != {Process.TEMPORAL}
            self.ended.append(Ended(time.monotonic(), wanted.by, cuts_off=cuts_off))
            wanted.at_end()
        await self._start_again(victims)

    async def stop_worker(self, at_term: AtEnd, by: str, pid: int = 0) -> None:
        """Ask a worker to end (SIGTERM), and start the next one while it drains.

        Args:
            at_term: Called when it has been asked: what is held finishes within the drain.
            by: The order whose plan it is in.
            pid: The worker that is held for this.
        """

        def stopped() -> list[str]:
            return [self._name(Process.WORKER, pid)]

        await asyncio.shield(asyncio.create_task(self._stop_workers(at_term, by, stopped)))

    async def deploy(self, at_term: AtEnd, by: str) -> bool:
        """Replace each worker by one with the code that is here, as `stop_worker` does.

        Returns whether it was done: only the deploy that is due is.
        """
        if not self._code.is_due():
            return False

        def renewed() -> list[str]:
            self._code.renew()
            return [name for name in self.installation.pids if name.startswith(Process.WORKER)]

        await asyncio.shield(asyncio.create_task(self._stop_workers(at_term, by, renewed)))
        return True

    async def _stop_workers(self, at_term: AtEnd, by: str, which: Callable[[], list[str]]) -> None:
        async with self._steady:
            names = which()
            for name in names:
                self._drains.append(asyncio.create_task(self.installation.stop_one(name)))
            # The tasks take their first step, which asks the worker.
            await asyncio.sleep(0)
            at_term()
            self.ended.append(Ended(time.monotonic(), by, cuts_off=True))
            await self._start_again(names)

    async def join_worker(self) -> None:
        """Have a second worker join; one is enough for all runs of this site."""
        await asyncio.shield(asyncio.create_task(self._join_worker()))

    async def _join_worker(self) -> None:
        async with self._steady:
            if SECOND_WORKER not in self.installation.pids:
                await self.installation.start_one(SECOND_WORKER)

    def _name(self, process: Process, pid: int) -> str:
        """The process's name; of several workers, the one with that process id."""
        if process is Process.WORKER:
            for name, running in self.installation.pids.items():
                if running == pid:
                    return name
        return process.value

    async def _start_again(self, names: Iterable[str]) -> None:
        # The company and the server first: a worker that finds none waits for it.
        for name in sorted(names, key=lambda name: name.startswith(Process.WORKER)):
            await self.installation.start_one(name)

    async def control(self, path: str, body: Any) -> Any:
        """Be the outside world: faults, the clock, what colleagues do.

        Raises:
            CommandError: the company refused it.
        """
        async with self._steady:
            answer = await self._http.post(f"/control/{path}", json=body)
        if not answer.is_success:
            raise CommandError(f"the company refused {path}: {answer.text}", Exit.CHECK_FAILED)
        return answer.json()

    async def sweep(self) -> None:
        """Have the Schedule look for refunds that failed late, and wait until it has."""
        handle = self.client.get_schedule_handle(names.sweep_id(LOCAL))
        before = (await handle.describe()).info.num_actions
        await handle.trigger()
        async with asyncio.timeout(PATIENCE_SECONDS):
            while True:
                info = (await handle.describe()).info
                if info.num_actions > before and not info.running_actions:
                    return
                await asyncio.sleep(_PAUSE_SECONDS)

    async def read(self, path: str) -> Any:
        """What the company's books or mailbox say."""
        async with self._steady:
            return (await self._http.get(path)).raise_for_status().json()

    async def patiently(self, ask: Callable[[], Awaitable[Answer]]) -> Answer:
        """Ask Temporal, and ask again while it is away.

        Raises:
            RPCError: its answer, or that it did not come back in time.
        """
        return await patiently(ask, PATIENCE_SECONDS)
