"""An in-process fake of the service, and transports that reach it without a network."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from typing import Unpack

import httpx2

from tallyfold._arguments import EventArguments, FaultArguments, Instant
from tallyfold._names import CountName, FaultKind
from tallyfold._tallyfold import Sandbox as Service
from tallyfold._time import Now

__all__ = ["Sandbox", "SandboxResponse"]


@dataclass(frozen=True, slots=True, repr=False)
class SandboxResponse:
    """The sandbox's answer, and how its transport must send it."""

    status: int
    """The HTTP status."""
    headers: list[tuple[str, str]]
    """Pairs of name and value."""
    body: bytes
    """The whole body."""
    delay_ms: int
    """Milliseconds to wait before answering."""
    cut_at: int | None
    """After how many bytes of the body to break the connection; `None` to send the whole body."""

    def __repr__(self) -> str:
        """Shows no byte of the body, which may hold a token."""
        return f"<SandboxResponse {self.status}, {len(self.body)} bytes>"


SandboxResponse.__module__ = "tallyfold"


class Sandbox(Service):
    """A simulated service: both APIs and both token endpoints, with the rules of the reference.

    The sandbox counts the events that you add with `record`. With a `seed`, it also generates
    realistic traffic for any range, which is the same on every platform. A client may use the
    sandbox's address as `base_url`, `auth_url` and `cluster_endpoint`. All threads may share one
    sandbox.

    Args:
        seed: the seed of generated traffic; without it, there is none.
        scene: an incident in the generated traffic, during the hours before the first request:
            `outage`, `consent_filter`, `schema_mismatch`, `silent_source` or `late_data`. Without a
            seed, the seed is 1.
        client_id: the Client ID to accept; by default, a documented one.
        client_secret: the Client Secret to accept.
        control_audience: the audience identifier of the Control API.
        orchestration_audience: the audience identifier of the Orchestration API.
        token_lifetime: how many seconds a token is valid; by default 86400 (service reference 8).
        closed_windows: whether an event at the `end` of a window also counts in it; by default,
            windows are half-open.

    >>> service = tallyfold.Sandbox(seed=7)
    >>> client = tallyfold.Client(
    ...     cluster_endpoint="https://sandbox.example",
    ...     transport=service.transport(),
    ...     **service.credentials,
    ... )
    >>> bool(client.event_delivery(
    ...     "2026-03-02T10:00:00Z", "2026-03-02T10:15:00Z", ["integration"]
    ... ).reconciliation)
    True
    """

    __slots__ = ()

    def record(
        self, timestamp: Instant, outcome: CountName, **options: Unpack[EventArguments]
    ) -> None:
        """Stores `count` events of one timestamp and one outcome.

        Args:
            timestamp: an aware `datetime`, or ISO 8601 text with `Z` or an offset from UTC.
            outcome: `"success"`, `"errors"` or `"filtered"`.
            event_name: the name of the events.
            write_key: the write key of their source.
            integration: the integration that they were sent to.
            reason: the reason for filtering them; by default, the empty text.
            count: the number of events; by default, one.

        Raises:
            ConfigError: for a timestamp or an outcome that can't be used.

        >>> sandbox.record(
        ...     "2026-02-01T00:00:00Z", "success",
        ...     event_name="Page Viewed", write_key="web", integration="warehouse",
        ... )
        """
        super().record(timestamp, outcome, **options)

    def inject(self, kind: FaultKind, **options: Unpack[FaultArguments]) -> None:
        """Adds a fault.

        Args:
            kind: the kind of fault.
            endpoint: the endpoint that has the fault; `None` for all endpoints.
            every: `k` for every `k`-th matching request; `None` for the next request only.
            status: the status of the response, for `"status"`.
            retry_after: the `Retry-After` header of the response, for `"status"`.
            milliseconds: how long to wait, for `"delay"`; how far `Date` is behind, for `"date"`.
            bytes: the number of bytes of the body to send before closing, for `"truncate"`.
            content_type: the content type of the response, for `"content_type"`.
            body: the body of the response, for `"body"`.
            amount: the number to add to a total, for `"wrong_total"`.

        Raises:
            ConfigError: for a fault that can't be used.

        >>> sandbox.inject("delay", endpoint="audit_logs", milliseconds=1)
        """
        super().inject(kind, **options)

    def handle(
        self,
        method: str,
        target: str,
        headers: Sequence[tuple[str, str]],
        body: bytes | bytearray | memoryview,
        now: tuple[int, int] | None = None,
    ) -> SandboxResponse:
        """Answers one request.

        Args:
            method: the HTTP method.
            target: the path with its query.
            headers: pairs of name and value.
            body: the whole body.
            now: the time of the request; if `None`, the sandbox reads the clocks.

        >>> sandbox.handle("GET", "/api/v1/audit-logs?page=1&perPage=2", [], b"").status
        401
        """
        now = Now.read() if now is None else now
        return super().handle(method, target, headers, body, now)

    def transport(self) -> httpx2.BaseTransport:
        """An httpx2 transport that sends every request to this sandbox, whatever its address.

        >>> http = httpx2.Client(transport=sandbox.transport())
        >>> http.get("https://sandbox.example/api/v1/audit-logs").status_code
        401
        """
        return _SandboxTransport(self)

    def async_transport(self) -> httpx2.AsyncBaseTransport:
        """The same transport for `AsyncClient` and `httpx2.AsyncClient`.

        >>> isinstance(sandbox.async_transport(), httpx2.AsyncBaseTransport)
        True
        """
        return _AsyncSandboxTransport(self)


class _SandboxTransport(httpx2.BaseTransport):
    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        request.read()
        answer = _answer(self._sandbox, request)
        delay, patience = answer.delay_ms / 1000, _patience(request)
        if patience is not None and delay > patience:
            time.sleep(patience)
            raise httpx2.ReadTimeout("the sandbox waits longer than that")
        time.sleep(delay)
        return _response(answer)


class _AsyncSandboxTransport(httpx2.AsyncBaseTransport):
    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        await request.aread()
        answer = _answer(self._sandbox, request)
        delay, patience = answer.delay_ms / 1000, _patience(request)
        if patience is not None and delay > patience:
            await asyncio.sleep(patience)
            raise httpx2.ReadTimeout("the sandbox waits longer than that")
        # Also without a delay, because a real exchange lets other tasks run.
        await asyncio.sleep(delay)
        return _response(answer)


def _answer(sandbox: Sandbox, request: httpx2.Request) -> SandboxResponse:
    target = request.url.raw_path.decode("ascii")
    return sandbox.handle(request.method, target, request.headers.multi_items(), request.content)


def _patience(request: httpx2.Request) -> float | None:
    timeouts: dict[str, float | None] = request.extensions.get("timeout", {})
    return timeouts.get("read")


def _response(answer: SandboxResponse) -> httpx2.Response:
    return httpx2.Response(answer.status, headers=answer.headers, stream=_Body(answer))


class _Body(httpx2.SyncByteStream, httpx2.AsyncByteStream):
    """The answer's body, up to the byte at which the connection breaks."""

    def __init__(self, answer: SandboxResponse) -> None:
        self._answer = answer

    def __iter__(self) -> Iterator[bytes]:
        yield self._answer.body[: self._answer.cut_at]
        if self._answer.cut_at is not None:
            raise httpx2.RemoteProtocolError("the sandbox broke the connection")

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for chunk in self:
            yield chunk
