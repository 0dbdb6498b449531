"""Running totals of a week go as OTLP to VictoriaMetrics, and by vmagent to Prometheus; pushers and servers are killed meanwhile."""

import json
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate
from pathlib import Path

import httpx2
import pytest
import readers
import tallyfold
import totals
import week
from receiver import Receiver
from servers import COUNTS, Group, Prometheus, PromQL, Server, Sums, VictoriaMetrics

# A busy machine takes several times as long as others.
pytestmark = pytest.mark.timeout(1800)

NEWER = Path(__file__).parents[2] / ".cache/servers/usr/bin"
needs_newer = pytest.mark.skipif(not (NEWER.parents[1] / ".complete").exists(), reason="scripts/newer-servers.sh could not unpack newer servers")
WINDOWS, DAY = week.WINDOWS, 96
PUSHER_KILLS = 12
LABELS = totals.LABELS


class Agent(Server):
    """The vmagent of VictoriaMetrics, which takes OTLP and sends it to Prometheus, with the names that Prometheus makes."""

    def __init__(self, directory: Path, url: str) -> None:
        super().__init__(directory)
        self._url = url

    @property
    def write_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/opentelemetry/v1/metrics"

    def command(self) -> list[str]:
        return [
            str(NEWER / "vmagent"),
            f"-httpListenAddr=127.0.0.1:{self.port}",
            f"-remoteWrite.url={self._url}",
            "-remoteWrite.tmpDataPath=queue",
            "-remoteWrite.forcePromProto",
            # What it receives is sent at once.
            "-remoteWrite.flushInterval=50ms",
            "-opentelemetry.usePrometheusNaming",
            "-loggerLevel=WARN",
        ]

    def ready(self) -> str:
        return "/health"


class NewerVictoriaMetrics(VictoriaMetrics):
    """VictoriaMetrics with its receiver of OTLP."""

    @property
    def write_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/opentelemetry/v1/metrics"

    def command(self) -> list[str]:
        return [str(NEWER / "victoria-metrics"), *super().command()[1:]]

    def raw(self, name: str) -> "Series":
        """Gives the samples of each series, with their times in milliseconds."""
        assert self.http.get("/internal/force_flush").is_success
        until = str(time.time() + 60)
        response = self.http.post("/api/v1/export", data={"match[]": f'{{__name__="{name}"}}', "end": until})
        assert response.is_success, response.text[:500]
        series = [json.loads(line) for line in response.text.splitlines()]
        return [(one["metric"], sorted(zip(one["timestamps"], one["values"], strict=True))) for one in series]


class Truth:
    """What the totals of each group were after each window, and in the end."""

    def __init__(self, windows: int) -> None:
        drawn = week.events(totals.SEED, windows)
        self.sums = week.drawn_sums(drawn)
        steps: dict[tuple[Group, int], list[int]] = {}
        for event in drawn:
            of = steps.setdefault((event.group, COUNTS.index(event.last)), [0] * windows)
            of[(event.at_ms - week.START_MS) // week.QUARTER_MS] += event.count
        self.values = {key: list(accumulate(of)) for key, of in steps.items()}

    def check(self, group: Group, position: int, samples: list[tuple[int, int]]) -> None:
        """Each sample is the total after some window, and none is smaller than the one before."""
        values = [value for _, value in samples]
        assert values == sorted(values)
        assert len({at for at, _ in samples}) == len(samples)
        allowed = {0, *self.values.get((group, position), [])}
        assert allowed.issuperset(values), (group, set(values) - allowed)


@pytest.fixture(scope="module")
def truth() -> Truth:
    return Truth(WINDOWS)


def push_and_kill(url: str, form: str, ledger: Path, windows: int, servers: Iterable[Server] = ()) -> None:
    """Pushes by processes that are killed at any moment, but for the last one, while servers are killed, too."""
    draw = random.Random(3)
    command = [sys.executable, totals.__file__, form, url, str(ledger), str(windows)]
    seen = 0
    for kill in range(PUSHER_KILLS + 1):
        process = subprocess.Popen(command, stdout=subprocess.PIPE)
        assert process.stdout is not None
        with process, process.stdout:
            if kill == PUSHER_KILLS:
                seen += len(process.stdout.read().splitlines())
                assert process.wait() == 0
                break
            for _ in range(1 + draw.randrange(windows // PUSHER_KILLS)):
                seen += process.stdout.readline() == b"\n"
            if kill % 4 == 1:
                for server in servers:
                    server.stop(signal.SIGKILL)
                    time.sleep(0.2)
                    # What is sent before a server is ready may be lost, and a busy machine takes long to start it.
                    process.send_signal(signal.SIGSTOP)
                    server.start()
                    process.send_signal(signal.SIGCONT)
            time.sleep(draw.random() * 0.02)
            process.kill()
            seen += len(process.stdout.read().splitlines())
    assert seen > windows / 2


Series = list[tuple[dict[str, str], list[tuple[int, int]]]]


def check_raw(raw: Callable[[str], Series], truth: Truth) -> None:
    """Compares all samples with the truth."""
    found: dict[Group, list[int]] = {}
    samples = 0
    for position, count in enumerate(COUNTS):
        for labels, values in raw(f"{week.STEM}_{count}_total"):
            assert labels["cluster"] == LABELS["cluster"]
            group = tuple(labels.get(dimension, "") for dimension in week.DIMENSIONS)
            truth.check(group, position, values)
            found.setdefault(group, [0, 0, 0])[position] = values[-1][1]
            samples += len(values)
    assert {group: tuple(of) for group, of in found.items()} == truth.sums
    # Servers that are killed lose some; what they have then is made up for by the next totals.
    assert samples > 0.5 * WINDOWS * len(truth.sums) * 3


def newest(server: PromQL, query: str) -> Sums:
    """Gives what a query finds for each count."""
    found: dict[Group, list[int]] = {}
    now_ms = round(time.time() * 1000) + 1000
    for position, count in enumerate(COUNTS):
        for labels, value in server.instant(query.format(f"{week.STEM}_{count}_total"), now_ms):
            group = tuple(labels.get(dimension, "") for dimension in week.DIMENSIONS)
            found.setdefault(group, [0, 0, 0])[position] = value
    return {group: (of[0], of[1], of[2]) for group, of in found.items()}


def of_prometheus(server: Prometheus) -> Callable[[str], Series]:
    """Gives what reads the samples of each series, with their times in milliseconds."""

    def raw(name: str) -> Series:
        found = server._ask("/api/v1/query", query=f"{name}[1h]", time=str(time.time() + 1))["data"]["result"]
        return [(one["metric"], [(round(at * 1000), int(value)) for at, value in one["values"]]) for one in found]

    return raw


@needs_newer
def test_prometheus_has_the_truth_from_an_agent(tmp_path: Path, truth: Truth) -> None:
    server = Prometheus(tmp_path / "prometheus", "", "--web.enable-remote-write-receiver")
    agent = Agent(tmp_path / "agent", server.write_url)
    with server.running(), agent.running():
        push_and_kill(agent.write_url, "otlp", tmp_path / "ledger.json", WINDOWS, [server, agent])
        until = time.monotonic() + 120
        while newest(server, "last_over_time({}[1h])") != truth.sums:
            assert time.monotonic() < until, agent.log()
            time.sleep(0.1)
        check_raw(of_prometheus(server), truth)
        assert set(newest(server, "resets({}[1h])").values()) == {(0, 0, 0)}
        names = {labels["service_name"] for labels, _ in server.instant(f"{week.STEM}_success_total", round(time.time() * 1000))}
        assert names == {"tallyfold"}


@needs_newer
def test_victoriametrics_has_the_truth(tmp_path: Path, truth: Truth) -> None:
    server = NewerVictoriaMetrics(tmp_path, "-opentelemetry.usePrometheusNaming")
    with server.running():
        push_and_kill(server.write_url, "otlp", tmp_path / "ledger.json", WINDOWS, [server])
        assert newest(server, "last_over_time({}[1h])") == truth.sums
        check_raw(server.raw, truth)


@needs_newer
def test_victoriametrics_has_our_names_by_default(tmp_path: Path) -> None:
    server = NewerVictoriaMetrics(tmp_path)
    with server.running(), httpx2.HTTPTransport(trust_env=False) as transport:
        ledger, service = tallyfold.Ledger(), week.Service(week.events(totals.SEED, 4))
        for revision, state in week.follow(service, windows=4):
            ledger.add(revision, state)
        ledger.push("otlp", server.write_url, LABELS, transport=transport)
        stem = "tallyfold.event_delivery.by_integration_reason_write_key"
        found = server.raw(f"{stem}.success")
        expected = week.drawn_sums(week.events(totals.SEED, 4))
        assert {tuple(labels.get(name, "") for name in week.DIMENSIONS): values[-1][1] for labels, values in found} == {
            group: counts[0] for group, counts in expected.items()
        }


#: The limits that VictoriaMetrics documents, and one more of each.
LIMITS: list[tuple[dict[str, str], dict[str, str]]] = [
    ({"own": "x" * 4096}, {"own": "x" * 4097}),
    ({"n" * 256: "x"}, {"n" * 257: "x"}),
]


@needs_newer
@pytest.mark.parametrize("form", ["otlp", "remote-write"])
@pytest.mark.filterwarnings("ignore::tallyfold.ExportWarning")
def test_what_victoriametrics_ignores_is_noted(tmp_path: Path, form: tallyfold.ExportFormat) -> None:
    """Its limits are those of the format: what is noted is ignored, and nothing else is."""
    sandbox = tallyfold.Sandbox()
    sandbox.record("2025-01-01T00:01:00Z", "success", event_name="a", write_key="w", integration="i")
    client = tallyfold.Client(cluster_endpoint="https://service.example", transport=sandbox.transport(), **sandbox.credentials)
    server = NewerVictoriaMetrics(tmp_path)
    most = {"otlp": 40 - 5, "remote-write": 40 - 2}[form]
    many = [{f"l{number}": "x" for number in range(labels)} for labels in (most, most + 1)]
    with server.running(), client, httpx2.HTTPTransport(trust_env=False) as transport:
        start, end = "2025-01-01T00:00:00Z", "2025-01-01T00:15:00Z"
        for number, (fine, beyond) in enumerate([*LIMITS, (many[0], many[1])]):
            for labels, is_taken in ((fine, True), (beyond, False)):
                name = f"case_{number}_{is_taken}"
                with client.follow("event_delivery", start, ["integration"], window="15m", end=end) as revisions:
                    ledger = tallyfold.Ledger()
                    for revision in revisions:
                        ledger.add(revision, revisions.state())
                        notes = tallyfold.export(revision, form, labels, name=name).notes
                if form == "otlp":
                    ledger.push(form, server.write_url, labels, name=name, transport=transport)
                    found = server.raw(f"{name}.by_integration.success")
                else:
                    tallyfold.push(revision.table, form, f"http://127.0.0.1:{server.port}/api/v1/write", labels, name=name, transport=transport)
                    found = server.raw(f"{name}_by_integration_success_events")
                assert (len(found) == 1) is is_taken, (name, len(labels))
                # The label of a revision is one more.
                kinds = {note.kind for note in notes}
                assert (not kinds) is is_taken or (number == 2 and is_taken), (name, kinds)


class Cumulative:
    """What a receiver has of cumulative sums, by the official messages."""

    def __init__(self) -> None:
        self.starts: set[int] = set()
        self.series: dict[tuple[str, Group], list[tuple[int, int]]] = {}

    def read(self, pieces: Iterable[bytes]) -> readers.Samples:
        found: readers.Samples = {}
        for message in pieces:
            for name, labels, start, at, value in readers.otlp_totals(message):
                assert labels["cluster"] == LABELS["cluster"]
                group = tuple(labels.get(dimension, "") for dimension in week.DIMENSIONS)
                self.starts.add(start)
                self.series.setdefault((name, group), []).append((at, value))
                readers.add(found, name, labels, at, value)
        return found


@pytest.fixture
def cumulative() -> Iterator[tuple[Cumulative, Receiver]]:
    reading = Cumulative()
    with Receiver(reading.read) as receiver:
        yield reading, receiver


def test_killed_pushers_have_one_start_and_no_step_back(tmp_path: Path, cumulative: tuple[Cumulative, Receiver]) -> None:
    reading, receiver = cumulative
    truth = Truth(DAY)
    push_and_kill(receiver.url, "otlp", tmp_path / "ledger.json", DAY)
    assert not receiver.taken.wrong
    assert len(reading.starts) == 1
    last: dict[Group, list[int]] = {}
    for (name, group), points in reading.series.items():
        position = COUNTS.index(name.rpartition(".")[2])
        # In the order in which they came.
        times = [at for at, _ in points]
        assert times == sorted(set(times))
        truth.check(group, position, points)
        last.setdefault(group, [0, 0, 0])[position] = points[-1][1]
    assert {group: tuple(of) for group, of in last.items()} == truth.sums
