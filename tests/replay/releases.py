"""The releases of the workflow code, and each step between them, as copies of the tree.

`steps/` holds each step as a small patch, without line numbers, which would be wrong soon.
`release-1` takes this code back to what release 1 was. The others carry a change through the rest
of its life, and each second one goes on top of its first (docs/versioning.md).
"""

import re
from collections.abc import Callable
from pathlib import Path

from tests.trees import Change, copy_with

STEPS = Path(__file__).with_name("steps")
RELEASE_1 = "release-1"
WHO_DEPRECATED = "who-decides.1-deprecated"
WHO_GONE = "who-decides.2-gone"
TELL_DEPRECATED = "tell-order-service.1-deprecated"
TELL_GONE = "tell-order-service.2-gone"

_HUNK = re.compile(r"^@@.*\n", re.MULTILINE)
_FILE = re.compile(r"^--- a/.*\n\+\+\+ b/(.*)\n", re.MULTILINE)


def read_step(name: str) -> tuple[Change, ...]:
    """The changes of a step. Each hunk's text stands once in its file, wherever that is by now."""
    _, *parts = _FILE.split((STEPS / f"{name}.patch").read_text())
    return tuple(
        Change(file, _side(hunk, "-"), _side(hunk, "+"))
        for file, hunks in zip(parts[::2], parts[1::2], strict=True)
        for hunk in _HUNK.split(hunks)[1:]
    )


def _side(hunk: str, sign: str) -> str:
    """What stands on one side of a hunk: the lines of both sides and those of its own."""
    return "".join(line[1:] for line in hunk.splitlines(keepends=True) if line[0] in (" ", sign))


def with_steps(folder: Path, *names: str) -> Path:
    """A copy of this code after these steps, in their order.

    Raises:
        AssertionError: a step does not fit any more: the code has moved on, and the step must.
    """
    return copy_with(folder, *(change for name in names for change in read_step(name)))


def release_1(folder: Path) -> Path:
    """A copy of the code whose workflows, and whose worker's Activities, are those of release 1."""
    return with_steps(folder, RELEASE_1)


# How the code of each older release is had; that of the newest one is here.
OLDER: dict[int, Callable[[Path], Path]] = {1: release_1}
