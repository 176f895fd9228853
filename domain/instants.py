"""Instants on the wire: aware, and always in UTC once they are read."""

from datetime import UTC, datetime
from typing import Annotated

from pydantic import AfterValidator, AwareDatetime, BeforeValidator


def _in_utc(value: datetime) -> datetime:
    try:
        return value.astimezone(UTC)
    except OverflowError:
        raise ValueError("outside of the years 1 to 9999 in UTC") from None


def _from_numeric_date(value: object) -> object:
    """Read numbers as RFC 7519 does; pydantic alone takes large ones for milliseconds."""
    if isinstance(value, bool | float):
        raise ValueError("whole seconds are needed")
    if not isinstance(value, int):
        return value
    try:
        return datetime.fromtimestamp(value, UTC)
    except (OverflowError, OSError, ValueError):
        raise ValueError("outside of the years 1 to 9999") from None


Instant = Annotated[AwareDatetime, AfterValidator(_in_utc)]
"""Other offsets are accepted and turned into UTC: what people read then says what it means."""

NumericDate = Annotated[Instant, BeforeValidator(_from_numeric_date)]
"""An instant in whole seconds since 1970, as JSON Web Tokens carry it."""
