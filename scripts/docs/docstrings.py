"""Adds the docstrings of code that is written in Rust: the type stubs have the signatures, the compiled module has the texts.

Examples become code blocks. Arguments that a function accepts as `**options` get their type and their default.
"""

import inspect
import re
from collections.abc import Iterator
from operator import attrgetter
from typing import Any

import griffe
import tallyfold


class NativeDocstrings(griffe.Extension):
    """Copies docstrings that the sources lack from the installed package, and marks examples as code."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Changes the docstring."""
        _change(obj)

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        """Changes the docstring of the package itself, and describes the options of its functions."""
        _mark_examples(pkg)
        classes = {name: one for module in _modules(pkg) for name, one in module.classes.items() if not one.is_alias}
        for module in _modules(pkg):
            for one in [*module.functions.values(), *module.classes.values()]:
                if not one.is_alias:
                    _describe_options(one, classes)


EXAMPLE = re.compile(r"^( *)>>> .*?(?=\n *\n|\Z)", re.MULTILINE | re.DOTALL)
"""An example, up to the next blank line. Markdown would render it as a quotation."""


def _modules(module: griffe.Module) -> Iterator[griffe.Module]:
    yield module
    for inner in module.modules.values():
        if not inner.is_alias:
            yield from _modules(inner)


def _describe_options(obj: griffe.Object, classes: dict[str, griffe.Class]) -> None:
    """Adds types and defaults to the arguments that are keys of a TypedDict, which a signature lists as `**options`."""
    if isinstance(obj, griffe.Class):
        for function in obj.functions.values():
            if not function.is_alias:
                _describe_options(function, classes)
        options = _options(_makers(obj, classes), classes)
    else:
        options = _options([obj], classes)
    # This docstring is parsed below, and only once, so it must be changed before: `on_object` comes after `on_package`.
    _change(obj)
    if not options or not obj.docstring:
        return
    for section in obj.docstring.parsed:
        if section.kind is not griffe.DocstringSectionKind.parameters:
            continue
        for parameter in section.value:
            option = options.get(parameter.name)
            if option is not None and parameter.value is None:
                parameter.annotation, parameter.value = option


def _makers(cls: griffe.Class, classes: dict[str, griffe.Class]) -> list[griffe.Object]:
    """The functions that accept the arguments of a class: its own functions, or the functions of a base class."""
    own = [cls.functions[name] for name in ("__init__", "__new__") if name in cls.functions]
    if own or cls.path.startswith("tallyfold._tallyfold."):
        return own
    # A class that is written in Rust may be imported under another name.
    names = [cls.name, *(str(base).rpartition(".")[2] for base in cls.bases)]
    native = [classes[name] for name in names if name in classes and classes[name] is not cls]
    return [function for one in native for function in _makers(one, classes)]


def _options(functions: list[griffe.Object], classes: dict[str, griffe.Class]) -> dict[str, tuple[Any, str | None]]:
    """The types and the defaults of the arguments that functions accept as `**options`."""
    found: dict[str, tuple[Any, str | None]] = {}
    for function in functions:
        for parameter in function.parameters:
            named = re.fullmatch(r"(?:typing\.)?Unpack\[(\w+)\]", str(parameter.annotation))
            if named and named[1] in classes:
                found |= _keys(classes[named[1]], classes)
    return found


def _keys(cls: griffe.Class, classes: dict[str, griffe.Class]) -> dict[str, tuple[Any, str | None]]:
    keys: dict[str, tuple[Any, str | None]] = {}
    for base in cls.bases:
        if str(base) in classes:
            keys |= _keys(classes[str(base)], classes)
    for name, attribute in cls.attributes.items():
        annotation = attribute.annotation
        text = str(annotation)
        if text.startswith("Required["):
            keys[name] = annotation.slice, None
            continue
        stated = re.search(r"Default:\s+`([^`]+)`", attribute.docstring.value if attribute.docstring else "")
        usual = "None" if "None" in text else "False" if text == "bool" else "..."
        # Joins a long text that is wrapped after a hyphen, and removes the separators of numbers.
        default = re.sub(r"(?<=-)\s+|(?<=\d),(?=\d)", "", stated[1]) if stated else usual
        keys[name] = annotation, default
    return keys


def _change(obj: griffe.Object) -> None:
    _take_from_package(obj)
    _mark_examples(obj)


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
