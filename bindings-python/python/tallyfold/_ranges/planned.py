"""The rows of a collect by the windows of its plan."""

from datetime import datetime

from tallyfold._arguments import Step
from tallyfold._tallyfold import CountTable, Series

__all__ = ["by_plan"]


def by_plan(table: CountTable, start: datetime, step: Step) -> tuple[Series, list[datetime]]:
    """Returns rows by the windows of a plan, and the starts of the windows that may still change.

    A window that was read in halves has the sums of its halves. If the plan begins at a `start`
    within a step, or ends within a step, its first or last window is a part of that step. The rows
    have the edges of the whole step. The starts are the starts of the windows themselves.
    """
    series = table.by_window(step)
    unsettled = [
        max(window.start, start)
        for window in series.windows
        # In a series, a window that is not complete is always provisional.
        if window.provisional
        and (
            window.complete
            or any(
                part.start < window.end and window.start < part.end for part in table.provisional
            )
        )
    ]
    return series, unsettled
