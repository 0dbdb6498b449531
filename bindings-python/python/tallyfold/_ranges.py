"""The small values of long ranges."""

from dataclasses import dataclass

from tallyfold._names import AdditivityVerdict
from tallyfold._tallyfold import Comparison, CountTable
from tallyfold._window import Window

__all__ = ["Additivity", "Progress", "Revision"]


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a `collect` is, each time that a window has been settled.

    >>> seen = []
    >>> table = client.collect(
    ...     "event_delivery", "2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z", ["integration"],
    ...     on_progress=seen.append,
    ... )
    >>> [(progress.done, progress.planned) for progress in seen]
    [(1, 4), (2, 4), (3, 4), (4, 4)]
    """

    planned: int
    """All windows: the number grows by one when a window is halved."""
    done: int
    """Those whose counts are there, also from before."""
    failed: int
    """Those that have failed."""
    under_way: int
    """Those that are being read."""
    window: Window
    """The one that has just been settled: read, halved or failed."""
    elapsed: float
    """Seconds since the collect began."""


@dataclass(frozen=True, slots=True)
class Revision:
    """The newest counts of a window that a `follow` reads.

    >>> (first,) = client.follow(
    ...     "event_delivery", "2026-01-01T00:00:00Z", ["integration"],
    ...     window="15m", end="2026-01-01T00:15:00Z",
    ... )
    >>> first.window, first.changes.total_delta, first.settled
    (Window('2026-01-01T00:00:00Z', '2026-01-01T00:15:00Z'), Deltas(success=7, ...), True)
    """

    window: Window
    """The window."""
    table: CountTable
    """Its newest counts."""
    changes: Comparison
    """How they differ from the window's last revision; the first time, from no counts at all. A
    running sum of all changes is the sum of the newest counts of every window."""
    settled: bool
    """Whether the window is not read again."""


@dataclass(frozen=True, slots=True)
class Additivity:
    """Whether the counts of two windows that meet add up to those of the time that they cover.

    >>> found = client.probe_additivity(
    ...     "event_delivery", "2026-01-01T00:00:00Z", "2026-01-01T00:05:00Z",
    ...     "2026-01-01T00:10:00Z", ["integration"],
    ... )
    >>> found.verdict, found.whole.totals
    ('additive', Counts(success=7, errors=1, filtered=2))
    """

    verdict: AdditivityVerdict
    """`"additive"`; `"double_counted"` for events in both halves, as if windows were closed at both
    ends; `"missing"` for events in neither; `"mixed"` for both, as when late events came between
    the readings; `"unknown"` where there were no events."""
    whole: CountTable
    """The counts of the whole."""
    difference: Comparison
    """The whole, before, against the sum of its halves, after."""


# People import the classes from the package, and pickles and docs say so.
for _class in (Progress, Revision, Additivity):
    _class.__module__ = "tallyfold"
