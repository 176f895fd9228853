"""The drill's private network: who hears whom, and that nothing of it stays.

Where this machine allows no namespaces, each test asks for the one line that says so instead.
"""

import json
import os
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from ipaddress import ip_interface

import pytest

from starters.drill.network import CannotBuild, Network
from starters.installation import Host

NAMES = ("left", "right")
ANSWER = (
    "import socket; listener = socket.create_server(('0.0.0.0', 0)); "
    "print(listener.getsockname()[1], flush=True)\n"
    "while True: listener.accept()[0].close()"
)
# Says how much it has heard: a word that it answers, and then the rest, at the end of it.
LISTEN = (
    "import socket; listener = socket.create_server(('0.0.0.0', 0)); "
    "print(listener.getsockname()[1], flush=True)\n"
    "heard = listener.accept()[0]; print(len(heard.recv(99)), flush=True); "
    "heard.sendall(b'go on'); "
    "print(len(heard.makefile('rb').read()), flush=True)"
)
# Says a word, and when it is answered the rest; and is gone.
SAY = (
    "import socket, sys; said = socket.create_connection((sys.argv[1], int(sys.argv[2]))); "
    "said.sendall(bytes(99)); said.recv(99); said.sendall(bytes(9000))"
)
CONNECT = (
    "import socket, sys; "
    "socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=float(sys.argv[3]))"
)
# Who was looked for in vain while a cable was pulled is "no route to host" at once, for a moment.
PATIENCE_SECONDS = 30.0
# Long for an answer on one machine, short for a test that waits for none.
SILENCE_SECONDS = 1.5


def ip(*arguments: str) -> str:
    """What `ip` prints; it must not fail."""
    program = ["ip", *arguments]
    return subprocess.run(program, check=True, capture_output=True, text=True).stdout


def is_possible() -> bool:
    """Whether this machine lets us have a network namespace, found out without our code."""
    if os.geteuid() != 0 or shutil.which("ip") is None:
        return False
    name = f"probe-{os.getpid()}"
    added = subprocess.run(["ip", "netns", "add", name], capture_output=True, check=False)
    if added.returncode == 0:
        ip("netns", "delete", name)
    return added.returncode == 0


async def on_a_network(test: Callable[[Network], Awaitable[None]]) -> None:
    """Run a test's body on a network; where there can be none, see that one line says so."""
    if is_possible():
        async with Network(NAMES) as network:
            await test(network)
        return
    with pytest.raises(CannotBuild, match=r"^(needs root and ip\(8\)|ip netns add .+: .+)$"):
        async with Network(NAMES):
            pytest.fail("there is a network where there can be none")


def namespaces() -> list[str]:
    """The names of all namespaces of drills."""
    listed = [line.split()[0] for line in ip("netns", "list").splitlines()]
    return [name for name in listed if name.startswith("refund-drill-")]


def own() -> list[str]:
    """Those of this process, and its devices."""
    devices = [row["ifname"] for row in json.loads(ip("-json", "link", "show"))]
    found = [name for name in namespaces() if name.startswith(f"refund-drill-{os.getpid()}-")]
    return found + [name for name in devices if name == f"refdrill{os.getpid()}"]


def gone() -> int:
    """The id of a process that has ended."""
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    return process.pid


class Server:
    """Something that listens on a host, while the `with` block lasts."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def __enter__(self) -> "Server":
        command = [*self._host.inside, sys.executable, "-c", ANSWER]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self.port = self._process.stdout.readline().strip()
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    def hears(self, inside: tuple[str, ...]) -> bool:
        """Whether it can be reached, at once or soon, from a host, or with () from this machine."""
        gives_up = time.monotonic() + PATIENCE_SECONDS
        while not self._answers(inside, self._host.address):
            if time.monotonic() > gives_up:
                return False
        return True

    def is_deaf_to(self, inside: tuple[str, ...]) -> bool:
        """Whether it cannot be reached."""
        return not self._answers(inside, self._host.address)

    def hears_loopback(self, inside: tuple[str, ...]) -> bool:
        """Whether it can be reached by the loopback of a host or of this machine."""
        return self._answers(inside, "127.0.0.1")

    def _answers(self, inside: tuple[str, ...], address: str) -> bool:
        target = [address, self.port, str(SILENCE_SECONDS)]
        command = [*inside, sys.executable, "-c", CONNECT, *target]
        return subprocess.run(command, capture_output=True, check=False).returncode == 0


class Listener:
    """Listens on a host to one who speaks, while the `with` block lasts."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def __enter__(self) -> "Listener":
        command = [*self._host.inside, sys.executable, "-c", LISTEN]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE)
        self._port = str(self.hears())
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    def is_spoken_to(self, inside: tuple[str, ...]) -> None:
        """Have all said from a host, by somebody who is gone then."""
        command = [*inside, sys.executable, "-c", SAY, self._host.address, self._port]
        subprocess.run(command, check=True, timeout=PATIENCE_SECONDS)

    def hears(self) -> int:
        """How much has come, waited for."""
        assert self._process.stdout is not None
        return int(self._process.stdout.readline())

    def hears_no_more(self) -> bool:
        """Whether nothing else comes for a while."""
        assert self._process.stdout is not None
        return not select.select([self._process.stdout], [], [], SILENCE_SECONDS)[0]


async def test_hosts_hear_each_other_until_a_cable_is_pulled() -> None:
    """Hosts and this machine reach each other; a cut host reaches nobody until it is joined."""

    async def test(network: Network) -> None:
        left, right = network.hosts["left"], network.hosts["right"]
        with Server(left) as server:
            assert server.hears(right.inside)
            assert server.hears(())
            await network.cut("right")
            assert server.is_deaf_to(right.inside)
            assert server.hears(())
            await network.join("right")
            assert server.hears(right.inside)
            await network.cut("left")
            assert server.is_deaf_to(())

    await on_a_network(test)


async def test_what_was_on_its_way_arrives_late() -> None:
    """A narrow cable lets a conversation begin and holds up what is said in it; that arrives when
    a host that was cut off is joined again, although whoever has said it is gone.
    """

    async def test(network: Network) -> None:
        left, right = network.hosts["left"], network.hosts["right"]
        with Listener(left) as listener:
            await network.narrow("left")
            listener.is_spoken_to(right.inside)
            assert listener.hears() == 99
            assert listener.hears_no_more()
            await network.cut("right")
            await network.widen("left")
            assert listener.hears_no_more()
            await network.join("right")
            assert listener.hears() == 9000

    await on_a_network(test)


async def test_nothing_leads_out() -> None:
    """A host knows the way to its own network and to nowhere else."""

    async def test(network: Network) -> None:
        for name, host in network.hosts.items():
            routes = json.loads(ip("-n", f"refund-drill-{os.getpid()}-{name}", "-json", "route"))
            net = ip_interface(f"{host.address}/24").network
            assert [route["dst"] for route in routes] == [str(net)]

    await on_a_network(test)


async def test_a_host_has_a_loopback_of_its_own() -> None:
    """What listens on a host is not heard on this machine's loopback."""

    async def test(network: Network) -> None:
        left = network.hosts["left"]
        with Server(left) as server:
            assert server.hears_loopback(left.inside)
            assert not server.hears_loopback(())

    await on_a_network(test)


async def test_nothing_stays_behind() -> None:
    """All is removed at the end, also where that is a failure."""

    async def test(_network: Network) -> None:
        assert len(own()) == len(NAMES) + 2
        raise ZeroDivisionError

    if is_possible():
        with pytest.raises(ZeroDivisionError):
            await on_a_network(test)
        assert own() == []
    else:
        await on_a_network(test)


async def test_what_a_killed_drill_left_is_removed() -> None:
    """Namespaces of a process that is gone are removed, and a living drill's are not touched."""
    if is_possible():
        left, living = f"refund-drill-{gone()}-switch", f"refund-drill-{os.getppid()}-switch"
        ip("netns", "add", left)
        ip("netns", "add", living)
        try:

            async def test(_network: Network) -> None:
                assert left not in namespaces()
                assert living in namespaces()

            await on_a_network(test)
        finally:
            ip("netns", "delete", living)


async def test_without_root_one_line_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever is not root is told what it needs, and nothing is tried."""
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(CannotBuild, match=r"^needs root and ip\(8\)$"):
        async with Network(NAMES):
            pytest.fail("there is a network without root")
