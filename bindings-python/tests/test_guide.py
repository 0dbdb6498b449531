"""Every Python program of the README files and the guide runs, against a sandbox on loopback.

The blocks of a page are one program, in their order. What the programs count is compared with the
truth, in a time of the tests' own, in which events come late and programs are killed.
"""

import csv
import http.server
import json
import os
import random
import re
import runpy
import socket
import sqlite3
import subprocess
import sys
import threading
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars
import prometheus_client
import pytest
import readers
from clock import Clock
from support import HAS_WIDGET, record

import tallyfold

# A busy machine takes several times as long as others.
pytestmark = pytest.mark.timeout(900)

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    [ROOT / "README.md", ROOT / "bindings-python/README.md", *(ROOT / "docs").rglob("*.md")]
)
MADE = {"architecture.md", "changelog.md", "security.md"}
"""Pages that are made when the site is built."""


def program(page: Path, only: int | None = None) -> str:
    """Joins the blocks of a page, each at its own line, which tracebacks then tell."""
    lines: list[str] = []
    is_inside, blocks = False, 0
    for line in page.read_text().splitlines():
        blocks += line == "```python"
        is_inside = line == "```python" or (is_inside and line != "```")
        is_wanted = is_inside and only in {None, blocks - 1}
        lines.append(line if is_wanted and line != "```python" else "")
    return "\n".join(lines)


def test_each_public_name_has_its_place_in_the_reference() -> None:
    pages = (ROOT / "docs/reference").glob("python*.md")
    listed = [
        name
        for page in pages
        for name in re.findall(r"^::: tallyfold\.(\w+)$", page.read_text(), re.MULTILINE)
    ]
    modules = {"asgi", "dlt", "spark"}
    assert sorted(listed) == sorted(modules | set(tallyfold.__all__) - {"__version__"})


PROGRAMS = {
    str(page.relative_to(ROOT)): program(page)
    for page in PAGES
    if "reference" not in page.parts and page.name not in MADE and program(page).strip()
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
        bodies = self.bodies = list[bytes]()

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                if body := self.rfile.read(int(self.headers["content-length"])):
                    heard.add(self.path)
                    bodies.append(body)
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
        self.bodies.clear()
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


def result_of(
    text: str, environment: dict[str, str], folder: Path
) -> subprocess.CompletedProcess[str]:
    """Runs a program in a folder, in which it may leave files."""
    file = folder / "program.py"
    file.write_text(text)
    return subprocess.run(
        [sys.executable, file],
        env={**os.environ, **environment},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )


@pytest.mark.parametrize("page", PROGRAMS)
def test_a_program_runs(
    page: str, environment: dict[str, str], receiver: Receiver, tmp_path: Path
) -> None:
    code = compile(PROGRAMS[page], page, "exec")
    assert code
    if ".show()" in PROGRAMS[page] and not HAS_WIDGET:
        pytest.skip("the npm package was not built")
    ran = result_of(PROGRAMS[page], environment, tmp_path)
    # A health job says by its exit code that deliveries fail.
    expected = {0, 1} if re.search(r"^sys\.exit\(1 if", PROGRAMS[page], re.M) else {0}
    assert ran.returncode in expected, ran.stdout + ran.stderr
    assert "Traceback" not in ran.stderr
    is_export = Path(page).parent.name == "exports"
    assert receiver.heard() == (HEARD.get(Path(page).stem, set()) if is_export else set())


ALONE = {
    page: [
        number
        for number in range((ROOT / page).read_text().count("\n```python\n"))
        if program(ROOT / page, number).strip()
    ]
    for page in ("docs/guides/lazy-frames.md", "docs/guides/following.md")
}
"""Pages whose blocks are each a program of its own."""


@pytest.mark.parametrize(
    ("page", "number"), [(page, number) for page, numbers in ALONE.items() for number in numbers]
)
def test_a_block_runs_alone(
    page: str, number: int, environment: dict[str, str], tmp_path: Path
) -> None:
    ran = result_of(program(ROOT / page, number), environment, tmp_path)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert ran.stdout


def full_hour() -> datetime:
    """Gives the last full hour."""
    return datetime.now(UTC).replace(minute=0, second=0, microsecond=0)


def test_the_nightly_backfill_reads_days_again_that_were_not_settled(tmp_path: Path) -> None:
    # A day that has ended with the last full hour, so that its last hour may still change.
    today = full_hour()
    folder = tmp_path / "first"
    folder.mkdir()
    try:
        check_nightly_backfill(today, folder)
    except AssertionError:
        # The day is settled if the next full hour has come meanwhile.
        if full_hour() == today:
            raise
        folder = tmp_path / "second"
        folder.mkdir()
        check_nightly_backfill(full_hour(), folder)


def check_nightly_backfill(today: datetime, folder: Path) -> None:
    program = PROGRAMS["docs/guides/backfill.md"]
    fixed = "today = datetime(2026, 1, 31, tzinfo=UTC)"
    assert fixed in program
    file = folder / "program.py"
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
        subprocess.run(command, env=environment, cwd=folder, timeout=280, check=True)
        days = sorted((folder / "counts").glob("*.parquet"))
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


COUNTS: tuple[tallyfold.CountName, ...] = ("success", "errors", "filtered")
HOUR = "2026-01-31T09:00:00Z", "2026-01-31T10:00:00Z"
DAY = "2026-01-30T00:00:00Z", "2026-01-31T00:00:00Z"
MINUTE_MS = 60_000
INTEGRATIONS = ("email", "push", "CRM", "Surveys")

Sums = Counter[tuple[str, str]]
"""Counts by integration and by the count's name, without those that are 0."""


class Killed(BaseException):
    """Ends a program, as far as it knows."""


def of_rows(rows: Iterable[Any]) -> Sums:
    sums = Sums()
    for row in rows:
        for count in COUNTS:
            sums[row.dimensions["integration"], count] += getattr(row, count)
    return +sums


def of_samples(bodies: Iterable[bytes], read: readers.Reader) -> Sums:
    """Adds up what a receiver keeps, to which a sample that comes again is no news."""
    kept: dict[readers.Sample, int] = {}
    for body in bodies:
        for sample, value in read([body]).items():
            assert kept.setdefault(sample, value) == value, sample
    sums = Sums()
    for (name, labels, _), value in kept.items():
        (count,) = (count for count in COUNTS if count in name)
        sums[dict(labels)["integration"], count] += value
    return +sums


def influx(bodies: Iterable[bytes]) -> readers.Samples:
    """Reads lines whose names need no escapes."""
    found: readers.Samples = {}
    for line in b"".join(bodies).decode().splitlines():
        series, fields, at = line.split(" ")
        labels = dict(pair.split("=") for pair in series.split(",")[1:])
        for count, value in (field.split("=") for field in fields.split(",")):
            readers.add(found, count, labels, int(at) // 1_000_000, int(value.removesuffix("i")))
    return found


def of_totals(bodies: Iterable[bytes]) -> Sums:
    """Takes the newest point of each series, none of which is smaller than the one before."""
    newest: dict[tuple[str, str], tuple[int, int]] = {}
    starts = set[int]()
    for body in bodies:
        for name, labels, start, at, value in readers.otlp_totals(body):
            (count,) = (count for count in COUNTS if name.endswith(count))
            series = labels["integration"], count
            before_at, before = newest.get(series, (0, 0))
            assert at > before_at
            assert value >= before
            newest[series] = at, value
            starts.add(start)
    assert len(starts) == 1
    return +Sums({series: value for series, (_, value) in newest.items()})


def of_files(folder: Path) -> Sums:
    """Adds up three files of the same counts."""
    lines = {
        end: (folder / f"2026-01-30.{end}").read_text().splitlines() for end in ("csv", "ndjson")
    }
    rows = {
        "csv": list(csv.DictReader(lines["csv"])),
        "ndjson": list(map(json.loads, lines["ndjson"])),
        "parquet": polars.read_parquet(folder / "2026-01-30.parquet").to_dicts(),
    }
    found = [
        +Sums(
            {
                (name, count): sum(int(row[count]) for row in each if row["integration"] == name)
                for name in INTEGRATIONS
                for count in COUNTS
            }
        )
        for each in rows.values()
    ]
    assert found[0] == found[1] == found[2]
    assert all(str(row["settled"]).lower() == "true" for each in rows.values() for row in each)
    return found[0]


def of_parquet(folder: Path) -> Sums:
    rows = [
        row for file in folder.glob("*.parquet") for row in polars.read_parquet(file).to_dicts()
    ]
    assert all(row["settled"] for row in rows)
    return +sum((Sums({(row["integration"], c): row[c] for c in COUNTS}) for row in rows), Sums())


def of_sqlite(folder: Path) -> Sums:
    """Reads the table of a program, by window and integration."""
    with closing(sqlite3.connect(folder / "counts.db")) as database:
        rows = database.execute(f"SELECT integration, {', '.join(COUNTS)} FROM counts").fetchall()
    sums = Sums()
    for name, *counts in rows:
        for count, value in zip(COUNTS, counts, strict=True):
            sums[name, count] += value
    return +sums


def of_registry() -> Sums:
    """Reads what a scrape would show."""
    sums = Sums()
    for family in prometheus_client.REGISTRY.collect():
        for sample in family.samples:
            if sample.name.endswith("_total"):
                (count,) = (count for count in COUNTS if count in sample.name)
                sums[sample.labels["integration"], count] += int(sample.value)
    return +sums


Found = Callable[[dict[str, Any], Path, Receiver], Sums]


def named(name: str) -> Found:
    """Gives what reads the table of that name that a program has left."""
    return lambda names, *_: of_rows(names[name])


def sent(read: readers.Reader) -> Found:
    return lambda _, __, receiver: of_samples(receiver.bodies, read)


@dataclass(frozen=True)
class Case:
    """A program of a page, and when it runs."""

    page: str
    block: int
    span: tuple[str, str]
    found: Found
    """Reads what the program has counted."""
    starts: tuple[int, ...] = (75,)
    """Minutes from the end of the span, which lets an event be up to an hour late."""
    latest: int = 59
    """For how many minutes an event may be on its way."""
    once: bool = False
    """Whether it gives what is due, in place of waiting."""
    kills: int = 0
    """How often the program is killed, and begun again."""


FOLLOW = (-60,)
NIGHTS = (0, 75)
"""A job that runs at once, and again later, must end with the truth too."""
TOTAL = ("", "success")

CASES = [
    Case("README.md", 0, ("2026-01-31T09:00:00Z", "2026-01-31T09:15:00Z"), named("table")),
    Case("docs/index.md", 0, ("2026-01-31T09:00:00Z", "2026-01-31T09:15:00Z"), named("table")),
    Case(
        "docs/start/python.md",
        2,
        ("2026-01-01T00:00:00Z", "2026-01-03T00:00:00Z"),
        named("january"),
        NIGHTS,
    ),
    Case(
        "docs/guides/backfill.md",
        0,
        ("2026-01-28T00:00:00Z", "2026-01-31T00:00:00Z"),
        lambda _, folder, __: of_parquet(folder / "counts"),
        NIGHTS,
    ),
    Case(
        "docs/guides/behaviour.md",
        0,
        ("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"),
        named("table"),
    ),
    Case(
        "docs/guides/following.md",
        1,
        HOUR,
        lambda _, folder, __: Sums(
            {TOTAL: json.loads((folder / "running.json").read_text())["success"]}
        ),
        FOLLOW,
        kills=5,
    ),
    Case(
        "docs/guides/following.md",
        2,
        HOUR,
        lambda _, folder, __: of_sqlite(folder),
        FOLLOW,
        kills=5,
    ),
    Case(
        "docs/guides/following.md",
        2,
        HOUR,
        lambda _, folder, __: of_sqlite(folder),
        tuple(range(-60, 76, 15)),
        once=True,
    ),
    Case("docs/guides/notebooks.md", 0, DAY, named("counts")),
    Case("docs/guides/exports/overview.md", 1, HOUR, sent(influx), FOLLOW, kills=5),
    Case(
        "docs/guides/exports/prometheus.md",
        0,
        DAY,
        lambda _, folder, __: of_samples([(folder / "day.om").read_bytes()], readers.openmetrics),
        NIGHTS,
    ),
    Case("docs/guides/exports/prometheus.md", 1, HOUR, sent(readers.remote_write), FOLLOW, kills=5),
    Case("docs/guides/exports/prometheus.md", 2, HOUR, lambda *_: of_registry(), FOLLOW, kills=5),
    Case("docs/guides/exports/victoriametrics.md", 0, DAY, sent(readers.remote_write), NIGHTS),
    Case("docs/guides/exports/influxdb.md", 0, HOUR, sent(influx), FOLLOW, kills=5),
    Case(
        "docs/guides/exports/opentelemetry.md",
        0,
        HOUR,
        lambda _, __, receiver: of_totals(receiver.bodies),
        FOLLOW,
        kills=5,
    ),
    Case("docs/guides/exports/opentelemetry.md", 1, HOUR, sent(readers.otlp)),
    Case(
        "docs/guides/exports/datadog.md", 0, HOUR, sent(readers.datadog), FOLLOW, latest=44, kills=5
    ),
    Case("docs/guides/exports/files.md", 0, DAY, lambda _, folder, __: of_files(folder), NIGHTS),
]


def text_of(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def ms_of(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1000)


def let_events_come(case: Case, sandbox: tallyfold.Sandbox, clock: Clock, begin: int) -> Sums:
    """Lets a thousand events come, all of them late; gives the truth."""
    draw, sums = random.Random(20260131), Sums()
    first, last = map(ms_of, case.span)
    for _ in range(1000):
        at = draw.randrange(first, last) // 1000 * 1000
        comes = at + draw.randrange(case.latest * MINUTE_MS)
        name, outcome, count = draw.choice(INTEGRATIONS), draw.choice(COUNTS), draw.randrange(1, 50)
        sums[name, outcome] += count

        def happen(at: int = at, name: str = name, of: str = outcome, count: int = count) -> None:
            record(sandbox, of, name, count=count, at=text_of(at))

        clock.events.append((comes - begin, happen))
    return sums


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.page}:{case.block}")
def test_a_program_counts_the_truth(
    case: Case, receiver: Receiver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin = ms_of(case.span[1]) + case.starts[0] * MINUTE_MS
    clock, sandbox = Clock(begin), tallyfold.Sandbox()
    clock.drive(monkeypatch)
    want = let_events_come(case, sandbox, clock, begin)
    draw = random.Random(7)

    def kill() -> None:
        raise Killed

    clock.events += [(draw.randrange(130 * MINUTE_MS), kill) for _ in range(case.kills)]
    clock.events.sort(key=lambda event: event[0])
    file = tmp_path / "program.py"
    # What the page has imported before.
    code = program(ROOT / case.page, case.block)
    if case.once:
        code, count = re.subn('end="[^"]+"', "once=True", code)
        assert count == 1
    file.write_text(f"import tallyfold\n{code}")
    monkeypatch.chdir(tmp_path)
    for name, value in receiver.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(prometheus_client, "start_http_server", lambda _: None)
    receiver.heard()
    kills = 0
    with tallyfold.serve(sandbox) as server:
        monkeypatch.setenv("TALLYFOLD_CLUSTER_ENDPOINT", server.url)
        for name, text in sandbox.credentials.items():
            monkeypatch.setenv(f"TALLYFOLD_{name.upper()}", str(text))
        for start in case.starts:
            clock.wait(max(0, ms_of(case.span[1]) + start * MINUTE_MS - begin - clock.ms) / 1000)
            while True:
                registry = prometheus_client.CollectorRegistry()
                monkeypatch.setattr(prometheus_client, "REGISTRY", registry)
                try:
                    # What came in the moment of a kill.
                    clock.wait(0)
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore", tallyfold.WindowsLeftOutWarning)
                        names = runpy.run_path(str(file))
                    break
                except Killed:
                    kills += 1
    assert kills == case.kills
    found = case.found(names, tmp_path, receiver)
    if set(found) == {TOTAL}:
        want = Sums({TOTAL: sum(count for (_, of), count in want.items() if of == "success")})
    assert found == want
