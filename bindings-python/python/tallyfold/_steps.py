"""What machines ask of their hosts."""

from dataclasses import dataclass

from tallyfold._names import ApiName
from tallyfold._tallyfold import Call, CountTable, Request
from tallyfold._window import Window

__all__ = ["Blocked", "Done", "Drive", "Idle", "ProvideToken", "Send", "Wait"]


@dataclass(frozen=True, slots=True)
class Send:
    """Send `request`, then tell `head`, `chunk` and `end`, or `failed`."""

    request: Request
    """The request to send."""


@dataclass(frozen=True, slots=True)
class ProvideToken:
    """Tell `token` (or `token_failed`): a token for `api`, `"control"` or `"orchestration"`.

    A token of the one is not valid for the other (service reference 5.1).
    """

    api: ApiName
    """Which of the two APIs the token is for."""


@dataclass(frozen=True, slots=True)
class Blocked:
    """Another call is fetching the token.

    Wait until `Machine.token_epoch()` differs from `epoch`, then ask for the next step.
    """

    epoch: int
    """The epoch to wait for the end of."""


@dataclass(frozen=True, slots=True)
class Wait:
    """Wait for `ms` milliseconds of the monotonic clock, or less, and ask for the next step.

    Something is to be tried again, the service has asked to be left alone for a while, or no window
    closes.
    """

    ms: int
    """For how long; at most 2**31 - 1."""


@dataclass(frozen=True, slots=True)
class Done:
    """The call is complete: take its `output`. Of a machine with many calls: all are settled."""


@dataclass(frozen=True, slots=True)
class Drive:
    """Drive `call` to its end, or close it, then settle `task`."""

    task: int
    """The number to settle the call with."""
    window: Window
    """The window that the call is of."""
    call: Call[CountTable]
    """The call."""


@dataclass(frozen=True, slots=True)
class Idle:
    """There is nothing to start while other calls are under way.

    Ask again once one of them has been settled.
    """


# People import the classes from the package, and tracebacks and docs say so.
for _class in (Send, ProvideToken, Blocked, Wait, Done, Drive, Idle):
    _class.__module__ = "tallyfold"
