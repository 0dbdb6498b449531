"""The functions that the caller of an `AsyncClient` hands over: what they return is awaited."""

import inspect
from collections.abc import Callable
from typing import TypeVar

from tallyfold._errors import ArgumentTypeError, wrong_type

__all__ = ["finished", "function", "refusal"]

F = TypeVar("F", bound=Callable[..., object] | None)


def refusal(name: str, value: object, wanted: str) -> ArgumentTypeError | None:
    """The error for a value that can't be called."""
    return None if value is None or callable(value) else wrong_type(name, wanted, value)


def function(name: str, value: F) -> F:
    """Gives a function of the caller, if it is one."""
    if (error := refusal(name, value, "want a function")) is not None:
        raise error
    return value


async def finished(name: str, result: object) -> None:  # noqa: ARG001 - as in the other module
    """Awaits what a function of the caller has returned, if it can be awaited."""
    # Most functions return nothing, and `isawaitable` is slow.
    if result is not None and inspect.isawaitable(result):
        await result
