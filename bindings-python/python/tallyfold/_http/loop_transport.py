"""The transport of `AsyncClient`, over connections of asyncio."""

import asyncio
import contextlib
import itertools
import socket
import ssl
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator
from typing import Any, cast

import httpcore2
import httpx2

from tallyfold._errors import ConfigError
from tallyfold._http.decoding import decoder, is_decoded
from tallyfold._http.network import Network
from tallyfold._http.network_error import by_way_of
from tallyfold._http.transport import (
    POOL,
    Idle,
    Reusable,
    check_answer,
    core_request,
    is_readable,
)

__all__ = ["LoopTransport", "body_of", "hurry", "running_loop"]


def running_loop() -> asyncio.AbstractEventLoop | None:
    """Returns the running event loop of asyncio or uvloop; `None` if there is none.

    Raises:
        ConfigError: in trio.
    """
    with contextlib.suppress(RuntimeError):
        return asyncio.get_running_loop()
    trio = sys.modules.get("trio")
    with contextlib.suppress(RuntimeError):
        if trio is not None:
            trio.lowlevel.current_trio_token()
            message = (
                "out_of_order: this is trio, and an AsyncClient works in asyncio: use a Client "
                "here, with trio.to_thread.run_sync"
            )
            raise ConfigError(message, code="out_of_order")
    return None


def hurry(limit: asyncio.Timeout, seconds: float) -> None:
    """Ends the limit after this many seconds, unless it ends sooner."""
    end, soon = limit.when(), asyncio.get_running_loop().time() + seconds
    limit.reschedule(soon if end is None else min(end, soon))


async def body_of(response: httpx2.Response) -> AsyncIterator[bytes]:
    """Yields the decoded body. Lets other tasks and time limits act between pieces of a chunk."""
    if is_decoded(response):
        yield response.content
        return
    if not isinstance(response.stream, httpx2.AsyncByteStream):
        raise TypeError("a synchronous body in an async response")
    decoding = decoder(response)
    async for chunk in response.stream:
        for number, piece in enumerate(decoding.pieces(chunk)):
            if number > 0:
                await asyncio.sleep(0)
            yield piece
    decoding.end()


class LoopTransport(httpx2.AsyncBaseTransport):
    """An HTTP transport whose connections belong to the event loop that opened them.

    Several loops may use it, one after the other. When a loop ends, its connections are closed,
    because they can't be closed later.
    """

    def __init__(self, network: Network) -> None:
        """Opens no connection yet."""
        self._network = network
        self._idle = Idle()
        self._loop: asyncio.AbstractEventLoop | None = None

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Sends the request over a connection of the running loop."""
        if not isinstance(request.stream, httpx2.AsyncByteStream):
            raise TypeError("a synchronous body in an async request")
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._loop = loop
            self._pools: dict[httpcore2.Proxy | None, httpcore2.AsyncConnectionPool] = {}
            self._life = _until_the_loop_ends(self._pools)
            await anext(self._life)
        proxy = self._network.proxy_for(request.url)
        sent = core_request(request, request.stream)
        with by_way_of(proxy):
            response = await self._pool(proxy).handle_async_request(sent)
        return httpx2.Response(response.status, headers=response.headers, stream=_Body(response))

    def _pool(self, proxy: httpcore2.Proxy | None) -> httpcore2.AsyncConnectionPool:
        if proxy not in self._pools:
            self._pools[proxy] = httpcore2.AsyncConnectionPool(
                ssl_context=self._network.tls,
                network_backend=_Backend(self._idle),
                proxy=proxy,
                **POOL,
            )
        return self._pools[proxy]

    async def aclose(self) -> None:
        """Closes every connection of the running loop."""
        if self._loop is asyncio.get_running_loop():
            # A generator can't be closed while another task is closing it.
            self._loop = None
            await self._life.aclose()


async def _until_the_loop_ends(
    pools: dict[httpcore2.Proxy | None, httpcore2.AsyncConnectionPool],
) -> AsyncGenerator[None]:
    # Before `asyncio.run` closes its loop, it closes the asynchronous generators that began there.
    try:
        yield
    finally:
        for pool in pools.values():
            await pool.aclose()


class _Body(httpx2.AsyncByteStream):
    def __init__(self, response: httpcore2.Response) -> None:
        self._response = response

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._response.aiter_stream():
            yield chunk
        check_answer(self._response)

    async def aclose(self) -> None:
        await self._response.aclose()


class _Backend(httpcore2.AsyncNetworkBackend):
    def __init__(self, idle: Idle) -> None:
        self._idle = idle

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        del local_address, socket_options  # The pool has none.
        with _failing_as(httpcore2.ConnectError, httpcore2.ConnectTimeout):
            async with asyncio.timeout(timeout):
                transport, receiver = await _connected(host, port)
        return _Stream(transport, receiver, self._idle)


NEXT_ADDRESS = 0.25
"""After how many seconds without an answer the next address is tried, too (RFC 8305)."""


async def _connected(host: str, port: int) -> "tuple[asyncio.Transport, _Receiver]":
    """Connects to the address of a name that answers first.

    Not every loop does this itself: `create_connection` of uvloop has no `happy_eyeballs_delay`,
    so one address that does not answer would use up the time of all addresses.
    """
    loop = asyncio.get_running_loop()
    left = _in_turns(await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM))
    trying: set[asyncio.Task[tuple[asyncio.Transport, _Receiver]]] = set()
    error = OSError("the name has no address")
    try:
        while left or trying:
            if left:
                address = left.pop(0)
                trying.add(loop.create_task(loop.create_connection(_Receiver, address, port)))
            wait = NEXT_ADDRESS if left else None
            done, trying = await asyncio.wait(
                trying, timeout=wait, return_when=asyncio.FIRST_COMPLETED
            )
            for tried in done:
                if (failure := tried.exception()) is None:
                    done.remove(tried)
                    trying |= done
                    return tried.result()
                if not isinstance(failure, OSError):
                    raise failure
                error = failure
        raise error
    finally:
        for tried in trying:
            tried.cancel()
            tried.add_done_callback(_given_up)


def _given_up(tried: "asyncio.Task[tuple[asyncio.Transport, _Receiver]]") -> None:
    if not tried.cancelled() and tried.exception() is None:
        tried.result()[0].abort()


def _in_turns(found: "list[tuple[Any, ...]]") -> list[str]:
    """Returns the addresses, alternating between the address families."""
    families: dict[int, list[str]] = {}
    for family, *_, address in found:
        families.setdefault(family, []).append(str(address[0]))
    in_turns = itertools.chain.from_iterable(itertools.zip_longest(*families.values()))
    return [address for address in in_turns if address is not None]


class _Stream(Reusable, httpcore2.AsyncNetworkStream):
    """A connection that buffers bytes only in its `_Receiver`, so that none is overlooked."""

    def __init__(self, transport: asyncio.Transport, receiver: "_Receiver", idle: Idle) -> None:
        super().__init__(idle)
        self._transport = transport
        self._receiver = receiver

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        if last := self.last_byte():
            return last
        with self.reading(), _failing_as(httpcore2.ReadError, httpcore2.ReadTimeout):
            async with asyncio.timeout(timeout):
                return self.but_last_byte(await self._receiver.read(max_bytes))

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self.before_write()
        with _failing_as(httpcore2.WriteError, httpcore2.WriteTimeout):
            async with asyncio.timeout(timeout):
                self._receiver.check()
                self._transport.write(buffer)
                await self._receiver.drained()

    async def aclose(self) -> None:
        # Does not wait until the other side confirms that the connection is closed. The rest of a
        # request that was given up is not sent.
        has_rest = self._transport.get_write_buffer_size() > 0
        if self._transport.get_extra_info("ssl_object") is None and not has_rest:
            self._transport.close()
        else:
            self._transport.abort()
        await asyncio.sleep(0)

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        loop = asyncio.get_running_loop()
        try:
            with _failing_as(httpcore2.ConnectError, httpcore2.ConnectTimeout):
                async with asyncio.timeout(timeout):
                    transport = await loop.start_tls(
                        self._transport,
                        self._receiver,
                        ssl_context,
                        server_hostname=server_hostname,
                    )
        except BaseException:
            self._transport.abort()
            raise
        transport = cast("asyncio.Transport", transport)
        self._receiver.connection_made(transport)
        return _Stream(transport, self._receiver, self._idle)

    def get_extra_info(self, info: str) -> object:
        # The pool requests `is_readable` before it uses a connection again.
        return self.is_readable() if info == "is_readable" else self._transport.get_extra_info(info)

    def has_news(self) -> bool:
        if self._transport.is_closing() or self._receiver.has_news():
            return True
        # The loop may not have checked the socket yet.
        return is_readable(self._transport.get_extra_info("socket"))

    def has_more(self) -> bool:
        return self._receiver.has_bytes()


class _Receiver(asyncio.Protocol):
    """Keeps what has arrived on a connection, and wakes the task that waits for it."""

    ENOUGH = 256 * 1024
    """With this many buffered bytes, no more are read from the network."""

    def __init__(self) -> None:
        self._arrived = bytearray()
        self._is_over = False
        self._error: Exception | None = None
        self._is_paused = False
        self._is_full = False
        self._waiting: asyncio.Future[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self._arrived += data
        if len(self._arrived) >= self.ENOUGH and not self._is_paused:
            self._is_paused = True
            self._transport.pause_reading()
        self._wake()

    def eof_received(self) -> bool:
        self._is_over = True
        self._wake()
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_over = True
        self._error = exc
        self._wake()

    def pause_writing(self) -> None:
        self._is_full = True

    def resume_writing(self) -> None:
        self._is_full = False
        self._wake()

    def has_news(self) -> bool:
        """Whether there are bytes to read, or the connection has ended."""
        return bool(self._arrived) or self._is_over

    def has_bytes(self) -> bool:
        """Whether there are bytes to read."""
        return bool(self._arrived)

    def check(self) -> None:
        """Raises if the connection has broken."""
        if self._is_over:
            raise self._error or ConnectionResetError("the connection is closed")

    async def drained(self) -> None:
        """Waits until the transport accepts more bytes."""
        while self._is_full:
            self.check()
            await self._wait()

    async def read(self, max_bytes: int) -> bytes:
        """Waits for bytes, and returns them; returns no bytes at the end of the connection."""
        while not self.has_news():
            await self._wait()
        if not self._arrived and self._error is not None:
            raise self._error
        data = bytes(self._arrived[:max_bytes])
        del self._arrived[:max_bytes]
        if self._is_paused and len(self._arrived) < self.ENOUGH:
            self._is_paused = False
            self._transport.resume_reading()
        return data

    async def _wait(self) -> None:
        self._waiting = asyncio.get_running_loop().create_future()
        try:
            await self._waiting
        finally:
            self._waiting = None

    def _wake(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)


@contextlib.contextmanager
def _failing_as(error: type[Exception], late: type[Exception]) -> Iterator[None]:
    try:
        yield
    # `TimeoutError` is a subclass of `OSError`, so it comes first.
    except TimeoutError as cause:
        raise late(str(cause)) from cause
    # A name that DNS can't represent raises a `UnicodeError`.
    except (OSError, UnicodeError) as cause:
        raise error(str(cause)) from cause
