"""The functions that the caller of a `Client` hands over: they are called, never awaited."""

import inspect
from collections.abc import Callable
from typing import TypeVar

from tallyfold._errors import ArgumentTypeError, wrong_type

__all__ = ["finished", "function", "refusal"]

F = TypeVar("F", bound=Callable[..., object] | None)

PLAIN = "want a plain function: only AsyncClient awaits"


def refusal(name: str, value: object, wanted: str) -> ArgumentTypeError | None:
    """The error for a value that can't be called, or would have to be awaited."""
    if value is None:
        return None
    if not callable(value):
        return wrong_type(name, wanted, value)
    if inspect.iscoroutinefunction(value) or inspect.iscoroutinefunction(type(value).__call__):
        return wrong_type(name, PLAIN, value)
    return None


def function(name: str, value: F) -> F:
    """Gives a function of the caller, if it is one."""
    if (error := refusal(name, value, "want a function")) is not None:
        raise error
    return value


def finished(name: str, result: object) -> None:
    """Takes what a function of the caller has returned, which must not wait to be awaited."""
    if inspect.iscoroutine(result):
        result.close()
        raise wrong_type(name, PLAIN, result)
