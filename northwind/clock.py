"""The company's clock: the system's clock plus an offset that can be moved and that is kept."""

from datetime import UTC, datetime, timedelta

from northwind.store import Store, read_setting, write_setting

OFFSET = "clock_offset_seconds"


class Clock:
    """Tells the company's time, in UTC."""

    def __init__(self, store: Store) -> None:
        """Take up the offset that an earlier process left."""
        self._store = store
        with store.transaction() as db:
            self._offset = timedelta(seconds=float(read_setting(db, OFFSET) or 0))

    def now(self) -> datetime:
        """The company's present instant."""
        return datetime.now(UTC) + self._offset

    def set(self, instant: datetime) -> None:
        """Move the clock so that it now shows `instant`, which must have a time zone."""
        self._keep(instant - datetime.now(UTC))

    def advance(self, seconds: float) -> None:
        """Move the clock on, or back where `seconds` is negative."""
        self._keep(self._offset + timedelta(seconds=seconds))

    def _keep(self, offset: timedelta) -> None:
        # An offset that leaves the calendar is refused here, before it is kept.
        _ = datetime.now(UTC) + offset
        with self._store.transaction() as db:
            write_setting(db, OFFSET, str(offset.total_seconds()))
        self._offset = offset


def instant_text(instant: datetime) -> str:
    """An instant as it stands on the wire: ISO 8601 in UTC, to the second, with Z."""
    return instant.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
