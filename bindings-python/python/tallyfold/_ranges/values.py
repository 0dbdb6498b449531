"""The small value classes of long ranges."""

from dataclasses import dataclass

from tallyfold._names import AdditivityVerdict
from tallyfold._tallyfold import Comparison, CountTable
from tallyfold._time import Window

__all__ = ["Additivity", "Progress", "Revision"]


@dataclass(frozen=True, slots=True)
class Progress:
    """How many windows of a `collect` are done, whenever one has been settled.

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
    """The windows whose counts are known, also from `have` or a checkpoint."""
    failed: int
    """The windows that have failed."""
    under_way: int
    """The windows that are being read."""
    window: Window
    """The window that has just been settled: read, halved, failed or postponed."""
    elapsed: float
    """Seconds since the collect began."""
    waiting: float | None = None
    """While the collect waits for a service that is down: how many seconds it now waits before the
    next try. Otherwise `None`."""


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
    """Its newest counts."""
    changes: Comparison
    """How they differ from the window's last revision. The first revision is compared with no
    counts. A running sum of all changes is the sum of the newest counts of every window."""
    settled: bool
    """Whether this is the window's last revision: the window is not read again."""
    number: int
    """How many revisions of the window were given before this one, also by earlier follows whose
    `state` was taken up: 0 for the first. No two revisions of a window have the same number."""
    clock_ahead: float = 0.0
    """By how many seconds this machine's clock was ahead of the service's when the window was
    read: 0.0 if it was not, or if the response had no `Date`."""


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
    both edges; `"missing"` if some are in neither; `"mixed"` for both, for example because late
    events arrived between the readings; `"unknown"` if there were no events."""
    whole: CountTable
    """The counts of the whole."""
    difference: Comparison
    """Compares the whole (before) with the sum of its halves (after)."""


# Pickles and docs should name the package, from which users import the classes.
for _class in (Progress, Revision, Additivity):
    _class.__module__ = "tallyfold"
