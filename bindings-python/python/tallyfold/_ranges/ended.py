"""The windows of a range that have ended."""

from datetime import datetime, timedelta

from tallyfold._arguments import Instant, Step
from tallyfold._tallyfold import Plan
from tallyfold._time import Window

__all__ = ["ended_windows"]


def ended_windows(start: Instant, end: Instant | None, window: Step, now: datetime) -> list[Window]:
    """Returns the windows of a range that have ended by `now`.

    Without an `end`, the last one ends at the newest edge of a window that is not after `now`. The
    list may be empty.
    """
    # The windows of a plan end at the edges of the day's steps, except the last one.
    plan = Plan(start, now + timedelta(days=1) if end is None else end, window)
    ended = []
    for one in plan:
        if one.end > now:
            break
        ended.append(one)
    return ended
