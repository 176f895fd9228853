"""The composition root: every Activity that workflows call has an implementation."""

import gc
import inspect
from datetime import timedelta
from pathlib import Path

import pytest
from temporalio import activity

from activities import company, interfaces, mail, model_client, payments, smtp, tools
from activities import ledger as ledgers
from domain.errors import Misconfigured
from workers import wiring
from workers.settings import Settings, SettingsError
from workers.wiring import build_activities
from workflows import calls


def activity_names(holder: object) -> set[str]:
    """The names under which the Activities of a class are registered."""
    found = set()
    for _, method in inspect.getmembers(holder, callable):
        definition = getattr(method, "__temporal_activity_definition", None)
        if definition is not None:
            found.add(definition.name)
    return found


async def test_all_that_workflows_call_is_registered(tmp_path: Path) -> None:
    """Under the very names by which the interfaces call them."""
    called: set[str] = set()
    for _, interface in inspect.getmembers(interfaces, inspect.isclass):
        if interface.__module__ == interfaces.__name__ and inspect.isabstract(interface):
            called |= activity_names(interface)
    async with build_activities(Settings(data_dir=tmp_path)) as activities:
        registered = [
            activity._Definition.must_from_callable(method).name for method in activities.all
        ]
    assert "make_refund" in called
    assert sorted(str(name) for name in registered) == sorted(called)


async def test_nothing_is_left_open(tmp_path: Path) -> None:
    """Clients and ledger are closed with the block: no warning of a forgotten one follows."""
    async with build_activities(Settings(data_dir=tmp_path)):
        pass
    gc.collect()


def test_a_clients_own_answer_comes_before_its_activity_times_out() -> None:
    """Else an attempt that still works would meet its successor, and its error would be lost."""
    ledger = ledgers.BUSY_SECONDS
    reading = company.READ_SECONDS + 2 * payments.READ_SECONDS
    assert reading < calls.READ_ATTEMPT.total_seconds()
    assert payments.SWEEP_SECONDS + 2 * ledger < calls.SWEEP_ATTEMPT.total_seconds()
    assert calls.REFUND_ATTEMPT.total_seconds() > payments.REFUND_SECONDS
    assert smtp.CONVERSATION_SECONDS + ledger <= mail.ATTEMPT.total_seconds()
    assert mail.ATTEMPT + timedelta(seconds=ledger) <= calls.MAIL_ATTEMPT
    assert model_client.ANSWER_SECONDS + 2 * ledger < calls.MODEL_ATTEMPT.total_seconds()
    assert calls.TOOLS_ATTEMPT.total_seconds() > tools.TOOL_SECONDS
    longest = max(payments.REFUND_SECONDS, payments.SWEEP_SECONDS, model_client.ANSWER_SECONDS)
    assert wiring.GRACEFUL_SHUTDOWN.total_seconds() > longest


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"environment": "staging"}, SettingsError),
        ({"model_base_url": ""}, SettingsError),
        ({"model_provider": "anthropic"}, SettingsError),
        ({"ledger_url": "mysql://host/db"}, Misconfigured),
    ],
)
async def test_wiring_fails_early_where_a_setting_is_missing(
    tmp_path: Path, changes: dict[str, str], error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before anything is polled, not at the first refund."""
    for name in ("STRIPE_API_KEY", "OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    settings = Settings.model_validate({"data_dir": tmp_path, **changes})
    with pytest.raises(error):
        async with build_activities(settings):
            pass
