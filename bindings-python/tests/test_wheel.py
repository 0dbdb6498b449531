"""The built wheel, used as a stranger would: alone, in an empty virtual environment."""

import os
import subprocess
import venv
from pathlib import Path

import pytest

import tallyfold


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Gives the interpreter of a new environment that holds the wheel and what it asks for."""
    home = tmp_path_factory.mktemp("venv")
    venv.create(home, with_pip=True)
    interpreter = home / "bin" / "python"
    (wheel,) = Path(__file__).parents[2].glob(".cache/wheel/*.whl")
    subprocess.run([interpreter, "-m", "pip", "install", "--quiet", wheel], check=True)
    return interpreter


SCRIPT = """
import tallyfold

sandbox = tallyfold.Sandbox()
sandbox.record(
    "2026-01-01T00:05:00Z", "success", event_name="a", write_key="b", integration="c", count=7
)
with tallyfold.serve(sandbox) as server, tallyfold.Client(
    cluster_endpoint=server.url, **sandbox.credentials
) as client:
    window = "2026-01-01T00:00:00Z", "2026-01-01T00:15:00Z"
    print(tallyfold.__version__, client.event_delivery(*window, ["integration"]).totals.success)
"""


def test_it_works_in_an_empty_environment(python: Path, tmp_path: Path) -> None:
    environment = {"PATH": os.defpath}
    run = subprocess.run(
        [python, "-c", SCRIPT], cwd=tmp_path, env=environment, check=True, capture_output=True
    )
    assert run.stdout.decode() == f"{tallyfold.__version__} 7\n"


def test_its_types_are_found(python: Path) -> None:
    script = "import tallyfold, pathlib; print(*pathlib.Path(tallyfold.__file__).parent.iterdir())"
    run = subprocess.run([python, "-c", script], check=True, capture_output=True, text=True)
    names = {Path(path).name for path in run.stdout.split()}
    assert {"py.typed", "_tallyfold.pyi", "__main__.py"} <= names
