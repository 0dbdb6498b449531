"""Iterators over the revisions of windows as they close."""

import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Self

from tallyfold._calls.async_driver import AsyncReader
from tallyfold._calls.callbacks import async_finished
from tallyfold._calls.steps import Done, Drive, Wait
from tallyfold._errors import TallyfoldError
from tallyfold._ranges.outage_log import OutageLog
from tallyfold._ranges.values import Revision
from tallyfold._tallyfold import Follow
from tallyfold._time import Now, Window

__all__ = ["AsyncRevisions"]


class AsyncRevisions(AsyncIterator[Revision]):
    """What `AsyncClient.follow` returns: an iterator over revisions of windows.

    If a reading fails, and there is no `on_failure`, `anext` raises the error. To resume, call
    `anext` again, or begin another `async for` loop over the same iterator: the window is read
    again later, and nothing is lost. Close the iterator, from any task, or use it in
    an `async with` statement. Closing it ends a wait and the iteration at once.

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
        self._callers = 0
        self._was_interrupted = False
        # A state with all revisions that were yielded, and no other; `None` if it must be computed.
        self._yielded: str | None = None

    def __aiter__(self) -> Self:
        """Returns itself."""
        return self

    async def __anext__(self) -> Revision:
        """Waits for the next revision.

        Raises:
            TallyfoldError: the errors of `AsyncClient.event_delivery`, unless there is an
                `on_failure`; the window is read again later.
        """
        self._callers += 1
        try:
            # An interrupt such as Ctrl-C may come at any call, but not between two lines without
            # a call. Because of it, the caller may not get a revision that the machine's
            # state already contains, or this loop may not get the machine's next step.
            if self._was_interrupted and self._callers == 1:
                revision = self._machine.recover()
                self._was_interrupted = False
                if revision is not None:
                    self._yielded = None
                    return revision
            revision = await self._next()
            self._was_interrupted, self._yielded = False, None
            return revision
        finally:
            self._callers -= 1

    async def _next(self) -> Revision:
        while not self._reader.is_closed():
            self._reader.check()
            # Stays true until a revision is returned.
            self._was_interrupted = True
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
        # If an interrupt keeps the revision from the caller, this is what `state` returns.
        if self._yielded is None:
            self._yielded = self._machine.state()
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
        # Without a revision, the machine waits for the service, or the call has not ended.
        if thrown is not None and (self._once or self._machine.waiting is None):
            raise thrown
        return revision

    def state(self) -> str:
        """Returns the state from which a later follow resumes after the last yielded revision.

        The state is JSON without secrets; pass it as `state`. Store it in one step together with
        your result of the last revision. Then no revision is lost and none is processed twice,
        whenever the process ends.

        >>> query = "event_delivery", "2026-01-01T00:00:00Z", ["integration"]
        >>> async with async_client.follow(*query, window="15m") as revisions:
        ...     first = await anext(revisions)
        ...     state = revisions.state()
        >>> async with async_client.follow(*query, window="15m", state=state) as revisions:
        ...     second = await anext(revisions)
        >>> second.window
        Window('2026-01-01T00:15:00Z', '2026-01-01T00:30:00Z')
        """
        if self._was_interrupted and self._yielded is not None:
            return self._yielded
        state = self._machine.state()
        if self._callers == 0:
            # A caller that stores the state of each revision computes each state only once.
            self._yielded = state
        return state

    async def close(self) -> None:
        """Ends the iteration, and any wait for a revision.

        >>> revisions = async_client.follow(
        ...     "event_delivery", "2026-01-01T00:00:00Z", ["integration"], window="5m"
        ... )
        >>> await revisions.close()
        >>> [revision async for revision in revisions]
        []
        """
        await self._reader.close()

    async def __aenter__(self) -> Self:
        """Returns itself."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Closes it."""
        await self.close()
