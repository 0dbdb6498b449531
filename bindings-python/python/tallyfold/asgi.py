"""A server for pages: an ASGI app that asks the service with its own token.

Mount it under any path of an app of FastAPI, Starlette or any other framework that speaks ASGI:

    from fastapi import FastAPI
    from tallyfold import AsyncClient
    from tallyfold.asgi import PageRequest, PageServer

    client = AsyncClient(cluster_endpoint=..., client_id=..., client_secret=..., ...)

    async def authorize(request: PageRequest) -> bool:
        return await is_session(request.cookies.get("session"))

    app = FastAPI()
    app.mount("/tallyfold", PageServer(client, authorize))

A page asks it with a client that has no tokens: `new Client({clusterEndpoint, tokenless: true})`.
"""

import asyncio
import inspect
import json
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from dataclasses import dataclass
from functools import cached_property
from http.cookies import CookieError, SimpleCookie
from typing import Any, Protocol, Unpack, cast

from tallyfold._arguments import PagesArguments
from tallyfold._client.async_client import AsyncClient
from tallyfold._errors import ArgumentTypeError, TallyfoldError, invalid
from tallyfold._names import DimensionName, MetricName
from tallyfold._tallyfold import (
    Call,
    failed_answer,
    good_answer,
    page_question,
    pages_options,
    sealed,
    unsealed,
)
from tallyfold._time import Now

__all__ = ["AnswerStore", "PageRequest", "PageServer"]

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
_Query = tuple[str, str, list[DimensionName]]
Answer = tuple[int, list[tuple[str, str]], bytes]
"""Status, headers and body."""

LONGEST_BODY = 16 * 1024
"""A request has a few hundred bytes. Of a longer one, as much is read as the core needs to refuse
it."""

STORE_PATIENCE = 1.0
"""A store that takes longer to answer is left alone."""

ENTRY_BYTES = 500
"""About what an answer takes beside its text."""


@dataclass(frozen=True)
class PageRequest:
    """A request of a page, for `authorize`.

    >>> from tallyfold.asgi import PageRequest
    >>> request = PageRequest("POST", "/", {"cookie": "session=abc; theme=dark"}, {})
    >>> request.cookies["session"]
    'abc'
    """

    method: str
    """The method."""
    path: str
    """The path."""
    headers: Mapping[str, str]
    """The headers, with names in lower case."""
    scope: Scope
    """The ASGI scope, for `starlette.requests.Request(scope)` and what middleware has put there."""

    @cached_property
    def cookies(self) -> dict[str, str]:
        """The cookies; none if they can't be read."""
        cookies: SimpleCookie = SimpleCookie()
        try:
            cookies.load(self.headers.get("cookie", ""))
        except CookieError:
            return {}
        return {name: cookie.value for name, cookie in cookies.items()}


class AnswerStore(Protocol):
    """Where answers for settled windows are kept; both functions may be coroutine functions.

    >>> from tallyfold.asgi import AnswerStore, PageServer
    >>> class Cache(dict[str, bytes]):
    ...     set = dict.__setitem__
    >>> store: AnswerStore = Cache()
    >>> pages = PageServer(async_client, lambda request: True, store=store)
    """

    def get(self, key: str, /) -> Any:  # noqa: ANN401 - of any cache
        """Gives the bytes that were set under the key, or `None`."""

    def set(self, key: str, value: bytes, /) -> object:
        """Keeps bytes under a key, for as long as there is room for them."""


class PageServer:
    """An ASGI app that answers pages; its requests to the service have the client's own token.

    Pages ask the same paths as those of the service. The page gets the body that the service has
    sent, once it was found valid. An error has the same `code`, `kind` and `status` in the page.
    Equal questions at the same time are one call to the service. The answer for a window that ended
    more than an hour ago never changes and is kept. A page of another origin is refused.

    Args:
        client: asks the service in the name of the server. It is not closed.
        authorize: a function, or coroutine function, that is called with the `PageRequest` before
            the body is read. The request is answered only if the result is `True`. What it raises
            is raised to the ASGI server.
        store: where answers for settled windows are kept beside the memory of this process, for
            other processes and for the time after a restart: an object with `get` and `set`. If it
            fails, the service is asked.
        hand_out_tokens: whether pages get access tokens: `POST` to `token/control` and
            `token/orchestration`.
        audit_logs: whether pages may list audit logs.
        provisional: for how many seconds an answer is kept if its window ended less than an hour
            ago, so that its counts may still change.
        concurrency: how many calls to the service may be under way at the same time.
        memory_bytes: how many bytes of answers are kept in memory.

    Raises:
        ConfigError: for arguments that can't be used.

    >>> from tallyfold.asgi import PageServer
    >>> pages = PageServer(async_client, authorize=lambda request: "session" in request.cookies)
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
        authorize: Callable[[PageRequest], bool | Awaitable[bool]],
        *,
        store: AnswerStore | None = None,
        **options: Unpack[PagesArguments],
    ) -> None:
        """Checks the arguments; sends nothing."""
        if not isinstance(client, AsyncClient):
            raise _wrong("client", "want an AsyncClient, which asks the service")
        if not callable(authorize):
            raise _wrong("authorize", "want a function that returns True for a request to answer")
        if store is not None and not all(hasattr(store, name) for name in ("get", "set")):
            raise _wrong("store", "want an object with the functions get and set")
        self._provisional, concurrency, memory_bytes = pages_options(**options)
        self._client = client
        self._authorize = authorize
        self._store = store
        self._options = options
        self._turns = asyncio.Semaphore(concurrency)
        self._kept = _Kept(memory_bytes)
        self._under_way: dict[str, asyncio.Task[Answer]] = {}
        self._saving: set[asyncio.Task[None]] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request; the framework or the ASGI server calls it."""
        if scope["type"] == "lifespan":
            await _live(receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close"})
            return
        headers = [
            (name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"]
        ]
        named = {name.lower(): value for name, value in headers}
        request = PageRequest(scope["method"], scope["path"], named, scope)
        allowed = self._authorize(request)
        if inspect.isawaitable(allowed):
            allowed = await allowed
        body = await _beginning(receive) if allowed is True else b""
        if body is None:
            return
        answer = await self._answer(request, headers, body, is_allowed=allowed is True)
        await _send(send, answer)

    async def _answer(
        self,
        request: PageRequest,
        headers: list[tuple[str, str]],
        body: bytes,
        *,
        is_allowed: bool,
    ) -> Answer:
        query = request.scope.get("query_string", b"").decode("latin-1")
        target = f"{request.path}?{query}"
        service = self._client._address  # noqa: SLF001
        try:
            kind, asked, keeping = page_question(
                service,
                request.method,
                target,
                headers,
                body,
                is_allowed,
                Now.read(),
                **self._options,
            )
            if kind == "token":
                token, seconds = await self._client.token(*asked)
                return good_answer(
                    json.dumps({"accessToken": token, "expiresIn": seconds}).encode()
                )
            if kind == "audit_logs":
                logs = self._client._machine.audit_logs(*asked)  # noqa: SLF001
                return (await self._asked(logs))[0]
            return await self._shared(kind, cast("_Query", asked), *keeping)
        except TallyfoldError as error:
            return failed_answer(error.code, error.status, str(error), error.retry_after)

    async def _shared(
        self,
        metric: MetricName,
        asked: "_Query",
        key: str,
        is_settled: bool,  # noqa: FBT001
    ) -> Answer:
        """Gives the answer that is kept, or that of the call under way, or that of a new call."""
        if kept := self._kept.get(key, _seconds()):
            return kept
        task = self._under_way.get(key)
        if task is None:
            begin = getattr(self._client._machine, metric)  # noqa: SLF001
            found = self._found(key, begin(*asked), is_settled=is_settled)
            task = self._under_way[key] = asyncio.create_task(found)
            task.add_done_callback(lambda task: self._ended(key, task))
        # Whoever waits may go away; the others still get the answer.
        return await asyncio.shield(task)

    def _ended(self, key: str, task: asyncio.Task[Answer]) -> None:
        del self._under_way[key]
        # Also if everybody who waited for it has gone away.
        if not task.cancelled():
            task.exception()

    async def _found(self, key: str, call: Call[Any], *, is_settled: bool) -> Answer:
        stored = await self._stored(key) if is_settled else None
        if stored is not None:
            answer = good_answer(stored)
        else:
            answer, table = await self._asked(call)
            # By the service's clock, too: this computer's may be ahead.
            is_settled = not table.provisional
        until = float("inf") if is_settled else _seconds() + self._provisional
        self._kept.set(key, answer, until)
        if is_settled and stored is None and self._store is not None:
            # Nobody waits for this.
            saving = asyncio.create_task(self._save(self._store, key, answer[2]))
            self._saving.add(saving)
            saving.add_done_callback(self._saving.discard)
        return answer

    async def _asked(self, call: Call[Any]) -> tuple[Answer, Any]:
        """Asks the service: gives the body that it has sent as the answer, and what it means."""
        copying = _Copying(call)
        async with self._turns:
            output = await self._client._run(cast("Call[Any]", copying))  # noqa: SLF001
        return good_answer(b"".join(copying.pieces)), output

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
            saved = store.set(key, sealed(key, body))
            if inspect.isawaitable(saved):
                await saved
        except Exception:  # noqa: BLE001, S110 - a store may raise anything
            pass


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
    """Answers in memory, of which those that were not asked for the longest time give way."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._bytes = 0
        self._answers: OrderedDict[str, tuple[Answer, float, int]] = OrderedDict()

    def get(self, key: str, at: float) -> Answer | None:
        found = self._answers.get(key)
        if found is None or found[1] <= at:
            return None
        self._answers.move_to_end(key)
        return found[0]

    def set(self, key: str, answer: Answer, until: float) -> None:
        if key in self._answers:
            self._bytes -= self._answers.pop(key)[2]
        size = len(key) + len(answer[2]) + ENTRY_BYTES
        self._answers[key] = answer, until, size
        self._bytes += size
        while self._bytes > self._most:
            _, (_, _, size) = self._answers.popitem(last=False)
            self._bytes -= size
