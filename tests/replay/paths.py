"""Every path of a refund, with the stages at which its history is kept: one table."""

from collections.abc import Callable
from dataclasses import dataclass

from domain.models import Outcome
from domain.outcomes import Reason
from tests.replay import courses, troubles
from tests.replay.courses import Course
from tests.replay.driven import Driven, Kept


@dataclass(frozen=True)
class Path:
    """How a run is driven, where it is kept, and how it must end."""

    drive: Callable[[Driven], Course]
    outcome: Outcome
    reason: Reason
    stages: tuple[Kept, ...]
    since: int = 1
    """The first release whose histories have it."""

    @property
    def name(self) -> str:
        return self.drive.__name__


def _path(drive: Callable[[Driven], Course], outcome: Outcome, reason: Reason, stages: str) -> Path:
    return Path(drive, outcome, reason, (*map(Kept, stages.split()), Kept.CLOSED))


_DONE = (Outcome.REFUNDED, Reason.VERIFIED)
_BY_HAND = (Outcome.ALREADY_REFUNDED, Reason.REFUNDED_BY_HAND)
_WITHDRAWN = (Outcome.WITHDRAWN, Reason.WITHDRAWN_BY_STAFF)
PATHS = (
    _path(courses.one_approval, *_DONE, "waiting decided refunded"),
    _path(courses.auto_approved, *_DONE, "investigating decided refunded"),
    _path(courses.two_approvers, *_DONE, "waiting half_approved decided refunded"),
    _path(courses.started_again, *_DONE, "half_approved decided refunded"),
    _path(courses.model_down, *_DONE, "investigating waiting decided refunded"),
    _path(courses.refused_messages, *_DONE, "waiting decided refunded"),
    _path(courses.declined, Outcome.DECLINED, Reason.OUTSIDE_RETURN_WINDOW, ""),
    _path(courses.rejected, Outcome.REJECTED, Reason.REJECTED_BY_APPROVER, "waiting"),
    _path(courses.expired, Outcome.EXPIRED, Reason.NOBODY_DECIDED, "waiting reminded escalated"),
    _path(courses.withdrawn, *_WITHDRAWN, "waiting"),
    _path(courses.withdrawn_at_the_last_moment, *_WITHDRAWN, "waiting decided"),
    _path(courses.withdrawn_too_late, *_DONE, "waiting decided refunding refunded"),
    _path(courses.cancelled, Outcome.WITHDRAWN, Reason.CANCELLED_IN_TEMPORAL, "waiting"),
    _path(courses.refunded_before, Outcome.ALREADY_REFUNDED, Reason.REFUNDED_BEFORE, ""),
    _path(courses.refunded_by_hand, *_BY_HAND, "waiting decided"),
    _path(courses.new_round, *_DONE, "waiting decided waiting_again decided_again refunded"),
    _path(
        courses.too_many_rounds,
        Outcome.NEEDS_HUMAN,
        Reason.TOO_MANY_ROUNDS,
        "waiting waiting_again decided_again",
    ),
    _path(courses.approver_lost, *_DONE, "waiting decided waiting_again decided_again refunded"),
    _path(troubles.refund_retried, *_DONE, "waiting decided refunding refunded"),
    _path(troubles.unknown_then_adopted, *_DONE, "waiting decided refunding refunded"),
    _path(troubles.unknown_for_an_hour, *_DONE, "waiting decided refunding refunded"),
    _path(troubles.pending_for_days, *_DONE, "waiting decided refunded pending"),
    _path(
        troubles.refund_failed,
        Outcome.REFUND_FAILED,
        Reason.REFUND_FAILED,
        "waiting decided refunded",
    ),
    _path(
        troubles.never_found, Outcome.NEEDS_HUMAN, Reason.REFUND_UNKNOWN, "waiting decided refunded"
    ),
)
