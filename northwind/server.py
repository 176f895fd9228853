"""The company as a running thing: HTTP and SMTP on loopback, one data folder."""

import argparse
import asyncio
import fcntl
import json
import os
import signal
import socket
import sys
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, Any, Self

import uvicorn
from pydantic import TypeAdapter, ValidationError
from uvicorn.protocols.http.h11_impl import H11Protocol

from northwind import app
from northwind.books import read_books
from northwind.faults import FaultRow
from northwind.mail import MailServer
from northwind.seed import seed_once
from northwind.systems import DATABASE, KEYS, Systems, open_systems
from northwind.wire import Peer

LOOPBACK = "127.0.0.1"
LOCK = "company.lock"
# Requests that are still under way are cut short after this, so that SIGTERM soon ends the process.
SHUTDOWN_SECONDS = 1


class CannotStart(Exception):
    """The company cannot be started, and why."""


class _Server(uvicorn.Server):
    """Uvicorn without its signal handlers: whoever runs the company says when it ends.

    It ends at once. Uvicorn's own end looks every tenth of a second whether it is so far, two or
    three times, and a company is opened for each of more than a thousand tests.
    """

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.serving = asyncio.Event()
        self.ending = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.serving.set()

    async def main_loop(self) -> None:
        while not self.ending.is_set():
            # Renews the answers' Date header.
            await self.on_tick(0)
            with suppress(TimeoutError):
                await asyncio.wait_for(self.ending.wait(), timeout=1)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for server in self.servers:
            server.close()
        for connection in list(self.server_state.connections):
            # Closes it, or has it close after the answer that is under way.
            connection.shutdown()
        if answering := set(self.server_state.tasks):
            _, late = await asyncio.wait(answering, timeout=SHUTDOWN_SECONDS)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)
        for connection in list(self.server_state.connections):
            connection.transport.close()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class Company:
    """The company, open for business while the `async with` block lasts.

    `data` is its folder; port 0 is any free port. Raises CannotStart when the folder is in use by
    another company, or a port is taken.
    """

    def __init__(
        self,
        data: Path,
        *,
        http_port: int = 0,
        smtp_port: int = 0,
        host: str = LOOPBACK,
        faults: Sequence[FaultRow] = (),
    ) -> None:
        """Note where to serve and from which folder; nothing is opened yet."""
        self.data = data
        self.keys = data / KEYS
        self._host = host
        self._ports = (http_port, smtp_port)
        self._faults = faults
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        """Open the data folder, seed it if it is new, and serve."""
        try:
            await self._open()
        except BaseException:
            await self._stack.aclose()
            raise
        return self

    async def __aexit__(self, *error: object) -> None:
        """Stop serving, and close the database."""
        await self._stack.aclose()

    def books(self) -> dict[str, Any]:
        """What really happened, as GET /books shows it."""
        with self.systems.store.transaction() as db:
            return read_books(db)

    async def _open(self) -> None:
        try:
            self.data.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise CannotStart(f"cannot use the data folder: {error}") from error
        self._stack.enter_context(_lock(self.data / LOCK))
        self.systems: Systems = open_systems(self.data / DATABASE)
        self._stack.callback(self.systems.store.close)
        seed_once(self.systems, self.data)
        self.systems.faults.add_missing(self._faults)
        http, smtp = (self._stack.enter_context(_listen(self._host, p)) for p in self._ports)
        self.http_url = f"http://{self._host}:{http.getsockname()[1]}"
        self.smtp_url = f"smtp://{self._host}:{smtp.getsockname()[1]}"
        await self._serve_mail(smtp)
        await self._serve_http(http)

    async def _serve_mail(self, listener: socket.socket) -> None:
        server = MailServer(self.systems)
        await server.serve(listener)
        self._stack.callback(server.close)

    async def _serve_http(self, listener: socket.socket) -> None:
        config = uvicorn.Config(
            app.create(self.systems, self._cut),
            http="h11",
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            # The peer is the real one, whatever a request says of itself: a cut must hit it.
            proxy_headers=False,
        )
        self._server = _Server(config)
        serving = asyncio.create_task(self._server.serve(sockets=[listener]))

        async def stop() -> None:
            self.systems.faults.close()
            self._server.ending.set()
            await serving

        self._stack.push_async_callback(stop)
        await self._server.serving.wait()

    def _cut(self, peer: Peer) -> None:
        for connection in list(self._server.server_state.connections):
            if isinstance(connection, H11Protocol) and connection.client == peer:
                connection.transport.abort()


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    """Hold the data folder. The lock goes with the process, however that ends."""
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CannotStart(f"another company is running on {path.parent}") from None
        yield


@contextmanager
def _listen(host: str, port: int) -> Iterator[socket.socket]:
    # The protocol is named because asyncio sends small packets at once only where it is: without
    # it, each answer waits 40 ms for the peer's acknowledgement of its own headers.
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, port))
            listener.listen()
        except (OSError, OverflowError) as error:
            raise CannotStart(f"cannot listen on {host}:{port}: {error}") from error
        yield listener


def main(arguments: Sequence[str], out: IO[str] = sys.stdout) -> int:
    """Run the company until SIGTERM or SIGINT. Exit code: 0, or 2 when it cannot start."""
    options = _parser().parse_args(arguments)
    try:
        faults = [] if options.faults is None else read_faults(options.faults)
        return asyncio.run(_run(options, faults, out))
    except CannotStart as error:
        sys.stderr.write(f"northwind: {error}\n")
        return 2


def read_faults(path: Path) -> list[FaultRow]:
    """The rows of a fault plan in a JSON file. Raises CannotStart when it is none."""
    try:
        return TypeAdapter(list[FaultRow]).validate_json(path.read_bytes())
    except OSError as error:
        raise CannotStart(f"cannot read the fault plan: {error}") from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise CannotStart(f"{path} is no fault plan: {where} {first['msg']}") from error


async def _run(options: argparse.Namespace, faults: list[FaultRow], out: IO[str]) -> int:
    ended = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    company = Company(
        options.data,
        http_port=options.http_port,
        smtp_port=options.smtp_port,
        host=options.host,
        faults=faults,
    )
    async with company:
        ready = json.dumps({"http": company.http_url, "smtp": company.smtp_url, "pid": os.getpid()})
        if options.ready_file is not None:
            write_whole(options.ready_file, ready)
        out.write(f"{ready}\n")
        out.flush()
        await ended.wait()
    return 0


def write_whole(path: Path, text: str) -> None:
    """Write a file so that no reader ever sees half of it."""
    half = path.with_name(f"{path.name}.{os.getpid()}")
    half.write_text(text)
    half.replace(path)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m northwind",
        description="The stand-in company: orders, staff, policy, payments, mail and a model.",
        epilog="Example: python -m northwind --data .northwind --http-port 8080 --smtp-port 8025",
    )
    parser.add_argument("--data", type=Path, required=True, help="folder of database and keys")
    parser.add_argument("--http-port", type=int, default=0, help="0 (default): any free port")
    parser.add_argument("--smtp-port", type=int, default=0, help="0 (default): any free port")
    parser.add_argument(
        "--host",
        default=LOOPBACK,
        help="address to listen on; another than loopback only on a private container network",
    )
    parser.add_argument("--faults", type=Path, help="JSON file with rows of the fault plan")
    parser.add_argument("--ready-file", type=Path, help="file to write the addresses to")
    return parser
