"""What tallyfold raises: one base class, four children, and a closed list of codes."""

import functools
from collections.abc import Callable, Sequence
from typing import ClassVar, Literal

from tallyfold._names import ErrorCode
from tallyfold._tallyfold import CountTable
from tallyfold._window import Window

__all__ = [
    "ArgumentTypeError",
    "AuthError",
    "ConfigError",
    "ErrorKind",
    "ResponseError",
    "ServiceError",
    "TallyfoldError",
]

ErrorKind = Literal["config", "auth", "service", "response"]
"""Who has to act on an error."""


class TallyfoldError(Exception):
    """What went wrong, where, and what would be right.

    No error holds a secret, a token, or text of a token endpoint's body.

    Attributes:
        code: what went wrong, one of a closed list.
        kind: who has to act: `"config"`, `"auth"`, `"service"` or `"response"`.
        status: the HTTP status, where the error comes from one.
        path: the JSON path of the value at fault, such as `$.counts[3].success`.
        offset: the offset of the byte at fault from the start of the body.
        retry_after: the seconds after which the service wants to be asked again, where its answer
            says so (`Retry-After`).
        argument: the name of the argument at fault.
        partial: of a `collect` with windows missing, the counts of those that were read; `None` if
            there are none. To read the rest only, collect again with it as `have`.
        gaps: the time that `partial` lacks.
        failures: each window that has failed, with its error.

    >>> try:
    ...     client.event_delivery("2026-01-01T00:00:00", "2026-01-02T00:00:00Z", ["reason"])
    ... except tallyfold.TallyfoldError as error:
    ...     error.kind, error.code, error.argument
    ('config', 'invalid_timestamp', 'start')
    """

    kind: ClassVar[ErrorKind]
    code: ErrorCode
    status: int | None
    path: str | None
    offset: int | None
    retry_after: int | None
    argument: str | None
    partial: CountTable | None
    gaps: list[Window]
    failures: "list[tuple[Window, TallyfoldError]]"

    def __init__(
        self,
        message: str,
        *,
        code: ErrorCode,
        status: int | None = None,
        path: str | None = None,
        offset: int | None = None,
        retry_after: int | None = None,
        argument: str | None = None,
        partial: CountTable | None = None,
        gaps: Sequence[Window] = (),
        failures: "Sequence[tuple[Window, TallyfoldError]]" = (),
    ) -> None:
        """Keeps the whole text and the places that it names."""
        super().__init__(message)
        self.code = code
        self.status = status
        self.path = path
        self.offset = offset
        self.retry_after = retry_after
        self.argument = argument
        self.partial = partial
        self.gaps = list(gaps)
        self.failures = list(failures)

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        """Lets an error travel between processes, which `Exception` can't for keywords."""
        restore = functools.partial(
            type(self),
            code=self.code,
            status=self.status,
            path=self.path,
            offset=self.offset,
            retry_after=self.retry_after,
            argument=self.argument,
            partial=self.partial,
            gaps=self.gaps,
            failures=self.failures,
        )
        return restore, (str(self),)


class ConfigError(TallyfoldError):
    """The caller's arguments, or the order of calls; nothing was sent.

    >>> client.event_delivery("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z", [])
    Traceback (most recent call last):
        ...
    tallyfold.ConfigError: no_dimensions: ...
    """

    kind = "config"


class ArgumentTypeError(ConfigError, TypeError):
    """An argument that is missing, has an unknown name, or has a value of the wrong type.

    It is no name of the package: catch it as `ConfigError`, or as the `TypeError` that it is, too.
    """


class AuthError(TallyfoldError):
    """The credentials or the tokens (service reference 5 and 7).

    >>> wrong = sandbox.credentials | {"client_secret": "no secret"}
    >>> stranger = tallyfold.Client(
    ...     cluster_endpoint="https://sandbox.example", transport=sandbox.transport(), **wrong
    ... )
    >>> stranger.event_delivery("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z", ["reason"])
    Traceback (most recent call last):
        ...
    tallyfold.AuthError: token_refused: ...
    """

    kind = "auth"


class ServiceError(TallyfoldError):
    """The service or the way to it: statuses, redirects, the network, the timeout.

    >>> sandbox.inject("status", endpoint="event_delivery", status=403)
    >>> client.event_delivery("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z", ["reason"])
    Traceback (most recent call last):
        ...
    tallyfold.ServiceError: forbidden: ...
    """

    kind = "service"


class ResponseError(TallyfoldError):
    """The bytes of a response that should have been good (service reference 2.2 and 2.3).

    >>> aggregator = tallyfold.Aggregator(["integration"])
    >>> try:
    ...     aggregator.push(b"<html>")
    ... except tallyfold.ResponseError as error:
    ...     error.code, error.offset
    ('html_response', 0)
    """

    kind = "response"


# Tracebacks and pickles name the classes where people import them from.
for _class in (TallyfoldError, ConfigError, AuthError, ServiceError, ResponseError):
    _class.__module__ = "tallyfold"
