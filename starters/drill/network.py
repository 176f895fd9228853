"""A private network on this machine: hosts in network namespaces of their own, all at one switch.

The switch is a bridge in a namespace too, so that no firewall rule and no forwarding of this
machine has a word in it. It has no uplink, and no host has a route to anywhere else: what listens
there is heard in this network alone. This machine takes part by one cable of its own.
"""

import asyncio
import json
import os
import re
import shutil
import sys
from collections.abc import Sequence
from contextlib import suppress
from ipaddress import IPv4Interface, IPv4Network
from typing import Any, Self

from starters.installation import Host

# All names hold the drill's process id, so that what a killed drill has left is known by it.
_PREFIX = "refund-drill"
_NAME = re.compile(rf"{_PREFIX}-(?P<pid>\d+)-[a-z0-9-]+")
_SWITCH, _BRIDGE = "switch", "bridge"
# RFC 2544 keeps these addresses for tests of network devices: no real network has them.
_RANGE = IPv4Network("198.18.0.0/15")
_NET_BITS = 24
_ALL_OF_THE_HOST = "0.0.0.0"  # noqa: S104 - the host is in the private network alone
# What was sent and is not acknowledged is sent again each second, for minutes after the program has
# given up: so a request that was under way when the cable was pulled arrives soon after it is back.
# A kernel before 6.15 lacks the first, and lets it arrive up to two minutes later. Who was once
# found is not looked for again meanwhile: not to be found, they would be given up at once.
_SETTINGS = {
    "tcp_rto_max_ms": 1000,
    "tcp_retries2": 255,
    "tcp_orphan_retries": 255,
    "neigh/eth0/base_reachable_time_ms": 3_600_000,
}
# The most bytes of one packet: on a cable, and on one that is narrow. Commands of SMTP are smaller
# than that, a mail and a request with its headers are larger.
_WIDE_BYTES, _NARROW_BYTES = 1500, 400


class CannotBuild(Exception):
    """This machine lets us have no network of our own; the message is one line."""


class Network:
    """Some hosts, while the `async with` block lasts; one network at a time for each process."""

    def __init__(self, names: Sequence[str]) -> None:
        """Note which hosts there are to be; nothing is built yet.

        Args:
            names: In small letters, digits and hyphens.
        """
        self._names = tuple(names)
        self.hosts: dict[str, Host] = {}
        """Where each is, and how a process is started there."""

    async def __aenter__(self) -> Self:
        """Build it, after what killed drills have left behind is removed.

        Raises:
            CannotBuild: with the reason.
        """
        try:
            await _remove_leftovers()
            await self._build()
        except BaseException:
            await _remove_own()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        """Remove it; what still runs there reaches nobody any more."""
        await _remove_own()

    async def cut(self, name: str) -> None:
        """Pull a host's cable out of the switch: nothing comes through, and nobody is told."""
        await _in_switch("link", "set", self._port(name), "nomaster")

    async def join(self, name: str) -> None:
        """Put a host's cable back."""
        await _in_switch("link", "set", self._port(name), "master", _BRIDGE)

    async def narrow(self, name: str) -> None:
        """Let only small packets through to a host: a conversation begins, and what is said in it
        stays on its way.
        """
        await _in_switch("link", "set", self._port(name), "mtu", str(_NARROW_BYTES))

    async def widen(self, name: str) -> None:
        """Let everything through again."""
        await _in_switch("link", "set", self._port(name), "mtu", str(_WIDE_BYTES))

    async def _build(self) -> None:
        net = await _free_net()
        addresses = (f"{address}/{net.prefixlen}" for address in net.hosts())
        await _ip("netns", "add", _namespace(_SWITCH))
        await _in_switch("link", "add", _BRIDGE, "type", "bridge")
        await _in_switch("link", "set", _BRIDGE, "up")
        await _plug("uplink", "name", _own_end(), "netns", str(os.getpid()))
        await _ip("address", "add", next(addresses), "dev", _own_end())
        await _ip("link", "set", _own_end(), "up")
        for name in self._names:
            await self._add_host(name, next(addresses))

    async def _add_host(self, name: str, address: str) -> None:
        namespace = _namespace(name)
        await _ip("netns", "add", namespace)
        await _plug(self._port(name), "name", "eth0", "netns", namespace)
        await _ip("-n", namespace, "address", "add", address, "dev", "eth0")
        for device in ("lo", "eth0"):
            await _ip("-n", namespace, "link", "set", device, "up")
        # Packets that the kernel leaves for the cable to cut up would slip through a narrow one.
        await _ip("-n", namespace, "link", "set", "eth0", "gso_max_segs", "1")
        for setting, value in _SETTINGS.items():
            write = f"echo {value} > /proc/sys/net/ipv4/{setting}"
            with suppress(CannotBuild):
                await _ip("netns", "exec", namespace, "sh", "-c", write)
        inside = (_program(), "netns", "exec", namespace)
        self.hosts[name] = Host(str(IPv4Interface(address).ip), _ALL_OF_THE_HOST, inside)

    def _port(self, name: str) -> str:
        return f"port{self._names.index(name)}"


def _namespace(name: str) -> str:
    return f"{_PREFIX}-{os.getpid()}-{name}"


def _own_end() -> str:
    """The network device by which this machine takes part: Linux allows 15 characters."""
    return f"refdrill{os.getpid()}"


async def _plug(port: str, *other_end: str) -> None:
    """Lay a cable from a port of the switch."""
    await _in_switch("link", "add", port, "type", "veth", "peer", *other_end)
    await _in_switch("link", "set", port, "master", _BRIDGE, "up")


async def _free_net() -> IPv4Network:
    """A part of the range in which this machine has no address yet."""
    devices: list[dict[str, Any]] = json.loads(await _ip("-json", "-4", "address", "show") or "[]")
    taken = [
        IPv4Interface(f"{row['local']}/{row['prefixlen']}").network
        for device in devices
        for row in device.get("addr_info", ())
    ]
    for net in _RANGE.subnets(new_prefix=_NET_BITS):
        if not any(net.overlaps(other) for other in taken):
            return net
    raise CannotBuild(f"this machine has addresses all over {_RANGE}")


async def _remove_leftovers() -> None:
    """Remove namespaces whose drill is gone; the cables go with them.

    Some of our own process id are an older process's.
    """
    for name, pid in await _namespaces():
        if pid == os.getpid() or not _is_alive(pid):
            await _ip("netns", "delete", name)


async def _remove_own() -> None:
    with suppress(CannotBuild):
        for name, pid in await _namespaces():
            if pid == os.getpid():
                await _ip("netns", "delete", name)
    # A deleted namespace ends a moment later, and this machine's end of the cable with it.
    with suppress(CannotBuild):
        await _ip("link", "delete", _own_end())


async def _namespaces() -> list[tuple[str, int]]:
    """The names of drills' namespaces, each with the process id in it."""
    names = (line.split(" ")[0] for line in (await _ip("netns", "list")).splitlines())
    found = (_NAME.fullmatch(name) for name in names)
    return [(match.group(), int(match["pid"])) for match in found if match is not None]


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def _in_switch(*arguments: str) -> None:
    await _ip("-n", _namespace(_SWITCH), *arguments)


def _program() -> str:
    # It lies where the PATH of an ordinary user does not lead.
    program = shutil.which("ip", path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin")
    if sys.platform != "linux" or os.geteuid() != 0 or program is None:
        raise CannotBuild("needs root and ip(8)")
    return program


async def _ip(*arguments: str) -> str:
    """Call `ip`, and return what it prints.

    Raises:
        CannotBuild: there is none, or it refused.
    """
    process = await asyncio.create_subprocess_exec(
        _program(),
        *arguments,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    output, problem = await process.communicate()
    if process.returncode != 0:
        words = " ".join(problem.decode(errors="replace").split())
        raise CannotBuild(f"ip {' '.join(arguments)}: {words}")
    return output.decode()
