"""Starts our Python programs as forks of one process that has loaded their libraries.

A drill starts hundreds of workers, and loading libraries takes each of them seconds of a processor.
A fork is a process like any other, with its own id, connections and memory; what it runs is the
program's own `__main__`. The SDK's runtime and all clients are made after the fork.
"""

import asyncio
import ctypes
import multiprocessing
import multiprocessing.util
import os
import runpy
import signal
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from starters import processes
from starters.folder import Folder
from starters.processes import Child

_LOADED = [
    "workers.process",
    "activities.model_client",
    "pydantic_ai.models.openai",
    "northwind.server",
]
_PR_SET_PDEATHSIG = 1


class Forked:
    """A fork, with what `starters.processes.Child` needs to know of a process."""

    def __init__(self, process: multiprocessing.process.BaseProcess) -> None:
        """Watch a fork that has begun."""
        self._process = process
        if process.pid is None:
            raise RuntimeError("the process has not begun")
        self.pid = process.pid
        self._ended = asyncio.Event()
        asyncio.get_running_loop().add_reader(process.sentinel, self._end)

    @property
    def returncode(self) -> int | None:
        """Its exit code, or the negative signal that ended it; None while it runs."""
        return self._process.exitcode if self._ended.is_set() else None

    def kill(self) -> None:
        """Send SIGKILL."""
        if not self._ended.is_set():
            self._process.kill()

    def terminate(self) -> None:
        """Send SIGTERM."""
        if not self._ended.is_set():
            self._process.terminate()

    async def wait(self) -> int | None:
        """Wait until it has ended; its exit code."""
        await self._ended.wait()
        return self.returncode

    def _end(self) -> None:
        asyncio.get_running_loop().remove_reader(self._process.sentinel)
        self._process.join()
        self._ended.set()


async def start(
    name: str, folder: Folder, command: Sequence[str], environment: Mapping[str, str], lock: int
) -> Child:
    """Start a process as `starters.processes.start` does, and one of our programs as a fork.

    A fork does not hold the folder's lock: it ends with the drill, which does.
    """
    program = processes.python_module("")[:-1]
    if list(command[: len(program)]) != program:
        return await processes.start(name, folder, command, environment, lock)
    module, *arguments = command[len(program) :]
    log, output = processes.open_files(name, folder)
    with log, output:
        begins = log.tell()
    _keep_sockets_short()
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_LOADED)
    process = context.Process(
        target=_become,
        args=(module, arguments, dict(environment), folder.output(name), folder.log(name)),
    )
    # The first one waits for the libraries.
    await asyncio.to_thread(process.start)
    return Child(name, folder, Forked(process), begins)


def _keep_sockets_short() -> None:
    """A socket's path may have 107 characters, and a folder of temporary files may have more."""
    usual = tempfile.tempdir
    tempfile.tempdir = "/tmp"  # noqa: S108 - a folder is made in it that nobody else may enter
    try:
        # Made at the first call, and kept.
        multiprocessing.util.get_temp_dir()
    finally:
        tempfile.tempdir = usual


def _become(
    module: str, arguments: Sequence[str], environment: Mapping[str, str], output: Path, log: Path
) -> None:
    """Run a program in this process, as `python -m` would."""
    os.setsid()
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    for file, descriptor in ((output, 1), (log, 2)):
        opened = os.open(file, os.O_WRONLY | os.O_APPEND)
        os.dup2(opened, descriptor)
        os.close(opened)
    os.environ.clear()
    os.environ.update(environment)
    sys.dont_write_bytecode = False
    sys.argv = [module, *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)
