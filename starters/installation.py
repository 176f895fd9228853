"""A local installation: Temporal's dev server, the company and a worker, on one data folder."""

import asyncio
import os
import shutil
import sys
import time
from collections.abc import Callable, Mapping
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
from workers.settings import LOCAL

NAMESPACE = "default"
# Usual ports, so that a worker started by hand finds everything without a setting.
_USUAL_PORTS = {"temporal": 7233, "web_ui": 8233, "company": 8700, "smtp": 8725}

# The dev server's own defaults keep less and are slower: WAL writes 2.6 times as fast, and FULL
# keeps what was answered through a crash of the machine.
_PRAGMAS = ("journal_mode=WAL", "synchronous=FULL")

# What belongs to another Temporal or to an account outside must not reach a local worker.
_FOREIGN = ("TEMPORAL_", "STRIPE_API_KEY", "OPENAI_", "ANTHROPIC_")


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
    ) -> None:
        """Note what to start where; nothing runs yet.

        Args:
            folder: Holds databases, keys and logs.
            lock: The folder's lock.
            temporal: The `temporal` program.
            environment: What the processes may see of ours.
            usual_ports: Whether to take the ports that settings expect, where they are free.
            say: Takes one line for people about each step.
        """
        self._folder, self._lock, self._temporal = folder, lock, temporal
        self._environment = environment
        self._say = say
        self._ports = _choose_ports(folder, usual=usual_ports)
        self._children: list[Child] = []

    @property
    def links(self) -> Links:
        """Where the parts are."""
        ports = self._ports
        return Links(
            temporal=f"{LOOPBACK}:{ports['temporal']}",
            web_ui=f"http://{LOOPBACK}:{ports['web_ui']}",
            company=f"http://{LOOPBACK}:{ports['company']}",
            smtp=f"smtp://{LOOPBACK}:{ports['smtp']}",
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
        temporal = await self._start_temporal()
        company = await self._start_company()
        client = await _until_healthy(temporal, self.links.temporal)
        environment = self._environment.get("NORTHWIND_ENVIRONMENT", LOCAL)
        await mending.keep_closed_runs(client, environment)
        self._say(f"Temporal  {self.links.temporal}  (process {temporal.pid})")
        await company.ready_line()
        self._say(f"company   {self.links.company}  (process {company.pid})")
        worker = await self._start_worker()
        await worker.ready_line()
        self._say(f"worker    task queue {names.TASK_QUEUE}  (process {worker.pid})")
        await schedule.ensure(client, environment)
        self._folder.write_links(self.links)
        return client

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
        await asyncio.gather(*(child.kill() for child in self._children))
        self._children.clear()

    async def _start_temporal(self) -> Child:
        ports = self._ports
        command = [str(self._temporal), "server", "start-dev", "--ip", LOOPBACK]
        command += ["--port", str(ports["temporal"]), "--ui-port", str(ports["web_ui"])]
        command += ["--db-filename", str(self._folder.temporal_database)]
        command += ["--log-level", "warn", "--ui-disable-news-fetch"]
        # Nor does the server ask anybody outside whether it is the newest.
        command += ["--dynamic-config-value", "frontend.enableServerVersionCheck=false"]
        for pragma in _PRAGMAS:
            command += ["--sqlite-pragma", pragma]
        for name, kind in names.ATTRIBUTE_TYPES.items():
            command += ["--search-attribute", f"{name}={kind}"]
        return await self._start("temporal", command)

    async def _start_company(self) -> Child:
        command = [*processes.python_module("northwind"), "--data", str(self._folder.path)]
        command += ["--http-port", str(self._ports["company"])]
        command += ["--smtp-port", str(self._ports["smtp"])]
        return await self._start("company", command)

    async def _start_worker(self) -> Child:
        return await self._start("worker", processes.python_module("workers"))

    async def _start(self, name: str, command: list[str]) -> Child:
        environment = local_environment(self._environment, self._folder, self.links)
        child = await processes.start(name, self._folder, command, environment, self._lock)
        self._children.append(child)
        return child


def local_environment(given: Mapping[str, str], folder: Folder, links: Links) -> dict[str, str]:
    """The environment of a local process: what was given, and where the local parts are."""
    kept = {name: value for name, value in given.items() if not name.startswith(_FOREIGN)}
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
                address, namespace=NAMESPACE, data_converter=pydantic_data_converter
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
