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
    (wheel,) = Path(__file__).parents[2].glob("dist/*.whl")
    subprocess.run([interpreter, "-m", "pip", "install", "--quiet", wheel], check=True)
    return interpreter


def test_it_works_in_an_empty_environment(python: Path, tmp_path: Path) -> None:
    script = "import tallyfold; print(tallyfold.__version__)"
    environment = {"PATH": os.defpath}
    run = subprocess.run(
        [python, "-c", script], cwd=tmp_path, env=environment, check=True, capture_output=True
    )
    assert run.stdout.decode().strip() == tallyfold.__version__
