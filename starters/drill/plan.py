"""What one run goes through: an order, a letter, people who decide, and everything that goes wrong.

A plan is data: the same seed draws the same one, and its JSON can be run again.
"""

from enum import StrEnum
from typing import Any, Literal

from pydantic import Field

from domain.models import Frozen, Identifier

# Places at which a plan's steps may stand, beside those of the worker's effects
# (`domain.moments.place`, such as `mail.under_review:done`). The driver itself knows these.
AT_START = "start"
"""The run was accepted by the server."""
AT_WAIT = "wait"
"""The run waits for a decision, and both mails about it are out."""
AT_END = "end"
"""The run has closed."""


class Process(StrEnum):
    """What can be killed. The words are those of `starters.installation`."""

    WORKER = "worker"
    TEMPORAL = "temporal"
    COMPANY = "company"


class Decision(StrEnum):
    """What the people do with each proposal that waits for them."""

    APPROVE = "approve"
    APPROVE_AT_ONCE = "approve_at_once"
    """All who are needed send at the same moment."""
    REJECT = "reject"
    BOTH = "both"
    """One approves and one rejects, at the same moment."""
    WITHDRAW = "withdraw"
    CANCEL = "cancel"
    """Somebody cancels the run in Temporal."""
    NOBODY = "nobody"
    """The deadline passes."""


class Message(StrEnum):
    """A message that must not count."""

    GARBAGE = "garbage"
    NOTHING = "nothing"
    """A signal without arguments."""
    UNKNOWN_SIGNAL = "unknown_signal"
    UNSIGNED = "unsigned"
    FORGED = "forged"
    """In the name of a manager, by another's key."""
    FOREIGN = "foreign"
    """A good approval of another run's proposal."""
    OTHER_ROUND = "other_round"
    BY_REQUESTER = "by_requester"
    BY_ONE_WHO_LEFT = "by_one_who_left"
    DUPLICATE = "duplicate"
    """The first counted approval, sent again."""


class Step(Frozen):
    """One thing that happens to the run at a place: the worker is held there meanwhile."""

    at: str
    do: Literal[
        "kill",
        "stop",
        "cut",
        "join",
        "deploy",
        "send",
        "hand_refund",
        "lose_right",
        "pass_time",
        "forget_keys",
        "reset",
        "terminate",
        "dispute",
    ]
    who: tuple[Process, ...] = ()
    """kill, stop, cut: which processes. A stop is SIGTERM, and the process is started again. A cut
    takes a process off the network and joins it again, which is for hosts apart alone. A deploy is
    a stop of all workers, which come back with other code where they did not have it yet."""
    message: Message | None = None
    """send: which; the messages that count are the people's own."""
    minor: int = 0
    """hand_refund: how much, in minor units."""
    hours: float = 0
    """pass_time: how long."""


class Fault(Frozen):
    """A row of the company's fault plan, for calls about this run alone."""

    operation: str
    what: str
    call: int | Literal["every"] = 1
    times: int | None = None
    status: int | None = None
    seconds: float | None = None
    headers: dict[str, str] = Field(default_factory=dict)
    body: Any = None
    stored: bool = False
    purpose: str = ""
    """send: the one mail that it hits, such as `mail.refunded`; empty for any of the run."""


class Plan(Frozen):
    """One run of a drill."""

    name: str
    """What it is about, in words, or how it was drawn."""
    order_id: Identifier
    total_minor: int
    currency: str = "USD"
    asked: str | None = None
    """As typed by the requester; None asks for all that is left."""
    letter: str = "It arrived broken. Please refund it."
    refunded_before_minor: int = 0
    delivered_days_ago: int = 6
    decision: Decision = Decision.APPROVE
    steps: tuple[Step, ...] = ()
    faults: tuple[Fault, ...] = ()
    first_status: str = "succeeded"
    """The refund's status when it is made."""
    settles: str = ""
    """What a refund that was not final becomes later; empty: nothing."""
    fails_late: bool = False
    """Whether the refund fails after the customer was told that it was made."""
