"""How a command ends: exit codes, and the one place that turns a failure into one clear line."""

from enum import IntEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from temporalio.service import RPCError


class Exit(IntEnum):
    """Exit codes of `refund`. Part of the interface: scripts match on these."""

    DONE = 0
    CHECK_FAILED = 1
    """`doctor`, `demo`, `replay` or `drill` found something."""
    USAGE = 2
    """Wrong usage or input."""
    REFUSED = 3
    """Refused or not counted; the line says why."""
    NO_SUCH_RUN = 4
    """No such run, or it is closed."""
    UNREACHABLE = 5
    """Temporal or another service cannot be reached."""
    NOT_TAKEN_UP = 6
    """Sent, but not taken up in time."""
    ALREADY_RUNNING = 7
    UNEXPECTED = 70
    """A mistake of ours, as sysexits.h numbers it."""
    INTERRUPTED = 130


class CommandError(Exception):
    """An expected end of a command: one line for people, and the exit code for scripts."""

    def __init__(self, message: str, exit_code: Exit) -> None:
        super().__init__(" ".join(message.split()))
        self.exit_code = exit_code


def in_one_line(error: BaseException) -> CommandError | None:
    """What an outside failure means for the user; None where it is a mistake of ours."""
    if isinstance(error, CommandError):
        return error
    # Whoever raised these has loaded their modules; `refund --help` must not pay for them.
    from temporalio.service import RPCError

    from workers.settings import SettingsError

    if isinstance(error, RPCError):
        return _of_temporal(error)
    if isinstance(error, SettingsError):
        return CommandError(f"settings: {error}", Exit.USAGE)
    if isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename else ""
        return CommandError(f"{where}{error.strerror or error}", Exit.USAGE)
    return None


def _of_temporal(error: "RPCError") -> CommandError:
    from temporalio.service import RPCStatusCode

    message = error.message.rstrip(".")
    if is_namespace_missing(error):
        words = f"Temporal has no such namespace: {message}; set TEMPORAL_NAMESPACE or create it"
        return CommandError(words, Exit.UNREACHABLE)
    match error.status:
        case RPCStatusCode.NOT_FOUND:
            return CommandError(f"there is no such run: {message}", Exit.NO_SUCH_RUN)
        case RPCStatusCode.UNAUTHENTICATED | RPCStatusCode.PERMISSION_DENIED:
            return CommandError(f"Temporal does not let us in: {message}", Exit.UNREACHABLE)
        case RPCStatusCode.INVALID_ARGUMENT:
            return CommandError(f"Temporal refused the request: {message}", Exit.USAGE)
        case _:
            words = f"Temporal did not answer ({error.status.name.lower()}): {message}"
            return CommandError(words, Exit.UNREACHABLE)


def is_namespace_missing(error: "RPCError") -> bool:
    """Whether the server says that it has no such namespace, as opposed to no such run."""
    from temporalio.api.errordetails.v1 import NamespaceNotFoundFailure

    details = error.grpc_status.details
    return any(detail.Is(NamespaceNotFoundFailure.DESCRIPTOR) for detail in details)
