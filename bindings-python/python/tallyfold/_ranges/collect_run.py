"""What a collect's workers share: the calls under way, and what must be reported.

A worker that has ended a call settles it and gets the next one itself. Only the caller's own thread
(or task) stores and reports what was read. So a checkpoint and `on_progress` are called in order
and one at a time, in the thread in which their exceptions and Ctrl-C can end the collect.
"""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from typing import Self

from tallyfold._calls.steps import Drive
from tallyfold._errors import TallyfoldError, check_flag
from tallyfold._ranges.outage_log import OutageLog
from tallyfold._ranges.progress_bar import bar
from tallyfold._ranges.values import Progress
from tallyfold._tallyfold import Collect, CountTable
from tallyfold._time import Now

__all__ = ["CollectRun", "noted"]


class CollectRun:
    """The state of a collect that its workers and its caller share. Nothing in it waits."""

    def __init__(
        self,
        machine: Collect,
        on_progress: Callable[[Progress], object] | None,
        *,
        progress: bool | None,
        has_checkpoint: bool,
    ) -> None:
        """Starts nothing and shows nothing yet."""
        check_flag("progress", progress)
        self._machine = machine
        self._on_progress = on_progress
        self._progress = progress
        self._has_checkpoint = has_checkpoint
        self._began = time.monotonic()
        self._lock = threading.Lock()
        self._reports: list[Progress] = []
        self._failure: BaseException | None = None
        self._causes: dict[str, BaseException | None] = {}
        self._shown = contextlib.ExitStack()
        self._log = OutageLog()
        self.under_way = 0
        self.is_over = False
        self.is_watched = False
        self.wake: Callable[[], object] = lambda: None
        """Wakes the caller."""

    def __enter__(self) -> Self:
        planned, done, *_ = self._machine.progress()
        shown = bar(planned, done, wanted=self._progress)
        self._show = self._shown.enter_context(shown)
        has_watcher = self._show is not None or self._on_progress is not None
        self.is_watched = has_watcher or self._has_checkpoint
        return self

    def __exit__(self, *_: object) -> None:
        self._shown.close()

    def due(self) -> list[Drive]:
        """Returns the calls to start, so that the wanted number of calls is under way."""
        with self._lock:
            return self._due(Now.read())

    def turn(self, drive: Drive, failure: BaseException | None) -> list[Drive]:
        """Settles a call, with the exception of its driver, if any. Returns the calls to start."""
        with self._lock:
            try:
                now = Now.read()
                outcome = self._settle(drive, failure, now)
                # A call that was given back without a response shows nothing about the service.
                if failure is not None or outcome != "given_back":
                    self._log.note(self._machine.waiting, failure)
                return self._due(now)
            except BaseException as error:  # noqa: BLE001 - the caller raises it
                self._fail(error)
                return []
            finally:
                if self.is_watched or self.is_over or not self.under_way:
                    self.wake()

    def _due(self, now: Now) -> list[Drive]:
        due: list[Drive] = []
        most = self._machine.concurrency
        # Limits how many windows wait to be stored, because a killed process loses them.
        while not self.is_over and self.under_way < most and len(self._reports) < most:
            step = self._machine.next(now)
            if not isinstance(step, Drive):
                break
            self.under_way += 1
            due.append(step)
        return due

    def _settle(self, drive: Drive, failure: BaseException | None, now: Now) -> str:
        outcome = self._machine.settle(drive.task, drive.call, now)
        self.under_way -= 1
        if outcome != "given_back":
            if self.is_watched:
                elapsed = time.monotonic() - self._began
                counts, waiting = self._machine.progress(), self._machine.waiting
                self._reports.append(Progress(*counts, drive.window, elapsed, waiting))
            if isinstance(failure, TallyfoldError):
                # The machine keeps the error, but not its cause, which is a Python exception.
                self._causes.setdefault(failure.code, failure.__cause__)
                return outcome
        if failure is not None:
            self._fail(failure)
        return outcome

    def _fail(self, failure: BaseException) -> None:
        self._failure = self._failure or failure
        self.is_over = True

    def fail(self, failure: BaseException) -> None:
        """Ends the collect with an exception that the caller raises."""
        with self._lock:
            self._fail(failure)
            self.wake()

    def end(self) -> None:
        """Starts no more calls."""
        with self._lock:
            self.is_over = True

    def is_busy(self) -> bool:
        """Whether a call is under way, or something must be reported to the caller."""
        with self._lock:
            return bool(self.under_way or self._reports or self._failure)

    def news(self) -> list[Progress]:
        """Returns what must be reported. Raises the exception that ends the collect, if any."""
        with self._lock:
            if self._failure is not None:
                raise self._failure
            reports, self._reports = self._reports, []
            return reports

    def report(self, progress: Progress) -> object:
        """Reports a settled window to the host; returns what `on_progress` returned."""
        if self._show is not None:
            self._show(progress)
        return None if self._on_progress is None else self._on_progress(progress)

    def hand_over_to(self, error: BaseException) -> None:
        """Adds what was read to an exception, as in the collect's own errors."""
        partial: CountTable | None
        try:
            partial, gaps, failures = self._machine.finish(), [], []
        except TallyfoldError as unfinished:
            partial, gaps, failures = unfinished.partial, unfinished.gaps, unfinished.failures
        # Some exceptions accept no attributes. Then only the checkpoint has what was read.
        with contextlib.suppress(AttributeError, TypeError):
            vars(error).update(partial=partial, gaps=gaps, failures=failures)

    def finish(self) -> CountTable:
        """Returns the table of all windows, or raises the error of the missing windows."""
        try:
            return self._machine.finish()
        except TallyfoldError as error:
            error.__cause__ = self._causes.get(error.code)
            raise


@contextlib.contextmanager
def noted(error: BaseException) -> Iterator[None]:
    """Adds an exception of the block to `error` as a note, so that `error` can still be raised."""
    try:
        yield
    except Exception as second:  # noqa: BLE001 - a checkpoint may raise anything
        if second is not error:
            error.add_note(f"What was read last could not be stored: {second!r}")
