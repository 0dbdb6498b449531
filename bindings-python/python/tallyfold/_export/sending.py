"""What both senders of pushed messages share."""

from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

import httpx2

from tallyfold._client.facade import Broken
from tallyfold._errors import ConfigError, ServiceError, invalid, wrong_type
from tallyfold._http.network import Certificates, Network
from tallyfold._http.network_error import is_unconnected
from tallyfold._http.transport import http_request
from tallyfold._tallyfold import Finished, Message, Notifications, Pending, Push

__all__ = [
    "EXCERPT_SECONDS",
    "REFUSED",
    "Sent",
    "address_of",
    "finished_of",
    "network_of",
    "raised_from",
    "report",
    "seconds_of",
]

EXCERPT_SECONDS = 5.0
"""How long a refusal waits for its body, which is only quoted."""

LONGEST = 86_400
"""The longest time limit in seconds, which is also that of a client."""

REFUSED = 300
"""The first status with which a receiver does not take a message."""


def network_of(
    transport: object,
    *,
    ca: Certificates | None,
    proxy: str | None,
    trust_env: bool,
    options: Mapping[str, Any],
) -> Network | None:
    """The way to a receiver; `None` if the caller's own transport knows it."""
    # Otherwise the text "false" would be true.
    if not isinstance(trust_env, bool | None):
        raise wrong_type("trust_env", "want True or False", trust_env)
    if transport is None:
        http_too = bool(options.get("allow_http"))
        return Network(ca=ca, proxy=proxy, trust_env=trust_env, http_too=http_too)
    for name, value in {"ca": ca, "proxy": proxy, "trust_env": trust_env or None}.items():
        if value is not None:
            raise invalid(ConfigError, name, "give it to your transport instead")
    return None


def seconds_of(timeout: object) -> float | None:
    """A time limit, checked."""
    if timeout is None:
        return None
    if isinstance(timeout, bool) or not isinstance(timeout, (int, float)):
        raise wrong_type("timeout", "want a number of seconds, or None", timeout)
    if not 0 < timeout <= LONGEST:
        message = f"want a number of seconds above 0 and at most {LONGEST}, or None"
        raise invalid(ConfigError, "timeout", message)
    return float(timeout)


def address_of(message: Message) -> tuple[str, int]:
    """Host and port of the receiver of a datagram."""
    parts = urlsplit(message.url)
    return parts.hostname or "", parts.port or 0


class Sent(httpx2.SyncByteStream, httpx2.AsyncByteStream):
    """The body of a message, which notices that a transport reads it.

    A transport does so once there is a connection. Before that, nothing of the message was sent.
    """

    def __init__(self) -> None:
        """Nothing is being sent yet."""
        self._body: bytes | None = None
        self.may_have_left = True
        """Whether something of the message may have been sent."""

    def request(self, message: Message, timeout: float | None, *, is_own: bool) -> httpx2.Request:
        """The request of a message; `is_own` says whether our own transport sends it."""
        request = http_request(message, timeout)
        # Another transport may take the body from the request in another way.
        if is_own:
            self._body, self.may_have_left = message.body, False
            request.stream = self
        return request

    def _taken(self) -> bytes:
        self.may_have_left = True
        return self._body or b""

    def __iter__(self) -> Iterator[bytes]:
        """The whole body."""
        yield self._taken()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """The same."""
        yield self._taken()


def report(push: Push | Notifications, failure: Broken, sent: Sent, error: BaseException) -> None:
    """Tells a push that an exchange failed, and whether anything of the message was sent."""
    not_sent = not sent.may_have_left or is_unconnected(error)
    push.failed(failure.name, timed_out=failure.late, not_sent=not_sent)


def finished_of(counts: object, step: Finished) -> Any:  # noqa: ANN401
    """What `on_finished` gets: a number, or for an outbox all that it stores."""
    return step if isinstance(counts, Pending) else step.samples


def raised_from(error: ServiceError, failure: Broken | None) -> ServiceError:
    """The error that ended a push, with the exception of the operating system as its cause."""
    if failure is not None and error.code in {"network_failed", "timed_out"}:
        error.__cause__ = failure.cause
    return error
