"""The HTTP code of both clients, and the transport of `Client`, which enforces deadlines."""

import errno
import os
import select
import selectors
import socket
import ssl
import threading
import time
from collections.abc import AsyncIterable, Iterable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any, TypedDict

import httpcore2
import httpx2

# httpcore2 exports only the backend, which opens its connections in a way that can't be stopped.
from httpcore2._backends.sync import SyncStream

from tallyfold._http.decoding import decoder, is_decoded
from tallyfold._http.network import Network
from tallyfold._http.network_error import by_way_of
from tallyfold._http.stop import Stop
from tallyfold._tallyfold import Message, Request

__all__ = [
    "EXCERPT_SECONDS",
    "OK",
    "POOL",
    "DeadlineTransport",
    "Idle",
    "Reusable",
    "StaleError",
    "body_of",
    "check_answer",
    "core_request",
    "deadline",
    "headers_of",
    "http_request",
    "hurry",
    "is_readable",
    "timed_out",
]


class _Pool(TypedDict):
    max_connections: int
    max_keepalive_connections: int
    keepalive_expiry: float


POOL: _Pool = {"max_connections": 200, "max_keepalive_connections": 20, "keepalive_expiry": 5.0}
"""How many connections a transport opens, how many idle ones it keeps, and for how many seconds.

A server may reset connections if too many are opened at once. A request that waits for a connection
uses up its timeout.
"""

CONNECT_SLICE = 0.1
"""After how many seconds a thread that waits for a new connection checks whether it must stop."""

WRITE_SLICE = 16 * 1024
"""How many bytes are written at once: so few that a socket that accepts bytes accepts them all."""

OK = 200
"""The status of a response whose body is the result."""

EXCERPT_SECONDS = 1.0
"""How many seconds to wait for the body of a refusal, which is only quoted in the error."""

_end: ContextVar[float | None] = ContextVar("tallyfold_deadline", default=None)
_stop: ContextVar[Stop | None] = ContextVar("tallyfold_stop", default=None)


def http_request(request: Request | Message, timeout: float | None) -> httpx2.Request:
    """The request for httpx2, which adds only the headers `host` and `content-length`."""
    # Values are passed as bytes: an encoding error of httpx2 would contain the value.
    headers = [(name.encode(), value.encode()) for name, value in request.headers]
    timeouts = httpx2.Timeout(timeout).as_dict()
    return httpx2.Request(
        request.method,
        request.url,
        headers=headers,
        content=request.body,
        extensions={"timeout": timeouts},
    )


def headers_of(response: httpx2.Response) -> list[tuple[str, str]]:
    """The headers of a response as the core accepts them, with each byte as one character.

    `multi_items` of httpx2 would first look for an encoding that fits all headers.
    """
    raw = response.headers.raw
    return [(name.decode("latin-1"), value.decode("latin-1")) for name, value in raw]


def core_request(
    request: httpx2.Request, body: Iterable[bytes] | AsyncIterable[bytes]
) -> httpcore2.Request:
    """Converts a request for the connections of httpcore2."""
    url = request.url
    return httpcore2.Request(
        method=request.method,
        url=httpcore2.URL(
            scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path
        ),
        headers=request.headers.raw,
        content=body,
        extensions=request.extensions,
    )


def timed_out(error: Exception) -> bool:
    """Whether an exception of an HTTP stack is a timeout."""
    return isinstance(error, (httpx2.TimeoutException, httpcore2.TimeoutException, TimeoutError))


@contextmanager
def deadline(timeout: float | None, stop: Stop) -> Iterator[None]:
    """Limits the time of everything that this thread does on the network in the block.

    All of it together takes at most `timeout` seconds, and it ends when `stop` is set.
    """
    tokens = _end.set(None if timeout is None else time.monotonic() + timeout), _stop.set(stop)
    try:
        yield
    finally:
        _end.reset(tokens[0])
        _stop.reset(tokens[1])


def hurry(seconds: float) -> None:
    """Ends the surrounding `deadline` after this many seconds, unless it ends sooner."""
    left = _time_left(seconds)
    _end.set(None if left is None else time.monotonic() + left)


def body_of(response: httpx2.Response) -> Iterator[bytes]:
    """Yields the decoded body, from any transport, until the surrounding `deadline` ends."""
    if is_decoded(response):
        yield response.content
        return
    if not isinstance(response.stream, httpx2.SyncByteStream):
        raise TypeError("an async body in a synchronous response")
    decoding = decoder(response)
    for chunk in response.stream:
        # Checks the time here, too: compressed bytes that arrive slowly may never make a piece.
        _time_left(None)
        for piece in decoding.pieces(chunk):
            _time_left(None)
            yield piece
    decoding.end()


def _check_stop() -> None:
    stop = _stop.get()
    if stop is not None and stop.is_set():
        raise httpcore2.ReadError("the exchange was stopped")


def _cutting(connection: object) -> AbstractContextManager[None]:
    """Lets the stop of the surrounding `deadline` end the transfer in the block."""
    stop = _stop.get()
    return nullcontext() if stop is None else stop.cutting(connection)


def _time_left(timeout: float | None) -> float | None:
    _check_stop()
    end = _end.get()
    if end is None:
        return timeout
    left = end - time.monotonic()
    if left <= 0:
        raise httpcore2.ReadTimeout("the exchange took longer than it may")
    return left if timeout is None else min(left, timeout)


class DeadlineTransport(httpx2.BaseTransport):
    """An HTTP transport in which each wait ends with the surrounding `deadline`.

    The timeouts of httpx2 apply to each single read and write; a server that sends one byte a
    second would never exceed them.
    """

    def __init__(self, network: Network) -> None:
        """Opens no connection yet."""
        self._network = network
        self._idle = Idle()
        self._pools: dict[httpcore2.Proxy | None, httpcore2.ConnectionPool] = {}
        self._lock = threading.Lock()

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """Sends the request and returns the response as soon as its head has arrived."""
        if not isinstance(request.stream, httpx2.SyncByteStream):
            raise TypeError("an async body in a synchronous request")
        proxy = self._network.proxy_for(request.url)
        with by_way_of(proxy):
            response = self._pool(proxy).handle_request(core_request(request, request.stream))
        return httpx2.Response(response.status, headers=response.headers, stream=_Body(response))

    def close(self) -> None:
        """Closes every connection."""
        for pool in self._pools.values():
            pool.close()

    def _pool(self, proxy: httpcore2.Proxy | None) -> httpcore2.ConnectionPool:
        with self._lock:
            if proxy not in self._pools:
                self._pools[proxy] = httpcore2.ConnectionPool(
                    ssl_context=self._network.tls,
                    network_backend=_DeadlineBackend(self._idle),
                    proxy=proxy,
                    **POOL,
                )
            return self._pools[proxy]


class _Body(httpx2.SyncByteStream):
    def __init__(self, response: httpcore2.Response) -> None:
        self._response = response

    def __iter__(self) -> Iterator[bytes]:
        yield from self._response.iter_stream()
        check_answer(self._response)

    def close(self) -> None:
        self._response.close()


class StaleError(httpcore2.ReadError):
    """A connection that had served an earlier request could not serve this one."""


class SurplusError(StaleError):
    """More bytes arrived than the response has, so it may not be the response to this request."""


class Idle:
    """The idle connections of a transport, which may all have been closed at the same time."""

    def __init__(self) -> None:
        """No connection has been given up yet."""
        self.age = 0

    def give_up(self) -> None:
        """Makes sure that no connection that is open now is used again."""
        self.age += 1


class Reusable:
    """A connection that accepts another request only if nothing is left of the last response.

    A server may send bytes after a response, and the parser of httpcore2 would read them as the
    next response. The parser does not show whether it has such bytes, but it reads from a
    connection only if it needs more. So this class holds back the last byte that has arrived, and
    returns it alone at the next read. As long as the parser does not read it, something is left: at
    least that byte.
    """

    def __init__(self, idle: Idle) -> None:
        """Has not been used yet."""
        self._idle = idle
        self._age = idle.age
        self._was_read = False
        # The state of the request under way.
        self._is_second = False
        self._has_begun = False
        self._last = b""

    def is_readable(self) -> bool:
        """Whether another request could read something other than its own response."""
        return bool(self._last) or self._age != self._idle.age or self.has_news()

    def has_news(self) -> bool:
        """Whether the other side has sent something, or has closed the connection."""
        raise NotImplementedError

    def last_byte(self) -> bytes:
        """Returns the byte that was held back, if there is one. Each read begins with this call."""
        self._was_read = True
        last, self._last = self._last, b""
        return last

    def but_last_byte(self, arrived: bytes) -> bytes:
        """Holds back the last byte, unless it is the only one. Returns the other bytes."""
        if not arrived:
            self._ended(ConnectionResetError(errno.ECONNRESET, os.strerror(errno.ECONNRESET)))
        self._has_begun = True
        end = max(len(arrived) - 1, 1)
        self._last = arrived[end:]
        return arrived[:end]

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Raises `StaleError` if a read fails before the response to a further request begins."""
        try:
            yield
        except httpcore2.ReadError as error:
            self._ended(error)
            raise

    def _ended(self, error: Exception) -> None:
        if self._is_second and not self._has_begun:
            self._idle.give_up()
            raise StaleError from error

    def check_answer(self) -> None:
        """Checks that nothing has arrived after a response.

        Raises:
            SurplusError: if something has arrived on a connection that was used before. The
                response then may not belong to the last request.
        """
        if self._is_second and (self._last or self.has_more()):
            self._idle.give_up()
            raise SurplusError

    def has_more(self) -> bool:
        """Whether the other side has sent something."""
        raise NotImplementedError

    def before_write(self) -> None:
        """Checks the connection before the first bytes of a request.

        Raises:
            ConnectionNotAvailable: if the connection must not be used again. The pool has checked
                this, too, but before it gave the connection to this request. The pool then uses
                another connection, because nothing has been sent.
        """
        if self._was_read and self.is_readable():
            raise httpcore2.ConnectionNotAvailable
        if self._was_read:
            self._is_second, self._has_begun = True, False
        self._was_read = False


def has_bytes(connection: socket.socket) -> bool:
    """Whether the other side has sent something that is not a part of TLS itself."""
    if isinstance(connection, ssl.SSLSocket):
        return connection.pending() > 0
    try:
        return is_readable(connection) and bool(connection.recv(1, socket.MSG_PEEK))
    except OSError:
        return False


def is_readable(connection: socket.socket) -> bool:
    """Whether the other side has sent something, or has closed the connection."""
    if connection.fileno() < 0:
        return True
    if isinstance(connection, ssl.SSLSocket) and connection.pending():
        return True
    if not hasattr(select, "poll"):  # Windows
        return bool(select.select([connection], [], [], 0)[0])
    poll = select.poll()
    poll.register(connection, select.POLLIN)
    return bool(poll.poll(0))


def check_answer(response: httpcore2.Response) -> None:
    """Checks the connection of a response that was read completely: see `Reusable`."""
    connection = response.extensions["network_stream"]
    if isinstance(connection, Reusable):
        connection.check_answer()


class _DeadlineBackend(httpcore2.NetworkBackend):
    def __init__(self, idle: Idle) -> None:
        self._idle = idle

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.NetworkStream:
        del local_address, socket_options  # The pool has none.
        # The addresses are tried here one after the other, because the standard library would let
        # each address of a name take the whole time.
        addresses = _addresses_of(host, port)
        for tried, (family, address) in enumerate(addresses, 1):
            left = _time_left(timeout)
            # Each address gets an equal part of the time, even if an earlier one does not answer.
            part = None if left is None else left / (len(addresses) - tried + 1)
            try:
                return _DeadlineStream(SyncStream(_connected(family, address, part)), self._idle)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout):
                if tried == len(addresses):
                    raise
        raise httpcore2.ConnectError("the name has no address")


def _addresses_of(host: str, port: int) -> list[tuple[int, Any]]:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    # A name that DNS can't represent raises a `UnicodeError`.
    except (OSError, UnicodeError) as error:
        raise httpcore2.ConnectError(str(error)) from error
    return [(family, address) for family, *_, address in found]


def _connected(family: int, address: Any, seconds: float | None) -> socket.socket:  # noqa: ANN401 - it depends on the family
    try:
        connection = socket.socket(family, socket.SOCK_STREAM)
        try:
            _connect(connection, address, seconds)
        except BaseException:
            connection.close()
            raise
    except OSError as error:
        raise httpcore2.ConnectError(str(error)) from error
    return connection


def _connect(connection: socket.socket, address: Any, seconds: float | None) -> None:  # noqa: ANN401
    end = None if seconds is None else time.monotonic() + seconds
    # On some systems, shutting a socket down does not end its `connect`, so this waits in slices.
    connection.settimeout(0)
    number = connection.connect_ex(address)
    if number in (errno.EINPROGRESS, errno.EWOULDBLOCK):
        with selectors.DefaultSelector() as selector:
            selector.register(connection, selectors.EVENT_WRITE)
            while not selector.select(_slice_until(end)):
                _check_stop()
        number = connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
    if number != 0:
        raise OSError(number, os.strerror(number))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def _slice_until(end: float | None) -> float:
    left = CONNECT_SLICE if end is None else end - time.monotonic()
    if left <= 0:
        raise httpcore2.ConnectTimeout("there was no connection in time")
    return min(left, CONNECT_SLICE)


def _own(connection: object) -> AbstractContextManager[object]:
    """Returns a socket for a connection that TLS moves to a socket of its own."""
    if isinstance(connection, socket.socket) and not isinstance(connection, ssl.SSLSocket):
        return closing(connection.dup())
    # TLS within TLS uses the socket that is there.
    return nullcontext(connection)


class _DeadlineStream(Reusable, httpcore2.NetworkStream):
    def __init__(self, inner: httpcore2.NetworkStream, idle: Idle) -> None:
        super().__init__(idle)
        self._inner = inner

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        left = _time_left(timeout)
        if last := self.last_byte():
            return last
        with _cutting(self.get_extra_info("socket")), self.reading():
            return self.but_last_byte(self._inner.read(max_bytes, left))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self.before_write()
        view = memoryview(buffer)
        with _cutting(self.get_extra_info("socket")):
            # The timeout of a socket applies to each piece that the other side accepts.
            for at in range(0, len(view), WRITE_SLICE):
                self._inner.write(bytes(view[at : at + WRITE_SLICE]), _time_left(timeout))

    def close(self) -> None:
        self._inner.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore2.NetworkStream:
        left = _time_left(timeout)
        with _own(self.get_extra_info("socket")) as connection, _cutting(connection):
            inner = self._inner.start_tls(ssl_context, server_hostname, left)
        return _DeadlineStream(inner, self._idle)

    def get_extra_info(self, info: str) -> object:
        # The pool requests `is_readable` before it uses a connection again.
        return self.is_readable() if info == "is_readable" else self._inner.get_extra_info(info)

    def has_news(self) -> bool:
        return is_readable(self._inner.get_extra_info("socket"))

    def has_more(self) -> bool:
        return has_bytes(self._inner.get_extra_info("socket"))
