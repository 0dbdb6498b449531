"""Sends the messages of a push."""

import contextlib
import socket
import time
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
from tallyfold._http.network import Network
from tallyfold._http.stop import Stop
from tallyfold._http.transport import (
    DeadlineTransport,
    body_of,
    deadline,
    headers_of,
    hurry,
)
from tallyfold._tallyfold import Message, Notifications, Push

__all__ = ["Sender"]


class Sender(Sending):
    """Sends the messages of a push or of notifications, and reports the responses."""

    def __init__(
        self,
        push: Push | Notifications,
        transport: httpx2.BaseTransport | None,
        network: Network | None,
        timeout: float | None,
    ) -> None:
        """Opens no connection yet."""
        super().__init__(push, timeout)
        self._socket: socket.socket | None = None
        self._own = DeadlineTransport(network) if network is not None else None
        such_as = "httpx2.HTTPTransport()"
        self._transport = self._own or checked_transport(transport, httpx2.BaseTransport, such_as)

    def __enter__(self) -> Self:
        """Returns the sender itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Closes what was opened; a transport of the caller stays open."""
        if self._own is not None:
            self._own.close()
        if self._socket is not None:
            self._socket.close()

    def pause(self, seconds: float) -> None:
        """Waits for some seconds."""
        time.sleep(seconds)

    def send(self, message: Message) -> None:
        """Sends a message, and reports the outcome to the push."""
        sent = Sent()
        try:
            if message.is_datagram:
                self._send_datagram(message)
            else:
                self._exchange(message, sent)
        except BaseException as error:  # noqa: BLE001 - a transport may raise anything
            self._fail(sent, error)

    def _exchange(self, message: Message, sent: Sent) -> None:
        push = self._push
        request = sent.request(message, self._timeout, is_own=self._own is not None)
        with deadline(self._timeout, Stop()):
            response = self._transport.handle_request(request)
            try:
                wanted = push.head(response.status_code, headers_of(response))
                if wanted and response.status_code >= REFUSED:
                    hurry(EXCERPT_SECONDS)
                if wanted:
                    for chunk in body_of(response):
                        if not push.chunk(chunk):
                            break
            finally:
                # The response has been read or isn't wanted, so failing to close it doesn't matter.
                with contextlib.suppress(Exception):
                    response.close()
        if wanted:
            push.end()

    def _send_datagram(self, message: Message) -> None:
        if self._socket is None:
            host, port = address_of(message)
            found = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)
            family, kind, protocol, _, address = found[0]
            self._socket = socket.socket(family, kind, protocol)
            self._socket.connect(address)
        self._socket.settimeout(self._timeout)
        self._socket.send(message.body)
        self._push.sent()
