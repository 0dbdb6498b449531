"""Every public name is documented, and every example in the docs runs as it says."""

import ast
import asyncio
import datetime
import doctest
import inspect
import pathlib
import re
import typing
from collections.abc import Iterator
from types import CodeType
from typing import Any, Unpack
from unittest import mock

import httpx2
import pytest
from support import HAS_WIDGET

import tallyfold
from tallyfold import asgi

OPTIONS = doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL | doctest.NORMALIZE_WHITESPACE


def documented() -> Iterator[tuple[str, Any]]:
    """Gives the package's classes and functions, and the public members of the classes."""
    for name in [*tallyfold.__all__, *asgi.__all__]:
        value = getattr(tallyfold if name in tallyfold.__all__ else asgi, name)
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


def options_of(value: Any) -> list[str]:
    """Gives the names of the options that a function or class takes as `**options`."""
    try:
        parameters = inspect.signature(value).parameters.values()
    except (TypeError, ValueError):
        return []
    unpacked = [p.annotation for p in parameters if typing.get_origin(p.annotation) is Unpack]
    return [name for each in unpacked for name in typing.get_args(each)[0].__annotations__]


@pytest.mark.parametrize("name", [name for name, value in NAMES.items() if options_of(value)])
def test_every_option_is_in_the_help(name: str) -> None:
    text = inspect.getdoc(NAMES[name]) or ""
    # Some go on to another function, which says more.
    if not re.search(r"all other (arguments|options) of", text):
        is_there = re.compile(r"\b(\w+):|`(\w+)`").findall(text)
        assert set(options_of(NAMES[name])) <= {name for pair in is_there for name in pair}


@pytest.fixture
def prompt() -> Iterator["Prompt"]:
    """Gives a prompt where the package's own example was typed in, from where all others go on."""
    with asyncio.Runner() as loop:
        prompt = Prompt(loop)
        assert tallyfold.__doc__ is not None
        prompt.run(tallyfold.__doc__, "tallyfold")
        yield prompt


class Prompt:
    """Runs examples that may await, as the prompt of `python -m asyncio` does."""

    def __init__(self, loop: asyncio.Runner) -> None:
        self._loop = loop
        self._names: dict[str, Any] = {"datetime": datetime, "httpx2": httpx2}

    def run(self, text: str, name: str) -> None:
        """Runs the examples in a docstring, which may define names."""
        test = doctest.DocTestParser().get_doctest(text, self._names, name, None, None)
        report: list[str] = []
        runner = doctest.DocTestRunner(optionflags=OPTIONS)
        flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        with mock.patch.object(doctest, "exec", self._execute, create=True):
            failed, _ = runner.run(test, flags, out=report.append, clear_globs=False)
        self._names.update(test.globs)
        assert failed == 0, "".join(report)

    def _execute(self, code: CodeType, names: dict[str, Any]) -> None:
        result = eval(code, names)
        if inspect.iscoroutine(result):
            self._loop.run(result)


@pytest.mark.parametrize("name", NAMES)
def test_its_examples_run(name: str, prompt: Prompt) -> None:
    if name in {"show", "CountTable.show"} and not HAS_WIDGET:
        pytest.skip("the npm package was not built")
    text = inspect.getdoc(NAMES[name])
    assert text, "every public name is documented"
    prompt.run(text, name)


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


ROOT = pathlib.Path(__file__).parents[2]
QUOTED = re.compile(r'^```\w+ title="(cli/deploy/.*?)"\n(.*?)^```$', re.MULTILINE | re.DOTALL)


def test_the_files_of_deployment_are_quoted_as_they_are() -> None:
    page = (ROOT / "docs/guides/deployment.md").read_text(encoding="utf-8")
    quoted = dict(QUOTED.findall(page))
    assert list(quoted) == [
        "cli/deploy/Dockerfile",
        "cli/deploy/systemd/tallyfold-run.service",
        "cli/deploy/kubernetes/run.yaml",
    ]
    for path, text in quoted.items():
        assert text == (ROOT / path).read_text(encoding="utf-8"), path
