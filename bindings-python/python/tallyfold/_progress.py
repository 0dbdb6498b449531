"""The progress bar of a collect."""

import contextlib
import importlib.util
import sys
import time
from collections.abc import Callable, Iterator

from tallyfold._ranges import Progress

__all__ = ["bar"]

Show = Callable[[Progress], object]

SECONDS_BETWEEN = 0.1
"""The shortest time between two drawings of the bar."""


@contextlib.contextmanager
def bar(planned: int, done: int, *, wanted: bool | None) -> Iterator[Show | None]:
    """Gives what shows progress on standard error, if that is a terminal; else `None`.

    Raises:
        ModuleNotFoundError: if a bar is wanted and rich is not installed.
    """
    has_rich = bool(wanted) or importlib.util.find_spec("rich") is not None
    if wanted is False or not has_rich or sys.stderr is None or not sys.stderr.isatty():
        yield None
        return
    with _drawn(planned, done) as show:
        yield show


@contextlib.contextmanager
def _drawn(planned: int, done: int) -> Iterator[Show]:
    from rich import console, progress

    columns = (
        progress.TextColumn("{task.description}"),
        progress.BarColumn(),
        progress.MofNCompleteColumn(),
        progress.TextColumn("{task.fields[failed]}"),
        progress.TimeElapsedColumn(),
        progress.TimeRemainingColumn(),
    )
    # It is drawn when there is something to report, without a separate thread.
    screen = console.Console(stderr=True)
    with progress.Progress(*columns, console=screen, auto_refresh=False) as drawn:
        task = drawn.add_task("collecting", total=planned, completed=done, failed="")
        last = 0.0

        def show(now: Progress) -> None:
            nonlocal last
            failed = f"{now.failed} failed" if now.failed else ""
            waits = now.waiting is not None
            drawn.update(
                task,
                description="waiting for the service" if waits else "collecting",
                total=now.planned,
                completed=now.done,
                failed=failed,
            )
            # Nothing else may be drawn during a wait.
            if waits or time.monotonic() - last >= SECONDS_BETWEEN:
                drawn.refresh()
                last = time.monotonic()

        drawn.refresh()
        yield show
