"""Sends the messages of a push in asyncio."""

import asyncio
import contextlib
import socket
from types import TracebackType
from typing import Self

import httpx2

from tallyfold._client.facade import Broken, checked_transport, cleared
from tallyfold._client.steps import Done, Wait
from tallyfold._errors import ServiceError
from tallyfold._export.sending import (
    EXCERPT_SECONDS,
    REFUSED,
    Sent,
    address_of,
    raised_from,
    report,
)
from tallyfold._http.loop_transport import LoopTransport, body_of, running_loop
from tallyfold._http.network import Network
from tallyfold._http.transport import headers_of
from tallyfold._tallyfold import Finished, Message, Notifications, Push
from tallyfold._time import Now

__all__ = ["AsyncSender"]


class AsyncSender:
    """Sends the messages of a push or of notifications, and reports the answers to it."""

    def __init__(
        self,
        push: Push | Notifications,
        transport: httpx2.AsyncBaseTransport | None,
        network: Network | None,
        timeout: float | None,
    ) -> None:
        """Opens no connection yet."""
        running_loop()
        self._push = push
        self._timeout = timeout
        self._own = LoopTransport(network) if network is not None else None
        such_as = "httpx2.AsyncHTTPTransport()"
        self._transport = self._own or checked_transport(
            transport, httpx2.AsyncBaseTransport, such_as
        )
        self._socket: socket.socket | None = None
        self._failure: Broken | None = None

    async def __aenter__(self) -> Self:
        """Needs nothing."""
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Closes what was opened; a transport of the caller stays open."""
        if self._socket is not None:
            self._socket.close()
        if self._own is not None:
            await self._own.aclose()

    def step(self) -> Message | Wait | Finished | Done:
        """What to do next."""
        try:
            return self._push.step(Now.read())
        except ServiceError as error:
            raise raised_from(error, self._failure) from error.__cause__

    async def pause(self, seconds: float) -> None:
        """Waits for so long."""
        await asyncio.sleep(seconds)

    async def send(self, message: Message) -> None:
        """Sends a message, and reports the outcome to the push."""
        sent = Sent()
        try:
            async with asyncio.timeout(self._timeout) as limit:
                if message.is_datagram:
                    await self._send_datagram(message)
                else:
                    await self._exchange(message, sent, limit)
        except BaseException as error:  # noqa: BLE001 - a transport may raise anything
            cleared(error)
            self._failure = Broken(error)
            report(self._push, self._failure, sent, error)

    async def _exchange(self, message: Message, sent: Sent, limit: asyncio.Timeout) -> None:
        push = self._push
        request = sent.request(message, self._timeout, is_own=self._own is not None)
        response = await self._transport.handle_async_request(request)
        try:
            wanted = push.head(response.status_code, headers_of(response))
            if wanted and response.status_code >= REFUSED:
                end, soon = limit.when(), asyncio.get_running_loop().time() + EXCERPT_SECONDS
                limit.reschedule(soon if end is None else min(end, soon))
            if wanted:
                async for chunk in body_of(response):
                    if not push.chunk(chunk):
                        break
        finally:
            # The response has been read or is not wanted: no failure to close it matters.
            with contextlib.suppress(Exception):
                await response.aclose()
        if wanted:
            push.end()

    async def _send_datagram(self, message: Message) -> None:
        loop = asyncio.get_running_loop()
        if self._socket is None:
            host, port = address_of(message)
            found = await loop.getaddrinfo(host, port, type=socket.SOCK_DGRAM)
            family, kind, protocol, _, address = found[0]
            self._socket = socket.socket(family, kind, protocol)
            self._socket.setblocking(False)  # noqa: FBT003 - as the standard library has it
            self._socket.connect(address)
        await loop.sock_sendall(self._socket, message.body)
        self._push.sent()
