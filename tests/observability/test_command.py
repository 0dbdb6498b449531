"""Prometheus and VictoriaMetrics scrape `tallyfold serve`, which is restarted again and again."""

import contextlib
import random
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import httpx2
import tallyfold
from servers import COUNTS, Prometheus, PromQL, Sums, VictoriaMetrics, await_failed_scrape, binary, free_port

COMMAND = Path(__file__).parents[2] / "target/debug/tallyfold"
START, END = "2025-03-01T00:00:00Z", "2025-03-02T00:00:00Z"
STEM = "tallyfold_event_delivery_by_integration"
#: The service answers so late that the 96 windows of the day take some seconds.
LATE = '{"kind": "delay", "milliseconds": 80, "every": 1, "endpoint": "event_delivery"}'
RESTARTS = 8


def config(port: int) -> str:
    return f"""
scrape_configs:
  - job_name: exporter
    scrape_interval: 100ms
    scrape_timeout: 100ms
    static_configs:
      - targets: ["127.0.0.1:{port}"]
"""


@contextlib.contextmanager
def service() -> Iterator[dict[str, str]]:
    """Serves a sandbox, and gives the variables that lead to it."""
    assert COMMAND.exists(), "scripts/test-observability.sh builds it"
    process = subprocess.Popen([str(COMMAND), "sandbox", "--seed", "7", "--fault", LATE], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        found = {}
        for line in process.stdout:
            if line.startswith("Ctrl-C"):
                break
            name, is_variable, value = line.strip().removeprefix("export ").partition("=")
            if is_variable:
                found[name] = value
        yield found
    finally:
        process.kill()
        process.communicate()


class Exporter:
    """The process that is restarted."""

    def __init__(self, directory: Path, variables: dict[str, str]) -> None:
        self.port = free_port()
        self._variables = variables
        self._arguments = ["--listen", f"127.0.0.1:{self.port}", "--state", str(directory / "totals.json")]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        command = [str(COMMAND), "serve", "--from", START, "--until", END, "--label", 'region=eu "1"', *self._arguments]
        self._process = subprocess.Popen(command, env=self._variables, stderr=subprocess.DEVNULL)
        until = time.monotonic() + 60
        while True:
            try:
                self.get("/healthz")
                return
            except httpx2.HTTPError:
                assert self._process.poll() is None
                assert time.monotonic() < until
                time.sleep(0.01)

    def stop(self, with_signal: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.send_signal(with_signal)
            code = process.wait(60)
            assert code == (0 if with_signal == signal.SIGTERM else -signal.SIGKILL)

    def get(self, path: str, accept: str = "*/*") -> str:
        url = f"http://127.0.0.1:{self.port}{path}"
        return httpx2.get(url, headers={"accept": accept}, trust_env=False, timeout=60).text


def truth(variables: dict[str, str]) -> Sums:
    """Asks for the whole day at once."""
    options = {name.removeprefix("TALLYFOLD_").lower(): value for name, value in variables.items()}
    with tallyfold.Client(**options) as client:  # type: ignore[arg-type]
        table = client.event_delivery(START, END, ["integration"])
    return {(row.dimensions["integration"],): (row.success, row.errors, row.filtered) for row in table}


def newest(server: PromQL) -> Sums:
    """Gives the newest totals that the server has."""
    found: dict[tuple[str, ...], list[int]] = {}
    for position, count in enumerate(COUNTS):
        name = f"last_over_time({STEM}_{count}_settled_events_total[1h])"
        for labels, value in server.instant(name, round(time.time() * 1000)):
            assert labels["region"] == 'eu "1"'
            found.setdefault((labels["integration"],), [0, 0, 0])[position] = value
    return {group: (of[0], of[1], of[2]) for group, of in found.items()}


def check_text(exported: Exporter) -> None:
    """Lets both parsers read both formats."""
    from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
    from prometheus_client.parser import text_string_to_metric_families as plain

    text = exported.get("/metrics", "application/openmetrics-text;version=1.0.0")
    families = list(openmetrics(text))  # type: ignore[no-untyped-call]
    kinds = {family.name: family.type for family in families}
    assert kinds["tallyfold_exporter_build"] == "info"
    assert kinds[f"{STEM}_success_settled_events"] == kinds["tallyfold_exporter_requests"] == "counter"
    text = exported.get("/metrics")
    assert len(list(plain(text))) == len(families)
    checked = subprocess.run([binary("promtool"), "check", "metrics"], input=text, capture_output=True, text=True, check=False)
    assert (checked.returncode, checked.stderr) == (0, "")


def test_restarts_of_the_command_are_invisible(tmp_path: Path) -> None:
    draw = random.Random(4)
    with service() as variables:
        exported = Exporter(tmp_path, variables)
        (tmp_path / "scrapes.yml").write_text(config(exported.port))
        prometheus = Prometheus(tmp_path / "prometheus", config(exported.port))
        other = VictoriaMetrics(tmp_path / "victoria", f"-promscrape.config={tmp_path}/scrapes.yml")
        with prometheus.running(), other.running():
            try:
                exported.start()
                for number in range(RESTARTS):
                    time.sleep(draw.uniform(0.3, 1.2))
                    exported.stop(signal.SIGTERM if number % 3 == 2 else signal.SIGKILL)
                    if number == 0:
                        await_failed_scrape(prometheus)
                    exported.start()
                expected = truth(variables)
                for server in (prometheus, other):
                    until = time.monotonic() + 120
                    while newest(server) != expected:
                        assert time.monotonic() < until, exported.get("/metrics")[:2000]
                        time.sleep(0.1)
                check_counters(prometheus, len(expected))
                check_text(exported)
            finally:
                exported.stop(signal.SIGKILL)


def check_counters(server: Prometheus, groups: int) -> None:
    """No counter has ever gone down, though a scrape has failed meanwhile."""
    now_ms = round(time.time() * 1000)
    for count in COUNTS:
        name = f"{STEM}_{count}_settled_events_total"
        resets = server.instant(f"resets({name}[1h])", now_ms)
        assert [value for _, value in resets] == [0] * groups
    # There were many different values on the way.
    changes = server.instant(f"max(changes({STEM}_success_settled_events_total[1h]))", now_ms)
    assert changes[0][1] > RESTARTS
