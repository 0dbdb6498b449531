"""The exceptions of tallyfold: one base class, four subclasses, and a closed list of codes."""

import functools
from collections.abc import Callable, Sequence
from typing import ClassVar, Literal, TypeVar

from tallyfold._names import ErrorCode
from tallyfold._tallyfold import CountTable
from tallyfold._time import Window
from tallyfold._values import PushReport

__all__ = [
    "ArgumentTypeError",
    "AuthError",
    "ConfigError",
    "ErrorKind",
    "ResponseError",
    "ServiceError",
    "TallyfoldError",
    "check_flag",
    "check_number",
    "invalid",
    "wrong_type",
]

ErrorKind = Literal["config", "auth", "service", "response"]
"""Who has to act on an error."""


class TallyfoldError(Exception):
    """The base class of all errors. Its text names what went wrong, where, and what would be right.

    No error contains a secret, a token, or text from a token endpoint's body. The `__cause__` of
    `network_failed` and `timed_out` is the exception of the operating system or of TLS, if there
    is one; the `__cause__` of `token_provider_failed` is the exception that `access_token` raised.

    Attributes:
        code: what went wrong, one of a closed list; `help(tallyfold.codes)` explains each.
        kind: who has to act: `"config"`, `"auth"`, `"service"` or `"response"`.
        status: the HTTP status, if the error was caused by one.
        path: the JSON path of the value at fault, such as `$.counts[3].success`.
        offset: the offset of the byte at fault from the start of the body.
        retry_after: how many seconds to wait before the next request, if the response contains
            `Retry-After`.
        excerpt: if an API refused a request, the beginning of the response's body, as one line of
            at most 200 characters. The token and the client secret are masked; HTML is left out.
        argument: the name of the argument at fault.
        partial: if windows of a `collect` are missing, the counts of the others; `None` if no
            window was read. To read only the missing time, collect again with this table as `have`.
        gaps: the time that `partial` lacks.
        failures: each window that has failed, with its error.
        report: if a push has failed, the report of what the destination accepted before.

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
    excerpt: str | None
    argument: str | None
    partial: CountTable | None
    gaps: list[Window]
    failures: "list[tuple[Window, TallyfoldError]]"
    report: PushReport | None

    def __init__(
        self,
        message: str,
        *,
        code: ErrorCode,
        status: int | None = None,
        path: str | None = None,
        offset: int | None = None,
        retry_after: int | None = None,
        excerpt: str | None = None,
        argument: str | None = None,
        partial: CountTable | None = None,
        gaps: Sequence[Window] = (),
        failures: "Sequence[tuple[Window, TallyfoldError]]" = (),
        report: PushReport | None = None,
    ) -> None:
        """Keeps the whole text and the fields."""
        super().__init__(message)
        self.code = code
        self.status = status
        self.path = path
        self.offset = offset
        self.retry_after = retry_after
        self.excerpt = excerpt
        self.argument = argument
        self.partial = partial
        self.gaps = list(gaps)
        self.failures = list(failures)
        self.report = report

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        """Supports pickling, which `Exception` does not support for keyword arguments."""
        # A class sets the `kind` of all its errors, so that is not an argument.
        names = [name for name in TallyfoldError.__annotations__ if name != "kind"]
        fields = {name: getattr(self, name) for name in names}
        return functools.partial(type(self), **fields), (str(self),)


class ConfigError(TallyfoldError):
    """Invalid arguments, or calls in the wrong order. In most cases, nothing was sent.

    >>> client.event_delivery("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z", [])
    Traceback (most recent call last):
        ...
    tallyfold.ConfigError: no_dimensions: ...
    """

    kind = "config"


class ArgumentTypeError(ConfigError, TypeError):
    """An argument that is missing, has an unknown name, or has a value of the wrong type.

    The package does not export this class. Catch it as `ConfigError` or as `TypeError`; it is both.
    """


class AuthError(TallyfoldError):
    """A failure of the credentials or the tokens (service reference 5 and 7).

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
    """A failure of the service or the network: a status, a redirect, a connection, a timeout.

    >>> sandbox.inject("status", endpoint="event_delivery", status=403)
    >>> client.event_delivery("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z", ["reason"])
    Traceback (most recent call last):
        ...
    tallyfold.ServiceError: forbidden: ...
    """

    kind = "service"


class ResponseError(TallyfoldError):
    """A response, or other data, that is not a valid result (service reference 2.2 and 2.3).

    >>> aggregator = tallyfold.Aggregator(["integration"])
    >>> try:
    ...     aggregator.push(b"<html>")
    ... except tallyfold.ResponseError as error:
    ...     error.code, error.offset
    ('html_response', 0)
    """

    kind = "response"


ConfigErrorT = TypeVar("ConfigErrorT", bound=ConfigError)


def invalid(kind: type[ConfigErrorT], argument: str, message: str) -> ConfigErrorT:
    """The error for an argument that can't be used."""
    text = f"invalid_argument: {argument}: {message}"
    return kind(text, code="invalid_argument", argument=argument)


def wrong_type(argument: str, wanted: str, value: object) -> ArgumentTypeError:
    """The error for an argument of another type; it does not quote the value."""
    return invalid(ArgumentTypeError, argument, f"{wanted}, not {type(value).__name__}")


def check_flag(argument: str, value: object) -> None:
    """Refuses a value that is not a `bool`, such as the text "false", which would count as true.

    `None` stands for a flag that was not given.
    """
    if not isinstance(value, bool | None):
        raise wrong_type(argument, "want True or False", value)


def check_number(
    argument: str, wanted: str, value: object, kind: type[int] | tuple[type, ...] = int
) -> None:
    """Refuses a value that is not a number of the kind. A `bool` is an `int`, but is refused."""
    if isinstance(value, bool) or not isinstance(value, kind):
        raise wrong_type(argument, wanted, value)


# Tracebacks and pickles should name the package, from which users import the classes.
for _class in (TallyfoldError, ConfigError, AuthError, ServiceError, ResponseError):
    _class.__module__ = "tallyfold"
