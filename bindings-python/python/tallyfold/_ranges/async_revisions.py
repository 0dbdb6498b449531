"""Iterators over the revisions of windows as they close."""

import contextlib
from collections.abc import AsyncIterator, Callable
from types import TracebackType
from typing import Self

from tallyfold._client.async_driver import AsyncReader
from tallyfold._client.callbacks import async_finished
from tallyfold._client.steps import Done, Drive, Wait
from tallyfold._errors import TallyfoldError
from tallyfold._ranges.outage_log import OutageLog
from tallyfold._ranges.values import Revision
from tallyfold._tallyfold import Follow
from tallyfold._time import Now, Window

__all__ = ["AsyncRevisions"]


class AsyncRevisions(AsyncIterator[Revision]):
    """What `AsyncClient.follow` gives: revisions of windows, one after the other.

    If a reading fails, and there is no `on_failure`, `anext` raises the error. Call it again, or
    begin another `async for` loop over the same iterator, to go on: the window is read again later,
    and nothing is lost. Close the iterator, from any task, or use it in an `async with`
    statement: closing ends a wait and the iteration at once.

    >>> async with async_client.follow(
    ...     "event_delivery", "2026-01-01T00:00:00Z", ["integration"], window="5m",
    ... ) as revisions:
    ...     first = await anext(revisions)
    >>> first.window
    Window('2026-01-01T00:00:00Z', '2026-01-01T00:05:00Z')
    """

    def __init__(
        self,
        machine: Follow,
        reader: AsyncReader,
        on_failure: Callable[[Window, TallyfoldError], object] | None = None,
        *,
        once: bool = False,
    ) -> None:
        """Reads nothing yet."""
        self._machine = machine
        self._reader = reader
        self._on_failure = on_failure
        self._once = once
        self._log = OutageLog()

    def __aiter__(self) -> Self:
        """Gives itself."""
        return self

    async def __anext__(self) -> Revision:
        """Waits for the next revision.

        Raises:
            TallyfoldError: what `AsyncClient.event_delivery` raises, unless there is an
                `on_failure`; the window is read again later.
        """
        while not self._reader.is_closed():
            self._reader.check()
            match self._machine.next(Now.read()):
                case Drive() as drive:
                    revision = await self._read(drive)
                    if revision is not None:
                        return revision
                case Wait() if self._once:
                    await self.close()
                case Wait(ms=ms):
                    await self._reader.pause(ms / 1000)
                case Done():
                    break
        raise StopAsyncIteration

    async def _read(self, drive: Drive) -> Revision | None:
        thrown: TallyfoldError | None = None
        try:
            await self._reader.drive(drive.call)
        except BaseException as error:
            # If a revision did not reach the caller, a running sum would miss it. So what was read
            # is dropped, and the window is read again. A failed call keeps its error.
            with contextlib.suppress(TallyfoldError):
                drive.call.output()
            if not isinstance(error, TallyfoldError):
                with contextlib.suppress(TallyfoldError):
                    self._machine.settle(drive.task, drive.call, Now.read())
                raise
            thrown = error
        try:
            revision = self._machine.settle(drive.task, drive.call, Now.read())
        except TallyfoldError as error:
            # The machine raises the call's error, but without its cause.
            error.__cause__ = None if thrown is None else thrown.__cause__
            if self._on_failure is None:
                raise
            await async_finished("on_failure", self._on_failure(drive.window, error))
            return None
        if not self._once:
            self._log.note(self._machine.waiting, thrown)
        # Without a revision the machine waits for the service, or the call has not ended.
        if thrown is not None and (self._once or self._machine.waiting is None):
            raise thrown
        return revision

    def state(self) -> str:
        """Gives what a later follow needs to go on from the revisions that were given so far.

        It is JSON without any secret: pass it as `state`. Store it together with what you made of
        the last revision, in one step. Then no revision is lost and none is taken twice, whenever
        the process ends.

        >>> query = "event_delivery", "2026-01-01T00:00:00Z", ["integration"]
        >>> async with async_client.follow(*query, window="15m") as revisions:
        ...     first = await anext(revisions)
        ...     state = revisions.state()
        >>> async with async_client.follow(*query, window="15m", state=state) as revisions:
        ...     second = await anext(revisions)
        >>> second.window
        Window('2026-01-01T00:15:00Z', '2026-01-01T00:30:00Z')
        """
        return self._machine.state()

    async def close(self) -> None:
        """Ends the revisions, and what is being waited for.

        >>> revisions = async_client.follow(
        ...     "event_delivery", "2026-01-01T00:00:00Z", ["integration"], window="5m"
        ... )
        >>> await revisions.close()
        >>> [revision async for revision in revisions]
        []
        """
        await self._reader.close()

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
