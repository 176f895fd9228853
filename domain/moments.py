"""Moments around an effect, by the names that a worker and a fault drill share."""

from enum import StrEnum


class Moment(StrEnum):
    """Where an effect stands."""

    BEFORE = "before"
    """Nothing has been sent."""
    DONE = "done"
    """The outside world has answered, and nobody here has written it down."""
    RECORDED = "recorded"
    """It is written down in the ledger, and Temporal does not know it yet."""


def place(effect: str, moment: Moment) -> str:
    """How a moment of an effect is named: `refund.r1:done`."""
    return f"{effect}:{moment.value}"
