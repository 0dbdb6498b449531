"""Without dlt, the module says how to install it; `make test-engines` tests the source."""

import importlib
import sys

import pytest


def test_the_module_names_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "dlt", None)
    monkeypatch.delitem(sys.modules, "tallyfold.dlt", raising=False)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'tallyfold\[dlt\]'"):
        importlib.import_module("tallyfold.dlt")
