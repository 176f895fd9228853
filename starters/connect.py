"""The connection to Temporal: where it is, how it was found, and one line where it is not there.

The SDK's own `temporalio.envconfig` decides: `TEMPORAL_*` variables, then the profile of its file.
Where neither names an address, the folder of a `refund up` does.
"""

import asyncio
import os
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from temporalio.client import Client
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.envconfig import ClientConfigProfile
from temporalio.service import RetryConfig

from starters.errors import CommandError, Exit
from starters.folder import Folder, Links
from starters.runtime import quiet_runtime
from workers.settings import Settings

DEFAULT_ADDRESS = "localhost:7233"
# A server that is there answers in milliseconds; a firewall that swallows packets never does.
CONNECT_SECONDS = 5.0
RPC_TIMEOUT = timedelta(seconds=10)
# The SDK would repeat a failed call for long; whoever waits at a terminal wants to know.
_RETRY = RetryConfig(max_elapsed_time_millis=3_000, max_retries=3)


@dataclass(frozen=True)
class Target:
    """Where Temporal is, and who says so."""

    address: str
    namespace: str
    said_by: str
    options: dict[str, Any]
    """What `Client.connect` takes beside address and namespace: TLS, API key, metadata."""
    links: Links | None = None
    """The local installation, where it is one that `refund up` started."""
    how_to_find: str = "is it running? `refund up` starts one"
    """What to do where it refuses the connection."""


def find_target(settings: Settings) -> Target:
    """Read where Temporal is.

    Raises:
        CommandError: the SDK's configuration file is broken.
    """
    try:
        profile = ClientConfigProfile.load()
        options: dict[str, Any] = dict(profile.to_client_connect_config())
    except (RuntimeError, ValueError, OSError) as error:
        raise CommandError(
            f"the Temporal client's configuration cannot be read: {error}", Exit.USAGE
        ) from None
    address = options.pop("target_host", None)
    namespace = options.pop("namespace", None) or "default"
    if address:
        by_variable = bool(os.environ.get("TEMPORAL_ADDRESS"))
        said_by = "TEMPORAL_ADDRESS" if by_variable else "the Temporal client's profile"
        return Target(address, namespace, said_by, options)
    folder = Folder(settings.data_dir)
    if (links := folder.read_links()) is not None:
        said_by = f"{folder.links_file}, written by `refund up`"
        return Target(links.temporal, namespace, said_by, options, links)
    said_by = "the default; TEMPORAL_ADDRESS is not set"
    default = Target(DEFAULT_ADDRESS, namespace, said_by, options)
    if folder.path.exists():
        return default
    return replace(
        default,
        how_to_find=f"there is no {folder.path.absolute()}: go to the folder where `refund up` "
        "runs, or set NORTHWIND_DATA_DIR",
    )


async def connect(target: Target, seconds: float = CONNECT_SECONDS) -> Client:
    """Connect, or say in one line that nobody is there.

    Raises:
        CommandError: wrong address or port, no answer in time, TLS that does not fit.
    """
    try:
        if "://" in target.address:
            # The SDK would take it apart with a warning of its own.
            raise ValueError("invalid target URL")
        async with asyncio.timeout(seconds):
            return await Client.connect(
                target.address,
                namespace=target.namespace,
                data_converter=pydantic_data_converter,
                retry_config=_RETRY,
                runtime=quiet_runtime(),
                **target.options,
            )
    except TimeoutError:
        why = f"no answer within {seconds:g} seconds"
    except (RuntimeError, ValueError) as error:
        why = _why(str(error), target)
    raise CommandError(
        f"Temporal cannot be reached at {target.address} (from {target.said_by}): {why}",
        Exit.UNREACHABLE,
    )


async def connect_by(settings: Settings) -> Client:
    """Find Temporal and connect."""
    return await connect(find_target(settings))


def _why(message: str, target: Target) -> str:
    """The SDK's nested error in plain words."""
    known = {
        "ConnectionRefused": f"connection refused; {target.how_to_find}",
        "dns error": "there is no host of that name",
        "NetworkUnreachable": "the network is unreachable",
        "HostUnreachable": "the host is unreachable",
        "invalid target URL": "that is no address; it must look like host:7233",
        "get_system_info": "something else than Temporal answers there",
        "certificate": "its TLS certificate is not accepted",
    }
    found = next((words for mark, words in known.items() if mark in message), None)
    return found or message.removeprefix("Failed client connect: ").split("{")[0][:160]
