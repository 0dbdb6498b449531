"""The package as a whole: its version, and which modules import which."""

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from importlib.metadata import version
from pathlib import Path

import pytest

import tallyfold

ROOT = Path(__file__).parents[1] / "python"

FLOORS = [
    {"_arguments", "_errors", "_extras", "_names", "_time", "_values", "codes"},
    {"_files"},
    {"_http"},
    {"_calls"},
    {"_ranges"},
    {"_client"},
    {"_export"},
    {"_health"},
    {"_notebook", "_sandbox"},
    {"_scan", "asgi", "dlt", "spark"},
]
"""The parts of the package from the lowest floor up. A module imports from its own part and from
those below. The modules of the lowest floor may import each other."""


def modules() -> Iterator[tuple[str, set[str]]]:
    """Gives each module, and what it imports, also from inside of functions and only for types."""
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
        pending += ast.iter_child_nodes(node)
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


def test_imports_go_down_the_floors() -> None:
    known = dict(modules())
    floors = {part: floor for floor, parts in enumerate(FLOORS) for part in parts}
    checked = 0
    for module, names in known.items():
        _, part, *_ = *module.split("."), ""
        # These import from all.
        if part in {"", "__main__"}:
            continue
        for name in (known.keys() & names) - {module}:
            _, other, *_ = *name.split("."), ""
            is_below = floors.get(other, len(FLOORS)) < floors[part]
            allowed = other == part or is_below or floors[part] == 0
            assert allowed, f"{module} must not import {name}"
            checked += 1
    assert checked > 200
