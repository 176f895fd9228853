"""What can go wrong with an outside system, as a tree.

Each kind says two things that its message cannot be trusted to say: whether to try again, and
whether it is known that nothing happened. Unknown is not failed (promise P8): it leads to a
look-up.

    OutsideError                    retry  outcome known
    ├── Unreachable                 yes    no     time-out, dropped connection, no answer
    ├── ServerFault                 yes    no     5xx, and the effect may have happened
    ├── BadAnswer                   yes    no     wrong shape: HTML, null, a missing field
    ├── KeyInUse                    yes    no     409: the first attempt under this key still runs
    ├── RateLimited                 yes    yes    429: not now, nothing was done
    ├── NotNow                      yes    yes    4xx of SMTP and the like: a known "later"
    ├── WrongEnvironment            yes    yes    this worker serves another environment
    ├── Misconfigured               yes    yes    401, 403: names the setting; somebody mends it
    │   └── ModelMisconfigured      no     yes    the model is a help: a person decides without it
    └── Refused                     no     yes    a definite no to this very request
"""

from typing import ClassVar


class OutsideError(Exception):
    """Base of the tree. The message is one line without secrets; it goes into the history."""

    kind: ClassVar[str] = "outside_error"
    retry: ClassVar[bool] = True
    outcome_known: ClassVar[bool] = False

    def __init__(self, message: str, *, retry_after_seconds: float | None = None) -> None:
        super().__init__(" ".join(message.split())[:300])
        self.retry_after_seconds = retry_after_seconds
        """What the other side asked for, in seconds; None where it asked for nothing."""


class Unreachable(OutsideError):
    kind = "unreachable"


class ServerFault(OutsideError):
    kind = "server_fault"


class BadAnswer(OutsideError):
    kind = "bad_answer"


class KeyInUse(OutsideError):
    kind = "key_in_use"


class RateLimited(OutsideError):
    kind = "rate_limited"
    outcome_known = True


class NotNow(OutsideError):
    kind = "not_now"
    outcome_known = True


class WrongEnvironment(OutsideError):
    kind = "wrong_environment"
    outcome_known = True


class Misconfigured(OutsideError):
    """A key or an address is wrong: runs wait for whoever mends it, and are not ended by it."""

    kind = "misconfigured"
    outcome_known = True


class ModelMisconfigured(Misconfigured):
    kind = "model_misconfigured"
    retry = False


class Refused(OutsideError):
    kind = "refused"
    retry = False
    outcome_known = True

    def __init__(self, message: str, *, code: str) -> None:
        super().__init__(message)
        self.code = code
        """The other side's own word for its no."""
