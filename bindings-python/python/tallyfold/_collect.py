"""Drives a long range: workers read window after window, the caller does the rest.

A worker that has ended a call settles it and asks for the next one by itself. Only the caller's own
thread (or task) stores what was read and reports it. So a checkpoint and `on_progress` are called
in order, one at a time, where an exception of theirs ends the collect, and where Ctrl-C arrives.
"""

import asyncio
import contextlib
import contextvars
import itertools
import queue
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, Self, TypeVar

from tallyfold._checkpoint import AsyncCheckpoint, AsyncKeeper, Checkpoint, Keeper, Path
from tallyfold._clock import Now
from tallyfold._errors import ConfigError, TallyfoldError
from tallyfold._progress import bar
from tallyfold._ranges import Progress
from tallyfold._tallyfold import Call, Collect, CountTable, Drive

__all__ = ["Wishes", "collect", "collect_in_tasks"]

TURNS_IN_A_ROW = 16
"""How many calls a task drives before it lets the event loop do something else."""

CheckpointT = TypeVar("CheckpointT", bound=AsyncCheckpoint | Checkpoint | Path | None)


@dataclass(frozen=True, slots=True)
class Wishes(Generic[CheckpointT]):
    """What a caller wants of the host; the rest is the machine's."""

    concurrency: int
    checkpoint: CheckpointT
    on_progress: Callable[[Progress], object] | None
    progress: bool | None

    def __post_init__(self) -> None:
        """Refuses what no host can do."""
        is_number = isinstance(self.concurrency, int) and not isinstance(self.concurrency, bool)
        if not is_number or self.concurrency < 1:
            message = "invalid_argument: concurrency: want a number of workers, 1 or more"
            raise ConfigError(message, code="invalid_argument", argument="concurrency")


def collect(
    machine: Collect,
    wishes: Wishes[Checkpoint | Path | None],
    drive: Callable[[Call[CountTable]], None],
    stop: Callable[[], None],
) -> CountTable:
    """Collects with threads, none of which outlives the call; `stop` makes `drive` return soon."""
    gathering = _Gathering(machine, wishes)
    threads = _Threads(gathering, drive, stop)
    with Keeper(machine, wishes.checkpoint) as keeper, threads:
        keeper.load()
        with gathering:
            try:
                threads.start(gathering.due())
                while gathering.is_busy():
                    threads.wait()
                    reports = gathering.news()
                    threads.start(gathering.due())
                    keeper.save()
                    gathering.report(reports)
            except BaseException as error:
                threads.dismiss()
                with _noted(error):
                    keeper.save()
                gathering.hand_over_to(error)
                raise
    return gathering.finish()


async def collect_in_tasks(
    machine: Collect,
    wishes: Wishes[AsyncCheckpoint | Path | None],
    drive: Callable[[Call[CountTable]], Awaitable[None]],
) -> CountTable:
    """Collects with tasks, none of which outlives the call."""
    gathering = _Gathering(machine, wishes)
    tasks = _Tasks(gathering, drive)
    with AsyncKeeper(machine, wishes.checkpoint) as keeper:
        await keeper.load()
        with gathering:
            try:
                tasks.start(gathering.due())
                while gathering.is_busy():
                    await tasks.wait()
                    reports = gathering.news()
                    tasks.start(gathering.due())
                    await keeper.save()
                    gathering.report(reports)
            except BaseException as error:
                await tasks.dismiss()
                with _noted(error):
                    await keeper.save()
                gathering.hand_over_to(error)
                raise
    return gathering.finish()


@contextlib.contextmanager
def _noted(error: BaseException) -> Iterator[None]:
    """Lets the first error be the one that is raised."""
    try:
        yield
    except Exception as second:  # noqa: BLE001 - a checkpoint may raise anything
        if second is not error:
            error.add_note(f"What was read last could not be stored: {second!r}")


class _Gathering:
    """The part of a collect that waits for nothing, for any number of workers."""

    def __init__(self, machine: Collect, wishes: Wishes[Any]) -> None:
        self._machine = machine
        self._wishes = wishes
        self._began = time.monotonic()
        self._lock = threading.Lock()
        self._reports: list[Progress] = []
        self._failure: BaseException | None = None
        self._cause: BaseException | None = None
        self._shown = contextlib.ExitStack()
        self.under_way = 0
        self.is_over = False
        self.is_watched = False
        self.wake: Callable[[], object] = lambda: None
        """Called when the caller has something to do."""

    def __enter__(self) -> Self:
        planned, done, *_ = self._machine.progress()
        shown = bar(planned, done, wanted=self._wishes.progress)
        self._show = self._shown.enter_context(shown)
        watchers = self._show, self._wishes.on_progress, self._wishes.checkpoint
        self.is_watched = any(watcher is not None for watcher in watchers)
        return self

    def __exit__(self, *_: object) -> None:
        self._shown.close()

    def due(self) -> list[Drive]:
        """Gives what is to be started, so that as many calls as wished are under way."""
        with self._lock:
            return self._due()

    def turn(self, drive: Drive, failure: BaseException | None) -> list[Drive]:
        """Takes a call that has ended, and what its driver raised; gives what is to be started."""
        with self._lock:
            try:
                self._settle(drive, failure)
                return self._due()
            except BaseException as error:  # noqa: BLE001 - the caller raises it
                self._fail(error)
                return []
            finally:
                if self.is_watched or self.is_over or not self.under_way:
                    self.wake()

    def _due(self) -> list[Drive]:
        due: list[Drive] = []
        most = self._wishes.concurrency
        # So many may be read and not stored: more would be lost when the process is killed.
        while not self.is_over and self.under_way < most and len(self._reports) < most:
            step = self._machine.next(Now.read())
            if not isinstance(step, Drive):
                break
            self.under_way += 1
            due.append(step)
        return due

    def _settle(self, drive: Drive, failure: BaseException | None) -> None:
        outcome = self._machine.settle(drive.task, drive.call, Now.read())
        self.under_way -= 1
        if outcome != "given_back":
            if self.is_watched:
                elapsed = time.monotonic() - self._began
                self._reports.append(Progress(*self._machine.progress(), drive.window, elapsed))
            if isinstance(failure, TallyfoldError):
                # The machine has the error, but not what the host's own function raised.
                self._cause = self._cause or failure.__cause__
                return
        if failure is not None:
            self._fail(failure)

    def _fail(self, failure: BaseException) -> None:
        self._failure = self._failure or failure
        self.is_over = True

    def fail(self, failure: BaseException) -> None:
        """Ends the collect by something that the caller is to raise."""
        with self._lock:
            self._fail(failure)
            self.wake()

    def end(self) -> None:
        """Lets nothing more be started."""
        with self._lock:
            self.is_over = True

    def is_busy(self) -> bool:
        """Whether anything is under way, or there is something to tell the caller."""
        with self._lock:
            return bool(self.under_way or self._reports or self._failure)

    def news(self) -> list[Progress]:
        """Gives what is to be reported; raises what a driver raised that is not its call's end."""
        with self._lock:
            if self._failure is not None:
                raise self._failure
            reports, self._reports = self._reports, []
            return reports

    def report(self, reports: list[Progress]) -> None:
        """Tells the host of what was settled, in its order."""
        for progress in reports:
            if self._show is not None:
                self._show(progress)
            if self._wishes.on_progress is not None:
                self._wishes.on_progress(progress)

    def hand_over_to(self, error: BaseException) -> None:
        """Lets an exception carry what was read, as the collect's own errors do."""
        partial: CountTable | None
        try:
            partial, gaps, failures = self._machine.finish(), [], []
        except TallyfoldError as unfinished:
            partial, gaps, failures = unfinished.partial, unfinished.gaps, unfinished.failures
        # An exception may have fixed attributes, in which case a checkpoint is the way.
        with contextlib.suppress(AttributeError, TypeError):
            vars(error).update(partial=partial, gaps=gaps, failures=failures)

    def finish(self) -> CountTable:
        """Gives the table of all windows, or raises why there is none."""
        try:
            return self._machine.finish()
        except TallyfoldError as error:
            if error.code == "token_provider_failed":
                error.__cause__ = self._cause
            raise


class _Threads:
    """Threads that drive calls; to be used in a `with` statement."""

    def __init__(
        self,
        gathering: _Gathering,
        drive: Callable[[Call[CountTable]], None],
        stop: Callable[[], None],
    ) -> None:
        """Starts no thread yet."""
        self._gathering = gathering
        self._drive = drive
        self._stop = stop
        self._threads: list[threading.Thread] = []
        self._hiring = threading.Lock()
        self._waiting: queue.SimpleQueue[Drive | None] = queue.SimpleQueue()
        self._news = threading.Event()
        gathering.wake = self._news.set

    def start(self, drives: list[Drive]) -> None:
        """Gives each call to a thread that has none, or to a new one."""
        for drive in drives:
            self._waiting.put(drive)
        with self._hiring:
            # Each thread has one call under way, or will ask for one.
            while len(self._threads) < self._gathering.under_way:
                self._hire()

    def _hire(self) -> None:
        number = len(self._threads) + 1
        # What the caller's context holds, such as a logger's fields, holds for its workers.
        context = contextvars.copy_context()
        thread = threading.Thread(
            target=context.run, args=(self._work,), name=f"tallyfold-collect-{number}"
        )
        # In this order: an interrupt may come in between.
        self._threads.append(thread)
        thread.start()

    def _work(self) -> None:
        drive: Drive | None
        while (drive := self._waiting.get()) is not None:
            while drive is not None:
                drive = self._next(drive)
        # For the next one.
        self._waiting.put(None)

    def _next(self, drive: Drive) -> Drive | None:
        """Drives a call to its end; what to drive after it."""
        failure: BaseException | None = None
        if not self._gathering.is_over:
            try:
                self._drive(drive.call)
            except BaseException as error:  # noqa: BLE001 - the caller raises it
                failure = error
        due = self._gathering.turn(drive, failure)
        if not due:
            return None
        first, *others = due
        try:
            self.start(others)
        except BaseException as error:  # noqa: BLE001 - no thread to be had: the caller raises it
            self._gathering.fail(error)
        return first

    def wait(self) -> None:
        """Waits until the caller has something to do."""
        # On Windows a wait without an end can't be interrupted.
        while not self._news.wait(1):
            pass
        self._news.clear()

    def dismiss(self) -> None:
        """Ends all that is under way."""
        self._gathering.end()
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
    # An interrupt may have come while it was starting. If it runs at all, it soon can be joined.
    for _ in range(1000):
        try:
            thread.join()
        except RuntimeError:
            time.sleep(0.001)
        else:
            return


class _Tasks:
    """Tasks that drive calls."""

    def __init__(
        self, gathering: _Gathering, drive: Callable[[Call[CountTable]], Awaitable[None]]
    ) -> None:
        self._gathering = gathering
        self._drive = drive
        self._tasks: set[asyncio.Task[None]] = set()
        self._news = asyncio.Event()
        gathering.wake = self._news.set

    def start(self, drives: list[Drive]) -> None:
        """Gives each call to a new task."""
        for drive in drives:
            task = asyncio.create_task(self._work(drive))
            self._tasks.add(task)
            task.add_done_callback(partial(self._ended, drive))

    async def _work(self, drive: Drive) -> None:
        for turns in itertools.count(1):
            failure: BaseException | None = None
            try:
                await self._drive(drive.call)
            except BaseException as error:  # noqa: BLE001 - the caller raises it
                failure = error
            due = self._gathering.turn(drive, failure)
            if not due:
                return
            drive, *others = due
            self.start(others)
            # A transport that has the answer at once never waits, and nobody else would come on.
            if self._gathering.is_watched or turns % TURNS_IN_A_ROW == 0:
                await asyncio.sleep(0)

    def _ended(self, drive: Drive, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        # Before it began, or it would have ended by itself.
        if task.cancelled():
            self._gathering.turn(drive, asyncio.CancelledError())

    async def wait(self) -> None:
        """Waits until the caller has something to do."""
        await self._news.wait()
        self._news.clear()

    async def dismiss(self) -> None:
        """Ends all that is under way."""
        self._gathering.end()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
