"""Every public name is documented, and every example in the docs runs as it says."""

import asyncio
import datetime
import doctest
import inspect
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

import tallyfold

OPTIONS = doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL | doctest.NORMALIZE_WHITESPACE


def documented() -> Iterator[tuple[str, Any]]:
    """Gives the package's classes and functions, and the public members of the classes."""
    for name in tallyfold.__all__:
        value = getattr(tallyfold, name)
        if not (inspect.isclass(value) or inspect.isfunction(value)):
            continue
        yield name, value
        if inspect.isclass(value):
            for member, attribute in inspect.getmembers(value):
                if not member.startswith("_") and is_ours(value, member, attribute):
                    yield f"{name}.{member}", attribute


def is_ours(owner: type, member: str, attribute: object) -> bool:
    """Whether a class's member is written in this package and can have a docstring."""
    defined_in = next(base for base in owner.__mro__ if member in vars(base))
    if isinstance(attribute, str | int | type(None)) or inspect.ismemberdescriptor(attribute):
        return False
    return defined_in.__module__.startswith("tallyfold")


NAMES = dict(documented())


@pytest.fixture
def examples() -> dict[str, Any]:
    """Gives what the package's own example leaves, from where all others go on."""
    names: dict[str, Any] = {"asyncio": asyncio, "datetime": datetime, "httpx2": httpx2}
    assert tallyfold.__doc__ is not None
    run(tallyfold.__doc__, "tallyfold", names)
    return names


def run(text: str, name: str, names: dict[str, Any]) -> int:
    """Runs the examples in a docstring, which may define names, and gives how many there were."""
    test = doctest.DocTestParser().get_doctest(text, names, name, None, None)
    report: list[str] = []
    runner = doctest.DocTestRunner(optionflags=OPTIONS)
    failed, attempted = runner.run(test, out=report.append, clear_globs=False)
    names.update(test.globs)
    assert failed == 0, "".join(report)
    return attempted


@pytest.mark.parametrize("name", NAMES)
def test_its_examples_run(name: str, examples: dict[str, Any]) -> None:
    text = inspect.getdoc(NAMES[name])
    assert text, "every public name is documented"
    run(text, name, examples)


def test_there_are_examples() -> None:
    parser = doctest.DocTestParser()
    without = {
        name
        for name, value in NAMES.items()
        if "." not in name and not parser.get_examples(inspect.getdoc(value) or "")
    }
    # What machines and their calls give and take is shown by the machines' examples.
    assert without == {"Blocked", "Call", "Done", "ProvideToken", "Request", "Send"} | {
        "Drive",
        "Idle",
        "SandboxResponse",
        "Wait",
    }
