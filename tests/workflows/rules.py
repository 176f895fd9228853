"""The rules of approval once more, as plainly as they can be said, to hold the real run against.

Written from the issue's words and not from the code: it shares nothing with `domain` but words.
Amounts are minor units of US dollars, instants are seconds.
"""

from dataclasses import dataclass, field

HOUR = 3600.0
TIME_TO_DECIDE = 168 * HOUR
GRACE_TIME = 15 * 60.0
SKEW = 2 * 60.0
ONE_MANAGER = 100_000
MAX_ROUNDS = 3


@dataclass
class Key:
    """A public key in the directory, and the times between which it signs."""

    kid: str
    since: float
    until: float = float("inf")


@dataclass
class Member:
    """A member of staff, as the directory has them now."""

    roles: list[str]
    limit: int
    keys: list[Key]
    active: bool = True
    issued: int = 1

    def decides(self) -> bool:
        return self.active and bool({"manager", "finance_director"} & set(self.roles))

    def is_director_for(self, total: int) -> bool:
        return "finance_director" in self.roles and self.limit >= total

    def key(self, kid: str) -> Key | None:
        return next((key for key in self.keys if key.kid == kid), None)


@dataclass(frozen=True)
class Said:
    """A decision as somebody signed it."""

    who: str
    approves: bool
    signed: float
    kid: str
    fits_key: bool = True
    proposal: str = ""
    repeats: bool = False


@dataclass
class Rules:
    """What must become of one request for all that is left of an order."""

    total: int
    requester: str
    staff: dict[str, Member]
    began: float
    round: int = 1
    taken: int = 0
    """Refunded by hand, as far as this proposal knows."""
    by_hand: int = 0
    approvals: dict[str, tuple[Said, bool]] = field(default_factory=dict)
    """Who approved, and whether as a director when it was last looked at."""
    outcome: str | None = None

    def __post_init__(self) -> None:
        self.deadline = self.began + TIME_TO_DECIDE
        self._see_whether_anybody_may()

    @property
    def amount(self) -> int:
        """What is proposed."""
        return self.total - self.taken

    @property
    def needs_two(self) -> bool:
        return self.total > ONE_MANAGER

    def judge(self, said: Said, now: float, proposal: str) -> str | None:
        """Why a decision does not count; None where it does, and what follows has followed."""
        reason = self._refuse(said, now, proposal)
        if reason is not None:
            return reason
        if not said.approves:
            self.outcome = "rejected"
            return None
        self.approvals[said.who] = (said, self.staff[said.who].is_director_for(self.total))
        if len(self.approvals) == (2 if self.needs_two else 1):
            self._look_again(now)
        return None

    def withdraw(self) -> None:
        """The requester takes it back, before the money."""
        self.outcome = "withdrawn"

    def pass_time(self, now: float) -> None:
        """Time has gone by with nobody deciding."""
        if self.outcome is None and now > self.deadline + GRACE_TIME:
            self.outcome = "expired"

    def _refuse(self, said: Said, now: float, proposal: str) -> str | None:
        member = self.staff[said.who]
        key = member.key(said.kid)
        valid = key is not None and all(key.since <= t < key.until for t in (said.signed, now))
        checks = [
            (said.repeats, "duplicate"),
            (said.proposal != proposal, "other_proposal"),
            (said.signed > now + SKEW, "from_the_future"),
            (said.signed > self.deadline + SKEW, "too_late"),
            (said.who in self.approvals, "already_approved"),
            (key is None, "unknown_key"),
            (not said.fits_key, "bad_signature"),
            (not valid, "key_not_valid"),
            (not member.active, "not_active"),
            (said.who == self.requester, "is_requester"),
            (not member.decides(), "no_right"),
            (said.approves and member.limit < self._limit_of_each(), "over_limit"),
            (said.approves and self._lacks_director(said.who), "needs_director"),
        ]
        return next((reason for applies, reason in checks if applies), None)

    def _limit_of_each(self) -> int:
        return min(self.total, ONE_MANAGER)

    def _lacks_director(self, who: str) -> bool:
        if not self.needs_two or not self.approvals:
            return False
        pair = [*self.approvals, who]
        return not any(self.staff[person].is_director_for(self.total) for person in pair)

    def _look_again(self, now: float) -> None:
        """Right before the money: the payment first, then the rights."""
        new_by_hand = self.by_hand - self.taken
        if new_by_hand:
            self._after_hand_refund(now)
            return
        standing = {
            who: self.staff[who].is_director_for(self.total)
            for who, (said, _) in self.approvals.items()
            if self._still_may(said)
        }
        has_director = not self.needs_two or any(standing.values())
        if len(standing) == len(self.approvals) and has_director:
            self.outcome = "refunded"
            return
        kept = {who: (said, standing[who]) for who, (said, _) in self.approvals.items()
                if who in standing}  # fmt: skip
        if len(kept) == len(self.approvals):
            kept = {who: row for who, row in kept.items() if not self.approvals[who][1]}
        self.approvals = kept
        self._see_whether_anybody_may()

    def _still_may(self, said: Said) -> bool:
        member = self.staff[said.who]
        key = member.key(said.kid)
        signed_well = key is not None and key.since <= said.signed < key.until
        return signed_well and member.decides() and member.limit >= self._limit_of_each()

    def _after_hand_refund(self, now: float) -> None:
        if self.by_hand >= self.total:
            self.outcome = "already_refunded"
        elif self.round == MAX_ROUNDS:
            self.outcome = "needs_human"
        else:
            self.taken, self.round = self.by_hand, self.round + 1
            self.approvals, self.deadline = {}, now + TIME_TO_DECIDE
            self._see_whether_anybody_may()

    def _see_whether_anybody_may(self) -> None:
        able = {
            who
            for who, member in self.staff.items()
            if member.decides() and who != self.requester and member.limit >= self._limit_of_each()
        }
        directors = {who for who in able if self.staff[who].is_director_for(self.total)}
        if not able or (self.needs_two and (not directors or len(able) < 2)):
            self.outcome = "needs_human"
