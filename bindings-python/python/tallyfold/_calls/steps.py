"""The steps that machines request from their hosts."""

from dataclasses import dataclass

from tallyfold._names import ApiName
from tallyfold._tallyfold import Call, CountTable, Request
from tallyfold._time import Window

__all__ = ["Blocked", "Done", "Drive", "Idle", "ProvideToken", "Send", "Wait"]


@dataclass(frozen=True, slots=True)
class Send:
    """Send `request`, then report the response with `head`, `chunk` and `end`, or with `failed`."""

    request: Request
    """The request to send."""


@dataclass(frozen=True, slots=True)
class ProvideToken:
    """Get a token for `api`, then report it with `token`, or a failure with `token_failed`.

    A token of one API is not valid for the other (service reference 5.1).
    """

    api: ApiName
    """Which of the two APIs the token is for."""


@dataclass(frozen=True, slots=True)
class Blocked:
    """Another call is fetching the token.

    Wait until `Machine.token_epoch()` differs from `epoch`, then get the next step.
    """

    epoch: int
    """The current epoch."""


@dataclass(frozen=True, slots=True)
class Wait:
    """Wait for `ms` milliseconds of the monotonic clock, or less, then get the next step.

    The reason is a later retry, a pause that the service has requested, or a window that has not
    ended yet.
    """

    ms: int
    """The milliseconds; at most 2**31 - 1."""


@dataclass(frozen=True, slots=True)
class Done:
    """Nothing is left to do. After a call, read its `output`."""


@dataclass(frozen=True, slots=True)
class Drive:
    """Drive `call` to its end, or close it, then settle `task`."""

    task: int
    """The number to settle the call with."""
    window: Window
    """The window that the call reads."""
    call: Call[CountTable]
    """The call."""


@dataclass(frozen=True, slots=True)
class Idle:
    """Nothing can be started until another call has been settled. Get the next step then."""


# Tracebacks and docs should name the package, from which users import the classes.
for _class in (Send, ProvideToken, Blocked, Wait, Done, Drive, Idle):
    _class.__module__ = "tallyfold"
