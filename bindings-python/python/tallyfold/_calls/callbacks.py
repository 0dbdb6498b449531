"""Checks the functions that a caller passes. Only asynchronous code awaits their results."""

import inspect
from collections.abc import Callable
from typing import TypeVar

from tallyfold._errors import wrong_type

__all__ = ["async_finished", "async_function", "finished", "function"]

F = TypeVar("F", bound=Callable[..., object] | None)

PLAIN = "want a plain function: only AsyncClient awaits"


def function(name: str, value: F, wanted: str = "want a function") -> F:
    """Returns a function of the caller, or `None`. Refuses coroutine functions and other values."""
    async_function(name, value, wanted)
    if inspect.iscoroutinefunction(value) or inspect.iscoroutinefunction(type(value).__call__):
        raise wrong_type(name, PLAIN, value)
    return value


def async_function(name: str, value: F, wanted: str = "want a function") -> F:
    """Returns a function of the caller, or `None`. Refuses other values."""
    if value is not None and not callable(value):
        raise wrong_type(name, wanted, value)
    return value


def finished(name: str, result: object) -> None:
    """Refuses a coroutine that a function of the caller has returned."""
    if inspect.iscoroutine(result):
        result.close()
        raise wrong_type(name, PLAIN, result)


async def async_finished(_name: str, result: object) -> None:
    """Awaits the result of a function of the caller, if it can be awaited."""
    # Most functions return nothing, and `isawaitable` is slow.
    if result is not None and inspect.isawaitable(result):
        await result
