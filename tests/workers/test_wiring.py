"""The composition root: every Activity that workflows call has an implementation."""

import gc
import inspect
from pathlib import Path

import pytest
from temporalio import activity

from activities import interfaces
from domain.errors import Misconfigured
from workers.settings import Settings, SettingsError
from workers.wiring import build_activities


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
    assert len(called) == 9
    assert sorted(str(name) for name in registered) == sorted(called)


async def test_nothing_is_left_open(tmp_path: Path) -> None:
    """Clients and ledger are closed with the block: no warning of a forgotten one follows."""
    async with build_activities(Settings(data_dir=tmp_path)):
        pass
    gc.collect()


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"environment": "staging"}, SettingsError),
        ({"model_base_url": ""}, SettingsError),
        ({"ledger_url": "mysql://host/db"}, Misconfigured),
    ],
)
async def test_wiring_fails_early_where_a_setting_is_missing(
    tmp_path: Path, changes: dict[str, str], error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before anything is polled, not at the first refund."""
    for name in ("STRIPE_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    settings = Settings.model_validate({"data_dir": tmp_path, **changes})
    with pytest.raises(error):
        async with build_activities(settings):
            pass
