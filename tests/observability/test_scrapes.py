"""A real Prometheus scrapes an exporter that is restarted again and again, and sees no counter go down."""

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import exporter
import httpx2
import week
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from servers import COUNTS, Prometheus, Sums, await_failed_scrape, binary, free_port

WINDOWS = 96
RESTARTS = 10
#: The day takes that many seconds here.
DAY_S = 14
#: Each group has more samples than that.
SAMPLES = 50


def config(port: int) -> str:
    return f"""
scrape_configs:
  - job_name: exporter
    scrape_interval: 100ms
    scrape_timeout: 100ms
    static_configs:
      - targets: ["127.0.0.1:{port}"]
"""


class Exporter:
    """The process that is restarted."""

    def __init__(self, directory: Path) -> None:
        self.port = free_port()
        self._arguments = [
            str(self.port),
            str(directory / "ledger"),
            str(time.time()),
            str((WINDOWS * week.QUARTER_MS / 1000 + 2400) / DAY_S),
            str(WINDOWS),
        ]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self._process = subprocess.Popen([sys.executable, exporter.__file__, *self._arguments])
        until = time.monotonic() + 60
        while True:
            try:
                self.text()
                return
            except httpx2.HTTPError:
                assert self._process.poll() is None
                assert time.monotonic() < until
                time.sleep(0.02)

    def stop(self, with_signal: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.send_signal(with_signal)
            process.wait(60)

    def text(self) -> str:
        url = f"http://127.0.0.1:{self.port}/metrics"
        return httpx2.get(url, trust_env=False, timeout=60).text


def check_text(text: str) -> None:
    """Lets both parsers read it."""
    families = list(text_string_to_metric_families(text))  # type: ignore[no-untyped-call]
    assert [family.type for family in families] == ["counter"] * 3 + ["gauge"]
    checked = subprocess.run([binary("promtool"), "check", "metrics"], input=text, capture_output=True, text=True, check=False)
    # It reads the text as the format before OpenMetrics, where the help of a counter has the name with `_total`.
    complaints = {line.partition(" ")[2] for line in checked.stderr.splitlines()}
    assert complaints == {"no help text"}, checked.stderr


def test_restarts_are_invisible(tmp_path: Path) -> None:
    exported = Exporter(tmp_path)
    server = Prometheus(tmp_path, config(exported.port))
    drawn = week.events(exporter.SEED, WINDOWS)
    draw = random.Random(2)
    truth = week.drawn_sums(drawn)
    end_ms = week.START_MS + WINDOWS * week.QUARTER_MS
    with server.running():
        try:
            exported.start()
            for number in range(RESTARTS):
                time.sleep(draw.uniform(0.4, 1.4))
                exported.stop(signal.SIGTERM if number % 3 == 2 else signal.SIGKILL)
                if number == 0:
                    await_failed_scrape(server)
                exported.start()
            last = f'_settled_until_seconds{{cluster="eu \\"1\\""}} {end_ms / 1000:.3f}\n'
            until = time.monotonic() + 120
            while last not in (text := exported.text()):
                assert time.monotonic() < until, text[-300:]
                time.sleep(0.1)
            # On a busy machine, some scrapes take too long and are lost.
            while not has_scraped(server, truth):
                assert time.monotonic() < until, text[-300:]
                time.sleep(0.1)
            check_counters(server, truth)
        finally:
            exported.stop(signal.SIGKILL)
    check_text(text)


def has_scraped(server: Prometheus, truth: Sums) -> bool:
    """Whether it has the last totals, and many before them."""
    now_ms = round(time.time() * 1000)
    found: dict[tuple[str, ...], list[int]] = {}
    samples = 0
    for position, count in enumerate(COUNTS):
        name = f"{week.STEM}_{count}_settled_events_total[1h]"
        samples += sum(value for _, value in server.instant(f"count_over_time({name})", now_ms))
        for labels, value in server.instant(f"last_over_time({name})", now_ms):
            group = tuple(labels.get(dimension, "") for dimension in week.DIMENSIONS)
            found.setdefault(group, [0, 0, 0])[position] = value
    return samples > SAMPLES * len(truth) and {group: tuple(of) for group, of in found.items()} == truth


def check_counters(server: Prometheus, truth: Sums) -> None:
    now_ms = round(time.time() * 1000)
    found: dict[tuple[str, ...], list[int]] = {}
    samples = 0
    for position, count in enumerate(COUNTS):
        name = f"{week.STEM}_{count}_settled_events_total"
        resets = server.instant(f"resets({name}[1h])", now_ms)
        assert len(resets) == len(truth)
        assert {value for _, value in resets} == {0}
        matrix = server._ask("/api/v1/query", query=f"{name}[1h]", time=str(now_ms / 1000))
        for series in matrix["data"]["result"]:
            values = [int(value) for _, value in series["values"]]
            samples += len(values)
            assert values == sorted(values), series["metric"]
            assert series["metric"]["cluster"] == exporter.LABELS["cluster"]
            group = tuple(series["metric"].get(dimension, "") for dimension in week.DIMENSIONS)
            found.setdefault(group, [0, 0, 0])[position] = values[-1]
    assert {group: tuple(of) for group, of in found.items()} == truth
    assert samples > SAMPLES * len(truth)
