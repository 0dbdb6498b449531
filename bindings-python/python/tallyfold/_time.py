"""The host's clocks, and half-open windows of time."""

import time
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple, Self
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

__all__ = ["EPOCH", "Now", "SeriesWindow", "Window"]

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Now(NamedTuple):
    """The times of this computer's two clocks at one moment.

    The core reads no clock: time is an argument. It uses the clock that has moved further, because
    a monotonic clock may stop while the computer sleeps, and a wall clock may be set back.

    >>> tallyfold.Now(monotonic_ms=0, unix_ms=1767225600000).unix_ms
    1767225600000
    """

    monotonic_ms: int
    """Milliseconds since any fixed moment; the number never decreases."""
    unix_ms: int
    """Milliseconds since 1970-01-01T00:00:00Z by the wall clock."""

    @classmethod
    def read(cls) -> Self:
        """Reads both clocks.

        >>> tallyfold.Now.read().unix_ms > 1767225600000
        True
        """
        return cls(time.monotonic_ns() // 1_000_000, time.time_ns() // 1_000_000)


@dataclass(frozen=True, slots=True, repr=False)
class Window:
    """A half-open time window `[start, end)` in UTC.

    >>> window = table.coverage[0]
    >>> window.start_text, window.start
    ('2026-01-01T00:00:00Z', datetime.datetime(2026, 1, 1, 0, 0, tzinfo=datetime.timezone.utc))
    """

    start_text: str
    """The start, which is included, exact to the nanosecond, as UTC ISO 8601."""
    end_text: str
    """The end, which is excluded, exact to the nanosecond, as UTC ISO 8601."""

    @property
    def start(self) -> datetime:
        """The start, which is included, rounded down to the microsecond."""
        return datetime.fromisoformat(self.start_text)

    @property
    def end(self) -> datetime:
        """The end, which is excluded, rounded down to the microsecond."""
        return datetime.fromisoformat(self.end_text)

    def __repr__(self) -> str:
        """Shows both edges exactly."""
        return f"Window({self.start_text!r}, {self.end_text!r})"


@dataclass(frozen=True, slots=True, repr=False)
class SeriesWindow(Window):
    """A window of a series, whether the table covers all of it, and whether it may still change.

    >>> [window.complete for window in table.by_window("1h").windows]
    [False]
    >>> [window.provisional for window in table.by_window("1h").windows]
    [False]
    """

    complete: bool
    """Whether the table covers all of the window. If not, its counts cover only a part of it."""
    provisional: bool = False
    """Whether its counts may still change, because a response in it was read so early
    (`CountTable.provisional`)."""

    def __repr__(self) -> str:
        """Shows both edges exactly, and `provisional` if it is true."""
        provisional = ", provisional=True" if self.provisional else ""
        edges = f"{self.start_text!r}, {self.end_text!r}"
        return f"SeriesWindow({edges}, complete={self.complete}{provisional})"


def midnights(zone: object, start_us: int, end_us: int) -> tuple[str, list[int]] | str:
    """Returns the name of a time zone, and when days begin there, in seconds since 1970.

    The first time is the beginning of the day that contains the start. The last time is the first
    beginning of a day at or after the end. The start and the end are in microseconds since 1970.
    If the zone or the times can't be used, returns a text that says what is wanted instead.
    """
    try:
        zone = zone if isinstance(zone, ZoneInfo) else ZoneInfo(zone)  # type: ignore[arg-type]
        if zone.key in (None, "localtime", "posixrules"):
            raise ZoneInfoNotFoundError  # noqa: TRY301 - no zone, or another one elsewhere
    # The zone is not in the database, is a directory there, leads out of it, or has another type.
    except (ZoneInfoNotFoundError, OSError, ValueError, TypeError):
        where = "" if available_timezones() else ", and the package tzdata, which has them"
        return f'want the name of a time zone, such as "America/New_York"{where}'
    try:
        day = (EPOCH + timedelta(microseconds=start_us)).astimezone(zone).date()
        found = [_midnight(day, zone)]
        # Where clocks are set back over midnight, a date comes again after the next has begun.
        while found[0] * 1_000_000 > start_us:
            day -= timedelta(days=1)
            found.insert(0, _midnight(day, zone))
        while found[-1] * 1_000_000 < end_us:
            day += timedelta(days=1)
            found.append(_midnight(day, zone))
    except (OverflowError, ValueError):
        return "want a table of the years 2 to 9998"
    # Two dates begin at the same time if the first one does not exist.
    return str(zone), list(dict.fromkeys(found))


def _midnight(day: date, zone: ZoneInfo) -> int:
    """Returns the first time at which the clocks in a zone show a date."""
    midnight = datetime.combine(day, datetime.min.time(), zone)
    found = int(midnight.timestamp())
    if datetime.fromtimestamp(found, zone) == midnight:
        return found
    # The clocks are set forward over midnight, by a day at most.
    before = found - 86400
    while found - before > 1:
        middle = (before + found) // 2
        if datetime.fromtimestamp(middle, zone).date() < day:
            before = middle
        else:
            found = middle
    return found


# Pickles and docs should name the package, from which users import the classes.
for _class in (Now, Window, SeriesWindow):
    _class.__module__ = "tallyfold"
