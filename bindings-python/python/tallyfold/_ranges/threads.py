"""The threads that drive the calls of a collect."""

import contextvars
import queue
import threading
import time
from collections.abc import Callable
from typing import ParamSpec, Self, TypeVar

from tallyfold._calls.steps import Drive
from tallyfold._ranges.collect_run import CollectRun
from tallyfold._tallyfold import Call, CountTable

__all__ = ["Bell", "Driving", "Threads", "Tokens", "aside", "to_its_end"]

P = ParamSpec("P")
T = TypeVar("T")

Driving = Callable[[Call[CountTable]], None]
"""Drives a call to its end."""

Tokens = Callable[[], tuple[str, int] | None]
"""Gets an access token and its remaining lifetime in seconds; `None` if requests need no token."""


class Threads:
    """Threads that drive calls; to be used in a `with` statement."""

    def __init__(
        self,
        run: CollectRun,
        drive: Driving,
        stop: Callable[[], None],
    ) -> None:
        """Starts no thread yet."""
        self._run = run
        self._drive = drive
        self._stop = stop
        self._threads: list[threading.Thread] = []
        self._hiring = threading.Lock()
        self._waiting: queue.SimpleQueue[Drive | None] = queue.SimpleQueue()
        self._news = Bell()
        run.wake = self._news.ring

    def begin(self) -> None:
        """Starts the calls that are due."""
        self.start(self._run.due())

    def start(self, drives: list[Drive]) -> None:
        """Gives each call to an idle thread, or to a new one."""
        for drive in drives:
            self._waiting.put(drive)
        with self._hiring:
            # Each thread drives a call, or will take one from the queue.
            while len(self._threads) < self._run.under_way:
                self._hire()

    def _hire(self) -> None:
        number = len(self._threads) + 1
        # The workers see the caller's context variables, such as a logger's fields.
        context = contextvars.copy_context()
        thread = threading.Thread(
            target=context.run, args=(self._work,), name=f"tallyfold-collect-{number}"
        )
        # Kept before it is started, so that it is joined even if an interrupt comes in between.
        self._threads.append(thread)
        thread.start()

    def _work(self) -> None:
        drive: Drive | None
        while (drive := self._waiting.get()) is not None:
            while drive is not None:
                drive = self._next(drive)
        # Passes the end mark on to the next thread.
        self._waiting.put(None)

    def _next(self, drive: Drive) -> Drive | None:
        """Drives a call to its end. Returns the next call; others go to other threads."""
        failure: BaseException | None = None
        if not self._run.is_over:
            try:
                self._drive(drive.call)
            except BaseException as error:  # noqa: BLE001 - the caller raises it
                failure = error
        due = self._run.turn(drive, failure)
        if not due:
            return None
        first, *others = due
        try:
            self.start(others)
        except BaseException as error:  # noqa: BLE001 - no thread to be had: the caller raises it
            self._run.fail(error)
        return first

    def wait(self) -> None:
        """Waits until the caller has something to do."""
        self._news.wait(None)

    def dismiss(self) -> None:
        """Ends all that is under way."""
        self._run.end()
        self._stop()
        self._let_go()

    def _let_go(self) -> None:
        self._waiting.put(None)
        while self._threads:
            _join(self._threads[-1])
            self._threads.pop()

    def __enter__(self) -> Self:
        """Returns the threads themselves."""
        return self

    def __exit__(self, *_: object) -> None:
        """Waits for the threads to end."""
        self._let_go()


class Bell:
    """Wakes the one thread that waits for it."""

    def __init__(self) -> None:
        self._rung = threading.Event()

    def ring(self) -> None:
        """Ends the wait, or the next one. Any thread may call it."""
        self._rung.set()

    def wait(self, seconds: float | None) -> bool:
        """Waits until it is rung, for at most `seconds`. Returns whether it was rung."""
        end = None if seconds is None else time.monotonic() + seconds
        # On Windows, a wait without a timeout can't be interrupted.
        while not self._rung.wait(1 if end is None else min(1, max(end - time.monotonic(), 0))):
            if end is not None and time.monotonic() >= end:
                return False
        self._rung.clear()
        return True


def to_its_end(work: Callable[[], None], error: BaseException) -> None:  # noqa: ARG001 - for tasks
    """Does what must be done after an error."""
    work()


def aside(function: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
    """Calls a function that may take a while."""
    return function(*arguments, **named)


def _join(thread: threading.Thread) -> None:
    # An interrupt may have come while the thread was starting. Until it runs, it can't be joined.
    for _ in range(1000):
        try:
            thread.join()
        except RuntimeError:
            time.sleep(0.001)
        else:
            return
