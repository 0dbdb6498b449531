"""Sends the messages of a push in asyncio."""

import asyncio
import contextlib
import socket
from typing import Self

import httpx2

from tallyfold._calls.facade import checked_transport
from tallyfold._export.sending import (
    EXCERPT_SECONDS,
    REFUSED,
    Sending,
    Sent,
    address_of,
)
from tallyfold._http.loop_transport import LoopTransport, body_of, hurry, running_loop
from tallyfold._http.network import Network
from tallyfold._http.transport import headers_of
from tallyfold._tallyfold import Message, Notifications, Push

__all__ = ["AsyncSender"]


class AsyncSender(Sending):
    """Sends the messages of a push or of notifications, and reports the responses."""

    def __init__(
        self,
        push: Push | Notifications,
        transport: httpx2.AsyncBaseTransport | None,
        network: Network | None,
        timeout: float | None,
    ) -> None:
        """Opens no connection yet."""
        running_loop()
        super().__init__(push, timeout)
        self._socket: socket.socket | None = None
        self._own = LoopTransport(network) if network is not None else None
        such_as = "httpx2.AsyncHTTPTransport()"
        self._transport = self._own or checked_transport(
            transport, httpx2.AsyncBaseTransport, such_as
        )

    async def __aenter__(self) -> Self:
        """Returns the sender itself."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Closes what was opened; a transport of the caller stays open."""
        if self._socket is not None:
            self._socket.close()
        if self._own is not None:
            await self._own.aclose()

    async def pause(self, seconds: float) -> None:
        """Waits for some seconds."""
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
            self._fail(sent, error)

    async def _exchange(self, message: Message, sent: Sent, limit: asyncio.Timeout) -> None:
        push = self._push
        request = sent.request(message, self._timeout, is_own=self._own is not None)
        response = await self._transport.handle_async_request(request)
        try:
            wanted = push.head(response.status_code, headers_of(response))
            if wanted and response.status_code >= REFUSED:
                hurry(limit, EXCERPT_SECONDS)
            if wanted:
                async for chunk in body_of(response):
                    if not push.chunk(chunk):
                        break
        finally:
            # The response has been read or isn't wanted, so failing to close it doesn't matter.
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
