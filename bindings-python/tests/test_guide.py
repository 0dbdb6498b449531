"""Every Python program of the README files and the guide runs, against a sandbox on loopback.

The blocks of a page are one program, in their order.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    [ROOT / "README.md", ROOT / "bindings-python/README.md", *(ROOT / "docs").rglob("*.md")]
)
MADE = {"architecture.md", "changelog.md"}
"""Pages that are made when the site is built."""


def program(page: Path) -> str:
    """Joins the blocks of a page, each at its own line, which tracebacks then tell."""
    lines: list[str] = []
    is_inside = False
    for line in page.read_text().splitlines():
        is_inside = line == "```python" or (is_inside and line != "```")
        lines.append(line if is_inside and line != "```python" else "")
    return "\n".join(lines)


PROGRAMS = {
    str(page.relative_to(ROOT)): program(page)
    for page in PAGES
    if page.parent.name != "reference" and page.name not in MADE and program(page).strip()
}


@pytest.fixture(scope="module")
def environment() -> Iterator[dict[str, str]]:
    """Gives the environment that the guide's first page sets."""
    command = [sys.executable, "-u", "-m", "tallyfold", "sandbox", "--port", "0", "--seed", "7"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        address = server.stdout.readline().split()[-1]
        credentials = dict(server.stdout.readline().split() for _ in range(4))
        known = dict.fromkeys(["cluster_endpoint", "base_url", "auth_url"], address) | credentials
        yield {f"TALLYFOLD_{name.upper()}": value for name, value in known.items()}
        server.terminate()


def test_there_are_programs() -> None:
    assert len(PROGRAMS) >= 6


@pytest.mark.parametrize("page", PROGRAMS)
def test_a_program_runs(page: str, environment: dict[str, str], tmp_path: Path) -> None:
    code = compile(PROGRAMS[page], page, "exec")
    assert code
    file = tmp_path / "program.py"
    file.write_text(PROGRAMS[page])
    ran = subprocess.run(
        [sys.executable, file],
        env={**os.environ, **environment},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    # A health job says by its exit code that deliveries fail.
    expected = {0, 1} if re.search(r"^sys\.exit\(1 if", PROGRAMS[page], re.M) else {0}
    assert ran.returncode in expected, ran.stdout + ran.stderr
    assert "Traceback" not in ran.stderr
