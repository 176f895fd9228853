"""The folder of saved histories: one folder for each release, which is written once.

histories/<release>/<path>.<stage>.json   the events, as `refund history` saves them
histories/<release>/expected.jsonl        what each run said of itself when it was saved
histories/<release>/SHA256SUMS            digests of all of these
"""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from google.protobuf.message import Message
from temporalio.api.failure.v1 import Failure
from temporalio.client import WorkflowHistory

from domain.trail import RunStatus
from tests.replay.driven import Kept
from tests.replay.paths import PATHS

FOLDER = Path(__file__).parent / "histories"
# No `*.json`: a folder of those is what `refund replay` takes.
EXPECTED, DIGESTS = "expected.jsonl", "SHA256SUMS"
_OF = "history"


@dataclass(frozen=True)
class Saved:
    """One history of a release."""

    release: int
    path: str
    stage: Kept

    def __str__(self) -> str:
        return f"{self.release}/{self.name}"

    @property
    def name(self) -> str:
        return f"{self.path}.{self.stage.value}"

    @property
    def file(self) -> Path:
        return FOLDER / str(self.release) / f"{self.name}.json"


def releases() -> list[int]:
    """All releases that have histories, the oldest first."""
    return sorted(int(folder.name) for folder in FOLDER.glob("*") if folder.is_dir())


def wanted(release: int) -> list[Saved]:
    """Every path and every stage that the histories of a release must hold."""
    return [
        Saved(release, path.name, stage)
        for path in PATHS
        if path.since <= release
        for stage in path.stages
    ]


def facts(status: RunStatus) -> dict[str, Any]:
    """What a run says of itself, without the time of the question and without words for people."""
    told: dict[str, Any] = status.model_dump(mode="json", exclude={"now", "explanation", "trail"})
    told["trail"] = [" ".join(filter(None, (e.what, e.who, e.refusal))) for e in status.trail]
    return told


class Keeper:
    """Writes the histories of a release that has none yet."""

    def __init__(self, release: int) -> None:
        """Begin a release.

        Raises:
            FileExistsError: it has histories, which are never written again.
        """
        self._release = release
        self._folder = FOLDER / str(release)
        self._folder.mkdir(parents=True)
        self._expected: dict[str, Any] = {}

    def keep(self, path: str, stage: Kept, history: WorkflowHistory, status: RunStatus) -> None:
        """Write one history, without the places of this machine."""
        saved = Saved(self._release, path, stage)
        for event in history.events:
            _forget_places(event)
        events = json.loads(history.to_json())
        saved.file.write_text(f"{json.dumps(events, separators=(',', ':'))}\n")
        self._expected[saved.name] = facts(status)

    def close(self) -> None:
        """Write what is expected, a line for each history, and all digests."""
        lines = [
            json.dumps({_OF: name, **told}, separators=(",", ":"))
            for name, told in sorted(self._expected.items())
        ]
        (self._folder / EXPECTED).write_text("".join(f"{line}\n" for line in lines))
        sums = [f"{digest}  {name}\n" for name, digest in digests(self._folder).items()]
        (self._folder / DIGESTS).write_text("".join(sums))


def expected(release: int) -> dict[str, dict[str, Any]]:
    """What each run of a release said of itself when it was saved, by the history's name."""
    lines = (FOLDER / str(release) / EXPECTED).read_text().splitlines()
    return {told.pop(_OF): told for told in map(json.loads, lines)}


def digests(folder: Path) -> dict[str, str]:
    """The SHA-256 digest of each file of a release, by name."""
    return {
        file.name: hashlib.sha256(file.read_bytes()).hexdigest()
        for file in sorted(folder.iterdir())
        if file.name != DIGESTS
    }


def _forget_places(message: Message) -> None:
    """Take out stack traces: they name the files of the machine that wrote them."""
    if isinstance(message, Failure):
        message.ClearField("stack_trace")
    for inner in parts(message):
        _forget_places(inner)


def parts(message: Message) -> Iterator[Message]:
    """The messages that stand in a message, one level deep."""
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        if field.message_type.GetOptions().map_entry:
            yield from (one for one in value.values() if isinstance(one, Message))
        elif field.is_repeated:
            yield from value
        else:
            yield value
