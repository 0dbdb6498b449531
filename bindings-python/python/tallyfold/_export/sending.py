"""What both senders of pushed messages share."""

from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import httpx2

from tallyfold._calls.facade import Broken, cleared
from tallyfold._calls.steps import Done, Wait
from tallyfold._errors import ConfigError, ServiceError, check_number, invalid
from tallyfold._http.network_error import is_unconnected
from tallyfold._http.transport import http_request
from tallyfold._tallyfold import Finished, Message, Notifications, Push
from tallyfold._time import Now

__all__ = [
    "EXCERPT_SECONDS",
    "REFUSED",
    "OfStep",
    "Sending",
    "Sent",
    "address_of",
    "report_finished",
    "seconds_of",
]

EXCERPT_SECONDS = 5.0
"""How many seconds to wait for the body of a refusal, which is only quoted in the error."""

LONGEST = 86_400
"""The longest time limit in seconds, the same as for a client."""

REFUSED = 300
"""The lowest status that means that a message was not accepted."""


def seconds_of(timeout: float | None) -> float | None:
    """Checks a time limit, and returns it."""
    if timeout is None:
        return None
    check_number("timeout", "want a number of seconds, or None", timeout, (int, float))
    if not 0 < timeout <= LONGEST:
        message = f"want a number of seconds above 0 and at most {LONGEST}, or None"
        raise invalid(ConfigError, "timeout", message)
    return float(timeout)


def address_of(message: Message) -> tuple[str, int]:
    """The host and the port of the destination of a datagram."""
    parts = urlsplit(message.url)
    return parts.hostname or "", parts.port or 0


class Sent(httpx2.SyncByteStream, httpx2.AsyncByteStream):
    """The body of a message, which records that a transport has begun to read it.

    A transport reads the body once it has a connection. Before that, nothing of the message was
    sent.
    """

    def __init__(self) -> None:
        """Nothing is being sent yet."""
        self._body: bytes | None = None
        self.may_have_left = True
        """Whether something of the message may have been sent."""

    def request(self, message: Message, timeout: float | None, *, is_own: bool) -> httpx2.Request:
        """Makes the request of a message. `is_own` is whether our own transport sends it."""
        request = http_request(message, timeout)
        # A transport of the caller may read the body from the request in another way.
        if is_own:
            self._body, self.may_have_left = message.body, False
            request.stream = self
        return request

    def _taken(self) -> bytes:
        self.may_have_left = True
        return self._body or b""

    def __iter__(self) -> Iterator[bytes]:
        """Yields the whole body."""
        yield self._taken()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Yields the whole body."""
        yield self._taken()


class Sending:
    """A push or notifications, and the last failure of their messages."""

    def __init__(self, push: Push | Notifications, timeout: float | None) -> None:
        """Sends nothing yet."""
        self._push = push
        self._timeout = timeout
        self._failure: Broken | None = None

    def step(self) -> Message | Wait | Finished | Done:
        """What to do next.

        Raises:
            ServiceError: the error that ended the push. Its cause is the operating system's
                exception, if there is one.
        """
        try:
            return self._push.step(Now.read())
        except ServiceError as error:
            cause = error.__cause__
            if self._failure is not None and error.code in {"network_failed", "timed_out"}:
                cause = self._failure.cause
            raise error from cause

    def _fail(self, sent: Sent, error: BaseException) -> None:
        """Reports that an exchange failed, and whether anything of the message was sent."""
        cleared(error)
        self._failure = failure = Broken(error)
        not_sent = not sent.may_have_left or is_unconnected(error)
        self._push.failed(failure.name, timed_out=failure.late, not_sent=not_sent)


@dataclass(frozen=True, slots=True)
class OfStep:
    """An `on_finished` of this package, which gets the whole step instead of a number."""

    act: Callable[[Finished], object]

    def __call__(self, step: Any) -> object:  # noqa: ANN401 - the type of `on_finished`
        return self.act(step)


def report_finished(on_finished: Callable[[int], object], step: Finished) -> object:
    """Calls `on_finished` with the number of samples or, for `OfStep`, with the step."""
    argument: Any = step if isinstance(on_finished, OfStep) else step.samples
    return on_finished(argument)
