"""The company as a process: it survives SIGKILL at any moment, and ends on SIGTERM."""

import asyncio
import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest
import stripe

from tests.northwind.support import (
    PATIENCE,
    client_of,
    clients_of,
    fired,
    letter,
    process,
    refunds,
    response_header,
    send,
    set_faults,
    until,
)

ASKED: Any = {"payment_intent": "pi_8890", "amount": 42000}
KEY: Any = {"idempotency_key": "local/refund-order-8890/request-1/refund.r1"}


def kill(running: subprocess.Popen[str]) -> None:
    """End a process without a chance to clean up."""
    running.send_signal(signal.SIGKILL)
    assert running.wait(PATIENCE) == -signal.SIGKILL


async def test_what_was_answered_survives_a_sigkill(tmp_path: Path) -> None:
    """Refund, mail, clock and key are there after the kill, and the key replays the answer."""
    with process(tmp_path) as (running, ready):
        async with clients_of(ready["http"]) as (payments, http):
            made = await payments.v1.refunds.create_async(ASKED, KEY)
            await send(ready["smtp"], letter("a/mail.under_review"))
            await http.post("/control/clock", json={"advance_seconds": 3600})
        kill(running)
    with process(tmp_path) as (_, ready):
        async with clients_of(ready["http"]) as (payments, http):
            replay = await payments.v1.refunds.create_async(ASKED, KEY)
            assert replay == made
            assert response_header(replay, "idempotent-replayed") == "true"
            assert [kept["id"] for kept in await refunds(http, "pi_8890")] == [made.id]
            assert len((await http.get("/mailbox.json")).json()["messages"]) == 1


async def test_a_refund_whose_answer_was_lost_to_a_kill_is_made_once(tmp_path: Path) -> None:
    """Done, not answered, killed: the key finds the refund, because both were stored as one."""
    with process(tmp_path) as (running, ready):
        async with clients_of(ready["http"]) as (payments, http):
            await set_faults(
                http, {"system": "payments", "operation": "refunds.create", "what": "drop_after"}
            )
            with pytest.raises(stripe.APIConnectionError):
                await payments.v1.refunds.create_async(ASKED, KEY)
        kill(running)
    with process(tmp_path) as (_, ready):
        async with clients_of(ready["http"]) as (payments, http):
            found = await payments.v1.refunds.create_async(ASKED, KEY)
            assert response_header(found, "idempotent-replayed") == "true"
            assert [kept["id"] for kept in await refunds(http, "pi_8890")] == [found.id]


async def test_a_refund_that_a_kill_cut_off_was_not_made(tmp_path: Path) -> None:
    """Killed before the effect: nothing was done, and the key is free and held by nobody."""
    with process(tmp_path) as (running, ready):
        async with clients_of(ready["http"]) as (payments, http):
            row = {"system": "payments", "operation": "refunds.create"}
            await set_faults(http, row | {"what": "delay", "seconds": 600})
            caller = asyncio.create_task(payments.v1.refunds.create_async(ASKED, KEY))

            async def under_way() -> bool:
                return await fired(http) == [1]

            await until(under_way)
            kill(running)
            with pytest.raises(stripe.APIConnectionError):
                await caller
    with process(tmp_path) as (_, ready):
        async with clients_of(ready["http"]) as (payments, http):
            assert await refunds(http, "pi_8890") == []
            made = await payments.v1.refunds.create_async(ASKED, KEY)
            assert response_header(made, "idempotent-replayed") is None


async def test_each_key_refunds_once_although_a_kill_came_in_between(tmp_path: Path) -> None:
    """Killed amid many refunds and asked again: one refund for each key, the answered ones too."""
    keys = [f"local/refund-order-8899/request-{number}/refund.r1" for number in range(40)]
    answered: dict[str, str] = {}

    async def ask(payments: stripe.StripeClient, key: str) -> None:
        one_cent: Any = {"payment_intent": "pi_8899", "amount": 1, "metadata": {"key": key}}
        made = await payments.v1.refunds.create_async(one_cent, {"idempotency_key": key})
        assert answered.setdefault(key, made.id) == made.id

    with process(tmp_path) as (running, ready):
        async with clients_of(ready["http"]) as (payments, _):
            asking = [asyncio.create_task(ask(payments, key)) for key in keys]
            await asyncio.wait(asking, return_when=asyncio.FIRST_COMPLETED)
            kill(running)
            outcomes = await asyncio.gather(*asking, return_exceptions=True)
    lost = [outcome for outcome in outcomes if isinstance(outcome, stripe.APIConnectionError)]
    assert len(lost) + len(answered) == len(keys)
    with process(tmp_path) as (_, ready):
        async with clients_of(ready["http"]) as (payments, http):
            await asyncio.gather(*(ask(payments, key) for key in keys))
            kept = {kept["metadata"]["key"]: kept["id"] for kept in await refunds(http, "pi_8899")}
            assert len(await refunds(http, "pi_8899")) == len(keys)
            assert kept == answered


async def test_sigterm_ends_it_soon_even_in_the_middle_of_a_request(tmp_path: Path) -> None:
    """Delayed requests and open connections do not hold it up; it exits with 0."""
    with process(tmp_path) as (running, ready):
        async with client_of(ready["http"]) as http:
            row = {"system": "orders", "operation": "orders.get", "what": "delay", "seconds": 600}
            await set_faults(http, row)
            caller = asyncio.create_task(http.get("/orders/8890"))

            async def under_way() -> bool:
                return await fired(http) == [1]

            await until(under_way)
            running.send_signal(signal.SIGTERM)
            assert running.wait(PATIENCE) == 0
            with pytest.raises(httpx.RemoteProtocolError):
                await caller


async def test_it_says_where_it_serves(tmp_path: Path) -> None:
    """The line on stdout and the ready file say the same, on loopback."""
    ready_file = tmp_path / "ready.json"
    with process(tmp_path / "data", "--ready-file", str(ready_file)) as (running, ready):
        assert ready["pid"] == running.pid
        assert ready["http"].startswith("http://127.0.0.1:")
        assert ready["smtp"].startswith("smtp://127.0.0.1:")
        async with client_of(ready["http"]) as http:
            assert (await http.get("/health")).json() == {"ok": True}
        assert json.loads(ready_file.read_text()) == ready


async def test_a_plan_from_a_file_is_in_force(tmp_path: Path) -> None:
    """Rows of --faults strike from the first call on."""
    plan = tmp_path / "plan.json"
    plan.write_text('[{"system": "orders", "operation": "orders.get", "what": "fail_before"}]')
    with process(tmp_path / "data", "--faults", str(plan)) as (_, ready):
        async with client_of(ready["http"]) as http:
            assert (await http.get("/orders/8890")).status_code == 500


def refused_start(*options: str) -> str:
    """What a start that must fail says on stderr, in one line and without a traceback."""
    command = [sys.executable, "-m", "northwind", *options]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "Traceback" not in ended.stderr
    return ended.stderr.splitlines()[-1]


def test_a_folder_is_served_by_one_company_only(tmp_path: Path) -> None:
    """A second process on the same folder is refused, for two would overwrite each other."""
    with process(tmp_path):
        assert "another company is running" in refused_start("--data", str(tmp_path))


def test_a_start_that_cannot_be_says_why(tmp_path: Path) -> None:
    """A taken port, a port that is none, a plan that is none, a folder that is a file: one line."""
    with process(tmp_path / "one") as (_, ready):
        port = ready["http"].rpartition(":")[2]
        data = ("--data", str(tmp_path / "two"))
        assert port in refused_start(*data, "--http-port", port)
        assert "99999" in refused_start(*data, "--smtp-port", "99999")
    plan = tmp_path / "plan.json"
    assert "cannot read the fault plan" in refused_start(*data, "--faults", str(plan))
    plan.write_text('[{"system": "weather"}]')
    assert "no fault plan" in refused_start(*data, "--faults", str(plan))
    assert str(plan) in refused_start("--data", str(plan))
