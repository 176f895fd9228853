"""P6: every saved history of every release replays, to the state in which it was saved.

With `--capture-release N` the same tests drive the real run first, and write the histories of a
release that has none (see the README beside this).
"""

import base64
import re
from collections.abc import Iterator
from pathlib import Path
from tempfile import gettempdir
from typing import Any

import pytest

from domain.models import Outcome, Stage
from starters.exports import read_export
from tests.ci_plugin import MEASURED
from tests.replay.conftest import Replayed
from tests.replay.gate import payloads
from tests.replay.paths import PATHS
from tests.replay.saved import DIGESTS, EXPECTED, FOLDER, Keeper, Saved, digests, expected, wanted
from tests.trees import ROOT
from workers.settings import SANDBOX_STRIPE_KEY

DOMAIN = re.compile(r"@([\w-]+(?:\.[\w-]+)*)")
INVENTED = {"northwind.example", "customers.example"}
# Every Ed25519 private key begins so, as PEM and as base64 of its DER form.
ED25519_PRIVATE = "MC4CAQAwBQYDK2VwBCIEI"
NEVER = (
    *("PRIVATE KEY", ED25519_PRIVATE, SANDBOX_STRIPE_KEY, "sk_live", "sk_test", "Bearer "),
    *("smtp://", "sqlite", "postgres", "127.0.0.1", "localhost", "stackTrace", "site-packages"),
    *(gettempdir(), f"{Path.home()}/", str(ROOT), "/home/", "/Users/", ".py"),
)  # fmt: skip


def test_there_is_a_release(replayed: Replayed) -> None:
    """A gate without histories is none."""
    assert list(FOLDER.glob("*/*.json"))


def test_every_path_and_stage_is_there(release: int, replayed: Replayed) -> None:
    """Nothing is missing in the folder of a release, and nothing stands there that is not held."""
    names = {f"{one.name}.json" for one in wanted(release)}
    there = {file.name for file in (FOLDER / str(release)).iterdir()}
    assert there == names | {EXPECTED, DIGESTS}
    assert expected(release).keys() == {one.name for one in wanted(release)}


def test_every_outcome_has_a_path() -> None:
    """The table has each way in which a run ends."""
    assert {path.outcome for path in PATHS} == set(Outcome)


def test_saved_histories_are_never_rewritten(release: int, replayed: Replayed) -> None:
    """The files are those that were captured: a history that is mended proves nothing."""
    folder = FOLDER / str(release)
    lines = (folder / DIGESTS).read_text().splitlines()
    assert {name: digest for digest, name in map(str.split, lines)} == digests(folder)


def test_a_release_is_captured_once(release: int, replayed: Replayed) -> None:
    """A changed run needs a new release; nobody gets rid of a red gate by capturing anew."""
    with pytest.raises(FileExistsError):
        Keeper(release)


async def test_it_replays_to_where_it_was(saved: Saved, replayed: Replayed) -> None:
    """No step differs, no task fails, and the run says of itself what it said then."""
    assert replayed.wrong[saved] == []


def test_it_was_kept_where_it_says(saved: Saved, replayed: Replayed) -> None:
    """A history of a stage is one of that stage, and an end is the one that its path comes to."""
    told = expected(saved.release)[saved.name]
    (path,) = [path for path in PATHS if path.name == saved.path]
    stages = {
        "waiting": Stage.AWAITING_APPROVAL,
        "reminded": Stage.AWAITING_APPROVAL,
        "escalated": Stage.AWAITING_APPROVAL,
        "half_approved": Stage.AWAITING_APPROVAL,
        "waiting_again": Stage.AWAITING_APPROVAL,
        "decided": Stage.RECHECKING,
        "decided_again": Stage.RECHECKING,
        "refunded": Stage.VERIFYING,
        "pending": Stage.VERIFYING,
    }
    assert told["stage"] == stages.get(saved.stage.value, saved.stage.value)
    if told["stage"] == Stage.CLOSED:
        assert (told["outcome"], told["reason"]) == (path.outcome, path.reason)


def everything_said(saved: Saved) -> Iterator[str]:
    """The file, and each payload of it in clear."""
    yield saved.file.read_text()
    for event in read_export(saved.file).events:
        for payload in payloads(event):
            yield payload.data.decode()
            yield from signed(payload.data.decode())


def signed(text: str) -> Iterator[str]:
    """What signed statements in a text say: it stands there as base64 of its own."""
    for part in re.findall(r"eyJ[\w-]+", text):
        yield base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)).decode()


def test_it_holds_no_secret_and_nobody_real(saved: Saved, replayed: Replayed) -> None:
    """Public files: no key, no place of the machine they come from, only the company's people."""
    for text in everything_said(saved):
        assert [word for word in NEVER if word in text] == []
        assert set(DOMAIN.findall(text)) <= INVENTED


def test_the_rate(replayed: Replayed, record_property: Any) -> None:
    """Printed, not asserted: the aim is 30 histories a second, and all in 15 seconds."""
    count, seconds = len(replayed.wrong), replayed.seconds
    line = f"{count} histories replayed in {seconds:.1f} s, {count / seconds:.0f} a second"
    record_property(MEASURED, line)
    assert count
