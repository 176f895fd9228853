"""What went wrong in the code itself while a history was replayed, in words."""

import re
from dataclasses import dataclass
from pathlib import Path

from temporalio.api.failure.v1 import Failure

# A validation error quotes what it did not like, which may be a customer's; and links to a manual.
_QUOTED = re.compile(r" \[type=[^\n]*|\s*For further information visit \S+")
_FRAME = re.compile(r'File "([^"]+)", line (\d+), in (\w+)')
_PROJECT = Path(__file__).parents[1]
_FOLDERS = ("workflows", "domain", "activities")

_MENDS = {
    "ValidationError": "a field that older releases did not write needs a default, and a value "
    "that they wrote must stay valid",
    "RestrictedWorkflowAccessError": "workflow code takes time and chance from `workflow.now()` "
    "and `workflow.random()`, and leaves the outside to Activities",
    "Deadlock": "workflow code may neither block nor compute for more than two seconds",
    "bad_request": "what was accepted when the run began must stay valid: a new field needs a "
    "default",
}
_USUAL_MEND = "mend this code: an open run would stand still with this error, and go on after"


@dataclass(frozen=True)
class Mistake:
    """An exception that came out of the code."""

    kind: str
    """The exception's class, or the type of the failure."""
    message: str
    place: str
    """File, line and function of this project, where they are known."""
    mend: str


def read_mistake(failure: Failure) -> Mistake:
    """The failure that lies deepest, since it says what happened, and where it came out of us."""
    deepest, place = failure, _place(failure)
    while deepest.HasField("cause"):
        deepest = deepest.cause
        place = _place(deepest) or place
    kind = deepest.application_failure_info.type or "error"
    return Mistake(
        kind=kind,
        message=" ".join(_QUOTED.sub("", deepest.message).split()),
        place=place,
        mend=_MENDS.get(kind, _USUAL_MEND),
    )


def _place(failure: Failure) -> str:
    """The innermost line of ours in the stack."""
    for file, line, function in reversed(_FRAME.findall(failure.stack_trace)):
        path = Path(file)
        if path.is_relative_to(_PROJECT) and path.relative_to(_PROJECT).parts[0] in _FOLDERS:
            return f"{path.relative_to(_PROJECT)}:{line}, {function}"
    return ""
