"""The threads that drive the calls of a collect."""

import contextvars
import queue
import threading
import time
from collections.abc import Callable
from typing import Self

from tallyfold._client.steps import Drive
from tallyfold._ranges.collect_run import CollectRun
from tallyfold._tallyfold import Call, CountTable

__all__ = ["Threads"]


class Threads:
    """Threads that drive calls; to be used in a `with` statement."""

    def __init__(
        self,
        run: CollectRun,
        drive: Callable[[Call[CountTable]], None],
        stop: Callable[[], None],
    ) -> None:
        """Starts no thread yet."""
        self._run = run
        self._drive = drive
        self._stop = stop
        self._threads: list[threading.Thread] = []
        self._hiring = threading.Lock()
        self._waiting: queue.SimpleQueue[Drive | None] = queue.SimpleQueue()
        self._news = threading.Event()
        run.wake = self._news.set

    def start(self, drives: list[Drive]) -> None:
        """Gives each call to a thread that has none, or to a new one."""
        for drive in drives:
            self._waiting.put(drive)
        with self._hiring:
            # Each thread drives a call, or will ask for one.
            while len(self._threads) < self._run.under_way:
                self._hire()

    def _hire(self) -> None:
        number = len(self._threads) + 1
        # The workers see the caller's context variables, such as a logger's fields.
        context = contextvars.copy_context()
        thread = threading.Thread(
            target=context.run, args=(self._work,), name=f"tallyfold-collect-{number}"
        )
        # Kept before it is started: after an interrupt in between, it is still waited for.
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
        """Drives a call to its end, and gives the calls to drive after it."""
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
        # On Windows a wait without an end can't be interrupted.
        while not self._news.wait(1):
            pass
        self._news.clear()

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
        """Gives the threads themselves."""
        return self

    def __exit__(self, *_: object) -> None:
        """Waits for the threads to end."""
        self._let_go()


def _join(thread: threading.Thread) -> None:
    # An interrupt may have come while the thread was starting. Until it runs, it can't be joined.
    for _ in range(1000):
        try:
            thread.join()
        except RuntimeError:
            time.sleep(0.001)
        else:
            return
