"""The worker as a process: connect, poll, and drain on SIGTERM or SIGINT.

Exit codes: 0 after a drain; 2 where a setting is wrong; 5 where Temporal or the ledger cannot be
reached.
"""

import asyncio
import json
import logging
import os
import signal
import sys
import time
from collections.abc import Coroutine
from datetime import timedelta
from typing import Any, TextIO, TypeVar

from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest
from temporalio.client import Client
from temporalio.envconfig import ClientConfig
from temporalio.runtime import LogForwardingConfig, LoggingConfig, Runtime, TelemetryConfig
from temporalio.service import RPCError, RPCStatusCode

from domain.errors import Misconfigured, OutsideError
from domain.names import TASK_QUEUE
from workers.polls import (
    POLL_PATIENCE,
    CannotLook,
    NotListed,
    Polls,
    polls_before,
    until_listed,
)
from workers.sandbox import DATA_CONVERTER
from workers.settings import Settings, SettingsError, load_settings
from workers.wiring import Activities, build_activities, build_worker

OK, WRONG_SETTINGS, UNREACHABLE = 0, 2, 5
# A server that starts together with its workers is up within seconds; one that is not up after this
# will not be helped by waiting, and whoever runs the worker should hear of it.
CONNECT_PATIENCE = timedelta(seconds=60)
_CONNECT_PAUSE_SECONDS = 0.2
# Something that takes the connection and says nothing is no server.
_CONNECT_SECONDS = 10.0
# These tell addresses of people and parts of requests, or every single request.
_TALKATIVE = "httpx httpcore httpx2 httpcore2 stripe openai anthropic aiosqlite".split()
_log = logging.getLogger("workers")
_Result = TypeVar("_Result")


class CannotConnect(Exception):
    """Temporal did not answer, or does not know the namespace; the message is one line."""


def main(out: TextIO = sys.stdout) -> int:
    """Run a worker with the settings of the environment, and say how it ended."""
    logging.basicConfig(
        level=logging.INFO,
        stream=sys.stderr,
        format="%(asctime)s %(levelname)s %(name)s %(message)s",
    )
    for name in _TALKATIVE:
        logging.getLogger(name).setLevel(logging.WARNING)
    _take_logs_of_the_core()
    try:
        asyncio.run(_run(load_settings(), _connection(), out))
    except (SettingsError, Misconfigured) as error:
        return _end(f"a setting is wrong: {error}", WRONG_SETTINGS)
    except (CannotConnect, OutsideError) as error:
        return _end(str(error), UNREACHABLE)
    return OK


def _take_logs_of_the_core() -> None:
    """Standard output holds the ready line alone; the SDK's core would write its warnings there."""
    forwarding = LogForwardingConfig(logging.getLogger("temporalio"))
    logs = LoggingConfig(filter=LoggingConfig.default.filter, forwarding=forwarding)
    Runtime.set_default(Runtime(telemetry=TelemetryConfig(logging=logs)))


def _end(line: str, code: int) -> int:
    sys.stderr.write(f"worker: {line}\n")
    return code


def _connection() -> dict[str, Any]:
    """Where Temporal is, by the SDK's own rules.

    Raises:
        SettingsError: its file or variables are wrong.
    """
    try:
        config: dict[str, Any] = {**ClientConfig.load_client_connect_config()}
    except (RuntimeError, ValueError, OSError) as error:
        words = str(error).splitlines()[0][:200]
        raise SettingsError(f"the connection to Temporal: {words}") from None
    return {"target_host": "localhost:7233", "namespace": "default", **config}


async def _run(settings: Settings, connection: dict[str, Any], out: TextIO) -> None:
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    async with build_activities(settings) as activities:
        client = await _unless(ended, connect(connection))
        if client is not None:
            await serve(client, settings, activities, ended, out)


async def serve(
    client: Client,
    settings: Settings,
    activities: Activities,
    ended: asyncio.Event,
    out: TextIO,
    patience: timedelta = POLL_PATIENCE,
) -> None:
    """Work until the event is set, then drain; say that it is ready once the server has its polls.

    Args:
        client: Connected, with `DATA_CONVERTER`.
        settings: Names the environment that is served.
        activities: From `build_activities`.
        ended: Set when the worker shall end.
        out: Where to say it. A worker that the server never lists works on and does not say it.
        patience: For how long to wait for the server.

    Raises:
        RuntimeError: the worker ended by itself.
    """
    before = await polls_before(client)
    async with build_worker(client, settings, activities):
        await _unless(ended, _say_once_ready(client, before, settings, out, patience))
        await ended.wait()
        _log.info("Draining: no new work, and what runs is finished")
    _log.info("Drained")


async def _unless(ended: asyncio.Event, work: Coroutine[Any, Any, _Result]) -> _Result | None:
    """What the work comes to, or None where the process was told to end first."""
    working = asyncio.create_task(work)
    ending = asyncio.create_task(ended.wait())
    try:
        await asyncio.wait((working, ending), return_when=asyncio.FIRST_COMPLETED)
        return working.result() if working.done() else None
    finally:
        working.cancel()
        ending.cancel()


async def connect(connection: dict[str, Any], patience: timedelta = CONNECT_PATIENCE) -> Client:
    """Connect to a namespace, and wait for a server that is about to come up.

    Args:
        connection: Arguments of `temporalio.client.Client.connect`.
        patience: For how long to try.

    Raises:
        CannotConnect: there is no server, or no such namespace, within that time.
    """
    target, namespace = connection["target_host"], connection["namespace"]
    gives_up_at = time.monotonic() + patience.total_seconds()
    told = False
    while True:
        try:
            async with asyncio.timeout(_CONNECT_SECONDS):
                client = await Client.connect(**connection, data_converter=DATA_CONVERTER)
                await client.workflow_service.describe_namespace(
                    DescribeNamespaceRequest(namespace=namespace)
                )
            return client
        except (RuntimeError, RPCError, TimeoutError) as error:
            why = _why(error, target, namespace)
        if time.monotonic() >= gives_up_at:
            raise CannotConnect(why)
        if not told:
            told = True
            _log.warning("%s; trying for %.0f s", why, patience.total_seconds())
        await asyncio.sleep(_CONNECT_PAUSE_SECONDS)


def _why(error: Exception, target: str, namespace: str) -> str:
    if isinstance(error, RPCError) and error.status is RPCStatusCode.NOT_FOUND:
        return f"Temporal at {target} has no namespace {namespace}"
    if isinstance(error, RPCError) and error.status in (
        RPCStatusCode.UNAUTHENTICATED,
        RPCStatusCode.PERMISSION_DENIED,
    ):
        return f"Temporal at {target} does not let us into namespace {namespace}"
    return f"Temporal at {target} cannot be reached"


async def _say_once_ready(
    client: Client, before: Polls, settings: Settings, out: TextIO, patience: timedelta
) -> None:
    """One line for whoever waits for this worker, as soon as tasks can reach it."""
    try:
        await until_listed(client, before, patience)
    except NotListed as error:
        _log.warning("%s; it is not said to be ready, and goes on", error)
        return
    except CannotLook as error:
        _log.warning("%s; the worker is taken for ready", error)
    ready = {
        "polling": TASK_QUEUE,
        "namespace": client.namespace,
        "environment": settings.environment,
        "identity": client.identity,
        "pid": os.getpid(),
    }
    out.write(f"{json.dumps(ready)}\n")
    out.flush()
