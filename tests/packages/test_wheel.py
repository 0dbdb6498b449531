"""The wheel: installed without an index, and run as pip, `uvx` and `pipx` run it."""

import sys
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest
from places import bare_environment, good, run, tool, version


@pytest.fixture(scope="module")
def in_venv(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Gives the command in a fresh environment, into which pip has put it."""
    venv = tmp_path_factory.mktemp("wheel") / "venv"
    good(run([sys.executable, "-m", "venv", venv]))
    good(run([venv / "bin/pip", "install", "--quiet", "--no-index", wheel]))
    return venv / "bin/tallyfold"


def test_pip_installs_it_without_an_index(in_venv: Path) -> None:
    assert good(run([in_venv, "--version"])) == f"tallyfold {version()}\n"


def test_it_is_the_static_binary(in_venv: Path, binary: Path) -> None:
    assert in_venv.read_bytes() == binary.read_bytes()


def test_uvx_runs_it_offline(wheel: Path, tmp_path: Path) -> None:
    command = [tool("uvx"), "--offline", "--no-index", "--from", wheel, "tallyfold", "--version"]
    assert good(run(command, env=bare_environment(tmp_path, str(Path(sys.executable).parent)))) == f"tallyfold {version()}\n"


def test_pipx_runs_it(wheel: Path, tmp_path: Path) -> None:
    command = [tool("pipx"), "run", "--python", sys.executable, "--pip-args=--no-index", "--spec", wheel, "tallyfold", "--version"]
    # pipx keeps pip in an environment of its own, which it makes of what Python brings.
    done = run(command, env={**bare_environment(tmp_path), "PIP_NO_INDEX": "1", "USE_EMOJI": "0"})
    assert good(done) == f"tallyfold {version()}\n"


def test_its_tags_say_that_it_needs_no_python_and_any_libc(wheel: Path, target: str) -> None:
    processor = target.split("-")[0]
    name, number, python, abi, platforms = wheel.stem.split("-")
    assert (name, number, python, abi) == ("tallyfold_cli", version(), "py3", "none")
    assert {f"manylinux_2_17_{processor}", f"musllinux_1_1_{processor}"} <= set(platforms.split("."))


@pytest.mark.parametrize("platform", ["linux", "x86_64-unknown-linux-musl", "x86_64-manylinux2014"])
def test_an_installer_takes_it_on_old_and_on_other_systems(wheel: Path, platform: str, tmp_path: Path) -> None:
    command = [tool("uv"), "pip", "install", "--offline", "--no-index", "--target", tmp_path / "there", "--python-platform", platform]
    if "x86_64" not in wheel.name and "x86_64" in platform:
        platform = platform.replace("x86_64", "aarch64")
        command[-1] = platform
    good(run([*command, wheel], env=bare_environment(tmp_path)))
    assert (tmp_path / "there/bin/tallyfold").exists()


def test_its_metadata(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (path,) = (name for name in names if name.endswith(".dist-info/METADATA"))
        fields = Parser().parsestr(archive.read(path).decode())
    assert (fields["Name"], fields["License-Expression"]) == ("tallyfold-cli", "MIT OR Apache-2.0")
    assert fields.get_all("Requires-Dist") is None
    assert set(fields.get_all("License-File", [])) == {"LICENSE", "LICENSE-MIT", "LICENSE-APACHE"}
    assert not [name for name in names if name.endswith(".py")]
