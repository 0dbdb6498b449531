"""The loop that drives calls of the core over an httpx2 transport."""

import contextlib
import threading
from collections.abc import Callable
from typing import Any, TypeVar

import httpx2

from tallyfold._calls.callbacks import finished, function
from tallyfold._calls.facade import (
    Broken,
    Facade,
    checked_transport,
    cleared,
    hand_in,
    token_failed,
    waited_too_long,
    without_own_frame,
)
from tallyfold._calls.steps import Blocked, Done, ProvideToken, Send, Wait
from tallyfold._errors import TallyfoldError
from tallyfold._http.network import Network
from tallyfold._http.stop import Stop
from tallyfold._http.transport import (
    EXCERPT_SECONDS,
    OK,
    DeadlineTransport,
    body_of,
    deadline,
    headers_of,
    http_request,
    hurry,
)
from tallyfold._names import ApiName
from tallyfold._tallyfold import Call, CountTable, Request
from tallyfold._time import Now

__all__ = ["AccessToken", "Driver", "Reader"]

T = TypeVar("T")

AccessToken = Callable[[ApiName], tuple[str, int | None]]
"""A function that gets the name of an API, and returns a token for it and the token's lifetime in
seconds, or `None` if the lifetime is not known."""


class Driver(Facade[AccessToken, httpx2.BaseTransport]):
    """A client's machine, and the threads that drive its calls."""

    __slots__ = ("_closing", "_token_moved")

    _function: Callable[..., Any] = staticmethod(function)

    def _direct(self, network: Network) -> httpx2.BaseTransport:
        return DeadlineTransport(network)

    def _open(self, transport: httpx2.BaseTransport) -> None:
        such_as = "httpx2.HTTPTransport()"
        self._transport = checked_transport(transport, httpx2.BaseTransport, such_as)
        self._token_moved = threading.Condition()
        self._closing = Stop()

    def _stop(self, stop: Stop) -> None:
        """Sets `stop`, and wakes the threads that wait for it or for a token."""
        stop.set()
        # In a forked process, no thread waits, and a thread that is not there may hold the lock.
        if not self._in_other_process():
            self._wake()

    def _run(self, call: Call[T]) -> T:
        self._check_usable()
        self._drive_alone(call)
        return call.output()

    def _drive_alone(self, call: Call[T]) -> None:
        self._drive(call, self._closing)

    def _reader(self) -> "Reader":
        stop = Stop(self._closing)
        return Reader(
            lambda call: self._drive(call, stop),
            self._check_usable,
            stop,
            lambda: self._stop(stop),
        )

    def _shut(self) -> None:
        self._closed = True
        self._stop(self._closing)
        # A forked process has copies of the connections, which only the parent may close.
        if not self._in_other_process():
            self._transport.close()

    def _drive(self, call: Call[T], stop: Stop) -> None:
        """Drives the call to its end, or until `stop` is set. Closes the call in any case."""
        try:
            while not self._advance(call, stop):
                # Not in `_advance`, so that exceptions of the function keep their traceback.
                finished("on_attempt", self._report(call))
                if stop.is_set():
                    self._check_open()
                    return
        except TallyfoldError:
            finished("on_attempt", self._report(call))
            raise
        finally:
            call.close()
            self._wake()

    def _advance(self, call: Call[T], stop: Stop) -> bool:
        """Performs the call's next step. Returns whether it was the last one."""
        try:
            match call.step(Now.read()):
                case Send(request=request):
                    self._exchange(call, request, stop)
                    self._wake()
                case ProvideToken(api=api):
                    self._provide_token(call, api)
                    self._wake()
                case Blocked(epoch=epoch):
                    self._wait(call, epoch, stop)
                case Wait(ms=ms):
                    stop.wait(ms / 1000)
                case Done():
                    return True
        except BaseException as error:
            cleared(error)
            raise
        return False

    def _exchange(self, call: Call[T], request: Request, stop: Stop) -> None:
        try:
            complete = self._receive(call, request, stop)
        except BaseException as error:  # noqa: BLE001 - a transport may raise anything
            failure = Broken(error, is_over=stop.is_set())
        else:
            if complete:
                call.end()
            return
        if not stop.is_set():
            failure.report(call)

    def _receive(self, call: Call[T], request: Request, stop: Stop) -> bool:
        """Passes a response to the call. Returns whether the call wanted the body and got it."""
        timeout, _ = self._limits_of(call)
        with deadline(timeout, stop):
            response = self._transport.handle_request(http_request(request, timeout))
            try:
                wanted = call.head(response.status_code, headers_of(response))
                if wanted and response.status_code != OK:
                    hurry(EXCERPT_SECONDS)
                if wanted:
                    for chunk in body_of(response):
                        call.chunk(chunk)
            finally:
                # The response has been read or isn't wanted, so failing to close it doesn't matter.
                with contextlib.suppress(Exception):
                    response.close()
        return wanted

    def _provide_token(self, call: Call[T], api: ApiName) -> None:
        if self._access_token is None:
            raise RuntimeError("the machine requested a token, but there is no access_token")
        try:
            with self._provision():
                answer = self._access_token(api)
        except Exception as error:  # noqa: BLE001 - the host's function may raise anything
            cause = without_own_frame(error)
        else:
            hand_in(call, answer)
            return
        token_failed(call, cause)

    def _wait(self, call: Call[T], epoch: int, stop: Stop) -> None:
        timeout, is_last = self._limits_of(call)
        with self._token_moved:
            moved = self._token_moved.wait_for(
                lambda: self._machine.token_epoch() != epoch or stop.is_set(), timeout
            )
        # After the deadline, the call's next step raises the error.
        if not moved and not is_last:
            raise waited_too_long()

    def _wake(self) -> None:
        with self._token_moved:
            self._token_moved.notify_all()


class Reader:
    """Drives the calls of a follow one after the other, until it is closed."""

    def __init__(
        self,
        drive: Callable[[Call[CountTable]], None],
        check: Callable[[], None],
        stop: Stop,
        end: Callable[[], None],
    ) -> None:
        """Drives nothing yet. `end` sets `stop`, and wakes the threads that wait for a token."""
        self.drive = drive
        self.check = check
        self._stop = stop
        self._end = end
        self._closed = False

    def is_closed(self) -> bool:
        """Whether the reader was closed."""
        return self._closed

    def pause(self, seconds: float) -> None:
        """Waits for some seconds, or until the reader or the client is closed."""
        self._stop.wait(seconds)

    def close(self) -> None:
        """Closes the reader, which ends its waits and transfers."""
        self._closed = True
        self._end()
