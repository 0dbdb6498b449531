"""Docstrings of what is written in Rust: the type stubs have the signatures, the module has the texts."""

import inspect
from operator import attrgetter
from typing import Any

import griffe

import tallyfold


class NativeDocstrings(griffe.Extension):
    """Takes a docstring from the installed package where the sources have none."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Adds the docstring, if there is one."""
        module, _, name = obj.path.partition("._tallyfold.")
        if module != "tallyfold" or obj.docstring or not name:
            return
        try:
            text = inspect.getdoc(attrgetter(name)(tallyfold._tallyfold))
        except AttributeError:
            return
        if text:
            obj.docstring = griffe.Docstring(text, parent=obj)
