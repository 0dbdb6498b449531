"""The synchronous client: a machine of the core, driven over an httpx2 transport."""

import contextlib
import threading
from collections.abc import Callable, Sequence
from datetime import datetime
from types import TracebackType
from typing import Any, Self, TypeVar

import httpx2

from tallyfold._clock import Now
from tallyfold._errors import TallyfoldError
from tallyfold._facade import (
    ApiName,
    Facade,
    broken,
    hand_in,
    parsed,
    token_failed,
    waited_too_long,
    without_own_frame,
)
from tallyfold._tallyfold import (
    Blocked,
    Call,
    CountTable,
    Done,
    ProvideToken,
    Request,
    Send,
    Wait,
)
from tallyfold._transport import DeadlineTransport, deadline, http_request, within_deadline
from tallyfold._values import DimensionName

__all__ = ["AccessToken", "Client"]

T = TypeVar("T")

AccessToken = Callable[[ApiName], tuple[str, int | None]]
"""Gives a token for an API and for how many seconds from now it is valid, if that is known."""


class Client(Facade[AccessToken, httpx2.BaseTransport]):
    """Both APIs of the service, with tokens fetched, kept and renewed as needed.

    All threads of a process may share one client; they share its tokens. A process that was forked
    makes its own: there, one from before the fork raises `RuntimeError`. Close it, or use it in a
    `with` statement.

    Args:
        cluster_endpoint: the address of your deployment, for the Event Metrics API.
        client_id: issued by the service's operator (service reference 5).
        client_secret: issued with it. It can't be read back from the client.
        control_audience: the audience identifier of the Control API (4.3).
        base_url: the address of the Orchestration API.
        auth_url: the address of the authorization server (4.1).
        orchestration_audience: the audience identifier of the Orchestration API.
        access_token: in place of a secret, a function that is called with `"control"` or
            `"orchestration"` and returns a token for that API with its lifetime in seconds, or
            `None` where that is not known. What it raises becomes an `AuthError`'s cause. It must
            end by itself: nothing can stop a function, and the call that needs its token waits
            for it without a bound. Other calls wait for `timeout` seconds. It can't call the
            client that it serves.
        transport: how to send requests, as httpx2 has it: `httpx2.HTTPTransport(proxy=...)`,
            `sandbox.transport()`, one of your own. The client closes it. It is told `timeout` for
            each of its waits, and must keep to it: between two chunks, the client can end an
            exchange that takes too long, within one it can't. Without a transport, requests go
            straight to the service: neither proxies nor certificates are taken from the
            environment, so that nothing there can lead a secret elsewhere.
        timeout: the seconds that one exchange may take, from connecting to the body's last byte,
            and the wait for a token that another call fetches; up to a day, `None` for no end.
            Looking a name up is up to the operating system.
        dangerously_allow_http: lets secrets and tokens go over plain http to other machines.
        default_token_lifetime: the seconds to use a token for whose answer names no lifetime.
        limits: `Limits` of responses other than the usual ones.
        tolerate: names of deviations to let pass and count in `CountTable.notes`:
            `"repeated_combination"`, `"null_dimension"`.
        max_retries: how often one call is tried again at most, after statuses 408, 429, 500, 502,
            503 and 504, a broken exchange or a `timeout`; 0 for never. All calls of a client share
            a budget of retries, so that a service that is down is not asked much more than usual.
        longest_retry_wait: the most seconds to wait for what the service asks for with
            `Retry-After`; where it asks for more, the call ends with `retry_later`.
        on_attempt: a function that is called with an `Attempt` for each request that has ended, in
            the thread of its call. What it raises ends the call, and is raised as it is.

    Raises:
        ConfigError: for arguments that can't be used, before anything is sent.

    >>> with tallyfold.Client(
    ...     cluster_endpoint="https://sandbox.example",
    ...     transport=sandbox.transport(),
    ...     **sandbox.credentials,
    ... ) as client:
    ...     table = client.event_delivery(
    ...         "2026-01-01T00:00:00Z", "2026-01-01T00:15:00Z", ["integration"]
    ...     )
    >>> table.totals
    Counts(success=7, errors=1, filtered=2)
    """

    __slots__ = ("_closing", "_token_moved")

    def _open(self, transport: httpx2.BaseTransport | None) -> None:
        self._transport = DeadlineTransport() if transport is None else transport
        self._token_moved = threading.Condition()
        self._closing = threading.Event()

    def event_delivery(
        self,
        start: datetime | str,
        end: datetime | str,
        dimensions: Sequence[DimensionName],
        group_by: Sequence[DimensionName] | None = None,
    ) -> CountTable:
        """Asks for event delivery metrics of `[start, end)` (service reference 4.4).

        Args:
            start: an aware `datetime`, or UTC ISO 8601 that ends in `Z`.
            end: likewise, after `start`. The service recommends windows of 5 to 15 minutes.
            dimensions: one to four of `event_name`, `write_key`, `integration`, `reason`.
            group_by: those of them to keep; all when `None`.

        Raises:
            ConfigError: for arguments that can't be used, before anything is sent.
            AuthError: for credentials or tokens that the service does not take.
            ServiceError: for other statuses than 200, the network and the timeout.
            ResponseError: for a response that is not what it should be.

        >>> start = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc)
        >>> end = start + datetime.timedelta(minutes=15)
        >>> client.event_delivery(start, end, ["integration", "reason"])[0]
        Row({'integration': 'email', 'reason': 'playbook'}, success=0, errors=0, filtered=2)
        """
        return self._run(self._machine.event_delivery(start, end, dimensions, group_by))

    def event_ingestion(
        self,
        start: datetime | str,
        end: datetime | str,
        dimensions: Sequence[DimensionName],
        group_by: Sequence[DimensionName] | None = None,
    ) -> CountTable:
        """Asks for event ingestion metrics of `[start, end)` (service reference 4.5).

        Arguments and errors are those of `event_delivery`; there is no dimension `reason`.

        >>> client.event_ingestion(
        ...     "2026-01-01T00:00:00Z", "2026-01-01T00:15:00Z", ["event_name"]
        ... ).dimensions
        ('event_name',)
        """
        return self._run(self._machine.event_ingestion(start, end, dimensions, group_by))

    def audit_logs(self, page: int | None = None, per_page: int | None = None) -> Any:  # noqa: ANN401
        """Lists a page of audit logs and gives the parsed JSON (service reference 4.2).

        The reference shows neither the response nor its bounds, so its shape is the service's.

        Raises:
            ConfigError: for a `page` or `per_page` below 1.
            AuthError: for credentials or tokens that the service does not take.
            ServiceError: for other statuses than 200, the network and the timeout.
            ResponseError: for a body that is not JSON, or has a number that Python can't hold: an
                `int` of thousands of digits, a `float` above the largest.

        >>> isinstance(client.audit_logs(page=1, per_page=2), dict)
        True
        """
        return parsed(self._run(self._machine.audit_logs(page, per_page)))

    def close(self) -> None:
        """Closes the transport; calls from now on, and those that wait, raise `RuntimeError`.

        >>> client.close()
        """
        self._closed = True
        self._closing.set()
        # A fork's copies of the connections are the parent's to close.
        if not self._in_other_process():
            self._transport.close()

    def __enter__(self) -> Self:
        """Gives the client itself."""
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Closes the client."""
        self.close()

    def _run(self, call: Call[T]) -> T:
        self._check_usable()
        try:
            while not self._advance(call):
                # The caller's own function: what it raises is raised as it is.
                self._report(call)
            return call.output()
        except TallyfoldError:
            self._report(call)
            raise
        finally:
            call.close()
            self._wake()

    def _advance(self, call: Call[T]) -> bool:
        """Takes the call's next step; whether it was the last."""
        try:
            match call.step(Now.read()):
                case Send(request=request):
                    self._exchange(call, request)
                    self._wake()
                case ProvideToken(api=api):
                    self._provide_token(call, api)
                    self._wake()
                case Blocked(epoch=epoch):
                    self._wait(epoch)
                case Wait(ms=ms):
                    self._closing.wait(ms / 1000)
                    self._check_open()
                case Done():
                    return True
        except BaseException as error:
            # The frames below hold requests and response bytes in their locals, and a traceback
            # that shows locals would show secrets.
            error.__traceback__ = None
            raise
        return False

    def _exchange(self, call: Call[T], request: Request) -> None:
        try:
            complete = self._receive(call, request)
        except BaseException as error:  # noqa: BLE001 - a transport may raise anything
            name, late = broken(error)
        else:
            if complete:
                call.end()
            return
        call.failed(name, timed_out=late)

    def _receive(self, call: Call[T], request: Request) -> bool:
        """Feeds the call one response; whether it wanted the body, which then was complete."""
        with deadline(self._timeout):
            response = self._transport.handle_request(http_request(request, self._timeout))
            try:
                wanted = call.head(response.status_code, response.headers.multi_items())
                if wanted:
                    for chunk in within_deadline(response).iter_bytes():
                        call.chunk(chunk)
            finally:
                # The response has been read or is not wanted: no failure to close it matters.
                with contextlib.suppress(Exception):
                    response.close()
        return wanted

    def _provide_token(self, call: Call[T], api: ApiName) -> None:
        if self._access_token is None:
            raise RuntimeError("a token is asked for where no access_token was given")
        try:
            with self._provision():
                answer = self._access_token(api)
        except Exception as error:  # noqa: BLE001 - the host's function may raise anything
            cause = without_own_frame(error)
        else:
            hand_in(call, answer)
            return
        token_failed(call, cause)

    def _wait(self, epoch: int) -> None:
        with self._token_moved:
            moved = self._token_moved.wait_for(
                lambda: self._machine.token_epoch() != epoch, self._timeout
            )
        if not moved:
            raise waited_too_long()

    def _wake(self) -> None:
        with self._token_moved:
            self._token_moved.notify_all()
