"""The audit trail of a run: what happened, who said what, and why a message did not count."""

from collections import deque
from enum import StrEnum
from typing import Annotated

from pydantic import Field, StringConstraints

from domain.instants import Instant
from domain.models import Assessment, Contact, Frozen, Outcome, Refund, Stage, TokenUsage
from domain.money import Money
from domain.request import Proposal

# Hundreds of bad signals must stay harmless: the last ones in detail, all of them counted.
REFUSED_IN_DETAIL = 50
DETAIL_LIMIT = 400


class Refusal(StrEnum):
    """Why a message did not count. The words are part of the interface: scripts match on them."""

    MALFORMED = "malformed"
    UNKNOWN_SIGNAL = "unknown_signal"
    BAD_SIGNATURE = "bad_signature"
    UNKNOWN_KEY = "unknown_key"
    KEY_NOT_VALID = "key_not_valid"
    UNKNOWN_PERSON = "unknown_person"
    NOT_ACTIVE = "not_active"
    NO_RIGHT = "no_right"
    OVER_LIMIT = "over_limit"
    NEEDS_DIRECTOR = "needs_director"
    IS_REQUESTER = "is_requester"
    IS_CUSTOMER = "is_customer"
    OTHER_ENVIRONMENT = "other_environment"
    OTHER_RUN = "other_run"
    OTHER_REQUEST = "other_request"
    OTHER_PROPOSAL = "other_proposal"
    DUPLICATE = "duplicate"
    ALREADY_DECIDED = "already_decided"
    ALREADY_APPROVED = "already_approved"
    TOO_EARLY = "too_early"
    TOO_LATE = "too_late"
    FROM_THE_FUTURE = "from_the_future"
    CLOSED = "closed"
    COULD_NOT_BE_CHECKED = "could_not_be_checked"


class Entry(Frozen):
    """One row of the trail."""

    at: Instant
    """The run's own time."""
    what: str
    """A short stable word, such as `proposed` or `mail_sent`."""
    detail: Annotated[str, StringConstraints(max_length=DETAIL_LIMIT)] = ""
    who: Annotated[str, StringConstraints(max_length=254)] = ""
    message_id: str = ""
    """The decision, withdrawal or request id that this row answers, if any."""
    refusal: Refusal | None = None


class RunStatus(Frozen):
    """Answer of the query `status` and result of the run."""

    order_id: str = ""
    request_id: str = ""
    requester: str = ""
    environment: str = ""
    stage: Stage = Stage.INVESTIGATING
    accepted: bool = False
    """Whether the request itself has been looked at and taken up."""
    outcome: Outcome | None = None
    reason: str = ""
    explanation: str = ""
    round: int = 0
    proposal: Proposal | None = None
    assessment: Assessment | None = None
    approved_by: tuple[Contact, ...] = ()
    """Whose approvals count so far."""
    waits_for: str = ""
    """Whose approval is missing, in words; empty where nobody's is."""
    deadline: Instant | None = None
    now: Instant | None = None
    refund: Refund | None = None
    asked: Money | None = None
    trail: tuple[Entry, ...] = ()
    refused: dict[str, int] = Field(default_factory=dict)
    """How many messages were refused, by reason, exact."""
    usage: TokenUsage = TokenUsage()

    def answer_to(self, message_id: str) -> Entry | None:
        """The last row that answers a message; None while it has not been taken up.

        A message that arrives again is refused as a duplicate; its first answer still holds.
        """
        rows = [entry for entry in self.trail if entry.message_id == message_id]
        answers = [entry for entry in rows if entry.refusal is not Refusal.DUPLICATE]
        return next(reversed(answers or rows), None)


class Trail:
    """Collects entries: the story whole, refused messages bounded in detail and exact in number."""

    def __init__(self) -> None:
        self._story: list[tuple[int, Entry]] = []
        # Garbage must not push out the answer to a signed message: its sender looks for it by id.
        self._refused: dict[bool, deque[tuple[int, Entry]]] = {
            signed: deque(maxlen=REFUSED_IN_DETAIL) for signed in (True, False)
        }
        self._count = 0
        self.refused: dict[str, int] = {}

    def add(self, entry: Entry) -> None:
        """Append a row."""
        self._count += 1
        if entry.refusal is None:
            self._story.append((self._count, entry))
            return
        self._refused[bool(entry.message_id)].append((self._count, entry))
        self.refused[entry.refusal] = self.refused.get(entry.refusal, 0) + 1

    @property
    def entries(self) -> tuple[Entry, ...]:
        """All rows that are kept, in the order in which they came."""
        return tuple(
            entry
            for _, entry in sorted(
                [*self._story, *self._refused[True], *self._refused[False]], key=lambda row: row[0]
            )
        )
