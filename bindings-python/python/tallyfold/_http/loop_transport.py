"""The transport of `AsyncClient`, over connections of asyncio."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator
from typing import cast

import httpcore2
import httpx2

from tallyfold._http.decoding import decoder, is_decoded
from tallyfold._http.network import Network
from tallyfold._http.transport import POOL, Reusable, core_request, is_readable

__all__ = ["LoopTransport", "body_of"]


async def body_of(response: httpx2.Response) -> AsyncIterator[bytes]:
    """The decoded body. Between two pieces of a chunk, other tasks run, and time may run out."""
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

    Loops may take turns. The connections of a loop end with it: later, nobody could close them.
    """

    def __init__(self, network: Network) -> None:
        """Opens no connection yet."""
        self._network = network
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
        pool = self._pool(self._network.proxy_for(request.url))
        response = await pool.handle_async_request(core_request(request, request.stream))
        return httpx2.Response(response.status, headers=response.headers, stream=_Body(response))

    def _pool(self, proxy: httpcore2.Proxy | None) -> httpcore2.AsyncConnectionPool:
        if proxy not in self._pools:
            self._pools[proxy] = httpcore2.AsyncConnectionPool(
                ssl_context=self._network.tls, network_backend=_Backend(), proxy=proxy, **POOL
            )
        return self._pools[proxy]

    async def aclose(self) -> None:
        """Closes every connection of the running loop."""
        if self._loop is asyncio.get_running_loop():
            await self._life.aclose()


async def _until_the_loop_ends(
    pools: dict[httpcore2.Proxy | None, httpcore2.AsyncConnectionPool],
) -> AsyncGenerator[None]:
    # Before a loop closes, it closes the asynchronous generators that began in it.
    try:
        yield
    finally:
        for pool in pools.values():
            await pool.aclose()


class _Body(httpx2.AsyncByteStream):
    def __init__(self, response: httpcore2.Response) -> None:
        self._response = response

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._response.aiter_stream()

    async def aclose(self) -> None:
        await self._response.aclose()


class _Backend(httpcore2.AsyncNetworkBackend):
    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        del local_address, socket_options  # The pool has none.
        loop = asyncio.get_running_loop()
        with _failing_as(httpcore2.ConnectError, httpcore2.ConnectTimeout):
            async with asyncio.timeout(timeout):
                transport, receiver = await loop.create_connection(
                    _Receiver, host, port, happy_eyeballs_delay=0.25
                )
        return _Stream(transport, receiver)


class _Stream(Reusable, httpcore2.AsyncNetworkStream):
    """A connection whose bytes wait in one place only, so that none is overlooked."""

    def __init__(self, transport: asyncio.Transport, receiver: "_Receiver") -> None:
        super().__init__()
        self._transport = transport
        self._receiver = receiver

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        if last := self.last_byte():
            return last
        with _failing_as(httpcore2.ReadError, httpcore2.ReadTimeout):
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
        # Whoever closes the connection does not wait for what the other side says to that.
        if self._transport.get_extra_info("ssl_object") is None:
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
        return _Stream(transport, self._receiver)

    def get_extra_info(self, info: str) -> object:
        # The pool asks for it before it uses a connection again.
        return self.is_readable() if info == "is_readable" else self._transport.get_extra_info(info)

    def has_news(self) -> bool:
        if self._transport.is_closing() or self._receiver.has_news():
            return True
        # The loop may not have looked at the socket yet.
        return is_readable(self._transport.get_extra_info("socket"))


class _Receiver(asyncio.Protocol):
    """Keeps what has arrived on a connection, and wakes the task that waits for it."""

    ENOUGH = 256 * 1024
    """Bytes that wait; with more, nothing further is taken from the network."""

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
        """Whether bytes wait to be read, or nothing will come any more."""
        return bool(self._arrived) or self._is_over

    def check(self) -> None:
        """Raises if the connection has broken."""
        if self._is_over:
            raise self._error or ConnectionResetError("the connection is closed")

    async def drained(self) -> None:
        """Waits until there is room for more to be sent."""
        while self._is_full:
            self.check()
            await self._wait()

    async def read(self, max_bytes: int) -> bytes:
        """Gives what has arrived, once something has; nothing at the end."""
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
    # A subclass of `OSError`, so it comes first.
    except TimeoutError as cause:
        raise late(str(cause)) from cause
    except OSError as cause:
        raise error(str(cause)) from cause
