"""`refund doctor`: each thing that is wrong, and how to mend it."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from temporalio import activity
from temporalio.client import Client
from temporalio.worker import Worker

from domain.names import sweep_id
from starters.doctor import compare_clocks
from tests.starters.conftest import Typed
from tests.world import World


@activity.defn
async def no_work() -> None:
    """What a worker needs to poll at all."""


async def findings(typed: Typed) -> dict[str, dict[str, Any]]:
    """What the doctor finds, by check; its exit code says whether anything is wrong."""
    done = await typed("doctor", "--json")
    assert done.code == int(not all(finding["ok"] for finding in done.data)), done.err
    return {finding["check"]: finding for finding in done.data}


async def test_a_bare_namespace_needs_mending(typed: Typed, bare_world: World) -> None:
    """Missing attributes and the short retention are found, each with the command that mends it."""

    async def is_polled() -> bool:
        return bool((await findings(typed))["worker"]["ok"])

    await bare_world.until(is_polled)
    found = await findings(typed)
    for check, mend in (
        ("search attributes", "--name RefundStage --type Keyword"),
        ("retention", "--retention 90d"),
    ):
        assert not found[check]["ok"]
        assert mend in found[check]["mend"]
    for check in ("settings", "keys", "server", "worker", "clock", "ledger"):
        assert found[check]["ok"], found[check]


async def test_a_queue_that_nobody_polls_is_found(
    typed: Typed, monkeypatch: pytest.MonkeyPatch, world: World
) -> None:
    """No worker on the queue is found, and told to people too."""
    monkeypatch.setattr("domain.names.TASK_QUEUE", "nobody-polls-this")
    found = await findings(typed)
    assert not found["worker"]["ok"]
    assert "refund worker" in found["worker"]["mend"]
    assert "nobody polls nobody-polls-this" in (await typed("doctor")).out


async def test_a_missing_namespace_is_told_apart(
    typed: Typed, monkeypatch: pytest.MonkeyPatch, world: World
) -> None:
    """The server is there and the namespace is not: the doctor says which, and how to make one."""
    monkeypatch.setenv("TEMPORAL_NAMESPACE", "no-such-namespace")
    found = await findings(typed)
    assert found["server"]["ok"]
    assert "--namespace no-such-namespace --retention 90d" in found["namespace"]["mend"]


async def test_an_unreachable_server_is_found(
    typed: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a server the doctor still says what can be said."""
    monkeypatch.setenv("TEMPORAL_ADDRESS", "127.0.0.1:1")
    found = await findings(typed)
    assert not found["server"]["ok"]
    assert "connection refused" in found["server"]["detail"]
    assert found["settings"]["ok"]


async def test_what_is_well_needs_no_mending(typed: Typed, world: World) -> None:
    """Scripts may run each mend that they read: there is one only where something is wrong."""
    found = await findings(typed)
    assert [f for f in found.values() if f["ok"]]
    assert {f["mend"] for f in found.values() if f["ok"]} == {""}


@pytest.mark.parametrize(("what", "says"), [("none", "no private keys"), ("open", "others can")])
async def test_keys_are_looked_at(
    typed: Typed, monkeypatch: pytest.MonkeyPatch, world: World, what: str, says: str
) -> None:
    """An empty key folder, and a key that others can read, are found."""
    if what == "none":
        monkeypatch.setenv("NORTHWIND_KEYS_DIR", "no-keys-here")
    else:
        (world.company.keys / "maria.silva@northwind.example.pem").chmod(0o644)
    found = await findings(typed)
    assert not found["keys"]["ok"]
    assert says in found["keys"]["detail"]


async def test_a_machine_that_signs_nothing_needs_no_keys(
    typed: Typed, world: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A worker's container has no private keys, and is healthy without them."""
    monkeypatch.setenv("NORTHWIND_KEYS_DIR", str(tmp_path / "none"))
    healthy = await typed("doctor", "--fix", "--no-keys", "--json")
    assert healthy.code == 0, healthy.err
    assert "keys" not in [finding["check"] for finding in healthy.data]
    asked = await findings(typed)
    await world.client.get_schedule_handle(sweep_id("local")).delete()
    assert [name for name, found in asked.items() if not found["ok"]] == ["keys"]


async def test_a_wrong_setting_is_found(typed: Typed, monkeypatch: pytest.MonkeyPatch) -> None:
    """A setting that cannot be read is the one finding, with its name."""
    monkeypatch.setenv("NORTHWIND_SMTP_URL", "nonsense")
    found = await findings(typed)
    assert "NORTHWIND_SMTP_URL" in found["settings"]["detail"]


@pytest.mark.parametrize(
    ("off", "ok", "says"),
    [
        (-31, False, "31 s ahead of"),
        (-30, True, "30 s ahead of"),
        (0.1, True, "agrees"),
        (30.2, True, "30 s behind"),
        (31.2, False, "31 s behind"),
    ],
)
def test_a_clock_that_is_off_is_found(off: float, *, ok: bool, says: str) -> None:
    """P4: half a minute is forgiven; beyond that, what is signed here would soon be refused."""
    before = datetime(2026, 7, 31, 9, tzinfo=UTC)
    seen, after = before + timedelta(seconds=off), before + timedelta(seconds=0.2)
    found = compare_clocks(before, seen, after)
    assert (found.check, found.ok) == ("clock", ok)
    assert says in found.detail


async def test_a_shared_sqlite_ledger_is_found(typed: Typed, world: World) -> None:
    """Workers on several hosts with a ledger in SQLite: two would not see each other's mails."""
    config = world.client.service_client.config
    other = Worker(
        await Client.connect(config.target_host),
        task_queue="refunds",
        activities=[no_work],
        identity="1@another-host",
    )
    ledger: dict[str, Any] = {}

    async def is_seen() -> bool:
        ledger.update((await findings(typed))["ledger"])
        return "another-host" in ledger["detail"]

    async with other:
        await world.until(is_seen)
    assert not ledger["ok"]
    assert "NORTHWIND_LEDGER_URL" in ledger["mend"]


async def test_each_mend_reaches_the_server_that_was_looked_at(
    typed: Typed, bare_world: World
) -> None:
    """Beside a second installation, a command without an address would change the wrong one."""
    mends = [finding["mend"] for finding in (await findings(typed)).values()]
    commands = [mend for mend in mends if "temporal " in mend]
    address = bare_world.client.service_client.config.target_host
    assert commands
    assert all(f"--address {address} --namespace default" in mend for mend in commands)


async def test_what_a_worker_would_lack_is_named_beside_settings_that_do_for_commands(
    typed: Typed, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of it at once; the worker itself says the same."""
    monkeypatch.setenv("NORTHWIND_MODEL_PROVIDER", "anthropic")
    found = (await findings(typed))["settings"]
    assert found["ok"]
    assert "NORTHWIND_MODEL_NAME is not set, ANTHROPIC_API_KEY is not set" in found["detail"]
