"""The package as a whole: its version, and which modules import which."""

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from importlib.metadata import version
from pathlib import Path

import pytest

import tallyfold

ROOT = Path(__file__).parents[1] / "python"


def modules() -> Iterator[tuple[str, set[str]]]:
    """Gives each module, and what it imports when it runs, also from inside of functions."""
    for file in (ROOT / "tallyfold").rglob("*.py"):
        *folders, name = file.relative_to(ROOT).with_suffix("").parts
        yield ".".join([*folders, *([] if name == "__init__" else [name])]), imported(file)


def imported(file: Path) -> set[str]:
    names: set[str] = set()
    pending: list[ast.AST] = [ast.parse(file.read_text("utf-8"))]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.module is not None
            assert node.level == 0
            names.update({node.module, *(f"{node.module}.{alias.name}" for alias in node.names)})
        # A type checker may import in a circle.
        is_for_types = isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        pending += [] if is_for_types else ast.iter_child_nodes(node)
    return names


def test_the_module_reports_the_version_of_its_package() -> None:
    assert tallyfold.__version__ == version("tallyfold")


def test_modules_import_each_other_in_no_circle() -> None:
    known = dict(modules())
    assert len(known) > 50
    sorter = TopologicalSorter({name: known.keys() & of - {name} for name, of in known.items()})
    try:
        sorter.prepare()
    except CycleError as error:
        pytest.fail(" imports ".join(reversed(error.args[1])))
