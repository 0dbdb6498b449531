"""Imports packages that only some functions need."""

import importlib
from typing import Any

__all__ = ["installed"]


def installed(message: str, *modules: str) -> list[Any]:
    """Imports modules of packages that may not be installed.

    Raises:
        ModuleNotFoundError: with the message, which says how to install them.
    """
    try:
        return [importlib.import_module(module) for module in modules]
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(message, name=error.name) from error
