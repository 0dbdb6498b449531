"""The asynchronous client, `Client`'s twin for asyncio."""

import asyncio
import contextlib
import inspect
import json
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from types import TracebackType
from typing import Any, Self, TypeVar

import httpx2

from tallyfold._client import WANT_PAIR, ApiName, Facade, token_failed, without_own_frame
from tallyfold._clock import Now
from tallyfold._errors import TallyfoldError
from tallyfold._tallyfold import (
    Blocked,
    Call,
    CountTable,
    Done,
    Limits,
    Machine,
    ProvideToken,
    Request,
    Send,
)
from tallyfold._transport import http_request, timed_out
from tallyfold._values import DimensionName, Tolerance

__all__ = ["AsyncAccessToken", "AsyncClient"]

T = TypeVar("T")

AsyncAccessToken = Callable[[ApiName], tuple[str, int | None] | Awaitable[tuple[str, int | None]]]
"""`AccessToken`, or its coroutine function."""


class AsyncClient(Facade):
    """Both APIs of the service, for asyncio.

    Arguments and errors are those of `Client`, but `access_token` may be a coroutine function and
    `transport` is an `httpx2.AsyncBaseTransport`. All tasks of one event loop may share a client;
    they share its tokens. A cancelled call leaves nothing behind: where it was fetching a token
    that others wait for, one of them fetches it.

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

    __slots__ = ("_token_moved",)
    _transport: httpx2.AsyncBaseTransport
    _access_token: AsyncAccessToken | None

    def __init__(
        self,
        *,
        cluster_endpoint: str | None = None,
        client_id: str | None = None,
        client_secret: str | None = None,
        control_audience: str | None = None,
        base_url: str | None = None,
        auth_url: str | None = None,
        orchestration_audience: str | None = None,
        access_token: AsyncAccessToken | None = None,
        transport: httpx2.AsyncBaseTransport | None = None,
        timeout: float | None = 30.0,
        dangerously_allow_http: bool = False,
        default_token_lifetime: int | None = None,
        limits: Limits | None = None,
        tolerate: Sequence[Tolerance] = (),
    ) -> None:
        """Checks the arguments; sends nothing."""
        machine = Machine(
            cluster_endpoint=cluster_endpoint,
            client_id=client_id,
            client_secret=client_secret,
            control_audience=control_audience,
            base_url=base_url,
            auth_url=auth_url,
            orchestration_audience=orchestration_audience,
            host_tokens=access_token is not None,
            dangerously_allow_http=dangerously_allow_http,
            default_token_lifetime=default_token_lifetime,
            limits=limits,
            tolerate=tolerate,
        )
        super().__init__(machine, [cluster_endpoint, base_url, auth_url], timeout)
        self._access_token = access_token
        # Nothing in the environment may lead a secret elsewhere: no proxy, no other certificates.
        self._transport = (
            httpx2.AsyncHTTPTransport(trust_env=False) if transport is None else transport
        )
        self._token_moved = asyncio.Event()

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
        return json.loads(await self._run(self._machine.audit_logs(page, per_page)))

    async def close(self) -> None:
        """Closes the transport; later calls raise `RuntimeError`."""
        self._closed = True
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
        try:
            self._check_open()
            while True:
                match call.step(Now.read()):
                    case Send(request=request):
                        await self._exchange(call, request)
                        self._wake()
                    case ProvideToken(api=api):
                        await self._provide_token(call, api)
                        self._wake()
                    case Blocked(epoch=epoch):
                        await self._wait(epoch)
                    case Done():
                        return call.output()
        except BaseException as error:
            # The frames below hold requests and response bytes in their locals, and a traceback
            # that shows locals would show secrets.
            error.__traceback__ = None
            raise
        finally:
            # Also when cancelled, and without another await: the waiters must not be left.
            call.close()
            self._wake()

    async def _exchange(self, call: Call[T], request: Request) -> None:
        try:
            async with asyncio.timeout(self._timeout):
                complete = await self._receive(call, request)
        except TallyfoldError:
            raise
        except Exception as error:  # noqa: BLE001 - a transport may raise anything
            # Only its name: the text may quote a header, and the exception holds the request.
            name, late = type(error).__name__, timed_out(error)
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
            match await self._answer(api):
                case [str() as token, lifetime]:
                    call.token(token, lifetime)
                    return
                case _:
                    cause: Exception = TypeError(WANT_PAIR)
        except TallyfoldError:
            raise
        except Exception as error:  # noqa: BLE001 - the host's function may raise anything
            cause = without_own_frame(error)
        token_failed(call, cause)

    async def _answer(self, api: ApiName) -> tuple[str, int | None]:
        if self._access_token is None:
            raise RuntimeError("a token is asked for where no access_token was given")
        answer = self._access_token(api)
        return await answer if inspect.isawaitable(answer) else answer

    async def _wait(self, epoch: int) -> None:
        while self._machine.token_epoch() == epoch:
            await self._token_moved.wait()

    def _wake(self) -> None:
        # Each event is for one move: whoever waits has taken it before, and sees it set.
        moved, self._token_moved = self._token_moved, asyncio.Event()
        moved.set()
