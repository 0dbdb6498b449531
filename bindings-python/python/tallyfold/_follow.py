"""Iterators over the revisions of windows as they close."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from types import TracebackType
from typing import Self

from tallyfold._clock import Now
from tallyfold._errors import TallyfoldError
from tallyfold._ranges import Revision
from tallyfold._stop import Stop
from tallyfold._tallyfold import Call, CountTable, Done, Drive, Follow, Wait

__all__ = ["AsyncRevisions", "Revisions"]


class Revisions(Iterator[Revision]):
    """What `Client.follow` gives: revisions of windows, one after the other.

    What goes wrong with a reading is raised by `next`, which may be called again: the window is
    read again later, and nothing is lost. Close it, from any thread, or use it in a `with`
    statement: a wait ends at once, and so do the revisions.

    >>> with client.follow(
    ...     "event_delivery", "2026-01-01T00:00:00Z", ["integration"], window="5m",
    ... ) as revisions:
    ...     print(next(revisions).window)
    Window('2026-01-01T00:00:00Z', '2026-01-01T00:05:00Z')
    """

    def __init__(
        self,
        machine: Follow,
        drive: Callable[[Call[CountTable]], None],
        check: Callable[[], None],
        stop: Stop,
    ) -> None:
        """Reads nothing yet."""
        self._machine = machine
        self._drive = drive
        self._check = check
        self._stop = stop
        self._closed = False

    def __iter__(self) -> Self:
        """Gives itself."""
        return self

    def __next__(self) -> Revision:
        """Waits for the next revision.

        Raises:
            TallyfoldError: what `Client.event_delivery` raises; the window is read again later.
        """
        while not self._closed:
            self._check()
            match self._machine.next(Now.read()):
                case Drive() as drive:
                    revision = self._read(drive)
                    if revision is not None:
                        return revision
                case Wait(ms=ms):
                    self._stop.wait(ms / 1000)
                case Done():
                    break
        raise StopIteration

    def _read(self, drive: Drive) -> Revision | None:
        try:
            self._drive(drive.call)
        except BaseException:
            # The call's error comes again, without what has caused it.
            with contextlib.suppress(TallyfoldError):
                self._machine.settle(drive.task, drive.call, Now.read())
            raise
        return self._machine.settle(drive.task, drive.call, Now.read())

    def close(self) -> None:
        """Ends the revisions, and what is being waited for.

        >>> revisions = client.follow(
        ...     "event_delivery", "2026-01-01T00:00:00Z", ["integration"], window="5m"
        ... )
        >>> revisions.close()
        >>> list(revisions)
        []
        """
        self._closed = True
        self._stop.set()

    def __enter__(self) -> Self:
        """Gives itself."""
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Closes it."""
        self.close()


class AsyncRevisions(AsyncIterator[Revision]):
    """What `AsyncClient.follow` gives: `Revisions` for asyncio.

    >>> async def first():
    ...     async with tallyfold.AsyncClient(
    ...         cluster_endpoint="https://sandbox.example",
    ...         transport=sandbox.async_transport(),
    ...         **sandbox.credentials,
    ...     ) as client:
    ...         async with client.follow(
    ...             "event_delivery", "2026-01-01T00:00:00Z", ["integration"], window="5m",
    ...         ) as revisions:
    ...             return (await anext(revisions)).window
    >>> asyncio.run(first())
    Window('2026-01-01T00:00:00Z', '2026-01-01T00:05:00Z')
    """

    def __init__(
        self,
        machine: Follow,
        drive: Callable[[Call[CountTable]], Awaitable[None]],
        check: Callable[[], None],
    ) -> None:
        """Reads nothing yet."""
        self._machine = machine
        self._drive = drive
        self._check = check
        self._closed = asyncio.Event()
        self._reading: asyncio.Task[None] | None = None

    def __aiter__(self) -> Self:
        """Gives itself."""
        return self

    async def __anext__(self) -> Revision:
        """Waits for the next revision, as `Revisions` does."""
        while not self._closed.is_set():
            self._check()
            match self._machine.next(Now.read()):
                case Drive() as drive:
                    revision = await self._read(drive)
                    if revision is not None:
                        return revision
                case Wait(ms=ms):
                    await self._pause(ms / 1000)
                case Done():
                    break
        raise StopAsyncIteration

    async def _read(self, drive: Drive) -> Revision | None:
        self._reading = asyncio.create_task(self._work(drive.call))
        try:
            await self._reading
        except BaseException as error:
            # The call's error comes again, without what has caused it.
            with contextlib.suppress(TallyfoldError):
                self._machine.settle(drive.task, drive.call, Now.read())
            if isinstance(error, asyncio.CancelledError) and self._is_closed_alone():
                return None
            raise
        return self._machine.settle(drive.task, drive.call, Now.read())

    async def _work(self, call: Call[CountTable]) -> None:
        await self._drive(call)

    def _is_closed_alone(self) -> bool:
        """Whether it was closed, and the task that waits for a revision was not cancelled."""
        task = asyncio.current_task()
        return self._closed.is_set() and (task is None or not task.cancelling())

    async def _pause(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._closed.wait()

    async def close(self) -> None:
        """Ends the revisions, and what is being waited for."""
        self._closed.set()
        if self._reading is not None and not self._reading.done():
            self._reading.cancel()
            await asyncio.wait([self._reading])

    async def __aenter__(self) -> Self:
        """Gives itself."""
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Closes it."""
        await self.close()
