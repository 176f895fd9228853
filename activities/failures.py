"""From errors of the outside to what Temporal records and acts upon: the only place that does so.

A failure goes into the history, where many may read it and nobody can take it out. So only messages
that this project wrote go there (`domain.errors`), never those of an unexpected exception, which
may quote a customer, a statement of SQL or a key.
"""

from datetime import timedelta

from temporalio.exceptions import ApplicationError, ApplicationErrorCategory

from domain.errors import OutsideError, WrongEnvironment

# A server may ask for any wait; one that is longer than this is no use to a customer.
LONGEST_WAIT = timedelta(hours=1)
UNEXPECTED = "unexpected"


def to_failure(error: OutsideError) -> ApplicationError:
    """The failure of an Activity for an error of the outside: its kind, and when to try again."""
    wait = error.retry_after_seconds
    longest = LONGEST_WAIT.total_seconds()
    delay = timedelta(seconds=min(wait, longest)) if wait and wait > 0 else None
    return ApplicationError(
        str(error),
        type=error.kind,
        non_retryable=not error.retry,
        next_retry_delay=delay,
        # Foreseen, and told in one line of our own log: the SDK would add a traceback each time.
        category=ApplicationErrorCategory.BENIGN,
    )


def unexpected_failure(error: Exception) -> ApplicationError:
    """The failure for an exception that nobody foresaw: its type alone, retried.

    It is a mistake of this project, and the next version of the worker may have mended it.
    """
    words = f"{type(error).__name__}: a mistake in the worker; its log says where"
    return ApplicationError(words, type=UNEXPECTED)


def check_environment(asked: object, served: str) -> None:
    """Refuse work of another environment, which a worker that serves it will take.

    Raises:
        WrongEnvironment: the input names another environment, or none.
    """
    if asked != served:
        raise WrongEnvironment(f"this worker serves environment {served}")
