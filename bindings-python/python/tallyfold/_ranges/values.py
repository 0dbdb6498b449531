"""The small value classes of long ranges."""

from dataclasses import dataclass

from tallyfold._names import AdditivityVerdict
from tallyfold._tallyfold import Comparison, CountTable
from tallyfold._time import Window

__all__ = ["Additivity", "Progress", "Revision"]


@dataclass(frozen=True, slots=True)
class Progress:
    """How many windows of a `collect` are done. `on_progress` gets it after each window.

    >>> seen = []
    >>> table = client.collect(
    ...     "event_delivery", "2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z", ["integration"],
    ...     on_progress=seen.append,
    ... )
    >>> [(progress.done, progress.planned) for progress in seen]
    [(1, 4), (2, 4), (3, 4), (4, 4)]
    """

    planned: int
    """The number of all windows. It grows by one when a window is halved."""
    done: int
    """The number of windows whose counts are known, also from `have` or a checkpoint."""
    failed: int
    """The number of windows that have failed."""
    under_way: int
    """The number of windows that are being read."""
    window: Window
    """The latest window: it was read, halved or postponed, or it failed."""
    elapsed: float
    """How many seconds ago the collect began."""
    waiting: float | None = None
    """How many seconds the collect now waits before the next try, while the service is down.
    Otherwise `None`."""


@dataclass(frozen=True, slots=True)
class Revision:
    """The newest counts of a window that a `follow` reads.

    >>> (first,) = client.follow(
    ...     "event_delivery", "2026-01-01T00:00:00Z", ["integration"],
    ...     window="15m", end="2026-01-01T00:15:00Z",
    ... )
    >>> first.window, first.changes.total_delta, first.settled
    (Window('2026-01-01T00:00:00Z', '2026-01-01T00:15:00Z'), Deltas(success=7, ...), True)
    >>> first.number
    0
    """

    window: Window
    """The window."""
    table: CountTable
    """The newest counts of the window."""
    changes: Comparison
    """How these counts differ from the window's previous revision. The first revision is compared
    with no counts. A running sum of all changes is the sum of the newest counts of all windows."""
    settled: bool
    """Whether this is the window's last revision: the window is not read again."""
    number: int
    """The number of the revision among the revisions of the window, from 0. A follow that resumes
    from a `state` continues the numbers. No two revisions of a window have the same number."""
    clock_ahead: float = 0.0
    """By how many seconds this machine's clock was ahead of the service's clock when the window was
    read: 0.0 if it was not ahead, or if no response had a `Date`."""


@dataclass(frozen=True, slots=True)
class Additivity:
    """Whether the counts of two adjacent windows add up to the counts of the whole time.

    >>> found = client.probe_additivity(
    ...     "event_delivery", "2026-01-01T00:00:00Z", "2026-01-01T00:05:00Z",
    ...     "2026-01-01T00:10:00Z", ["integration"],
    ... )
    >>> found.verdict, found.whole.totals
    ('additive', Counts(success=7, errors=1, filtered=2))
    """

    verdict: AdditivityVerdict
    """`"additive"`; `"double_counted"` if some events are in both halves, as if windows included
    both edges; `"missing"` if some events are in neither half; `"mixed"` for both, for example
    because late events arrived between the readings; `"unknown"` if there were no events."""
    whole: CountTable
    """The counts of the whole time."""
    difference: Comparison
    """Compares the whole time (before) with the sum of its halves (after)."""


# Pickles and docs should name the package, from which users import the classes.
for _class in (Progress, Revision, Additivity):
    _class.__module__ = "tallyfold"
