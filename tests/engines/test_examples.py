"""The programs in `examples/distributed` give what one process alone gives, to the last count."""

import subprocess
import sys
from pathlib import Path

import pytest
import tallyfold

EXAMPLES = Path(__file__).parents[2] / "examples/distributed"


@pytest.mark.parametrize("engine", ["dask", "pyspark"])
def test_parts_add_up_to_the_whole(engine: str, sandbox: tallyfold.Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(EXAMPLES))
    run = subprocess.run([sys.executable, EXAMPLES / f"with_{engine}.py"], capture_output=True, text=True, timeout=500, check=False)
    assert run.returncode == 0, run.stderr
    assert "equal to one process alone" in run.stdout
