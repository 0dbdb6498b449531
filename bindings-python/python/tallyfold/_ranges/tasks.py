"""The tasks that drive the calls of a collect."""

import asyncio
import contextlib
import itertools
from collections.abc import Awaitable, Callable
from functools import partial
from typing import ParamSpec, Self, TypeVar

from tallyfold._calls.steps import Drive
from tallyfold._files.state import outlast
from tallyfold._ranges.collect_run import CollectRun
from tallyfold._tallyfold import Call, CountTable

__all__ = ["AsyncBell", "AsyncDriving", "AsyncTokens", "Tasks", "async_aside", "async_to_its_end"]

P = ParamSpec("P")
T = TypeVar("T")

AsyncDriving = Callable[[Call[CountTable]], Awaitable[None]]
"""Drives a call to its end."""

AsyncTokens = Callable[[], Awaitable[tuple[str, int] | None]]
"""Gets an access token and its remaining lifetime in seconds; `None` if requests need no token."""

TURNS_IN_A_ROW = 16
"""How many calls a task drives before it yields to the event loop."""


class Tasks:
    """Tasks that drive calls."""

    def __init__(self, run: CollectRun, drive: AsyncDriving) -> None:
        self._run = run
        self._drive = drive
        self._tasks: set[asyncio.Task[None]] = set()
        self._news = asyncio.Event()
        run.wake = self._news.set

    async def begin(self) -> None:
        """Starts the calls that are due."""
        self.start(self._run.due())

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
            due = self._run.turn(drive, failure)
            if not due:
                return
            drive, *others = due
            self.start(others)
            # A transport that answers at once never waits, so other tasks would never run.
            if self._run.is_watched or turns % TURNS_IN_A_ROW == 0:
                await asyncio.sleep(0)

    def _ended(self, drive: Drive, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        # A task that is cancelled before it has begun never settles its call.
        if task.cancelled():
            self._run.turn(drive, asyncio.CancelledError())

    async def wait(self) -> None:
        """Waits until the caller has something to do."""
        await self._news.wait()
        self._news.clear()

    async def dismiss(self) -> None:
        """Ends all that is under way."""
        self._run.end()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def __aenter__(self) -> Self:
        """Returns the tasks themselves."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Waits for the tasks to end."""
        if self._tasks:
            await asyncio.wait(self._tasks)


class AsyncBell:
    """Wakes the one task that waits for it."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._rung = asyncio.Event()

    def ring(self) -> None:
        """Ends the wait, or the next one. Any thread may call it."""
        # The loop may have been closed meanwhile.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._rung.set)

    async def wait(self, seconds: float | None) -> bool:
        """Waits until it is rung, for at most `seconds`. Returns whether it was rung."""
        try:
            async with asyncio.timeout(seconds):
                await self._rung.wait()
        except TimeoutError:
            return False
        self._rung.clear()
        return True


async def async_to_its_end(work: Callable[[], Awaitable[None]], error: BaseException) -> None:
    """Does what must be done after an error, even if the task is cancelled again and again.

    The cancel scopes of anyio do this. If the task is cancelled after another error, raises the
    cancellation.
    """
    working = asyncio.ensure_future(work())
    cancelled = await outlast(working)
    working.result()
    if cancelled is not None and not isinstance(error, asyncio.CancelledError):
        raise cancelled from error


async def async_aside(function: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
    """Calls a function that may take a while in a thread."""
    return await asyncio.to_thread(function, *arguments, **named)
