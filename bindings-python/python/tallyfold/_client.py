"""The synchronous client: a machine of the core, driven over an httpx2 transport."""

import contextlib
import json
import threading
from collections.abc import Callable, Sequence
from datetime import datetime
from types import TracebackType
from typing import Any, Literal, NoReturn, Self, TypeVar

import httpx2

from tallyfold._clock import Now
from tallyfold._errors import AuthError, ConfigError, TallyfoldError
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
from tallyfold._transport import (
    DeadlineTransport,
    deadline,
    http_request,
    timed_out,
    within_deadline,
)
from tallyfold._values import DimensionName, Tolerance

__all__ = [
    "WANT_PAIR",
    "AccessToken",
    "ApiName",
    "Client",
    "Facade",
    "token_failed",
    "without_own_frame",
]

T = TypeVar("T")

ApiName = Literal["control", "orchestration"]
"""The two APIs; a token of the one is not valid for the other (service reference 5.1)."""

AccessToken = Callable[[ApiName], tuple[str, int | None]]
"""Gives a token for an API and for how many seconds from now it is valid, if that is known."""


WANT_PAIR = "access_token is to return a pair: the token, and its seconds or None"


class Facade:
    """What `Client` and `AsyncClient` have in common: no secret to be seen from outside."""

    __slots__ = ("_access_token", "_addresses", "_closed", "_machine", "_timeout", "_transport")

    def __init__(
        self, machine: Machine, addresses: list[str | None], timeout: float | None
    ) -> None:
        """Keeps the machine, which alone holds the secret."""
        if timeout is not None and not timeout > 0:
            message = "invalid_argument: timeout: want seconds above 0, or None"
            raise ConfigError(message, code="invalid_argument", argument="timeout")
        self._machine = machine
        self._addresses = [address for address in addresses if address is not None]
        self._timeout = timeout
        self._closed = False

    def __repr__(self) -> str:
        """Names the addresses, which hold no secret."""
        return f"<{type(self).__name__} of {', '.join(dict.fromkeys(self._addresses))}>"

    def __reduce__(self) -> NoReturn:
        """Refuses to be pickled or copied."""
        name = type(self).__name__
        raise TypeError(f"a {name} holds a secret and connections: it can't be pickled or copied")

    def _check_open(self) -> None:
        if self._closed:
            raise RuntimeError(f"this {type(self).__name__} is closed")


def without_own_frame(error: Exception) -> Exception:
    """Takes this package's frame, whose locals may hold a token, out of a host's traceback."""
    own = error.__traceback__
    return error.with_traceback(None if own is None else own.tb_next)


def token_failed(call: Call[T], cause: Exception) -> None:
    """Tells the call that the host has no token; raises unless an older one still serves."""
    try:
        call.token_failed()
    except AuthError as failure:
        raise failure from cause


class Client(Facade):
    """Both APIs of the service, with tokens fetched, kept and renewed as needed.

    All threads of a program may share one client; they share its tokens. Close it, or use it in a
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
            `None` where that is not known. What it raises becomes an `AuthError`'s cause.
        transport: how to send requests, as httpx2 has it: `httpx2.HTTPTransport(proxy=...)`,
            `sandbox.transport()`, one of your own. The client closes it. Without one, requests go
            straight to the service: neither proxies nor certificates are taken from the
            environment, so that nothing there can lead a secret elsewhere.
        timeout: the seconds that one exchange may take, from connecting to the body's last byte;
            `None` for no end. Looking a name up is up to the operating system.
        dangerously_allow_http: lets secrets and tokens go over plain http to other machines.
        default_token_lifetime: the seconds to use a token for whose answer names no lifetime.
        limits: `Limits` of responses other than the usual ones.
        tolerate: names of deviations to let pass and count in `CountTable.notes`:
            `"repeated_combination"`, `"null_dimension"`.

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

    __slots__ = ("_token_moved",)
    _transport: httpx2.BaseTransport
    _access_token: AccessToken | None

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
        access_token: AccessToken | None = None,
        transport: httpx2.BaseTransport | None = None,
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
        self._transport = DeadlineTransport() if transport is None else transport
        self._token_moved = threading.Condition()

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
            ResponseError: for a body that is not JSON.

        >>> isinstance(client.audit_logs(page=1, per_page=2), dict)
        True
        """
        return json.loads(self._run(self._machine.audit_logs(page, per_page)))

    def close(self) -> None:
        """Closes the transport; later calls raise `RuntimeError`.

        >>> client.close()
        """
        self._closed = True
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
        try:
            self._check_open()
            while True:
                match call.step(Now.read()):
                    case Send(request=request):
                        self._exchange(call, request)
                        self._wake()
                    case ProvideToken(api=api):
                        self._provide_token(call, api)
                        self._wake()
                    case Blocked(epoch=epoch):
                        self._wait(epoch)
                    case Done():
                        return call.output()
        except BaseException as error:
            # The frames below hold requests and response bytes in their locals, and a traceback
            # that shows locals would show secrets.
            error.__traceback__ = None
            raise
        finally:
            call.close()
            self._wake()

    def _exchange(self, call: Call[T], request: Request) -> None:
        try:
            complete = self._receive(call, request)
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

    def _receive(self, call: Call[T], request: Request) -> bool:
        """Feeds the call one response; whether it wanted the body, which then was complete."""
        with deadline(self._timeout):
            response = self._transport.handle_request(http_request(request, self._timeout))
            try:
                wanted = call.head(response.status_code, response.headers.multi_items())
                if wanted:
                    for chunk in within_deadline(response.iter_bytes()):
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
            match self._access_token(api):
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

    def _wait(self, epoch: int) -> None:
        with self._token_moved:
            self._token_moved.wait_for(lambda: self._machine.token_epoch() != epoch)

    def _wake(self) -> None:
        with self._token_moved:
            self._token_moved.notify_all()
