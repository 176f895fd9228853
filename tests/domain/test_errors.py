"""The error tree says what its documentation says."""

import re

import pytest

from domain import errors
from domain.errors import OutsideError, Refused

ROWS = re.findall(r"── (\w+) +(yes|no) +(yes|no) ", errors.__doc__ or "")
YES = {"yes": True, "no": False}


def test_the_drawing_shows_every_error() -> None:
    """No kind is missing from the drawing, and no two share a word."""
    kinds = [kind for one in OutsideError.__subclasses__() for kind in (one, *one.__subclasses__())]
    assert sorted(name for name, _, _ in ROWS) == sorted(kind.__name__ for kind in kinds)
    assert len({kind.kind for kind in kinds} | {OutsideError.kind}) == len(kinds) + 1


@pytest.mark.parametrize(("name", "retry", "known"), ROWS)
def test_each_error_does_what_the_drawing_says(name: str, retry: str, known: str) -> None:
    """Whether to try again, and whether it is known that nothing happened."""
    error = getattr(errors, name)
    assert (error.retry, error.outcome_known) == (YES[retry], YES[known])


def test_a_message_is_one_short_line() -> None:
    """A page of HTML that a proxy sent does not fill the history."""
    error = Refused("<html>\n\t<body>\r\nno " + "x" * 5_000, code="charge_disputed")
    assert str(error).startswith("<html> <body> no x")
    assert len(str(error)) == 300
    assert (error.code, error.retry_after_seconds) == ("charge_disputed", None)


def test_a_wait_that_was_asked_for_is_kept() -> None:
    """Seconds, as the other side said."""
    assert errors.RateLimited("slow down", retry_after_seconds=30).retry_after_seconds == 30
