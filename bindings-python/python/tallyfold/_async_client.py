"""The asynchronous client, `Client`'s twin for asyncio."""

import asyncio
import contextlib
import inspect
import threading
from collections.abc import Awaitable, Callable, Iterator, Sequence
from datetime import datetime
from types import TracebackType
from typing import Any, Self, TypeVar

import httpx2

from tallyfold._clock import Now
from tallyfold._errors import TallyfoldError
from tallyfold._facade import (
    ApiName,
    Facade,
    broken,
    hand_in,
    parsed,
    token_failed,
    waited_too_long,
    without_own_frame,
)
from tallyfold._tallyfold import (
    Blocked,
    Call,
    CountTable,
    Done,
    ProvideToken,
    Request,
    Send,
    Wait,
)
from tallyfold._transport import LoopTransport, http_request
from tallyfold._values import DimensionName

__all__ = ["AsyncAccessToken", "AsyncClient"]

T = TypeVar("T")

AsyncAccessToken = Callable[[ApiName], tuple[str, int | None] | Awaitable[tuple[str, int | None]]]
"""`AccessToken`, or its coroutine function."""


class AsyncClient(Facade[AsyncAccessToken, httpx2.AsyncBaseTransport]):
    """Both APIs of the service, for asyncio.

    Arguments and errors are those of `Client`, but `access_token` may be a coroutine function and
    `transport` is an `httpx2.AsyncBaseTransport`; `on_attempt` is a plain function. A coroutine
    function has `timeout` seconds. All tasks of one event loop may share a client; they share its
    tokens. Another loop may use it after that one, but not at the same time: `RuntimeError`. A
    cancelled call leaves nothing behind: where it was fetching a token that others wait for, one of
    them fetches it.

    >>> async def totals():
    ...     async with tallyfold.AsyncClient(
    ...         cluster_endpoint="https://sandbox.example",
    ...         transport=sandbox.async_transport(),
    ...         **sandbox.credentials,
    ...     ) as client:
    ...         table = await client.event_delivery(
    ...             "2026-01-01T00:00:00Z", "2026-01-01T00:15:00Z", ["integration"]
    ...         )
    ...     return table.totals
    >>> asyncio.run(totals())
    Counts(success=7, errors=1, filtered=2)
    """

    __slots__ = ("_lock", "_token_moved", "_use")

    def _open(self, transport: httpx2.AsyncBaseTransport | None) -> None:
        self._transport = LoopTransport() if transport is None else transport
        self._token_moved = asyncio.Event()
        # The collector may end a forgotten call, and so come here again, while this is held.
        self._lock = threading.RLock()
        self._use: _Use | None = None

    async def event_delivery(
        self,
        start: datetime | str,
        end: datetime | str,
        dimensions: Sequence[DimensionName],
        group_by: Sequence[DimensionName] | None = None,
    ) -> CountTable:
        """Asks for event delivery metrics, as `Client.event_delivery` (service reference 4.4)."""
        return await self._run(self._machine.event_delivery(start, end, dimensions, group_by))

    async def event_ingestion(
        self,
        start: datetime | str,
        end: datetime | str,
        dimensions: Sequence[DimensionName],
        group_by: Sequence[DimensionName] | None = None,
    ) -> CountTable:
        """Asks for event ingestion metrics, as `Client.event_ingestion` (service reference 4.5)."""
        return await self._run(self._machine.event_ingestion(start, end, dimensions, group_by))

    async def audit_logs(self, page: int | None = None, per_page: int | None = None) -> Any:  # noqa: ANN401
        """Lists a page of audit logs, as `Client.audit_logs` (service reference 4.2)."""
        return parsed(await self._run(self._machine.audit_logs(page, per_page)))

    async def close(self) -> None:
        """Closes the transport; later calls raise `RuntimeError`."""
        self._closed = True
        # A fork's copies of the connections are the parent's to close.
        if not self._in_other_process():
            await self._transport.aclose()

    async def __aenter__(self) -> Self:
        """Gives the client itself."""
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Closes the client."""
        await self.close()

    async def _run(self, call: Call[T]) -> T:
        self._check_usable()
        with self._in_this_loop():
            return await self._drive(call)

    @contextlib.contextmanager
    def _in_this_loop(self) -> Iterator[None]:
        """Keeps other event loops out: what wakes a waiter belongs to the waiter's own loop."""
        loop = asyncio.get_running_loop()
        with self._lock:
            if self._use is None or self._use.is_over():
                self._use = _Use(loop)
            use = self._use
            if use.loop is not loop:
                raise RuntimeError("this AsyncClient is in use in another event loop")
            use.calls += 1
        try:
            yield
        finally:
            with self._lock:
                use.calls -= 1

    async def _drive(self, call: Call[T]) -> T:
        try:
            while not await self._advance(call):
                # The caller's own function: what it raises is raised as it is.
                self._report(call)
            return call.output()
        except TallyfoldError:
            self._report(call)
            raise
        finally:
            # Also when cancelled, and without another await: the waiters must not be left.
            call.close()
            self._wake()

    async def _advance(self, call: Call[T]) -> bool:
        """Takes the call's next step; whether it was the last."""
        try:
            match call.step(Now.read()):
                case Send(request=request):
                    await self._exchange(call, request)
                    self._wake()
                case ProvideToken(api=api):
                    await self._provide_token(call, api)
                    self._wake()
                case Blocked(epoch=epoch):
                    await self._wait(epoch)
                case Wait(ms=ms):
                    await asyncio.sleep(ms / 1000)
                    self._check_open()
                case Done():
                    return True
        except BaseException as error:
            # The frames below hold requests and response bytes in their locals, and a traceback
            # that shows locals would show secrets.
            error.__traceback__ = None
            raise
        return False

    async def _exchange(self, call: Call[T], request: Request) -> None:
        try:
            async with asyncio.timeout(self._timeout):
                complete = await self._receive(call, request)
        except BaseException as error:  # noqa: BLE001 - a transport may raise anything
            name, late = broken(error)
        else:
            if complete:
                call.end()
            return
        call.failed(name, timed_out=late)

    async def _receive(self, call: Call[T], request: Request) -> bool:
        """Feeds the call one response; whether it wanted the body, which then was complete."""
        response = await self._transport.handle_async_request(http_request(request, self._timeout))
        try:
            wanted = call.head(response.status_code, response.headers.multi_items())
            if wanted:
                async for chunk in response.aiter_bytes():
                    call.chunk(chunk)
        finally:
            # The response has been read or is not wanted: no failure to close it matters.
            with contextlib.suppress(Exception):
                await response.aclose()
        return wanted

    async def _provide_token(self, call: Call[T], api: ApiName) -> None:
        try:
            answer = await self._answer(api)
        except Exception as error:  # noqa: BLE001 - the host's function may raise anything
            cause = without_own_frame(error)
        else:
            hand_in(call, answer)
            return
        token_failed(call, cause)

    async def _answer(self, api: ApiName) -> tuple[str, int | None]:
        if self._access_token is None:
            raise RuntimeError("a token is asked for where no access_token was given")
        with self._provision():
            async with asyncio.timeout(self._timeout):
                answer = self._access_token(api)
                return await answer if inspect.isawaitable(answer) else answer

    async def _wait(self, epoch: int) -> None:
        try:
            async with asyncio.timeout(self._timeout):
                while self._machine.token_epoch() == epoch:
                    await self._token_moved.wait()
        except TimeoutError:
            raise waited_too_long() from None

    def _wake(self) -> None:
        # Each event is for one move: whoever waits has taken it before, and sees it set.
        moved, self._token_moved = self._token_moved, asyncio.Event()
        moved.set()


class _Use:
    """The calls of a client that are under way in one event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.calls = 0

    def is_over(self) -> bool:
        # A loop that was closed with calls in it will never end them.
        return self.calls == 0 or self.loop.is_closed()
