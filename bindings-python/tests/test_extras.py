"""Without its package, a module says how to install it; `make test-engines` tests the rest."""

import importlib
import sys

import pytest


@pytest.mark.parametrize(("module", "package"), [("dlt", "dlt"), ("spark", "pyspark.sql")])
def test_a_module_names_its_extra(
    monkeypatch: pytest.MonkeyPatch, module: str, package: str
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.delitem(sys.modules, f"tallyfold.{module}", raising=False)
    with pytest.raises(ModuleNotFoundError, match=rf"pip install 'tallyfold\[{module}\]'"):
        importlib.import_module(f"tallyfold.{module}")
