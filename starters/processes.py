"""Start, await and end one process that is ours: by its id, never by a name."""

import asyncio
import contextlib
import json
import os
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from starters.errors import CommandError, Exit
from starters.folder import Folder

LOOPBACK = "127.0.0.1"
_LEASH = Path(__file__).with_name("leash.py")
# The folder that holds our packages, for the Python processes that we start.
_ROOT = Path(__file__).parents[1]
# Everything here starts within a few seconds, on a slow machine within some more.
START_SECONDS = 60.0
# The worker lets what it has sent get its answer first (`workers.wiring.GRACEFUL_SHUTDOWN`).
STOP_SECONDS = 90.0
_LOOK_SECONDS = 0.05


class Process(Protocol):
    """What is asked of a process, such as an `asyncio.subprocess.Process`."""

    @property
    def pid(self) -> int:
        """Its id."""

    @property
    def returncode(self) -> int | None:
        """Its exit code, or the negative signal that ended it; None while it runs."""

    def kill(self) -> None:
        """Send SIGKILL."""

    def terminate(self) -> None:
        """Send SIGTERM."""

    async def wait(self) -> int | None:
        """Wait until it has ended."""


class Child:
    """A process that we started, with its log."""

    def __init__(self, name: str, folder: Folder, process: Process, log_begins: int) -> None:
        """Wrap a process that runs, and whose words begin at that byte of its log."""
        self.name = name
        self.pid = process.pid
        self._process = process
        self._log = folder.log(name)
        self._log_begins = log_begins
        self._output = folder.output(name)

    @property
    def has_ended(self) -> bool:
        return self._process.returncode is not None

    async def ready_line(self) -> Any:
        """The JSON line that the process prints once it serves.

        Raises:
            CommandError: it ended instead, took too long, or printed something else.
        """
        gives_up = time.monotonic() + START_SECONDS
        while True:
            line, newline, _ = self._output.read_text().partition("\n")
            if newline:
                return self._ready(line)
            self.check_alive()
            if time.monotonic() > gives_up:
                raise CommandError(
                    f"{self.name} was not ready within {START_SECONDS:g} s: see {self._log}",
                    Exit.UNREACHABLE,
                )
            await asyncio.sleep(_LOOK_SECONDS)

    def _ready(self, line: str) -> Any:
        try:
            return json.loads(line)
        except ValueError:
            words = f"{self.name} printed something else than that it is ready: {line[:200]}"
            raise CommandError(words, Exit.UNREACHABLE) from None

    def check_alive(self) -> None:
        """Notice an end that nobody asked for.

        Raises:
            CommandError: the process has ended; with its last words.
        """
        if self.has_ended:
            raise CommandError(
                f"{self.name} ended by itself ({_how(self._process.returncode)}): "
                f"{self._last_words()} (all of it: {self._log})",
                Exit.UNREACHABLE,
            )

    async def wait(self) -> None:
        """Wait until the process ends."""
        await self._process.wait()

    async def stop(self) -> None:
        """Ask the process to end, and wait until it has; one that does not is killed."""
        with contextlib.suppress(ProcessLookupError):
            self._process.terminate()
        try:
            async with asyncio.timeout(STOP_SECONDS):
                await self._process.wait()
        except TimeoutError:
            await self.kill()

    async def kill(self) -> None:
        """End the process at once (SIGKILL), as a crash of its machine would."""
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        await self._process.wait()

    def _last_words(self) -> str:
        said = self._log.read_bytes()[self._log_begins :]
        lines = said.decode(errors="replace").strip().splitlines()
        return lines[-1][:300] if lines else "it said nothing"


async def start(
    name: str,
    folder: Folder,
    command: Sequence[str],
    environment: Mapping[str, str],
    lock: int,
) -> Child:
    """Start a process on a leash, in a session of its own: Ctrl-C reaches us, and we end it.

    Args:
        name: For its log and for messages.
        folder: Where its log goes.
        command: The program's path and its arguments.
        environment: All of its environment.
        lock: The folder's lock, which the child holds too.
    """
    log, output = open_files(name, folder)
    with log, output:
        begins = log.tell()
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-I", "-S", str(_LEASH), str(os.getpid())),
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output,
            stderr=log,
            env=dict(environment),
            pass_fds=[lock],
            start_new_session=True,
        )
        return Child(name, folder, process, begins)


def open_files(name: str, folder: Folder) -> tuple[BinaryIO, BinaryIO]:
    """Where the errors and the output of a process go: its log goes on, its output begins anew."""
    # A file of its own: one that drains under the same name may still write to the old one.
    folder.output(name).unlink(missing_ok=True)
    return folder.log(name).open("ab"), folder.output(name).open("wb")


def _how(code: int | None) -> str:
    if code is not None and code < 0:
        return f"killed by signal {-code}"
    return f"exit code {code}"


def python_module(module: str) -> list[str]:
    """The command that runs one of our modules, whatever lies in the current folder."""
    return [sys.executable, "-P", "-m", module]


def python_path(environment: Mapping[str, str]) -> str:
    """`PYTHONPATH` by which a child finds our packages where they are not installed."""
    given = environment.get("PYTHONPATH")
    return f"{_ROOT}{os.pathsep}{given}" if given else str(_ROOT)


def free_ports(wanted: Sequence[int]) -> list[int]:
    """A free loopback port for each wanted one: that very port where it is free, else another.

    All are held open until the last is found, so that no two are the same.
    """
    with ExitStack() as held:
        ports = []
        for port in wanted:
            listener = held.enter_context(socket.socket())
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                listener.bind((LOOPBACK, port))
            except OSError:
                listener.bind((LOOPBACK, 0))
            ports.append(listener.getsockname()[1])
        return ports
