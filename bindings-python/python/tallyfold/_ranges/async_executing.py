"""Submits the parts of a collect to an executor, and takes what its workers have read."""

import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Self

from tallyfold._calls.callbacks import async_finished
from tallyfold._errors import ConfigError, TallyfoldError, invalid
from tallyfold._ranges.parts import Assignment, Outcome, Part, PartsRun, decoded
from tallyfold._ranges.tasks import AsyncBell, AsyncDriving, AsyncTokens, async_aside
from tallyfold._values import Attempt

if TYPE_CHECKING:
    from concurrent.futures import Future

__all__ = ["AsyncExecuting"]


class AsyncExecuting:
    """The workers of an executor, which read parts of a collect."""

    def __init__(
        self,
        run: PartsRun,
        submit: Callable[[Assignment], "Future[Outcome]"],
        token: AsyncTokens,
        drive: AsyncDriving,
        on_attempt: Callable[[Attempt], object] | None,
    ) -> None:
        """Submits nothing yet."""
        self._run = run
        self._submit = submit
        self._token = token
        self._drive = drive
        self._on_attempt = on_attempt
        self._futures: dict[Part, Future[Outcome]] = {}
        self._bell = AsyncBell()

    async def begin(self) -> None:
        """Submits the parts that are due, each with a token that is valid now."""
        if self._run.wants_probe:
            self._run.wants_probe = False
            while await self._read_here():
                pass
        for part in self._run.parts_due():
            assignment = self._run.assignment(part, await self._token())
            try:
                future = self._submit(assignment)
            except BaseException as error:
                self._run.lose(part, error)
                raise
            self._futures[part] = future
            future.add_done_callback(lambda _: self._bell.ring())

    async def wait(self) -> None:
        """Waits for a part, and takes all parts that are done."""
        if self._futures and not await self._bell.wait(self._run.seconds_left()):
            self._run.exceed()
            return
        for part in self._done():
            await self._take(part, self._futures.pop(part))
        if self._run.wants_token:
            self._run.wants_token = False
            await self._read_here()
        if self._run.is_over:
            self._cancel()
        attempts, self._run.attempts = self._run.attempts, []
        if self._on_attempt is not None:
            for attempt in attempts:
                await async_finished("on_attempt", self._on_attempt(attempt))

    def _done(self) -> list[Part]:
        return [part for part, future in self._futures.items() if future.done()]

    def _cancel(self) -> None:
        for future in list(self._futures.values()):
            future.cancel()

    async def _take(self, part: Part, future: "Future[Outcome]") -> None:
        if future.cancelled() and self._run.is_over:
            self._run.give_back(part)
            return
        try:
            outcome = future.result(timeout=0)
        except BaseException as error:  # noqa: BLE001 - the caller raises it
            self._run.lose(part, error)
            return
        if not isinstance(outcome, Outcome) or outcome.task != part.task:
            name = type(outcome).__name__
            message = f"want the result of what was submitted, not another {name}"
            self._run.lose(part, invalid(ConfigError, "executor", message))
            return
        self._run.take(part, outcome, await async_aside(decoded, outcome.table))

    async def _read_here(self) -> bool:
        """Reads a window in this process, which replaces a token that the service refuses.

        Returns whether it was one of the probe's calls.
        """
        drive = self._run.next_here()
        if drive is None:
            return False
        failure: BaseException | None = None
        try:
            await self._drive(drive.call)
        except BaseException as error:  # noqa: BLE001 - the caller raises it
            failure = error
        return self._run.take_here(drive, failure)

    async def dismiss(self) -> None:
        """Cancels the parts that have not begun, and takes those that are done.

        A worker that is reading a part continues, but its result is dropped.
        """
        self._run.end()
        self._cancel()
        for part in self._done():
            # Another exception already ends the collect, so a wrong result is only dropped.
            with contextlib.suppress(TallyfoldError):
                await self._take(part, self._futures.pop(part))
        self._futures.clear()

    async def __aenter__(self) -> Self:
        """Returns itself."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Has nothing to close: the executor is the caller's."""
