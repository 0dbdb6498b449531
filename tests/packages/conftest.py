"""What the tests share: the binary, and the packages that hold it."""

import json
from pathlib import Path

import pytest
import surroundings
from places import CLI, ROOT, good, program, run

surroundings.prepare()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declares where the binary is."""
    parser.addoption("--target", required=True, help="Rust's name of the platform that the binary is for")


@pytest.fixture(scope="session")
def target(request: pytest.FixtureRequest) -> str:
    """Gives the target that scripts/build-cli.sh has built."""
    return str(request.config.getoption("--target"))


@pytest.fixture(scope="session")
def binary(target: str) -> Path:
    """Gives the static binary."""
    path = ROOT / "dist/cli" / target / "tallyfold"
    assert path.exists(), f"scripts/build-cli.sh has not made {path}"
    return path


@pytest.fixture(scope="session")
def wheel(target: str) -> Path:
    """Gives the wheel."""
    (path,) = (ROOT / "dist/cli/wheels" / target).glob("*.whl")
    return path


@pytest.fixture(scope="session")
def tarballs(target: str, binary: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Gives npm's packages: the platform's, and the one that people install."""
    return pack({target: binary}, tmp_path_factory.mktemp("npm"))


def pack(binaries: dict[str, Path], folder: Path) -> list[Path]:
    """Makes npm's packages of binaries."""
    for target, path in binaries.items():
        suffix = ".exe" if "windows" in target else ""
        (folder / "cli" / target).mkdir(parents=True)
        # What carries files between build machines loses that they may be executed.
        (folder / "cli" / target / f"tallyfold{suffix}").write_bytes(path.read_bytes())
    out = folder / "packed"
    printed = good(run([program("node"), CLI / "npm/pack.mjs", folder / "cli", out]))
    return [out / name for name in printed.split()]


def install(tarballs: list[Path], folder: Path) -> Path:
    """Installs tarballs into a fresh folder, without a network; gives the folder."""
    folder.mkdir()
    (folder / "package.json").write_text(json.dumps({"private": True}))
    options = ["--offline", "--silent", "--no-audit", "--no-fund", f"--cache={folder / '.npm'}"]
    good(run([program("npm"), "install", *options, *tarballs], cwd=folder))
    return folder
