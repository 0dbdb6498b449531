"""The windows of a range that have ended."""

from datetime import datetime, timedelta

from tallyfold._arguments import Instant, Step
from tallyfold._tallyfold import Plan
from tallyfold._time import Window

__all__ = ["ended_windows"]


def ended_windows(start: Instant, end: Instant | None, window: Step, now: datetime) -> list[Window]:
    """Gives the windows of a range that have ended by `now`.

    Without an `end`, they are whole up to the last edge of a window before `now`. None may have
    ended yet.
    """
    # The windows of a plan end at the edges of the day's steps, except the last one.
    plan = Plan(start, now + timedelta(days=1) if end is None else end, window)
    ended = []
    for one in plan:
        if one.end > now:
            break
        ended.append(one)
    return ended
