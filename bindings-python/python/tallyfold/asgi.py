"""A server for web apps: an ASGI app that sends requests to the service with its own token.

Mount it under any path of an app of FastAPI, Starlette or any other framework that speaks ASGI:

    from fastapi import FastAPI
    from tallyfold import AsyncClient
    from tallyfold.asgi import PageRequest, PageServer

    client = AsyncClient(cluster_endpoint=..., client_id=..., client_secret=..., ...)

    async def authorize(request: PageRequest) -> bool:
        # Only a session that your own store knows, and whose user may see these counts.
        session = await sessions.get(request.cookies.get("session", ""))
        return session is not None and session.user.may_see_counts

    app = FastAPI()
    app.mount("/tallyfold", PageServer(client, authorize))

The web app uses a client without tokens: `new Client({clusterEndpoint, tokenless: true})`.
"""

import asyncio
import contextlib
import gzip
import inspect
import json
import re
import secrets
import zlib
from collections import OrderedDict
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Mapping,
    MutableMapping,
)
from dataclasses import dataclass, field
from functools import cached_property, partial
from http import HTTPStatus
from typing import Any, Protocol, TypeVar, Unpack, cast
from urllib.parse import quote

from tallyfold._arguments import PagesArguments
from tallyfold._client.async_client import AsyncClient
from tallyfold._errors import ArgumentTypeError, TallyfoldError, invalid
from tallyfold._names import DimensionName, MetricName
from tallyfold._ranges.outage_log import LOGGER
from tallyfold._tallyfold import (
    Call,
    ErrorLog,
    VisibleRows,
    busy_answer,
    failed_answer,
    failed_line,
    good_answer,
    last_line,
    page_question,
    pages_options,
    range_answer,
    range_tag,
    sealed,
    unsealed,
    window_lines,
)
from tallyfold._time import Now

__all__ = ["AnswerStore", "PageRequest", "PageServer", "Permission"]

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
_Query = tuple[str, str, list[DimensionName]]
Answer = tuple[int, list[tuple[str, str]], bytes]
"""Status, headers and body."""
_Found = tuple[Answer, bool]
"""An answer, and whether it never changes."""
_Window = tuple[MetricName, _Query, tuple[str, bool, list[DimensionName] | None]]
"""Counts of a window: the metric; its arguments; and the key of the answer, whether it is settled,
and, if the page gets only some rows, the dimensions that it has requested."""
Permission = bool | Mapping[DimensionName, str | Iterable[str]]
"""Whether to answer the request, or which rows the visitor may see: for each named dimension, the
value or the values."""

LONGEST_BODY = 16 * 1024
"""The longest body of a request in bytes; real requests have a few hundred. Of a longer body, the
server reads only as much as the core needs to refuse it."""

STORE_PATIENCE = 1.0
"""How many seconds the store may take to return an answer, or to store one. If it takes longer, the
server queries the service, or drops what it wanted to store."""

BUSY_SECONDS = 1
"""The `Retry-After`, in seconds, for a request that finds the queue full."""

RANGE_PATIENCE = 1.0
"""How many seconds the answer with a range waits for its provisional windows before it begins. If
they take longer, the answer has no tag, so browsers don't keep it."""

AHEAD = 64
"""The maximum number of windows of a range that the server looks up at once, beginning with the
next one to send."""

AHEAD_BYTES = 4 * 1024 * 1024
"""About how many bytes of a range may wait until the web app reads them. It may read slowly, or not
at all."""

FIRST_AHEAD = 8
"""How many windows the server looks up at once at first. The number at most doubles with each
window, because the next one may be large."""

LEAST_COMPRESSED = 1024
"""A body of fewer bytes is not compressed."""

GZIP = re.compile(r"\s*(?:x-)?gzip\s*(?:;(?!\s*q=0(?:\.0*)?\s*$).*)?")
"""A coding of `accept-encoding` that allows compression: gzip with any weight but 0."""

LEAST_IN_THREAD = 64 * 1024
"""A body of more bytes is compressed or narrowed in a thread, so that the event loop isn't
blocked."""

T = TypeVar("T")

ENTRY_BYTES = 500
"""About how many bytes an answer takes in memory in addition to its key and its body."""


@dataclass(frozen=True)
class PageRequest:
    """A request of a web app, for `authorize`. Its `repr` omits headers, which contain secrets.

    >>> from tallyfold.asgi import PageRequest
    >>> request = PageRequest("POST", "/", {"cookie": "session=abc; theme=dark"}, {})
    >>> request.cookies["session"]
    'abc'
    """

    method: str
    """The method."""
    path: str
    """The path."""
    headers: Mapping[str, str] = field(repr=False, hash=False)
    """The headers, with names in lower case; repeated ones are joined."""
    scope: Scope = field(repr=False, hash=False)
    """The ASGI scope, for example for `starlette.requests.Request(scope)`. It also contains what
    middleware has added."""

    @cached_property
    def cookies(self) -> dict[str, str]:
        """The cookies."""
        pairs = (pair.strip().partition("=") for pair in self.headers.get("cookie", "").split(";"))
        return {name: value.strip('"') for name, _, value in pairs if name}


class AnswerStore(Protocol):
    """A store for responses for settled windows. Both functions may be coroutine functions.

    >>> from tallyfold.asgi import AnswerStore, PageServer
    >>> class Cache(dict[str, bytes]):
    ...     set = dict.__setitem__
    >>> store: AnswerStore = Cache()
    >>> pages = PageServer(async_client, lambda request: True, store=store)
    """

    def get(self, key: str, /) -> Any:  # noqa: ANN401 - of any cache
        """Returns the bytes that were set under the key, or `None`."""

    def set(self, key: str, value: bytes, /) -> object:
        """Stores bytes under a key. The store may drop them when it is full.

        If it is a coroutine function, the server cancels it after a second.
        """


class PageServer:
    """An ASGI app for web apps. It sends requests to the service with its client's own token.

    Web apps request the same paths as from the service, and get the body of the service's response
    after the server has checked it. An error has the same `code`, `kind` and `status` in the web
    app. Identical concurrent requests share one call to the service. The call ends when no request
    waits for it any more. The response for a window that ended more than an hour ago never changes,
    so the server keeps it. The server refuses requests from pages of another origin. It compresses
    large responses if the browser accepts gzip.

    A web app may also request all windows of a range at once, up to 3,000 windows: `GET` with the
    path of the endpoint and `/windows`, and `start`, `end`, `window` and `dimensions` in the query.
    The response is a stream of lines. For each window, it contains either a line with the window's
    edges and whether it is settled, followed by the body from the service, or a line with the edges
    and the error. The last line is `{"done":true}`. The response has an `ETag`, so the browser
    doesn't load it again if nothing has changed.

    Details of errors between this server and the service stay inside: the web app gets a reference,
    and the logger `tallyfold` writes the whole text with this reference. Equal errors within ten
    seconds share one line and one reference. If the service is down, the web app gets the error
    at once, without the retries of the client.

    Args:
        client: the client that sends the server's requests. The server does not close it.
        authorize: a function, or a coroutine function, that gets the `PageRequest` before the body
            is read. The request is answered if the result is `True`, or a mapping such as
            `{"write_key": ["web", "ios"]}`. With a mapping, the web app gets only the rows with
            these values, whatever it requests, and neither tokens nor audit logs. An exception that
            the function raises reaches the ASGI server.
        store: an object with `get` and `set` that stores responses for settled windows, in addition
            to the memory of this process. Other processes and later starts can use it. If the store
            fails, the server queries the service. The stored responses contain all rows, whatever
            `authorize` allowed.
        hand_out_tokens: whether web apps get access tokens: `POST` to `token/control` and
            `token/orchestration`.
        audit_logs: whether web apps may list audit logs.
        provisional: for how many seconds a response is kept if its window ended less than an hour
            ago, so that its counts may still change.
        concurrency: how many calls to the service may be under way at the same time.
        queue: how many calls may wait for their turn. Further requests get status 503 with
            `Retry-After`. Calls for the windows of ranges don't count, and are not refused.
        memory_bytes: how many bytes of responses are kept in memory.

    Raises:
        ConfigError: for arguments that can't be used.

    >>> from tallyfold.asgi import PageServer
    >>> users = {"a-session-that-your-login-has-made": "someone"}
    >>> pages = PageServer(
    ...     async_client, authorize=lambda request: request.cookies.get("session") in users
    ... )
    >>> transport = httpx2.ASGITransport(app=pages)
    >>> page = tallyfold.AsyncClient(
    ...     cluster_endpoint="https://app.example/tallyfold", tokenless=True, transport=transport
    ... )
    >>> await page.event_delivery("2026-01-01T00:00:00Z", "2026-01-01T00:15:00Z", ["reason"])
    Traceback (most recent call last):
        ...
    tallyfold.ServiceError: forbidden: ...
    """

    def __init__(
        self,
        client: AsyncClient,
        authorize: Callable[[PageRequest], Permission | Awaitable[Permission]],
        *,
        store: AnswerStore | None = None,
        **options: Unpack[PagesArguments],
    ) -> None:
        """Checks the arguments; sends nothing."""
        if not isinstance(client, AsyncClient):
            raise _wrong("client", "want an AsyncClient")
        if not callable(authorize):
            raise _wrong("authorize", "want a function that decides whether a request is allowed")
        if store is not None and not all(hasattr(store, name) for name in ("get", "set")):
            raise _wrong("store", "want an object with the functions get and set")
        # Servers of other clients may use the same store, and must not find this client's answers.
        machine = client._machine  # noqa: SLF001
        self._service = "" if store is None else machine._shared_identity()  # noqa: SLF001
        self._provisional, concurrency, self._queue, memory_bytes = pages_options(**options)
        self._client = client
        self._authorize = authorize
        self._store = store
        self._options = options
        self._turns = asyncio.Semaphore(concurrency)
        self._waiting = 0
        # Limits how many calls of all ranges wait in the same line as single requests.
        self._ranges_in_line = asyncio.Semaphore(concurrency)
        self._kept = _Kept(memory_bytes)
        self._under_way: dict[str, _Shared] = {}
        self._saving: set[asyncio.Task[None]] = set()
        # A part of the tags of ranges. When it changes, browsers don't use what they have kept.
        self._own = secrets.token_hex(8)
        self._log = ErrorLog()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request. The framework or the ASGI server calls this method."""
        if scope["type"] == "lifespan":
            await _live(receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close"})
            return
        headers = [
            (name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"]
        ]
        request = PageRequest(scope["method"], scope["path"], _by_name(headers), scope)
        allowed = self._authorize(request)
        if inspect.isawaitable(allowed):
            allowed = await allowed
        permission = VisibleRows(allowed) if isinstance(allowed, Mapping) else allowed is True
        body = await _beginning(receive) if permission else b""
        if body is None:
            return
        work = self._respond(request, headers, body, send, permission)
        answering = asyncio.ensure_future(work)
        if await _ends_first(answering, receive):
            answering.result()

    async def _respond(
        self,
        request: PageRequest,
        headers: list[tuple[str, str]],
        body: bytes,
        send: Send,
        permission: bool | VisibleRows,  # noqa: FBT001
    ) -> None:
        """Sends the answer. Cancelling this, when the visitor has left, ends all its work."""
        answer = await self._answer(request, headers, body, permission)
        if isinstance(answer, _Range):
            await answer.send(send, request.headers)
        else:
            await _send(send, await _compressed(answer, request.headers))

    async def _answer(
        self,
        request: PageRequest,
        headers: list[tuple[str, str]],
        body: bytes,
        permission: bool | VisibleRows,  # noqa: FBT001
    ) -> "Answer | _Range":
        query = request.scope.get("query_string", b"").decode("latin-1")
        # The path that `authorize` has seen is quoted, so a `?` in it doesn't begin a query.
        target = f"{quote(request.path, errors='replace')}?{query}"
        try:
            kind, asked, keeping = page_question(
                self._service,
                request.method,
                target,
                headers,
                body,
                permission,
                Now.read(),
                **self._options,
            )
        except TallyfoldError as error:
            return failed_answer(error.code, error.status, str(error), error.retry_after, None)
        try:
            if kind == "token":
                call = self._client._machine.token(*asked)  # noqa: SLF001
                async with self._turn() as since:
                    token, seconds = await self._driven(call, since)
                return good_answer(
                    json.dumps({"accessToken": token, "expiresIn": seconds}).encode()
                )
            if kind == "windows":
                windows, key = cast("list[_Window]", asked), cast("str", keeping)
                return _Range(self, windows, key, permission)
            if kind == "audit_logs":
                logs = self._client._machine.audit_logs(*asked)  # noqa: SLF001
                async with self._turn() as since:
                    return (await self._asked(logs, since))[0]
            window = cast("_Window", (kind, asked, keeping))
            return (await self._visible(window, permission))[0]
        except _BusyError:
            return busy_answer(BUSY_SECONDS)
        except TallyfoldError as error:
            reference = self._noted(error)
            return failed_answer(error.code, error.status, str(error), error.retry_after, reference)

    async def _visible(
        self,
        window: _Window,
        permission: bool | VisibleRows,  # noqa: FBT001
        limit: "_Limit | None" = None,
    ) -> _Found:
        """Returns the answer with the rows that the user may see."""
        metric, asked, (key, is_settled, narrowed_to) = window
        found = await self._shared(metric, asked, key, is_settled=is_settled, limit=limit)
        if not isinstance(permission, VisibleRows):
            return found
        (_, _, body), is_settled = found
        narrow = partial(permission.narrow, *asked, narrowed_to or [], body)
        return good_answer(await _aside(len(body), narrow)), is_settled

    async def _shared(
        self,
        metric: MetricName,
        asked: "_Query",
        key: str,
        *,
        is_settled: bool,
        limit: "_Limit | None",
    ) -> _Found:
        """Returns the answer that is kept, or the answer of the call under way or of a new call.

        The window of a range has a `limit`. Its call is not refused if the queue is full, but waits
        as long as necessary. A single request shares this call only if it need not wait for a turn
        any more, because the range may have many windows before this one.
        """
        if kept := self._kept.get(key, _seconds()):
            return kept
        shared = self._under_way.get(key)
        if shared is None or (limit is None and shared.waits_in_range):
            call = getattr(self._client._machine, metric)(*asked)  # noqa: SLF001
            found = self._found(key, call, is_settled=is_settled, limit=limit)
            shared = self._under_way[key] = _Shared(asyncio.create_task(found), limit)
            shared.task.add_done_callback(lambda _: self._ended(key, shared))
        try:
            return await shared.result()
        finally:
            if not shared.waiting:
                # A later request begins a new call.
                self._ended(key, shared)
                shared.task.cancel()

    def _ended(self, key: str, shared: "_Shared") -> None:
        if self._under_way.get(key) is shared:
            del self._under_way[key]

    async def _found(
        self, key: str, call: Call[Any], *, is_settled: bool, limit: "_Limit | None"
    ) -> _Found:
        stored = await self._stored(key) if is_settled else None
        if stored is not None:
            answer = good_answer(stored)
        else:
            async with self._turn(limit) as since:
                # A single request may have overtaken the call of a range.
                if limit is not None and (kept := self._kept.get(key, _seconds())):
                    return kept
                answer, table = await self._asked(call, since)
            # The table considers the service's clock, too, because this machine's may be ahead.
            is_settled = not table.provisional
        until = float("inf") if is_settled else _seconds() + self._provisional
        self._kept.set(key, answer, until)
        if is_settled and stored is None and self._store is not None:
            # No request waits for the store.
            saving = asyncio.create_task(self._save(self._store, key, answer[2]))
            self._saving.add(saving)
            saving.add_done_callback(self._saving.discard)
        return answer, is_settled

    async def _asked(self, call: Call[Any], since: int) -> tuple[Answer, Any]:
        """Drives a call. Returns the body from the service as an answer, and the call's output."""
        copying = _Copying(call)
        output = await self._driven(cast("Call[Any]", copying), since)
        return good_answer(b"".join(copying.pieces)), output

    async def _driven(self, call: Call[T], since: int) -> T:
        """Drives a call, without waiting for a service that is down."""
        call._fail_fast(since)  # noqa: SLF001
        return await self._client._run(call)  # noqa: SLF001

    @property
    def _failures(self) -> int:
        """How many requests of the client have failed temporarily, for `Call._fail_fast`."""
        return self._client._machine._failures()  # noqa: SLF001

    @contextlib.asynccontextmanager
    async def _turn(self, limit: "_Limit | None" = None) -> AsyncIterator[int]:
        """Waits for a turn, and yields what `_failures` was when the visitor began to wait.

        Each range sends one call at a time to wait, and only a few calls of all ranges wait in the
        same line as single requests. So these wait no longer, however many ranges there are.
        """
        since = self._failures if limit is None else limit.since
        if limit is not None:
            async with limit.waiting, self._ranges_in_line:
                await self._turns.acquire()
            limit.has_turn = True
        else:
            if self._turns.locked() and self._waiting >= self._queue:
                raise _BusyError
            self._waiting += 1
            try:
                await self._turns.acquire()
            finally:
                self._waiting -= 1
        try:
            yield since
        finally:
            self._turns.release()

    def _noted(self, error: TallyfoldError) -> str:
        """Logs an error, and returns the reference that the page gets instead of the details."""
        now_ms, reference = Now.read().monotonic_ms, secrets.token_hex(8)
        reference, line = self._log.note(str(error), now_ms, reference)
        if line is not None:
            LOGGER.warning("the page server's request failed %s", line)
        return reference

    async def _stored(self, key: str) -> bytes | None:
        if self._store is None:
            return None
        try:
            async with asyncio.timeout(STORE_PATIENCE):
                kept = self._store.get(key)
                kept = await kept if inspect.isawaitable(kept) else kept
            return unsealed(key, kept.encode() if isinstance(kept, str) else kept)
        except Exception:  # noqa: BLE001 - a store may raise anything
            return None

    async def _save(self, store: AnswerStore, key: str, body: bytes) -> None:
        try:
            async with asyncio.timeout(STORE_PATIENCE):
                saved = store.set(key, sealed(key, body))
                if inspect.isawaitable(saved):
                    await saved
        except Exception:  # noqa: BLE001, S110 - a store may raise anything
            pass


class _Range:
    """The answer with all windows of a range."""

    def __init__(
        self,
        server: PageServer,
        windows: list[_Window],
        key: str,
        permission: bool | VisibleRows,  # noqa: FBT001
    ) -> None:
        self._server = server
        self._permission = permission
        self._windows = windows
        self._key = key
        self._waiting = asyncio.Lock()
        self._since = server._failures  # noqa: SLF001
        self._begun: dict[int, asyncio.Task[_Found]] = {}

    async def send(self, send: Send, headers: Mapping[str, str]) -> None:
        try:
            await self._send(send, headers)
        finally:
            for task in self._begun.values():
                task.cancel()
            await asyncio.gather(*self._begun.values(), return_exceptions=True)

    async def _send(self, send: Send, headers: Mapping[str, str]) -> None:
        answer = range_answer(await self._tag(), headers.get("if-none-match"))
        status, own, _ = answer
        if status == HTTPStatus.NOT_MODIFIED:
            await _send(send, answer)
            return
        own = [*own, ("vary", "accept-encoding")]
        packer = None
        if _accepts_gzip(headers):
            own.append(("content-encoding", "gzip"))
            packer = zlib.compressobj(6, wbits=31)
        raw = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in own]
        await send({"type": "http.response.start", "status": status, "headers": raw})
        async for lines in self._lines():
            piece = lines
            if packer is not None:
                piece = await _aside(len(lines), partial(_packed, packer, lines))
            await send({"type": "http.response.body", "body": piece, "more_body": True})
            # A server's `send` may return without waiting. This lets other tasks run.
            await asyncio.sleep(0)
        rest = b"" if packer is None else packer.flush()
        await send({"type": "http.response.body", "body": rest})

    def _begin(self, place: int) -> "asyncio.Task[_Found]":
        """Begins to look up a window, if it has not begun yet. The task raises what fails."""
        task = self._begun.get(place)
        if task is None:
            visible = self._server._visible  # noqa: SLF001
            limit = _Limit(self._waiting, self._since)
            found = visible(self._windows[place], self._permission, limit)
            task = self._begun[place] = asyncio.create_task(found)
        return task

    async def _tag(self) -> str | None:
        """Returns the tag; `None` if a window that may still change fails, or takes too long."""
        own = self._server._own  # noqa: SLF001
        settled = [is_settled for _, _, (_, is_settled, _) in self._windows]
        places = [place for place, is_settled in enumerate(settled) if not is_settled]
        tasks = [self._begin(place) for place in places]
        if tasks:
            await asyncio.wait(tasks, timeout=RANGE_PATIENCE)
        if not all(task.done() and task.exception() is None for task in tasks):
            return None
        found = zip(places, tasks, strict=True)
        bodies = [(self._windows[place][2][0], task.result()[0][2]) for place, task in found]
        return range_tag(own, self._key, bodies)

    async def _lines(self) -> AsyncIterator[bytes]:
        largest, count = 1, FIRST_AHEAD
        for place in range(len(self._windows)):
            for ahead in range(place, min(place + count, len(self._windows))):
                self._begin(ahead)
            lines = await self._window(place)
            largest = max(largest, len(lines))
            count = min(AHEAD, 2 * count, -(-AHEAD_BYTES // largest))
            yield lines
            del self._begun[place]
        yield last_line()

    async def _window(self, place: int) -> bytes:
        """Returns the lines of a window, or the line with the error if its call fails."""
        _, (start, end, _), (_, should_be_settled, _) = self._windows[place]
        while True:
            try:
                (_, _, body), is_settled = await self._begin(place)
            except _BusyError:
                # The window shared the call of another request, which found the queue full.
                await asyncio.sleep(BUSY_SECONDS)
                del self._begun[place]
                continue
            except TallyfoldError as error:
                if should_be_settled:
                    self._server._own = secrets.token_hex(8)  # noqa: SLF001
                reference = self._server._noted(error)  # noqa: SLF001
                told = (error.code, error.status, str(error), error.retry_after, reference)
                return failed_line(start, end, *told)
            if should_be_settled and not is_settled:
                self._server._own = secrets.token_hex(8)  # noqa: SLF001
            return window_lines(start, end, is_settled, body)


@dataclass
class _Limit:
    """How a call of a range waits for its turn."""

    waiting: asyncio.Lock
    """Only one call of the range at a time waits in a line with calls of other visitors."""
    since: int
    """How many requests of the client had failed when the range was requested."""
    has_turn: bool = False
    """Whether it need not wait any more."""


class _BusyError(Exception):
    """Too many calls wait already."""


class _Shared:
    """A call to the service, and how many requests wait for its answer."""

    def __init__(self, task: asyncio.Task[_Found], limit: _Limit | None) -> None:
        self.task = task
        self.waiting = 0
        self._limit = limit

    @property
    def waits_in_range(self) -> bool:
        """Whether other windows of a range get their turn before this call."""
        return self._limit is not None and not self._limit.has_turn

    async def result(self) -> _Found:
        """Waits for the answer. If a request that waits is cancelled, the others still get it."""
        self.waiting += 1
        try:
            return await asyncio.shield(self.task)
        finally:
            self.waiting -= 1


def _by_name(headers: list[tuple[str, str]]) -> dict[str, str]:
    """Headers by their names. HTTP/2 may send each cookie in a header of its own."""
    named: dict[str, str] = {}
    for name, value in headers:
        key = name.lower()
        between = "; " if key == "cookie" else ", "
        named[key] = f"{named[key]}{between}{value}" if key in named else value
    return named


async def _ends_first(answering: "asyncio.Future[None]", receive: Receive) -> bool:
    """Waits until the answer has ended or the visitor has left. Returns whether it has ended.

    Cancels the answer if the visitor leaves first.
    """
    leaving = asyncio.ensure_future(_disconnected(receive))
    both: set[asyncio.Future[Any]] = {answering, leaving}
    try:
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        return answering.done()
    finally:
        for each in both:
            each.cancel()
            with contextlib.suppress(asyncio.CancelledError, Exception):
                await each


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":  # noqa: ASYNC110 - events come from there
        # A server's `receive` may return without waiting. This lets other tasks run.
        await asyncio.sleep(0)


async def _compressed(answer: Answer, headers: Mapping[str, str]) -> Answer:
    """Returns the answer, compressed if it is large enough and the browser accepts gzip."""
    status, given, body = answer
    accepts = _accepts_gzip(headers)
    if len(body) < LEAST_COMPRESSED:
        return answer
    given = [*given, ("vary", "accept-encoding")]
    if not accepts:
        return status, given, body
    body = await _aside(len(body), partial(gzip.compress, body, 6, mtime=0))
    return status, [*given, ("content-encoding", "gzip")], body


async def _aside(size: int, work: Callable[[], T]) -> T:
    """Does work with a body of this many bytes, in a thread if it is large."""
    return await asyncio.to_thread(work) if size > LEAST_IN_THREAD else work()


def _packed(packer: "zlib._Compress", lines: bytes) -> bytes:
    """Compresses lines. Flushes them, so that the page gets each window as soon as possible."""
    return packer.compress(lines) + packer.flush(zlib.Z_SYNC_FLUSH)


def _accepts_gzip(headers: Mapping[str, str]) -> bool:
    codings = headers.get("accept-encoding", "").lower().split(",")
    return any(map(GZIP.fullmatch, codings))


def _wrong(argument: str, want: str) -> ArgumentTypeError:
    return invalid(ArgumentTypeError, argument, want)


def _seconds() -> float:
    return Now.read().monotonic_ms / 1000


async def _live(receive: Receive, send: Send) -> None:
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return


async def _beginning(receive: Receive) -> bytes | None:
    """Reads the body, or the beginning of one that is too long; `None` if the page went away."""
    body = b""
    while len(body) <= LONGEST_BODY:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        body += message.get("body", b"")
        if not message.get("more_body", False):
            break
    return body


async def _send(send: Send, answer: Answer) -> None:
    status, headers, body = answer
    headers = [*headers, ("content-length", str(len(body)))]
    raw = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]
    await send({"type": "http.response.start", "status": status, "headers": raw})
    await send({"type": "http.response.body", "body": body})


class _Copying:
    """A call that keeps the chunks of the last response that it has read."""

    def __init__(self, call: Call[Any]) -> None:
        self._call = call
        self.pieces: list[bytes] = []

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - what the call has
        return getattr(self._call, name)

    def head(self, status: int, headers: list[tuple[str, str]]) -> bool:
        self.pieces.clear()
        return self._call.head(status, headers)

    def chunk(self, data: bytes) -> None:
        self._call.chunk(data)
        self.pieces.append(bytes(data))


class _Kept:
    """Answers in memory; the least recently used ones are dropped first."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._bytes = 0
        self._answers: OrderedDict[str, tuple[Answer, float, int]] = OrderedDict()

    def get(self, key: str, at: float) -> _Found | None:
        found = self._answers.get(key)
        if found is None or found[1] <= at:
            return None
        self._answers.move_to_end(key)
        return found[0], found[1] == float("inf")

    def set(self, key: str, answer: Answer, until: float) -> None:
        if key in self._answers:
            self._bytes -= self._answers.pop(key)[2]
        size = len(key) + len(answer[2]) + ENTRY_BYTES
        if size > self._most:
            return
        self._answers[key] = answer, until, size
        self._bytes += size
        while self._bytes > self._most:
            _, (_, _, size) = self._answers.popitem(last=False)
            self._bytes -= size
