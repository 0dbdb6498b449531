"""The progress bar of a collect."""

import contextlib
import importlib
import importlib.util
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, TextIO, cast

from tallyfold._ranges.values import Progress

__all__ = ["bar"]

Show = Callable[[Progress], object]

SECONDS_BETWEEN = 0.1
"""The shortest time between two drawings of the bar."""


@contextlib.contextmanager
def bar(planned: int, done: int, *, wanted: bool | None) -> Iterator[Show | None]:
    """Yields a function that shows progress in a notebook or on a terminal (standard error).

    Without a notebook or a terminal, or if no bar is wanted, yields `None`. If the terminal goes
    away, the collect continues without it.

    Raises:
        ModuleNotFoundError: if a bar on a terminal is wanted and rich is not installed.
    """
    if wanted is False:
        yield None
    elif (display := _of_notebook()) is not None:
        with _displayed(display, planned, done) as show:
            yield show
    else:
        has_rich = bool(wanted) or importlib.util.find_spec("rich") is not None
        if not has_rich or not _has_terminal():
            yield None
            return
        with _drawn(planned, done) as show:
            yield show


def _has_terminal() -> bool:
    """Whether standard error is a terminal. It may also be closed, `None` or any object."""
    try:
        return sys.stderr.isatty()
    except (AttributeError, OSError, ValueError):
        return False


class _Lasting:
    """Standard error, without its failures."""

    def write(self, text: str) -> int:
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.write(text)
        return len(text)

    def flush(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.flush()

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - what standard error has
        return getattr(sys.stderr, name)


def _of_notebook() -> Callable[..., Any] | None:
    """Returns IPython's `display`, if this is the kernel of a notebook."""
    ipython = sys.modules.get("IPython")
    # IPython on a terminal has a shell too, but no kernel.
    shell = ipython.get_ipython() if ipython is not None else None
    if getattr(shell, "kernel", None) is None:
        return None
    display: Callable[..., Any] = importlib.import_module("IPython.display").display
    return display


class _Shown:
    """What a notebook shows: a bar, or text where there is no HTML."""

    def __init__(self, planned: int, done: int, failed: int = 0, *, waits: bool = False) -> None:
        more = f", {failed} failed" if failed else ""
        self._text = f"{_doing(waits=waits)} {done}/{planned}{more}"
        self._bar = f'<progress max="{planned}" value="{done}" style="width: 40ex"></progress>'

    def __repr__(self) -> str:
        return self._text

    def _repr_html_(self) -> str:
        return f"<div>{self._bar} {self._text}</div>"


def _doing(*, waits: bool) -> str:
    return "waiting for the service" if waits else "collecting"


@contextlib.contextmanager
def _displayed(display: Callable[..., Any], planned: int, done: int) -> Iterator[Show]:
    # Without ipywidgets, rich would print each bar below the last one, so this doesn't use rich.
    handle = display(_Shown(planned, done), display_id=True)
    latest: _Shown | None = None
    last = 0.0

    def show(now: Progress) -> None:
        nonlocal last, latest
        waits = now.waiting is not None
        latest = _Shown(now.planned, now.done, now.failed, waits=waits)
        if waits or time.monotonic() - last >= SECONDS_BETWEEN:
            handle.update(latest)
            last = time.monotonic()

    try:
        yield show
    finally:
        if latest is not None:
            handle.update(latest)


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
    # The bar is drawn when there is something to report, without a separate thread.
    screen = console.Console(file=cast("TextIO", _Lasting()))
    with progress.Progress(*columns, console=screen, auto_refresh=False) as drawn:
        task = drawn.add_task(_doing(waits=False), total=planned, completed=done, failed="")
        last = 0.0

        def show(now: Progress) -> None:
            nonlocal last
            failed = f"{now.failed} failed" if now.failed else ""
            waits = now.waiting is not None
            drawn.update(
                task,
                description=_doing(waits=waits),
                total=now.planned,
                completed=now.done,
                failed=failed,
            )
            # During a wait, there may be no later report that would draw the bar.
            if waits or time.monotonic() - last >= SECONDS_BETWEEN:
                drawn.refresh()
                last = time.monotonic()

        drawn.refresh()
        yield show
