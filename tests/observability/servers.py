"""Real servers on free ports of loopback, each with a directory of its own, and how they are asked."""

import contextlib
import json
import random
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import unquote

import httpx2
import tallyfold

#: How long a server may take until it answers: builds on two busy cores are slow.
READY_S = 60
#: A label without a value and no label are the same to all three.
Group = tuple[str, ...]
Counts = tuple[int, int, int]
Sums = dict[Group, Counts]
COUNTS: tuple[tallyfold.CountName, ...] = ("success", "errors", "filtered")


def binary(name: str) -> str:
    """Gives the path of a server's program."""
    path = shutil.which(name)
    assert path is not None, f"{name} is not installed: scripts/test-observability.sh installs it"
    return path


def free_port() -> int:
    """Gives a port of loopback that is free until a server takes it: the system gives others to whoever wants any."""
    while True:
        port = random.randrange(10_000, 30_000)
        with contextlib.suppress(OSError), socket.socket() as listener:
            listener.bind(("127.0.0.1", port))
            return port


class Server:
    """A process that serves HTTP."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        directory.mkdir(parents=True, exist_ok=True)
        self.port = free_port()
        self.http = httpx2.Client(base_url=f"http://127.0.0.1:{self.port}", trust_env=False, timeout=60)
        self.questions = 0
        """How many queries were asked."""
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def write_url(self) -> str:
        """The address that messages are pushed to."""
        return f"http://127.0.0.1:{self.port}/api/v1/write"

    def command(self) -> list[str]:
        """Gives what starts it."""
        raise NotImplementedError

    def ready(self) -> str:
        """Gives a path that answers 2xx once the server is ready."""
        raise NotImplementedError

    def start(self) -> None:
        """Starts it, and waits until it is ready."""
        log = (self.directory / "log").open("ab")
        self._process = subprocess.Popen(self.command(), stdout=log, stderr=log, cwd=self.directory)
        log.close()
        until = time.monotonic() + READY_S
        while True:
            assert self._process.poll() is None, f"ended: {self.log()}"
            assert time.monotonic() < until, f"not ready: {self.log()}"
            with contextlib.suppress(httpx2.HTTPError):
                if self.http.get(self.ready()).is_success:
                    return
            time.sleep(0.05)

    def stop(self, with_signal: signal.Signals = signal.SIGTERM) -> None:
        """Ends it, and waits until it has ended."""
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(with_signal)
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def log(self) -> str:
        """Gives the end of what it wrote."""
        return (self.directory / "log").read_text(errors="replace")[-2000:]

    @contextlib.contextmanager
    def running(self) -> Iterator["Server"]:
        """Runs it for the length of a `with` statement."""
        try:
            self.start()
            yield self
        finally:
            self.stop()
            self.http.close()

    def _ask(self, path: str, **params: str) -> Any:
        self.questions += 1
        response = self.http.post(path, data=params)
        assert response.is_success, (response.status_code, response.text[:500], params)
        return json.loads(response.content)


class PromQL(Server):
    """A server that is asked in PromQL."""

    _more: ClassVar[dict[str, str]] = {}

    def instant(self, query: str, at_ms: int) -> list[tuple[dict[str, str], int]]:
        """Gives the labels and the value of each series at an instant."""
        answer = self._ask("/api/v1/query", query=query, time=f"{at_ms / 1000:.3f}", **self._more)
        return [(one["metric"], exact(one["value"][1])) for one in answer["data"]["result"]]

    def sums(self, stem: str, dimensions: tuple[str, ...], span: str, at_ms: int) -> Sums:
        """Gives the three sums of each group over the span that ends then: the documented query."""
        parts = [f'label_replace(sum without (revision) (sum_over_time({stem}_{count}_events[{span}])), "count", "{count}", "", "")' for count in COUNTS]
        found: dict[Group, dict[str, int]] = {}
        for labels, value in self.instant(" or ".join(parts), at_ms):
            group = tuple(labels.get(name, "") for name in dimensions)
            of_group = found.setdefault(group, {})
            assert labels["count"] not in of_group, labels
            of_group[labels["count"]] = value
        return nonzero(found)


class Prometheus(PromQL):
    """Prometheus, with its remote-write receiver."""

    def __init__(self, directory: Path, config: str = "", *options: str) -> None:
        super().__init__(directory)
        self.config = config
        self._options = options

    @classmethod
    def receiving(cls, directory: Path, out_of_order: str = "2h") -> "Prometheus":
        """Gives one that takes remote-write, also samples that are as late as said, and keeps all in its head.

        Usually series leave the head after two hours, which pass in no time in a test. A sample that comes for a series
        that is just leaving may be lost (https://github.com/prometheus/prometheus/issues/9879), and so may what came
        after it, if the server is killed (https://github.com/prometheus/prometheus/issues/16058).
        """
        config = f"storage:\n  tsdb:\n    out_of_order_time_window: {out_of_order}\n"
        blocks = ("--storage.tsdb.min-block-duration=10d", "--storage.tsdb.max-block-duration=10d")
        return cls(directory, config, "--web.enable-remote-write-receiver", *blocks)

    def command(self) -> list[str]:
        (self.directory / "prometheus.yml").write_text(self.config)
        return [
            binary("prometheus"),
            "--config.file=prometheus.yml",
            "--storage.tsdb.path=data",
            # What is older than that, counted from the newest sample, is deleted.
            "--storage.tsdb.retention.time=100y",
            f"--web.listen-address=127.0.0.1:{self.port}",
            "--log.level=warn",
            *self._options,
        ]

    def ready(self) -> str:
        return "/-/ready"


class Alertmanager(Server):
    """Alertmanager, which notifies nobody."""

    def command(self) -> list[str]:
        (self.directory / "alertmanager.yml").write_text("route: {receiver: nobody}\nreceivers: [{name: nobody}]\n")
        return [
            binary("prometheus-alertmanager"),
            "--config.file=alertmanager.yml",
            "--storage.path=data",
            f"--web.listen-address=127.0.0.1:{self.port}",
            # Alone, without others to share with.
            "--cluster.listen-address=",
        ]

    def ready(self) -> str:
        return "/-/ready"

    def alerts(self) -> list[dict[str, Any]]:
        """Gives the alerts that are not over."""
        response = self.http.get("/api/v2/alerts")
        assert response.is_success, response.text[:500]
        return list(json.loads(response.content))


def await_failed_scrape(server: PromQL) -> None:
    """A short restart may fall between two scrapes; this one is noticed."""
    until = time.monotonic() + 60
    while not server.instant("up == 0", round(time.time() * 1000)):
        assert time.monotonic() < until
        time.sleep(0.01)


class VictoriaMetrics(PromQL):
    """VictoriaMetrics as a single node."""

    # It keeps results, and forgets them some seconds after older samples came.
    _more: ClassVar[dict[str, str]] = {"nocache": "1"}

    def __init__(self, directory: Path, *options: str) -> None:
        super().__init__(directory)
        self._options = options

    def command(self) -> list[str]:
        return [
            binary("victoria-metrics"),
            f"-httpListenAddr=127.0.0.1:{self.port}",
            "-storageDataPath=data",
            # It refuses what is older than that, counted from now.
            "-retentionPeriod=100y",
            "-loggerLevel=WARN",
            "-memory.allowedBytes=256MB",
            *self._options,
        ]

    def ready(self) -> str:
        return "/health"

    def instant(self, query: str, at_ms: int) -> list[tuple[dict[str, str], int]]:
        # Samples are found about a second after they came, unless it is told to make haste.
        assert self.http.get("/internal/force_flush").is_success
        return super().instant(query, at_ms)


class InfluxDB(Server):
    """InfluxDB 1."""

    @property
    def write_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/write?db=counts&precision=ns"

    def command(self) -> list[str]:
        here = self.directory
        (here / "influxdb.conf").write_text(
            f"""
reporting-disabled = true
bind-address = "127.0.0.1:{free_port()}"
[meta]
  dir = "{here}/meta"
[data]
  dir = "{here}/data"
  wal-dir = "{here}/wal"
  query-log-enabled = false
[monitor]
  store-enabled = false
[subscriber]
  enabled = false
[http]
  bind-address = "127.0.0.1:{self.port}"
  log-enabled = false
"""
        )
        return [binary("influxd"), "run", "-config", "influxdb.conf"]

    def ready(self) -> str:
        return "/ping"

    def start(self) -> None:
        super().start()
        self.query("CREATE DATABASE counts")

    def query(self, query: str) -> list[dict[str, Any]]:
        """Gives the series of the answer."""
        answer = self._ask("/query", q=query, db="counts")
        (result,) = answer["results"]
        assert "error" not in result, result
        return list(result.get("series", []))

    def sums(self, stem: str, dimensions: tuple[str, ...], start_ms: int, end_ms: int) -> Sums:
        """Gives the three sums of each group in a range: the documented query."""
        fields = ", ".join(f'sum("{count}")' for count in COUNTS)
        tags = ", ".join(f'"{name}"' for name in dimensions)
        found: dict[Group, dict[str, int]] = {}
        for series in self.query(f'SELECT {fields} FROM "{stem}" WHERE time >= {start_ms}ms AND time < {end_ms}ms GROUP BY {tags}'):
            group = tuple(unquote(series["tags"][name]) for name in dimensions)
            ((_, *values),) = series["values"]
            assert group not in found
            found[group] = {name: value or 0 for name, value in zip(COUNTS, values, strict=True)}
        return nonzero(found)


def exact(text: str) -> int:
    """Reads a sum, which must be a whole number."""
    value = float(text)
    assert value.is_integer(), text
    assert abs(value) <= 2**53
    return int(value)


def nonzero(found: dict[Group, dict[str, int]]) -> Sums:
    """Leaves out groups that have no events."""
    sums = {group: (of.get("success", 0), of.get("errors", 0), of.get("filtered", 0)) for group, of in found.items()}
    return {group: counts for group, counts in sums.items() if any(counts)}
