"""The functions that a caller hands over: only `AsyncClient` awaits what they return."""

import inspect
from collections.abc import Callable
from typing import TypeVar

from tallyfold._errors import ArgumentTypeError, wrong_type

__all__ = [
    "async_finished",
    "async_function",
    "async_refusal",
    "finished",
    "function",
    "refusal",
]

F = TypeVar("F", bound=Callable[..., object] | None)

PLAIN = "want a plain function: only AsyncClient awaits"


def refusal(name: str, value: object, wanted: str) -> ArgumentTypeError | None:
    """The error for a value that can't be called, or would have to be awaited."""
    if (error := async_refusal(name, value, wanted)) is not None:
        return error
    if inspect.iscoroutinefunction(value) or inspect.iscoroutinefunction(type(value).__call__):
        return wrong_type(name, PLAIN, value)
    return None


def async_refusal(name: str, value: object, wanted: str) -> ArgumentTypeError | None:
    """The error for a value that can't be called."""
    return None if value is None or callable(value) else wrong_type(name, wanted, value)


def function(name: str, value: F) -> F:
    """Gives a function of the caller, if it is one that need not be awaited."""
    return _unless(refusal(name, value, "want a function"), value)


def async_function(name: str, value: F) -> F:
    """Gives a function of the caller, if it is one."""
    return _unless(async_refusal(name, value, "want a function"), value)


def _unless(error: ArgumentTypeError | None, value: F) -> F:
    if error is not None:
        raise error
    return value


def finished(name: str, result: object) -> None:
    """Takes what a function of the caller has returned, which must not wait to be awaited."""
    if inspect.iscoroutine(result):
        result.close()
        raise wrong_type(name, PLAIN, result)


async def async_finished(_name: str, result: object) -> None:
    """Awaits what a function of the caller has returned, if it can be awaited."""
    # Most functions return nothing, and `isawaitable` is slow.
    if result is not None and inspect.isawaitable(result):
        await result
