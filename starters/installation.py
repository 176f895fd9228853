"""A local installation: Temporal's dev server, the company and a worker, on one data folder."""

import asyncio
import os
import shutil
import sys
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest
from temporalio.client import Client
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.service import RPCError

from domain import names
from starters import mending, processes, schedule
from starters.errors import CommandError, Exit
from starters.folder import Folder, Links
from starters.processes import LOOPBACK, START_SECONDS, Child
from starters.runtime import quiet_runtime
from workers.settings import LOCAL

NAMESPACE = "default"
# The names of the processes; there may be more workers, each under a name of its own.
TEMPORAL, COMPANY, WORKER = "temporal", "company", "worker"
# Usual ports, so that a worker started by hand finds everything without a setting.
_USUAL_PORTS = {"temporal": 7233, "web_ui": 8233, "company": 8700, "smtp": 8725}

# The dev server's own defaults keep less and are slower: WAL writes 2.6 times as fast, and FULL
# keeps what was answered through a crash of the machine.
_PRAGMAS = ("journal_mode=WAL", "synchronous=FULL")

# What belongs to another Temporal or to an account outside must not reach a local worker.
_FOREIGN = ("TEMPORAL_", "STRIPE_API_KEY", "OPENAI_", "ANTHROPIC_")
# A worker with a version gets no tasks until somebody has made that version the current one.
_VERSION = ("NORTHWIND_DEPLOYMENT", "NORTHWIND_BUILD_ID")
# With it, a worker would compile the workflows' modules anew for each task.
_SLOW = ("PYTHONDONTWRITEBYTECODE",)


def find_temporal(given: Path | None) -> Path:
    """The `temporal` program: the given one, the installed one, or the one on the PATH.

    Raises:
        CommandError: there is none.
    """
    beside = Path(sys.executable).with_name("temporal")
    found = str(given or (beside if beside.exists() else "temporal"))
    program = shutil.which(found)
    if program is None:
        where = f"{given} cannot be run" if given else "the `temporal` program is not installed"
        raise CommandError(f"{where}; name one by --temporal PATH", Exit.USAGE)
    return Path(program).absolute()


@dataclass(frozen=True)
class Host:
    """Where a process runs."""

    address: str = LOOPBACK
    """By which the others reach it."""
    listens: str = LOOPBACK
    """On which address it listens. Temporal's dev server speaks with itself over loopback too, so
    on a host of its own it must listen on all of that host's."""
    inside: tuple[str, ...] = ()
    """What stands before its command, such as `ip netns exec NAME`."""


_HERE = Host()
Start = Callable[[str, Folder, Sequence[str], Mapping[str, str], int], Awaitable[Child]]


class Installation:
    """The three processes of a data folder; whoever starts them must stop them."""

    def __init__(
        self,
        folder: Folder,
        lock: int,
        temporal: Path,
        *,
        environment: Mapping[str, str],
        usual_ports: bool,
        say: Callable[[str], None],
        server_options: Sequence[str] = (),
        hosts: Mapping[str, Host] | None = None,
        start: Start = processes.start,
    ) -> None:
        """Note what to start where; nothing runs yet.

        Args:
            folder: Holds databases, keys and logs.
            lock: The folder's lock.
            temporal: The `temporal` program.
            environment: What the processes may see of ours.
            usual_ports: Whether to take the ports that settings expect, where they are free.
            say: Takes one line for people about each step.
            server_options: More arguments for the Temporal server.
            hosts: Where processes run, by name; all others run here.
            start: How to start a process: another way than `processes.start`.
        """
        self._start_process = start
        self._folder, self._lock, self._temporal = folder, lock, temporal
        self._environment = environment
        self._say = say
        self._server_options = server_options
        self._hosts = hosts or {}
        self._ports = _choose_ports(folder, usual=usual_ports)
        self._children: list[Child] = []
        self._leaving: list[Child] = []

    @property
    def links(self) -> Links:
        """Where the parts are."""
        ports = self._ports
        temporal, company = self._host(TEMPORAL).address, self._host(COMPANY).address
        return Links(
            temporal=f"{temporal}:{ports['temporal']}",
            web_ui=f"http://{temporal}:{ports['web_ui']}",
            company=f"http://{company}:{ports['company']}",
            smtp=f"smtp://{company}:{ports['smtp']}",
        )

    @property
    def moved(self) -> dict[str, tuple[int, int]]:
        """The parts that are not at their usual port: where they are, and where they would be."""
        return {
            name: (self._ports[name], usual)
            for name, usual in _USUAL_PORTS.items()
            if self._ports[name] != usual
        }

    @property
    def pids(self) -> dict[str, int]:
        """The processes that run, by name."""
        return {child.name: child.pid for child in self._children}

    async def start(self) -> Client:
        """Start all three and wait until each serves; a client of the Temporal server.

        Raises:
            CommandError: one of them ended or was not ready in time. What had been started is
                stopped by `stop`.
        """
        temporal = await self._start(TEMPORAL)
        company = await self._start(COMPANY)
        client = await _until_healthy(temporal, self.links.temporal)
        environment = self._environment.get("NORTHWIND_ENVIRONMENT", LOCAL)
        await mending.keep_closed_runs(client, environment)
        self._say(f"Temporal  {self.links.temporal}  (process {temporal.pid})")
        await company.ready_line()
        self._say(f"company   {self.links.company}  (process {company.pid})")
        worker = await self._start(WORKER)
        await worker.ready_line()
        self._say(f"worker    task queue {names.TASK_QUEUE}  (process {worker.pid})")
        await schedule.ensure(client, environment)
        self._folder.write_links(self.links)
        return client

    async def start_one(self, name: str) -> None:
        """Start one of the processes, and wait until it serves.

        Args:
            name: `TEMPORAL`, `COMPANY`, or a worker: `WORKER`, or another name for one more.

        Raises:
            CommandError: it ended or was not ready in time.
        """
        child = await self._start(name)
        if name == TEMPORAL:
            await _until_healthy(child, self.links.temporal)
        else:
            await child.ready_line()

    async def kill_one(self, name: str) -> None:
        """End one process at once (SIGKILL)."""
        await self._taken_out(name).kill()

    async def stop_one(self, name: str) -> None:
        """Ask one process to end (SIGTERM), and wait until it has.

        Another one may be started under its name meanwhile.
        """
        leaving = self._taken_out(name)
        self._leaving.append(leaving)
        await leaving.stop()
        self._leaving.remove(leaving)

    async def until_one_ends(self) -> None:
        """Wait for an end that nobody asked for.

        Raises:
            CommandError: as soon as there is one.
        """
        waits = [asyncio.create_task(child.wait()) for child in self._children]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
        for child in self._children:
            child.check_alive()

    async def stop(self) -> None:
        """End the worker first, which may still talk to the others, then these."""
        while self._children:
            await self._children[-1].stop()
            self._children.pop()

    async def kill(self) -> None:
        """End all three at once, as a power failure would."""
        await asyncio.gather(*(child.kill() for child in [*self._children, *self._leaving]))
        self._children.clear()

    def _taken_out(self, name: str) -> Child:
        (child,) = (child for child in self._children if child.name == name)
        self._children.remove(child)
        return child

    def _host(self, name: str) -> Host:
        return self._hosts.get(name, _HERE)

    def _command(self, name: str) -> list[str]:
        if name == TEMPORAL:
            return self._temporal_command()
        if name != COMPANY:
            return processes.python_module("workers")
        command = [*processes.python_module("northwind"), "--data", str(self._folder.path)]
        command += ["--host", self._host(COMPANY).listens]
        command += ["--http-port", str(self._ports["company"])]
        return [*command, "--smtp-port", str(self._ports["smtp"])]

    def _temporal_command(self) -> list[str]:
        ports = self._ports
        command = [str(self._temporal), "server", "start-dev"]
        command += ["--ip", self._host(TEMPORAL).listens]
        command += ["--port", str(ports["temporal"]), "--ui-port", str(ports["web_ui"])]
        command += ["--db-filename", str(self._folder.temporal_database)]
        command += ["--log-level", "warn", "--ui-disable-news-fetch"]
        # Nor does the server ask anybody outside whether it is the newest.
        command += ["--dynamic-config-value", "frontend.enableServerVersionCheck=false"]
        for pragma in _PRAGMAS:
            command += ["--sqlite-pragma", pragma]
        for name, kind in names.ATTRIBUTE_TYPES.items():
            command += ["--search-attribute", f"{name}={kind}"]
        return [*command, *self._server_options]

    async def _start(self, name: str) -> Child:
        command = [*self._host(name).inside, *self._command(name)]
        environment = local_environment(self._environment, self._folder, self.links)
        child = await self._start_process(name, self._folder, command, environment, self._lock)
        self._children.append(child)
        return child


def local_environment(given: Mapping[str, str], folder: Folder, links: Links) -> dict[str, str]:
    """The environment of a local process: what was given, and where the local parts are."""
    left_out = (*_FOREIGN, *_VERSION, *_SLOW)
    kept = {name: value for name, value in given.items() if not name.startswith(left_out)}
    own = {
        "NORTHWIND_DATA_DIR": str(folder.path),
        "NORTHWIND_COMPANY_URL": links.company,
        "NORTHWIND_SMTP_URL": links.smtp,
        "TEMPORAL_ADDRESS": links.temporal,
        "TEMPORAL_NAMESPACE": NAMESPACE,
        # Nor must a profile in the home folder say how to speak to the local server.
        "TEMPORAL_CONFIG_FILE": os.devnull,
        "PYTHONPATH": processes.python_path(given),
    }
    return {**kept, **own}


def _choose_ports(folder: Folder, *, usual: bool) -> dict[str, int]:
    """The ports of the last time where they are free, so that links stay true."""
    links = folder.read_links()
    if links is not None:
        urls = {
            "temporal": f"//{links.temporal}",
            "web_ui": links.web_ui,
            "company": links.company,
            "smtp": links.smtp,
        }
        wanted = {name: urlsplit(url).port or 0 for name, url in urls.items()}
    else:
        wanted = _USUAL_PORTS if usual else dict.fromkeys(_USUAL_PORTS, 0)
    return dict(zip(wanted, processes.free_ports(list(wanted.values())), strict=True))


async def _until_healthy(server: Child, address: str) -> Client:
    """A client, once the server serves the namespace.

    Nothing else may be done before: a server that is killed within 0.12 s of its first start
    leaves a broken database.
    """
    gives_up = time.monotonic() + START_SECONDS
    while True:
        server.check_alive()
        try:
            client = await Client.connect(
                address,
                namespace=NAMESPACE,
                data_converter=pydantic_data_converter,
                runtime=quiet_runtime(),
            )
            await client.workflow_service.describe_namespace(
                DescribeNamespaceRequest(namespace=NAMESPACE), timeout=timedelta(seconds=2)
            )
        except (RuntimeError, RPCError):
            if time.monotonic() > gives_up:
                raise CommandError(
                    f"temporal was not ready within {START_SECONDS:g} s", Exit.UNREACHABLE
                ) from None
            await asyncio.sleep(0.1)
        else:
            return client
