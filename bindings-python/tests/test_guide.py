"""Every Python program of the README files and the guide runs, against a sandbox on loopback.

The blocks of a page are one program, in their order.
"""

import http.server
import os
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars
import pytest
from support import record

import tallyfold

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


DATAGRAM = "a datagram"
HEARD = {
    "overview": {"/write?db=counts&precision=ns"},
    "prometheus": {"/api/v1/write"},
    "victoriametrics": {"/api/v1/write"},
    "influxdb": {"/api/v2/write?org=events&bucket=counts&precision=ns"},
    "opentelemetry": {"/v1/metrics"},
    "datadog": {"/api/v2/series", DATAGRAM},
    "statsd": {DATAGRAM},
}
"""What the receiver of exports hears from the program of a page of `docs/guides/exports`."""


class Receiver:
    """Takes whatever is sent to it over HTTP and in datagrams, and knows what has come."""

    def __init__(self) -> None:
        heard = self._heard = set[str]()

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                if self.rfile.read(int(self.headers["content-length"])):
                    heard.add(self.path)
                # Each system has its own way to say that it took a message.
                status = {"/v1/metrics": 200, "/api/v2/series": 202}.get(self.path, 204)
                self.send_response(status)
                if status != 204:
                    self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002
                """Says nothing."""

        self._datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._datagrams.bind(("127.0.0.1", 0))
        self._datagrams.settimeout(0)
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, args=[0.01]).start()

    def environment(self) -> dict[str, str]:
        """Gives the addresses that the pages take from the environment."""
        url = f"http://127.0.0.1:{self._server.server_port}"
        datagrams = f"udp://127.0.0.1:{self._datagrams.getsockname()[1]}"
        return {
            "PROMETHEUS_URL": url,
            "VICTORIAMETRICS_URL": url,
            "INFLUX_URL": url,
            "INFLUX_TOKEN": "a-token",
            "OTEL_EXPORTER_OTLP_ENDPOINT": url,
            "DATADOG_API": url,
            "DD_API_KEY": "a-key",
            "DD_DOGSTATSD_URL": datagrams,
            "STATSD_URL": datagrams,
            "METRICS_PORT": "0",
        }

    def heard(self) -> set[str]:
        """Gives what has come since this was asked last."""
        while True:
            try:
                if self._datagrams.recv(65_536):
                    self._heard.add(DATAGRAM)
            except BlockingIOError:
                break
        heard = set(self._heard)
        self._heard.clear()
        return heard

    def close(self) -> None:
        """Ends it."""
        self._server.shutdown()
        self._server.server_close()
        self._datagrams.close()


@pytest.fixture(scope="module")
def receiver() -> Iterator[Receiver]:
    """Gives a receiver of exports."""
    receiver = Receiver()
    yield receiver
    receiver.close()


@pytest.fixture(scope="module")
def environment(receiver: Receiver) -> Iterator[dict[str, str]]:
    """Gives the environment that the guide's pages name."""
    command = [sys.executable, "-u", "-m", "tallyfold", "sandbox", "--port", "0", "--seed", "7"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        address = server.stdout.readline().split()[-1]
        credentials = dict(server.stdout.readline().split() for _ in range(4))
        known = dict.fromkeys(["cluster_endpoint", "base_url", "auth_url"], address) | credentials
        service = {f"TALLYFOLD_{name.upper()}": value for name, value in known.items()}
        yield service | receiver.environment()
        server.terminate()


def test_there_are_programs() -> None:
    assert len(PROGRAMS) >= 6


@pytest.mark.parametrize("page", PROGRAMS)
def test_a_program_runs(
    page: str, environment: dict[str, str], receiver: Receiver, tmp_path: Path
) -> None:
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
    is_export = Path(page).parent.name == "exports"
    assert receiver.heard() == (HEARD.get(Path(page).stem, set()) if is_export else set())


def test_the_nightly_backfill_reads_days_again_that_were_not_settled(tmp_path: Path) -> None:
    # A day that has ended with the last full hour, so that its last hour may still change.
    today = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
    program = PROGRAMS["docs/guides/backfill.md"]
    fixed = "today = datetime(2026, 1, 31, tzinfo=UTC)"
    assert fixed in program
    file = tmp_path / "program.py"
    text = f"today = datetime.fromisoformat({today.isoformat()!r})"
    file.write_text(program.replace(fixed, text))
    sandbox = tallyfold.Sandbox()

    def count(*, hours_ago: float) -> None:
        record(
            sandbox,
            "success",
            "email",
            at=f"{today - timedelta(hours=hours_ago):%Y-%m-%dT%H:%M:%SZ}",
        )

    def run() -> list[int]:
        environment: dict[str, str] = {
            **os.environ,
            "TALLYFOLD_CLUSTER_ENDPOINT": server.url,
            **{f"TALLYFOLD_{name.upper()}": str(of) for name, of in sandbox.credentials.items()},
        }
        command = [sys.executable, str(file)]
        subprocess.run(command, env=environment, cwd=tmp_path, timeout=120, check=True)
        days = sorted((tmp_path / "counts").glob("*.parquet"))
        return [int(polars.read_parquet(day)["success"].sum()) for day in days]

    for hours_ago in (70, 40, 20, 0.5):
        count(hours_ago=hours_ago)
    with tallyfold.serve(sandbox) as server:
        assert run() == [1, 1, 2]
        # It comes half an hour late; one that is a day late is not looked for.
        count(hours_ago=0.4)
        count(hours_ago=30)
        assert run() == [1, 1, 3]
        asked = sandbox.stats["event_delivery"]
        assert run() == [1, 1, 3]
        assert sandbox.stats["event_delivery"] == asked + 1
