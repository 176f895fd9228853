"""Every dependency has its reason in docs/decisions, and every reason its dependency."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "decisions" / "0001-dependencies.md"


def test_the_page_names_exactly_what_is_declared() -> None:
    """Whoever adds or drops a library says why on the page that users read."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    groups = project["dependency-groups"].values()
    declared = [*project["project"]["dependencies"], *(one for group in groups for one in group)]
    names = {re.split(r"[^a-z0-9-]", one)[0] for one in declared if isinstance(one, str)}
    rows = [row.split("|")[1] for row in PAGE.read_text().splitlines() if row.startswith("| `")]
    assert names == {name for row in rows for name in re.findall(r"`([^`]+)`", row)}
    assert len(names) > 20
