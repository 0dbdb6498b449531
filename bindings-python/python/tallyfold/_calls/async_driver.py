"""The loop that drives calls of the core in asyncio."""

import asyncio
import contextlib
import inspect
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from types import TracebackType
from typing import Any, Self, TypeVar

import httpx2

from tallyfold._calls.callbacks import async_finished, async_function
from tallyfold._calls.facade import (
    Broken,
    Facade,
    checked_transport,
    cleared,
    hand_in,
    token_failed,
    waited_too_long,
    without_own_frame,
)
from tallyfold._calls.steps import Blocked, Done, ProvideToken, Send, Wait
from tallyfold._errors import TallyfoldError
from tallyfold._http.loop_transport import LoopTransport, body_of, hurry, running_loop
from tallyfold._http.network import Network
from tallyfold._http.transport import EXCERPT_SECONDS, OK, headers_of, http_request
from tallyfold._names import ApiName
from tallyfold._tallyfold import Call, CountTable, Request
from tallyfold._time import Now

__all__ = ["AsyncAccessToken", "AsyncDriver", "AsyncReader"]

T = TypeVar("T")

AsyncAccessToken = Callable[[ApiName], tuple[str, int | None] | Awaitable[tuple[str, int | None]]]
"""An `AccessToken` function, or a coroutine function that does the same."""


class AsyncDriver(Facade[AsyncAccessToken, httpx2.AsyncBaseTransport]):
    """A client's machine, and the tasks that drive its calls."""

    __slots__ = ("_calls", "_limits", "_lock", "_token_moved", "_use")

    _function: Callable[..., Any] = staticmethod(async_function)

    def _direct(self, network: Network) -> httpx2.AsyncBaseTransport:
        return LoopTransport(network)

    def _open(self, transport: httpx2.AsyncBaseTransport) -> None:
        running_loop()
        such_as = "httpx2.AsyncHTTPTransport()"
        self._transport = checked_transport(transport, httpx2.AsyncBaseTransport, such_as)
        self._token_moved: asyncio.Event | None = None
        # Reentrant: while a thread holds the lock, the garbage collector may end a forgotten call
        # in the same thread.
        self._lock = threading.RLock()
        self._use: _Use | None = None
        self._calls: set[Call[Any]] = set()
        self._limits: set[_Limit] = set()

    async def _run(self, call: Call[T]) -> T:
        self._check_usable()
        await self._drive_alone(call)
        return call.output()

    async def _drive_alone(self, call: Call[T]) -> None:
        with self._in_this_loop():
            await self._drive(call)

    def _reader(self) -> "AsyncReader":
        return AsyncReader(self._drive_alone, self._check_usable, self._limit)

    async def _shut(self) -> None:
        self._closed = True
        # A forked process has copies of the connections, which only the parent may close.
        if not self._in_other_process():
            for limit in list(self._limits):
                limit.end()
            await self._transport.aclose()

    def _limit(self, seconds: float | None) -> "_Limit":
        """Makes a limit that raises `TimeoutError` after this time, or if the client is closed."""
        return _Limit(seconds, self._limits)

    @contextlib.contextmanager
    def _in_this_loop(self) -> Iterator[None]:
        """Keeps other event loops out, because a task can only be woken in its own loop."""
        loop = running_loop() or asyncio.get_running_loop()
        with self._lock:
            if self._use is None or self._use.is_over():
                # Calls in a loop that was closed never end, and nothing in it can be woken. One of
                # them may be fetching the token that later calls wait for.
                self._token_moved = None
                while self._calls:
                    self._calls.pop().close()
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

    async def _drive(self, call: Call[T]) -> None:
        """Drives the call to its end. Closes the call, whatever has ended it."""
        self._calls.add(call)
        try:
            while not await self._advance(call):
                # Not in `_advance`, so that exceptions of the function keep their traceback.
                await async_finished("on_attempt", self._report(call))
                self._check_open()
        except TallyfoldError:
            await async_finished("on_attempt", self._report(call))
            raise
        finally:
            # Calls that wait for this one must be woken, even if the task is cancelled. So this
            # doesn't await.
            call.close()
            self._calls.discard(call)
            self._wake()

    async def _advance(self, call: Call[T]) -> bool:
        """Performs the call's next step. Returns whether it was the last one."""
        try:
            match call.step(Now.read()):
                case Send(request=request):
                    await self._exchange(call, request)
                    self._wake()
                case ProvideToken(api=api):
                    await self._provide_token(call, api)
                    self._wake()
                case Blocked(epoch=epoch):
                    await self._wait(call, epoch)
                case Wait(ms=ms):
                    await self._pause(ms / 1000)
                case Done():
                    return True
        except BaseException as error:
            cleared(error)
            raise
        return False

    async def _pause(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with self._limit(seconds):
                await asyncio.get_running_loop().create_future()

    async def _exchange(self, call: Call[T], request: Request) -> None:
        try:
            timeout, _ = self._limits_of(call)
            async with self._limit(timeout) as limit:
                complete = await self._receive(call, request, timeout, limit)
        except BaseException as error:  # noqa: BLE001 - a transport may raise anything
            failure = Broken(error, is_over=self._closed)
        else:
            if complete:
                call.end()
            return
        if not self._closed:
            failure.report(call)

    async def _receive(
        self, call: Call[T], request: Request, seconds: float | None, limit: "_Limit"
    ) -> bool:
        """Passes a response to the call. Returns whether the call wanted the body and got it."""
        response = await self._transport.handle_async_request(http_request(request, seconds))
        try:
            wanted = call.head(response.status_code, headers_of(response))
            if wanted:
                if response.status_code != OK:
                    limit.hurry(EXCERPT_SECONDS)
                async for chunk in body_of(response):
                    call.chunk(chunk)
        finally:
            # The response has been read or isn't wanted, so failing to close it doesn't matter.
            with contextlib.suppress(Exception):
                await response.aclose()
        return wanted

    async def _provide_token(self, call: Call[T], api: ApiName) -> None:
        timeout, is_last = self._limits_of(call)
        try:
            answer = await self._answer(api, timeout)
        except Exception as error:  # noqa: BLE001 - the host's function may raise anything
            cause = without_own_frame(error)
            late = is_last and isinstance(error, TimeoutError)
        else:
            hand_in(call, answer)
            return
        if self._closed:
            return
        if late and call.time_left(Now.read()) == 0:
            call.failed("TimeoutError", timed_out=True)
        token_failed(call, cause)

    async def _answer(self, api: ApiName, seconds: float | None) -> tuple[str, int | None]:
        if self._access_token is None:
            raise RuntimeError("the machine requested a token, but there is no access_token")
        with self._provision():
            async with self._limit(seconds):
                answer = self._access_token(api)
                return await answer if inspect.isawaitable(answer) else answer

    async def _wait(self, call: Call[T], epoch: int) -> None:
        timeout, is_last = self._limits_of(call)
        try:
            async with self._limit(timeout):
                while self._machine.token_epoch() == epoch:
                    # Each wake-up removes the event, so the next task that waits makes a new one.
                    self._token_moved = self._token_moved or asyncio.Event()
                    await self._token_moved.wait()
        except TimeoutError:
            # After the deadline, the call's next step raises the error.
            if not self._closed and not is_last:
                raise waited_too_long() from None

    def _wake(self) -> None:
        moved, self._token_moved = self._token_moved, None
        if moved is not None:
            moved.set()


class AsyncReader:
    """Drives the calls of a follow until it is closed."""

    def __init__(
        self,
        drive: Callable[[Call[CountTable]], Coroutine[None, None, None]],
        check: Callable[[], None],
        limit: Callable[[float], contextlib.AbstractAsyncContextManager[object]],
    ) -> None:
        """Drives nothing yet."""
        self._drive = drive
        self._limit = limit
        self.check = check
        self._closed = asyncio.Event()
        self._readings: set[asyncio.Task[None]] = set()

    def is_closed(self) -> bool:
        """Whether the reader was closed."""
        return self._closed.is_set()

    async def drive(self, call: Call[CountTable]) -> None:
        """Drives the call to its end, or until the reader is closed."""
        reading = asyncio.create_task(self._drive(call))
        self._readings.add(reading)
        reading.add_done_callback(self._readings.discard)
        try:
            await reading
        except asyncio.CancelledError:
            # `close` cancels the reading, but not the task that waits for it.
            task = asyncio.current_task()
            if not self._closed.is_set() or (task is not None and task.cancelling()):
                raise

    async def pause(self, seconds: float) -> None:
        """Waits for some seconds, or until the reader or the client is closed."""
        with contextlib.suppress(TimeoutError):
            async with self._limit(seconds):
                await self._closed.wait()

    async def close(self) -> None:
        """Closes the reader, which ends its waits and transfers."""
        self._closed.set()
        for reading in self._readings:
            reading.cancel()
        if self._readings:
            await asyncio.wait(self._readings)


class _Limit:
    """A time limit that can be ended early, from any event loop."""

    def __init__(self, seconds: float | None, limits: "set[_Limit]") -> None:
        self._timeout = asyncio.timeout(seconds)
        self._limits = limits
        self._loop = asyncio.get_running_loop()

    async def __aenter__(self) -> Self:
        await self._timeout.__aenter__()
        self._limits.add(self)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._limits.discard(self)
        await self._timeout.__aexit__(kind, error, traceback)

    def hurry(self, seconds: float) -> None:
        """Ends the limit after this many seconds, unless it ends sooner."""
        hurry(self._timeout, seconds)

    def end(self) -> None:
        # The loop may have been closed while a task waited in it.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._expire)

    def _expire(self) -> None:
        # The wait may have ended in between.
        with contextlib.suppress(RuntimeError):
            self._timeout.reschedule(0)


class _Use:
    """The calls of a client that are under way in one event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.calls = 0

    def is_over(self) -> bool:
        # A loop that was closed with calls in it will never end them.
        return self.calls == 0 or self.loop.is_closed()
