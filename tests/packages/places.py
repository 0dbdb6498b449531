"""Where things are, and how programs are run."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped, import-not-found, unused-ignore]

ROOT = Path(__file__).parents[2]
CLI = ROOT / "cli"
TOOLS = Path(sys.executable).parent

Completed = subprocess.CompletedProcess[str]


def run(
    command: Sequence[object],
    *,
    cwd: Path = ROOT,
    env: Mapping[str, str] | None = None,
    timeout: float = 280,
) -> Completed:
    """Runs a program to its end, whatever that is."""
    return subprocess.run([str(part) for part in command], cwd=cwd, env=env, timeout=timeout, capture_output=True, text=True, check=False)


def good(done: Completed) -> str:
    """Gives what a program printed, if it did not fail."""
    assert done.returncode == 0, f"{done.args} exited with {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def tool(name: str) -> str:
    """Gives the path of a program that this suite's requirements have installed."""
    path = TOOLS / name
    assert path.exists(), f"{name} is not in {TOOLS}"
    return str(path)


def program(name: str) -> str:
    """Gives the path of a program of this machine."""
    path = shutil.which(name)
    assert path is not None, f"{name} is not installed"
    return path


def bare_environment(home: Path, *more: str) -> dict[str, str]:
    """Gives an environment with nothing of this project and no registry: the system's programs, and folders that are given."""
    return {"HOME": str(home), "PATH": os.pathsep.join([*more, "/usr/bin", "/bin"]), "LC_ALL": "C.UTF-8"}


def documents(path: Path) -> list[Any]:
    """Reads the documents of a YAML file."""
    return list(yaml.safe_load_all(path.read_text()))


def version() -> str:
    """Gives the version of all packages, as cargo reads it."""
    done = good(run(["cargo", "metadata", "--no-deps", "--format-version=1", "--offline"]))
    packages = json.loads(done)["packages"]
    return next(str(package["version"]) for package in packages if package["name"] == "tallyfold-cli")
