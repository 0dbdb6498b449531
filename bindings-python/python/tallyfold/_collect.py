"""Drives a long range: workers carry the bytes, the caller does the rest.

Only the caller's own thread (or task) asks the machine for windows, settles them, stores them and
reports. So a checkpoint and `on_progress` are called in order, one at a time, where an exception
of theirs ends the collect, and where Ctrl-C arrives.
"""

import asyncio
import contextlib
import contextvars
import queue
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, Self, TypeVar

from tallyfold._checkpoint import AsyncCheckpoint, AsyncKeeper, Checkpoint, Keeper, Path
from tallyfold._clock import Now
from tallyfold._errors import ConfigError, TallyfoldError
from tallyfold._progress import bar
from tallyfold._ranges import Progress
from tallyfold._tallyfold import Call, Collect, CountTable, Drive

__all__ = ["Wishes", "Workers", "collect", "collect_in_tasks"]

CheckpointT = TypeVar("CheckpointT", bound=AsyncCheckpoint | Checkpoint | Path | None)

Ended = tuple[Drive, BaseException | None]
"""A call that is no longer driven, and what its driver raised."""


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
    machine: Collect, wishes: Wishes[Checkpoint | Path | None], workers: "Workers"
) -> CountTable:
    """Collects with threads, none of which outlives the call."""
    with Keeper(machine, wishes.checkpoint) as keeper, workers:
        keeper.load()
        with _Gathering(machine, wishes) as gathering:
            try:
                workers.start(gathering.due())
                while workers.busy:
                    gathering.settle(workers.ended())
                    workers.start(gathering.due())
                    keeper.save()
                    gathering.report()
            except BaseException as error:
                gathering.give_up(workers.dismiss())
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
    tasks = _Tasks(drive)
    with AsyncKeeper(machine, wishes.checkpoint) as keeper:
        await keeper.load()
        with _Gathering(machine, wishes) as gathering:
            try:
                tasks.start(gathering.due())
                while tasks.busy:
                    gathering.settle(await tasks.ended())
                    tasks.start(gathering.due())
                    await keeper.save()
                    gathering.report()
            except BaseException as error:
                gathering.give_up(await tasks.dismiss())
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
    """The part of a collect that waits for nothing."""

    def __init__(self, machine: Collect, wishes: Wishes[Any]) -> None:
        self._machine = machine
        self._wishes = wishes
        self._began = time.monotonic()
        self._under_way = 0
        self._reports: list[Progress] = []
        self._cause: BaseException | None = None
        self._shown = contextlib.ExitStack()

    def __enter__(self) -> Self:
        planned, done, *_ = self._machine.progress()
        shown = bar(planned, done, wanted=self._wishes.progress)
        self._show = self._shown.enter_context(shown)
        return self

    def __exit__(self, *_: object) -> None:
        self._shown.close()

    def due(self) -> Iterator[Drive]:
        """Gives what is to be started, so that as many calls as wished are under way."""
        while self._under_way < self._wishes.concurrency:
            step = self._machine.next(Now.read())
            if not isinstance(step, Drive):
                return
            self._under_way += 1
            yield step

    def settle(self, ended: list[Ended]) -> None:
        """Takes calls that have ended; raises what a driver raised that is not its call's end."""
        failures = [self._settle(drive, failure) for drive, failure in ended]
        for failure in failures:
            if failure is not None:
                raise failure

    def _settle(self, drive: Drive, failure: BaseException | None) -> BaseException | None:
        outcome = self._machine.settle(drive.task, drive.call, Now.read())
        self._under_way -= 1
        if outcome == "given_back":
            return failure
        elapsed = time.monotonic() - self._began
        self._reports.append(Progress(*self._machine.progress(), drive.window, elapsed))
        if isinstance(failure, TallyfoldError):
            # The machine has the error, but not what the host's own function raised.
            self._cause = self._cause or failure.__cause__
            return None
        return failure

    def report(self) -> None:
        """Tells the host of what was settled, in its order."""
        reports, self._reports = self._reports, []
        for progress in reports:
            self._show(progress)
            if self._wishes.on_progress is not None:
                self._wishes.on_progress(progress)

    def give_up(self, ended: list[Ended]) -> None:
        """Takes what has come after something else has ended the collect."""
        for drive, failure in ended:
            self._settle(drive, failure)

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


class Workers:
    """Threads that drive calls; use it in a `with` statement."""

    def __init__(self, drive: Callable[[Call[CountTable]], None], stop: Callable[[], None]) -> None:
        """Starts no thread yet. `stop` makes `drive` return soon, wherever it is."""
        self._drive = drive
        self._stop = stop
        self._is_stopped = False
        self._threads: list[threading.Thread] = []
        self._waiting: queue.SimpleQueue[Drive | None] = queue.SimpleQueue()
        self._ended: queue.SimpleQueue[Ended] = queue.SimpleQueue()
        self.busy = 0

    def start(self, drives: Iterator[Drive]) -> None:
        """Gives each call to a thread that has none, or to a new one."""
        for drive in drives:
            if self.busy == len(self._threads):
                self._hire()
            self.busy += 1
            self._waiting.put(drive)

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
        while (drive := self._waiting.get()) is not None:
            failure: BaseException | None = None
            if not self._is_stopped:
                try:
                    self._drive(drive.call)
                except BaseException as error:  # noqa: BLE001 - the caller's thread raises it
                    failure = error
            self._ended.put((drive, failure))
            del drive, failure
        # For the next one.
        self._waiting.put(None)

    def ended(self) -> list[Ended]:
        """Waits for a call to end, and gives all that have."""
        ended = [self._first_ended(), *self._others_ended()]
        self.busy -= len(ended)
        return ended

    def _first_ended(self) -> Ended:
        while True:
            # On Windows a wait without an end can't be interrupted.
            with contextlib.suppress(queue.Empty):
                return self._ended.get(timeout=1)

    def _others_ended(self) -> Iterator[Ended]:
        with contextlib.suppress(queue.Empty):
            while True:
                yield self._ended.get_nowait()

    def dismiss(self) -> list[Ended]:
        """Ends all that is under way, and gives what had not been given before."""
        self._is_stopped = True
        self._stop()
        self._let_go()
        return list(self._others_ended())

    def _let_go(self) -> None:
        self._waiting.put(None)
        while self._threads:
            _join(self._threads[-1])
            self._threads.pop()

    def __enter__(self) -> Self:
        """Gives the workers themselves."""
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

    def __init__(self, drive: Callable[[Call[CountTable]], Awaitable[None]]) -> None:
        self._drive = drive
        self._tasks: dict[asyncio.Task[None], Drive] = {}

    @property
    def busy(self) -> int:
        return len(self._tasks)

    def start(self, drives: Iterator[Drive]) -> None:
        for drive in drives:
            self._tasks[asyncio.create_task(self._work(drive))] = drive

    async def _work(self, drive: Drive) -> None:
        await self._drive(drive.call)

    async def ended(self) -> list[Ended]:
        await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)
        return self._take_ended()

    def _take_ended(self) -> list[Ended]:
        # In the order in which they were started.
        ended = [task for task in self._tasks if task.done()]
        return [(self._tasks.pop(task), _failure_of(task)) for task in ended]

    async def dismiss(self) -> list[Ended]:
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        return self._take_ended()


def _failure_of(task: asyncio.Task[None]) -> BaseException | None:
    # Nobody cancels a worker but this module, and whoever is handed all tasks of the loop.
    return asyncio.CancelledError() if task.cancelled() else task.exception()
