"""Bounds that no saved history comes past, so that no replay would miss a change of theirs."""

from importlib import import_module

import pytest

from tests.trees import ROOT

# A run that is open may have been on the other side of the new value. Whoever changes one puts the
# change behind a patch, as any other that runs in flight must not meet (docs/versioning.md).
HELD: dict[tuple[str, str], str] = {
    ("workflows.clerk", "_AT_ONCE"): "250",
    ("workflows.clerk", "_EARLY_LIMIT"): "50",
    ("workflows.clerk", "_PAYLOAD_LIMIT"): "4296",
    ("workflows.paying", "_UNKNOWN_PATIENCE"): "7 days, 0:00:00",
    ("workflows.calls", "REFUND_PATIENCE"): "1:00:00",
    ("domain.agent", "BAD_ANSWERS_LIMIT"): "3",
}


@pytest.mark.parametrize(
    ("place", "value"),
    HELD.items(),
    ids=lambda value: ".".join(value) if isinstance(value, tuple) else "",
)
def test_a_bound_that_no_history_comes_past_stays(place: tuple[str, str], value: str) -> None:
    """P6: open runs decide as they did; the documentation names what is held here."""
    module, name = place
    assert str(getattr(import_module(module), name)) == value
    assert f"`{name}`" in (ROOT / "docs" / "versioning.md").read_text()
