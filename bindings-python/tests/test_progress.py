"""The bar on a real terminal, and silence everywhere else."""

import os
import pty
import select
import subprocess
import sys

import pytest

SCRIPT = """
import sys, tallyfold
{before}
sandbox = tallyfold.Sandbox(seed=1)
with tallyfold.Client(
    cluster_endpoint="https://sandbox.example", transport=sandbox.transport(), max_retries=0,
    **sandbox.credentials,
) as client:
    {inside}
    client.collect(
        "event_delivery", "2026-01-01T00:00:00Z", "2026-01-01T12:00:00Z", ["integration"],
        {options}
    )
"""


def script(options: str = "", *, before: str = "", inside: str = "") -> list[str]:
    source = SCRIPT.format(options=options, before=before, inside=inside)
    return [sys.executable, "-W", "error", "-c", source]


def on_a_terminal(command: list[str]) -> tuple[str, int]:
    """What a program writes to a terminal of its own, and its exit code."""
    terminal, end = pty.openpty()
    environment = os.environ | {"TERM": "xterm-256color", "COLUMNS": "120"}
    environment.pop("NO_COLOR", None)
    with subprocess.Popen(command, stdin=end, stdout=end, stderr=end, env=environment) as program:
        os.close(end)
        written = b""
        while select.select([terminal], [], [], 120)[0]:
            try:
                chunk = os.read(terminal, 65_536)
            except OSError:  # So Linux says that the other end is closed.
                break
            if not chunk:
                break
            written += chunk
    os.close(terminal)
    return written.decode(), program.returncode


@pytest.mark.parametrize("options", ["", "progress=True,"])
def test_a_terminal_gets_a_bar(options: str) -> None:
    written, code = on_a_terminal(script(options))
    assert code == 0, written
    assert "collecting" in written
    assert "0/48" in written
    assert "48/48" in written


NOTEBOOK = """
import types
shown = []
class Handle:
    def update(self, it): shown.append(it)
def display(it, display_id):
    assert display_id is True
    shown.append(it)
    return Handle()
IPython = sys.modules["IPython"] = types.ModuleType("IPython")
IPython.get_ipython = lambda: types.SimpleNamespace({kernel})
IPython.display = sys.modules["IPython.display"] = types.ModuleType("IPython.display")
IPython.display.display = display
sys.modules["rich"] = None
import atexit
def report():
    for it in shown: print(repr(it))
    if shown: print(shown[-1]._repr_html_())
atexit.register(report)
"""


@pytest.mark.parametrize("options", ["", "progress=True,"])
def test_a_notebook_gets_a_bar(options: str) -> None:
    before = NOTEBOOK.format(kernel="kernel=1")
    inside = 'sandbox.inject("status", endpoint="event_delivery", status=418)'
    run = subprocess.run(
        script(options, before=before, inside=inside), capture_output=True, text=True
    )
    first, *_, last, html = run.stdout.splitlines()
    assert (first, last) == ("collecting 0/48", "collecting 47/48, 1 failed"), run.stderr
    assert '<progress max="48" value="47"' in html


@pytest.mark.parametrize(("options", "kernel"), [("progress=False,", "kernel=1"), ("", "")])
def test_a_notebook_gets_none_where_it_is_not_wanted(options: str, kernel: str) -> None:
    # A shell of IPython on a terminal has no kernel.
    command = script(options, before=NOTEBOOK.format(kernel=kernel))
    run = subprocess.run(command, capture_output=True, check=True, text=True)
    assert run.stdout.strip() == ""


def test_failures_are_shown() -> None:
    inside = 'sandbox.inject("status", endpoint="event_delivery", status=418)'
    written, code = on_a_terminal(script(inside=inside))
    assert code == 1
    assert "47/48" in written
    assert "1 failed" in written
    assert "ServiceError" in written


def test_a_wait_for_the_service_is_shown() -> None:
    inside = 'sandbox.inject("status", endpoint="event_delivery", status=503)'
    written, code = on_a_terminal(script(inside=inside))
    assert code == 0, written
    assert "waiting for the service" in written
    assert "48/48" in written
    last = written[written.rindex("48/48") - 200 :]
    assert "collecting" in last


@pytest.mark.parametrize(
    ("options", "before"),
    [
        ("progress=False,", ""),
        ("", 'sys.modules["rich"] = None'),
        ("", "sys.stderr = None"),
        ("", "import types; sys.stderr = types.SimpleNamespace(flush=int)"),
        ("progress=True,", "import io; sys.stderr = io.StringIO(); sys.stderr.close()"),
    ],
)
def test_a_terminal_gets_none_where_it_is_not_wanted(options: str, before: str) -> None:
    assert on_a_terminal(script(options, before=before)) == ("", 0)


def test_a_collect_outlasts_its_terminal() -> None:
    before = """
import os, pty
terminal, end = pty.openpty()
sys.stderr = open(end, "w")
ends = [terminal]
"""
    command = script("on_progress=lambda _: ends and os.close(ends.pop()),", before=before)
    command[-1] += "print('finished', ends)"
    run = subprocess.run(command, capture_output=True, check=False)
    assert run.stdout == b"finished []\n"


def test_a_bar_that_is_wanted_needs_rich() -> None:
    before = 'sys.modules["rich"] = None'
    written, code = on_a_terminal(script("progress=True,", before=before))
    assert code == 1
    assert "ModuleNotFoundError" in written


@pytest.mark.parametrize("options", ["", "progress=True,"])
def test_a_file_gets_nothing(options: str) -> None:
    run = subprocess.run(script(options), capture_output=True, check=True)
    assert (run.stdout, run.stderr) == (b"", b"")
