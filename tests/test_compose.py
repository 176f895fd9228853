"""docker-compose.yml against its schema and against the code; no engine is needed."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.operatorservice.v1 import ListSearchAttributesRequest
from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest
from temporalio.client import Client
from temporalio.testing import WorkflowEnvironment

from activities.ledger import Ledger
from domain.names import ATTRIBUTE_TYPES
from starters import schedule
from tests.compose_checks import ROOT, mistakes, own_environments, scripts
from workers.settings import LOCAL, load_settings

COMPOSE = ROOT / "docker-compose.yml"
BIN = Path(sys.executable).parent
PASSWORD = "${POSTGRES_PASSWORD:?make one as the top of docker-compose.yml says}"


def broken(old: str, new: str) -> str:
    """Return the compose file with one place changed; the place must exist."""
    text = COMPOSE.read_text()
    assert old in text
    return text.replace(old, new, 1)


def fits_schema(path: Path) -> subprocess.CompletedProcess[str]:
    """Hold a file against the compose specification's schema, as check-jsonschema ships it."""
    return subprocess.run(
        [BIN / "check-jsonschema", "--builtin-schema", "vendor.compose-spec", path],
        check=False,
        capture_output=True,
        text=True,
    )


def test_it_is_a_compose_file() -> None:
    """The file fits the schema of the compose specification."""
    done = fits_schema(COMPOSE)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_schema_check_can_fail(tmp_path: Path) -> None:
    """A misspelt key of a service is refused."""
    path = tmp_path / "docker-compose.yml"
    path.write_text(broken("depends_on:", "dependson:"))
    assert fits_schema(path).returncode == 1


def test_it_agrees_with_the_code() -> None:
    """Every command, option and variable exists, nothing is open, undefined or unchecked."""
    assert mistakes(COMPOSE.read_text()) == []


@pytest.mark.parametrize(
    ("old", "new", "mistake"),
    [
        ("company: { condition:", "firm: { condition:", "depends on firm, which does not exist"),
        ('["postgres:/var', '["data:/var', "data is not among the volumes"),
        ("networks: [inside, outside]", "networks: [front]", "front is not among the networks"),
        ("source: dynamic-config", "source: dynamic", "dynamic is not among the configs"),
        ("[refund, worker]", "[refund, labourer]", "refund labourer is no command"),
        ("[refund, worker]", "[worker]", "worker is no command"),
        ("[refund, worker]", "[refund, worker, --turbo]", "refund knows no --turbo"),
        ("[CMD, refund, doctor,", "[CMD, refund, medic,", "refund medic --no-keys is no command"),
        ("-m, northwind", "-m, southwind", "python -m southwind is no command"),
        ("--smtp-port", "--mail-port", "python knows no --mail-port"),
        ("NORTHWIND_SMTP_URL", "NORTHWIND_MAIL_URL", "NORTHWIND_MAIL_URL is read by neither"),
        ("TEMPORAL_ADDRESS: temporal:7233\n  T", "TEMPORAL_HOST: x\n  T", "TEMPORAL_HOST is read"),
        ("127.0.0.1:8080:8080", "8080:8080", "8080:8080 is published beyond 127.0.0.1"),
        ("127.0.0.1:8700:8700", "0.0.0.0:8700:8700", "published beyond 127.0.0.1"),
        ("restart: unless-stopped", "network_mode: host", "shares the host's network"),
        ("server:1.32.0", "server:latest", "names no version"),
        ("server:1.32.0", "server", "names no version"),
        (f"POSTGRES_PASSWORD: {PASSWORD}", "POSTGRES_PASSWORD: pass", "that a stranger knows"),
        (PASSWORD, "${POSTGRES_PASSWORD:-pass}", "may be empty"),
        (PASSWORD, "$POSTGRES_PASSWORD", "may be empty"),
        (
            "healthcheck:\n      test: [CMD, wget",
            "x-health:\n      test: [CMD, wget",
            "no healthcheck",
        ),
        ("healthcheck:\n      test: [CMD, nc", "x-health:\n      test: [CMD, nc", "is waited for"),
    ],
)
def test_each_check_can_fail(old: str, new: str, mistake: str) -> None:
    """One mistake in the file is found, and said in words that name it."""
    found = mistakes(broken(old, new))
    assert any(mistake in sentence for sentence in found), found


def test_the_settings_take_every_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the file hands to our processes is accepted by their settings and by the ledger."""
    environments = own_environments(COMPOSE.read_text(), "0123abcd")
    assert {"company", "refund", "worker"} == set(environments)
    for name in [key for key in os.environ if key.startswith("NORTHWIND_")]:
        monkeypatch.delenv(name)
    for environment in environments.values():
        with monkeypatch.context() as patch:
            for key, value in environment.items():
                patch.setenv(key, value)
            Ledger(load_settings().ledger_url.get_secret_value())
    shared = environments["worker"]["NORTHWIND_LEDGER_URL"]
    assert shared == "postgresql://northwind:0123abcd@postgres:5432/ledger"


def test_the_scripts_are_shell() -> None:
    """The set-up scripts parse."""
    assert {"temporal-schema", "temporal-namespace"} == set(scripts(COMPOSE.read_text()))
    for script in scripts(COMPOSE.read_text()).values():
        subprocess.run(["sh", "-n", "-c", script], check=True)


def test_the_image_gets_every_package() -> None:
    """What the Dockerfile copies exists, reaches the builder and holds all packages."""
    copied = {
        source
        for row in (ROOT / "Dockerfile").read_text().splitlines()
        if row.startswith("COPY ")
        for source in row.split()[1:-1]
    }
    let_through = {
        row.removeprefix("!")
        for row in (ROOT / ".dockerignore").read_text().splitlines()
        if row.startswith("!")
    }
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    packages = set(project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"])
    assert copied == packages | {"LICENSE", "README.md", "pyproject.toml", "requirements.lock"}
    assert let_through == copied
    assert [name for name in copied if not (ROOT / name).exists()] == []


async def test_the_namespace_is_what_the_workers_need() -> None:
    """The set-up script, run twice on a real server, leaves all that `refund doctor` looks for."""
    namespace, script = "compose", scripts(COMPOSE.read_text())["temporal-namespace"]
    server = await WorkflowEnvironment.start_local(dev_server_existing_path=str(BIN / "temporal"))
    async with server as environment:
        client = environment.client
        variables = {
            "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
            "TEMPORAL_ADDRESS": client.service_client.config.target_host,
            "TEMPORAL_NAMESPACE": namespace,
        }
        for _ in range(2):
            process = await asyncio.create_subprocess_exec("sh", "-euc", script, env=variables)
            assert await process.wait() == 0
        described = await client.workflow_service.describe_namespace(
            DescribeNamespaceRequest(namespace=namespace)
        )
        attributes = await client.operator_service.list_search_attributes(
            ListSearchAttributesRequest(namespace=namespace)
        )
        there = await Client.connect(client.service_client.config.target_host, namespace=namespace)
        found = await schedule.find(there, LOCAL)
    assert described.config.workflow_execution_retention_ttl.ToTimedelta().days == 90
    registered = {
        name: IndexedValueType.Name(kind).removeprefix("INDEXED_VALUE_TYPE_").capitalize()
        for name, kind in attributes.custom_attributes.items()
    }
    assert registered.items() >= ATTRIBUTE_TYPES.items()
    assert found is not None
    assert schedule.differs(found.schedule, LOCAL) == ""
