"""What `refund doctor --fix` mends: only what adds to the set-up and takes nothing away."""

from collections.abc import Awaitable, Callable
from datetime import timedelta

from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.namespace.v1 import NamespaceConfig
from temporalio.api.operatorservice.v1 import (
    AddSearchAttributesRequest,
    ListSearchAttributesRequest,
)
from temporalio.api.workflowservice.v1 import UpdateNamespaceRequest
from temporalio.client import Client

from domain import names
from starters import schedule
from starters.connect import RPC_TIMEOUT

# A run may take 7 days to be decided and 30 to be verified, and is asked about after its end.
RETENTION_DAYS = 90

Mend = Callable[[Client, str], Awaitable[str]]


async def keep_closed_runs(client: Client, _environment: str) -> str:
    """Have the namespace keep closed runs for long enough; what was done, in words."""
    config = NamespaceConfig()
    config.workflow_execution_retention_ttl.FromTimedelta(timedelta(days=RETENTION_DAYS))
    await client.workflow_service.update_namespace(
        UpdateNamespaceRequest(namespace=client.namespace, config=config), timeout=RPC_TIMEOUT
    )
    return f"closed runs are kept for {RETENTION_DAYS} days"


async def register_search_attributes(client: Client, _environment: str) -> str:
    """Register the attributes that are not there; one of another type stays as it is."""
    there = await client.operator_service.list_search_attributes(
        ListSearchAttributesRequest(namespace=client.namespace), timeout=RPC_TIMEOUT
    )
    missing = {
        name: IndexedValueType.Value(f"INDEXED_VALUE_TYPE_{kind.upper()}")
        for name, kind in names.ATTRIBUTE_TYPES.items()
        if name not in there.custom_attributes
    }
    if not missing:
        return ""
    await client.operator_service.add_search_attributes(
        AddSearchAttributesRequest(namespace=client.namespace, search_attributes=missing),
        timeout=RPC_TIMEOUT,
    )
    return f"registered {', '.join(missing)}"


async def make_schedule(client: Client, environment: str) -> str:
    """Make the Schedule of the sweep, or bring it up to date; what was done, in words."""
    return await schedule.ensure(client, environment)


# By the name of the check that finds the need.
MENDS: dict[str, Mend] = {
    "retention": keep_closed_runs,
    "search attributes": register_search_attributes,
    "sweep": make_schedule,
}
