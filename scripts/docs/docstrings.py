"""Docstrings of what is written in Rust: the type stubs have the signatures, the module has the texts.

Examples become blocks of code.
"""

import inspect
import re
from operator import attrgetter
from typing import Any

import griffe
import tallyfold


class NativeDocstrings(griffe.Extension):
    """Takes a docstring from the installed package where the sources have none, and marks examples as code."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Changes the docstring."""
        _take_from_package(obj)
        _mark_examples(obj)

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        """Changes the docstring of the package itself."""
        _mark_examples(pkg)


EXAMPLE = re.compile(r"^( *)>>> .*?(?=\n *\n|\Z)", re.MULTILINE | re.DOTALL)
"""An example, up to the next blank line. Markdown would take it for a quotation."""


def _mark_examples(obj: griffe.Object) -> None:
    if obj.docstring and "```pycon" not in obj.docstring.value:
        obj.docstring.value = EXAMPLE.sub(_fenced, obj.docstring.value)


def _fenced(example: re.Match[str]) -> str:
    indent = example[1]
    return f"{indent}```pycon\n{example[0]}\n{indent}```"


def _take_from_package(obj: griffe.Object) -> None:
    """Adds the docstring of something that is written in Rust."""
    module, _, name = obj.path.partition("._tallyfold.")
    if module != "tallyfold" or obj.docstring or not name:
        return
    try:
        text = inspect.getdoc(attrgetter(name)(tallyfold._tallyfold))
    except AttributeError:
        return
    if text:
        obj.docstring = griffe.Docstring(text, parent=obj)
