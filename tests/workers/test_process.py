"""The worker as a process: it polls, drains, and says in one line why it cannot."""

import json
import signal
from contextlib import AsyncExitStack
from datetime import timedelta
from pathlib import Path

import pytest
from temporalio.api.enums.v1 import TaskQueueType
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest
from temporalio.client import Client

from domain.names import TASK_QUEUE
from tests.worker_process import worker
from tests.world import temporal_server
from workers.process import CannotConnect, connect

WORKFLOW = TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW
ACTIVITY = TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY


async def pollers_of(client: Client, kind: "TaskQueueType.ValueType") -> set[str]:
    """Who polls the queue of refunds, as the server lists it."""
    answer = await client.workflow_service.describe_task_queue(
        DescribeTaskQueueRequest(
            namespace="default", task_queue=TaskQueue(name=TASK_QUEUE), task_queue_type=kind
        )
    )
    return {poller.identity for poller in answer.pollers}


async def test_a_worker_polls_and_drains(tmp_path: Path) -> None:
    """One line of JSON once the server has its polls; SIGTERM ends it cleanly."""
    async with temporal_server() as server:
        address = server.client.service_client.config.target_host
        place = {"TEMPORAL_ADDRESS": address, "NORTHWIND_DATA_DIR": str(tmp_path)}
        async with worker(**place) as process:
            assert process.stdout is not None
            ready = json.loads(await process.stdout.readline())
            pollers = [await pollers_of(server.client, kind) for kind in (WORKFLOW, ACTIVITY)]
            process.send_signal(signal.SIGTERM)
            _, log = await process.communicate()
    assert (ready["polling"], ready["environment"]) == ("refunds", "local")
    assert ready["pid"] == process.pid
    assert pollers == [{ready["identity"]}, {ready["identity"]}]
    assert process.returncode == 0
    assert b"Traceback" not in log


async def test_warnings_of_the_core_are_no_ready_lines(tmp_path: Path) -> None:
    """Whoever reads the ready line meets nothing else, as when the server goes away."""
    async with AsyncExitStack() as outside:
        server = await outside.enter_async_context(temporal_server())
        address = server.client.service_client.config.target_host
        place = {"TEMPORAL_ADDRESS": address, "NORTHWIND_DATA_DIR": str(tmp_path)}
        async with worker(**place) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            assert json.loads(await process.stdout.readline())["pid"] == process.pid
            await outside.aclose()
            while b"sdk_core" not in await process.stderr.readline():
                assert process.returncode is None
            process.kill()
            out, _ = await process.communicate()
    assert out == b""


async def test_a_worker_that_waits_for_temporal_can_be_ended(
    tmp_path: Path, unused_tcp_port: int
) -> None:
    """It says what it waits for, and SIGTERM ends the waiting."""
    place = {
        "TEMPORAL_ADDRESS": f"127.0.0.1:{unused_tcp_port}",
        "NORTHWIND_DATA_DIR": str(tmp_path),
    }
    async with worker(**place) as process:
        assert process.stderr is not None
        line = await process.stderr.readline()
        process.send_signal(signal.SIGTERM)
        await process.communicate()
    assert b"cannot be reached; trying for 60 s" in line
    assert process.returncode == 0


@pytest.mark.parametrize(
    ("environment", "code", "words"),
    [
        ({"NORTHWIND_COMPANY_URL": "nowhere"}, 2, "NORTHWIND_COMPANY_URL"),
        ({"STRIPE_API_KEY": "sk_live_s3cret"}, 2, "STRIPE_API_KEY"),
        ({"NORTHWIND_ENVIRONMENT": "staging"}, 2, "STRIPE_API_KEY is not set"),
        ({"TEMPORAL_CONFIG_FILE": "/no/such/file", "TEMPORAL_PROFILE": "x"}, 2, "Temporal"),
        ({"NORTHWIND_LEDGER_URL": "sqlite:////dev/null/ledger.db"}, 5, "ledger"),
    ],
)
async def test_what_is_wrong_is_one_line_and_an_exit_code(
    tmp_path: Path, environment: dict[str, str], code: int, words: str
) -> None:
    """Never a traceback, never a secret."""
    async with worker(**{"NORTHWIND_DATA_DIR": str(tmp_path), **environment}) as process:
        out, log = await process.communicate()
    [line] = log.decode().splitlines()
    assert words in line
    assert "s3cret" not in line
    assert (process.returncode, out) == (code, b"")


async def test_no_server_within_the_time_is_one_clear_error(unused_tcp_port: int) -> None:
    """The address is in it."""
    place = {"target_host": f"127.0.0.1:{unused_tcp_port}", "namespace": "default"}
    with pytest.raises(CannotConnect, match=f"{unused_tcp_port} cannot be reached"):
        await connect(place, patience=timedelta(0))


async def test_an_unknown_namespace_is_named() -> None:
    """A server without the namespace is no reason to poll it for ever."""
    async with temporal_server() as server:
        address = server.client.service_client.config.target_host
        with pytest.raises(CannotConnect, match="no namespace elsewhere"):
            await connect({"target_host": address, "namespace": "elsewhere"}, patience=timedelta(0))
