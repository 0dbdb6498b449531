"""The host's clocks, and half-open windows of time."""

import time
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple, Self

__all__ = ["Now", "SeriesWindow", "Window"]


class Now(NamedTuple):
    """What the host's two clocks say at one moment.

    The core reads no clock: time is an argument. Of the two clocks, the one that has moved further
    counts, because a monotonic clock may stop while the computer sleeps, and a wall clock may be
    set back.

    >>> tallyfold.Now(monotonic_ms=0, unix_ms=1767225600000).unix_ms
    1767225600000
    """

    monotonic_ms: int
    """Milliseconds since any fixed moment, never running backwards."""
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
    """The first instant inside, exact to the nanosecond, as UTC ISO 8601."""
    end_text: str
    """The first instant after, likewise."""

    @property
    def start(self) -> datetime:
        """The first instant inside, rounded down to the microsecond."""
        return datetime.fromisoformat(self.start_text)

    @property
    def end(self) -> datetime:
        """The first instant after, rounded down to the microsecond."""
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


# Pickles and docs should name the package, from which users import the classes.
for _class in (Now, Window, SeriesWindow):
    _class.__module__ = "tallyfold"
