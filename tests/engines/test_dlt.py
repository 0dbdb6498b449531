"""Counts in DuckDB and PostgreSQL by dlt: late data replace what they correct, and a killed run loses and doubles nothing."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import dlt
import httpx2
import pytest
import tallyfold
import tallyfold.dlt
from tallyfold.dlt import source

START = datetime(2026, 1, 30, tzinfo=UTC)
NAMES: list[tallyfold.DimensionName] = ["integration", "reason"]
(PROGRAMS,) = Path("/usr/lib/postgresql").glob("*/bin")


@pytest.fixture(scope="module")
def postgres() -> Iterator[str]:
    """A PostgreSQL server of its own, which only a user other than root may run."""
    folder = Path(tempfile.mkdtemp(prefix="tallyfold-pg-"))
    folder.chmod(0o755)
    data = folder / "data"
    as_user: list[str] = []
    if os.geteuid() == 0:
        shutil.chown(folder, "postgres")
        as_user = ["runuser", "-u", "postgres", "--"]

    def run(*command: object) -> None:
        subprocess.run([*as_user, *map(str, command)], check=True, cwd=folder, capture_output=True)

    run(PROGRAMS / "initdb", "-D", data, "-A", "trust", "-U", "tallyfold")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={folder}"
    run(PROGRAMS / "pg_ctl", "-D", data, "-w", "-l", folder / "log", "-o", options, "start")
    try:
        yield f"postgresql://tallyfold:unused@127.0.0.1:{port}/postgres"
    finally:
        run(PROGRAMS / "pg_ctl", "-D", data, "-m", "immediate", "stop")
        shutil.rmtree(folder)


@pytest.fixture(params=["duckdb", "postgres"])
def destination(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("RUNTIME__DLTHUB_TELEMETRY", "false")
    if request.param == "duckdb":
        return dlt.destinations.duckdb(str(tmp_path / "counts.duckdb"))
    return dlt.destinations.postgres(request.getfixturevalue("postgres"))


class World:
    """A service whose clock the test moves, and the pipeline into a warehouse."""

    def __init__(self, destination: Any, folder: Path, dataset: str) -> None:
        self.now = START + timedelta(hours=6, minutes=5)
        self.sandbox = tallyfold.Sandbox()
        self.destination = destination
        self.folder = folder
        self.dataset = dataset
        self.client = tallyfold.Client(
            cluster_endpoint="https://cluster.example",
            base_url="https://cluster.example",
            auth_url="https://cluster.example",
            transport=self.sandbox.transport(),
            **self.sandbox.credentials,
        )

    def record(self, at: timedelta, integration: str, count: int, outcome: str = "success") -> None:
        timestamp = START + at
        self.sandbox.record(
            timestamp=timestamp,
            event_name="order_placed",
            write_key="web",
            integration=integration,
            outcome=outcome,
            count=count,
        )

    def pipeline(self) -> dlt.Pipeline:
        return dlt.pipeline(
            "counts",
            pipelines_dir=str(self.folder),
            destination=self.destination,
            dataset_name=self.dataset,
        )

    def run(self, **options: Any) -> None:
        given = {"end": START + timedelta(hours=6), **options}
        self.pipeline().run(source(self.client, START, **given))

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        with self.pipeline().sql_client() as sql_client, sql_client.execute_query(sql) as cursor:
            return [tuple(row) for row in cursor.fetchall()]

    def counts(self, table: str = "event_delivery") -> list[tuple[Any, ...]]:
        columns = "window_start, integration, reason, success, errors, filtered"
        where = "where integration is not null"
        return sorted(self.rows(f"select {columns} from {table} {where}"))

    def truth(self) -> list[tuple[Any, ...]]:
        table = self.client.collect("event_delivery", START, START + timedelta(hours=6), NAMES, window="15m")
        return sorted(
            (
                row.window.start,
                *row.dimensions.values(),
                Decimal(row.success),
                Decimal(row.errors),
                Decimal(row.filtered),
            )
            for row in table.by_window()
        )


@pytest.fixture
def world(destination: Any, tmp_path: Path, request: pytest.FixtureRequest) -> World:
    dataset = "d" + str(abs(hash(request.node.name)))
    made = World(destination, tmp_path / "pipelines", dataset)
    for quarter in range(20):
        made.record(timedelta(minutes=15 * quarter + 3), "crm", 10 + quarter)
        made.record(timedelta(minutes=15 * quarter + 3), "email", quarter + 1, "errors")
    return made


def test_the_warehouse_has_the_counts_of_the_service(world: World) -> None:
    world.record(timedelta(minutes=40), "large", 2**64 - 100_000)
    world.run()
    assert world.counts() == world.truth()
    assert max(row[3] for row in world.counts()) == Decimal(2**64 - 100_000)
    # A window without events has a row, too, so that one sees that it was read.
    empty = world.rows("select window_start, success from event_delivery where integration is null")
    assert len(empty) == 4
    assert {success for _, success in empty} == {Decimal(0)}
    assert len(world.rows("select distinct window_start from event_delivery")) == 24
    # As whole numbers, without decimals.
    assert {str(row[3]) for row in world.counts()} == {str(row[3]) for row in world.truth()}
    (logs,) = world.rows("select count(*) from audit_logs")
    world.run()
    assert world.rows("select count(*) from audit_logs") == [logs]
    assert logs[0] > 0


def test_settled_windows_are_read_once(world: World) -> None:
    world.run()
    calls = world.sandbox.stats["event_delivery"]
    assert calls == 24
    world.run()
    assert world.sandbox.stats["event_delivery"] == calls
    # An earlier start reads only what is missing, and a later one leaves no gap behind.
    earlier = START - timedelta(hours=1)
    world.pipeline().run(source(world.client, earlier, START + timedelta(hours=7)))
    assert world.sandbox.stats["event_delivery"] == calls + 8


def test_late_events_replace_the_window_that_they_belong_to(world: World) -> None:
    recent = datetime.now(UTC).replace(second=0, microsecond=0) - timedelta(minutes=30)
    start = recent - timedelta(minutes=recent.minute % 15)
    event = {"event_name": "order_placed", "write_key": "web", "outcome": "success"}

    def run(**options: Any) -> None:
        end = start + timedelta(minutes=15)
        world.pipeline().run(source(world.client, start, end, **options))

    world.sandbox.record(timestamp=start, integration="crm", count=5, **event)
    run(provisional=False)
    run()
    columns = "integration, success, settled"
    assert world.rows(f"select {columns} from event_delivery") == [("crm", Decimal(5), False)]
    world.sandbox.record(timestamp=start, integration="crm", count=2, **event)
    world.sandbox.record(timestamp=start, integration="chat", count=1, **event)
    run()
    assert sorted(world.rows(f"select {columns} from event_delivery")) == [
        ("chat", Decimal(1), False),
        ("crm", Decimal(7), False),
    ]


class _Slow(httpx2.BaseTransport):
    """A service that answers no query of a whole quarter of an hour in time."""

    def __init__(self, sandbox: tallyfold.Sandbox) -> None:
        self._sandbox = sandbox.transport()
        self.is_slow = True

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        body = json.loads(request.content or b"{}")
        if self.is_slow and "start" in body:
            start, end = (datetime.fromisoformat(body[name]) for name in ("start", "end"))
            if end - start == timedelta(minutes=15):
                return httpx2.Response(504)
        return self._sandbox.handle_request(request)


def test_a_window_that_is_read_in_halves_is_one_window(world: World) -> None:
    recent = datetime.now(UTC).replace(second=0, microsecond=0) - timedelta(minutes=30)
    start = recent - timedelta(minutes=recent.minute % 15)
    slow = _Slow(world.sandbox)
    client = tallyfold.Client(
        cluster_endpoint="https://cluster.example",
        transport=slow,
        max_retries=0,
        **world.sandbox.credentials,
    )
    event = {"event_name": "order_placed", "write_key": "web", "outcome": "success", "integration": "crm"}

    def run() -> list[tuple[Any, ...]]:
        counts = source(client, start, start + timedelta(minutes=15))
        world.pipeline().run(counts.with_resources("event_delivery"))
        columns = "window_start, window_end, success, settled"
        return world.rows(f"select {columns} from event_delivery")

    window = start, start + timedelta(minutes=15)
    world.sandbox.record(timestamp=start, count=5, **event)
    world.sandbox.record(timestamp=start + timedelta(minutes=12), count=2, **event)
    assert run() == [(*window, Decimal(7), False)]
    # The halves are not settled, so a late event is found, whether the window is read in halves or as a whole.
    world.sandbox.record(timestamp=start + timedelta(minutes=12), count=1, **event)
    assert run() == [(*window, Decimal(8), False)]
    slow.is_slow = False
    world.sandbox.record(timestamp=start, count=1, **event)
    assert run() == [(*window, Decimal(9), False)]


def test_a_larger_settle_reads_again_what_a_checkpoint_has(world: World, tmp_path: Path) -> None:
    start = datetime.now(UTC).replace(minute=0, second=0, microsecond=0) - timedelta(hours=6)
    event = {"event_name": "order_placed", "write_key": "web", "integration": "crm", "outcome": "success"}

    def run(**options: Any) -> list[tuple[Any, ...]]:
        end = start + timedelta(hours=1)
        counts = source(world.client, start, end, checkpoint=tmp_path / "checkpoint", **options)
        # Both metrics use the same checkpoint.
        world.pipeline().run(counts.with_resources("event_delivery", "event_ingestion"))
        return world.rows("select sum(success), count(distinct settled), min(window_start) from event_delivery")

    world.sandbox.record(timestamp=start, count=5, **event)
    assert run() == [(Decimal(5), 1, start)]
    world.sandbox.record(timestamp=start, count=2, **event)
    assert run(settle=24 * 3600) == [(Decimal(7), 1, start)]
    world.sandbox.record(timestamp=start, count=1, **event)
    assert run(settle=24 * 3600) == [(Decimal(8), 1, start)]
    with pytest.raises(tallyfold.ConfigError, match="checkpoint"):
        source(world.client, start, checkpoint=7)  # type: ignore[arg-type]
    with pytest.raises(tallyfold.ConfigError, match="checkpoint: this is empty"):
        source(world.client, start, checkpoint="")


def test_a_checkpoint_stays_where_it_was_given(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    counts = source(world.client, START, START + timedelta(hours=1), checkpoint="checkpoint")
    monkeypatch.chdir("elsewhere")
    world.pipeline().run(counts.with_resources("event_delivery"))
    assert list((tmp_path / "elsewhere").iterdir()) == []
    assert [one.name for one in (tmp_path / "checkpoint").iterdir()] == ["event_delivery-3600"]


def test_a_killed_backfill_resumes_from_its_checkpoint(world: World, tmp_path: Path) -> None:
    days = 3

    def backfill() -> Any:
        end = START + timedelta(days=days)
        counts = source(world.client, START, end, checkpoint=str(tmp_path / "checkpoint"))
        return counts.with_resources("event_delivery")

    def kill(row: dict[str, Any]) -> dict[str, Any]:
        if row["window_start"] >= START + timedelta(days=days - 1):
            raise KeyboardInterrupt
        return row

    killed = backfill()
    killed.event_delivery.add_map(kill)
    with pytest.raises(BaseException, match="extract"):
        world.pipeline().run(killed)
    assert world.sandbox.stats["event_delivery"] == days * 96
    # The killed run has stored nothing in the warehouse.
    shutil.rmtree(world.folder)
    world.pipeline().run(backfill())
    assert world.sandbox.stats["event_delivery"] == days * 96
    assert world.counts() == world.truth()


def test_windows_are_whole_wherever_the_range_starts(world: World) -> None:
    world.record(timedelta(minutes=10), "chat", 7)
    columns = "window_start, window_end, success"
    for minutes in (7, 0, 14):
        start = START + timedelta(minutes=minutes)
        counts = source(world.client, start, START + timedelta(minutes=40))
        world.pipeline().run(counts.with_resources("event_delivery"))
        found = world.rows(f"select {columns} from event_delivery where integration = 'chat'")
        assert found == [(START, START + timedelta(minutes=15), Decimal(7))]
    (edges,) = world.rows("select min(window_start), max(window_end) from event_delivery")
    assert edges == (START, START + timedelta(minutes=40))


def client_of_logs(page: Callable[[int], Any]) -> tallyfold.Client:
    """Returns a client of a service whose audit logs have the bodies that `page` returns for page numbers."""

    def respond(request: httpx2.Request) -> httpx2.Response:
        if request.url.path.endswith("/token"):
            return httpx2.Response(200, json={"access_token": "t", "expires_in": 86_400})
        return httpx2.Response(200, json=page(int(request.url.params["page"])))

    return tallyfold.Client(
        cluster_endpoint="https://cluster.example",
        base_url="https://cluster.example",
        auth_url="https://cluster.example",
        transport=httpx2.MockTransport(respond),
        **tallyfold.Sandbox().credentials,
    )


@pytest.mark.parametrize(
    ("pages", "records"),
    [
        ([[1, 2], [3], []], [1, 2, 3]),
        ([{"items": [1], "page": 1}, {"items": [2], "page": 2}, {"items": [], "page": 3}], [1, 2]),
        ([{"a": [1], "b": [2], "page": 1}, {"a": [], "b": [], "page": 2}], [{"a": [1], "b": [2], "page": 1}]),
        ([{"page": 1}, {"page": 2}], [{"page": 1}]),
        (["a text", "a text"], ["a text"]),
        ([7, 7], [7]),
        ([{}], []),
        (
            [{"data": {"logs": [1], "x": {}}, "meta": {"page": 1}}, {"data": {"logs": []}, "meta": {"page": 2}}],
            [1],
        ),
        (
            [
                {"logs": [7], "links": [{"self": "?page=1", "next": "?page=2"}]},
                {"logs": [], "links": [{"self": "?page=2", "next": "?page=3"}]},
                {"logs": [], "links": [{"self": "?page=3", "next": "?page=4"}]},
            ],
            [
                {"logs": [7], "links": [{"self": "?page=1", "next": "?page=2"}]},
                {"logs": [], "links": [{"self": "?page=2", "next": "?page=3"}]},
            ],
        ),
        (
            [{"log": {"id": 50, "page": 1}}, {"log": {"id": 51, "page": 2}}, {"log": {"id": 51, "page": 3}}],
            [{"log": {"id": 50, "page": 1}}, {"log": {"id": 51, "page": 2}}],
        ),
    ],
)
def test_audit_logs_of_any_form_end(pages: list[Any], records: list[Any]) -> None:
    asked: list[int] = []

    def page(number: int) -> Any:
        asked.append(number)
        assert len(asked) <= len(pages), "it does not end"
        return pages[number - 1]

    with client_of_logs(page) as client:
        resource = source(client, START).resources["audit_logs"]
        assert [row["record"] for row in resource] == records


def test_audit_logs_without_an_end_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tallyfold.dlt, "MOST_PAGES", 20)
    asked: list[int] = []

    def page(number: int) -> Any:
        asked.append(number)
        return [{"id": 1000 + len(asked)}]

    with client_of_logs(page) as client:
        with pytest.raises(Exception, match="body_limit: the audit logs don't end after 20 pages"):
            list(source(client, START).resources["audit_logs"])
        assert asked == list(range(1, 21))


def test_without_an_end_only_windows_that_have_ended_are_read(world: World) -> None:
    before = datetime.now(UTC)
    start = before.replace(minute=0, second=0, microsecond=0) - timedelta(hours=2)
    world.pipeline().run(source(world.client, start))
    windows = world.rows("select distinct window_start, window_end from event_delivery")
    assert {end - begin for begin, end in windows} == {timedelta(minutes=15)}
    assert before - timedelta(minutes=15) < max(end for _, end in windows) <= datetime.now(UTC)
    # No window has ended since then, and nothing is due.
    world.pipeline().run(source(world.client, datetime.now(UTC) - timedelta(seconds=1), cluster="other"))
    assert world.rows("select count(*) from event_delivery where cluster = 'other'") == [(0,)]
    # A given end that lies in the future changes nothing.
    world.pipeline().run(source(world.client, start, before + timedelta(hours=1)))
    windows = world.rows("select distinct window_start, window_end from event_delivery")
    assert max(end for _, end in windows) <= datetime.now(UTC)


def test_settle_is_how_long_late_events_are_waited_for(world: World) -> None:
    start = datetime.now(UTC).replace(minute=0, second=0, microsecond=0) - timedelta(hours=6)
    end = start + timedelta(hours=1)
    event = {"event_name": "order_placed", "write_key": "web", "integration": "crm", "outcome": "success"}
    sums = "select sum(success) from event_delivery"

    def run(**options: Any) -> None:
        world.pipeline().run(source(world.client, start, end, **options))

    world.sandbox.record(timestamp=start, count=5, **event)
    run()
    world.sandbox.record(timestamp=start, count=2, **event)
    # An hour has passed since the windows, so they are settled.
    run()
    assert world.rows(sums) == [(Decimal(5),)]
    # A longer time applies to what is in the warehouse, too.
    run(settle=24 * 3600)
    assert world.rows(sums) == [(Decimal(7),)]
    assert world.rows("select distinct settled from event_delivery") == [(False,)]
    world.sandbox.record(timestamp=start, count=1, **event)
    run(settle=24 * 3600)
    assert world.rows(sums) == [(Decimal(8),)]
    with pytest.raises(tallyfold.ConfigError, match="settle"):
        run(settle=-1)


def test_other_counts_under_the_same_name_are_refused(world: World) -> None:
    world.run()
    before = world.counts()
    for options in ({"dimensions": ["integration"]}, {"window": "1h"}):
        with pytest.raises(Exception, match="incompatible_tables"):
            world.run(**options)
    other = tallyfold.Client(
        cluster_endpoint="https://other.example",
        transport=world.sandbox.transport(),
        **world.sandbox.credentials,
    )
    name = "https://cluster.example, client sandbox-client"
    with pytest.raises(Exception, match="incompatible_tables"):
        world.pipeline().run(source(other, START, START + timedelta(hours=1), cluster=name))
    assert world.counts() == before


KILLED = """
import sys
import dlt
import tallyfold
from tallyfold.dlt import source

folder, destination, dataset, start, end = sys.argv[1:]
if destination.startswith("postgresql"):
    to = dlt.destinations.postgres(destination)
else:
    to = dlt.destinations.duckdb(destination)
pipeline = dlt.pipeline("counts", pipelines_dir=folder, destination=to, dataset_name=dataset)
with tallyfold.Client.from_env() as client:
    counts = source(client, start, end, concurrency=1).with_resources("event_delivery")
    print("begun", flush=True)
    pipeline.run(counts)
print("done", flush=True)
"""


def test_a_killed_run_loses_and_doubles_nothing(sandbox: tallyfold.Sandbox, tmp_path: Path, postgres: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RUNTIME__DLTHUB_TELEMETRY", "false")
    end = START + timedelta(days=2)
    arguments = [str(tmp_path), postgres, "killed", START.isoformat(), end.isoformat()]
    for delay in (0.5, 1.5, 2.5, 3.5):
        process = subprocess.Popen([sys.executable, "-c", KILLED, *arguments], stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        # Somewhere in reading, normalizing or loading.
        time.sleep(delay)
        process.send_signal(signal.SIGKILL)
        process.wait()
    subprocess.run([sys.executable, "-c", KILLED, *arguments], check=True)
    pipeline = dlt.pipeline(
        "counts",
        pipelines_dir=str(tmp_path),
        destination=dlt.destinations.postgres(postgres),
        dataset_name="killed",
    )
    columns = "sum(success), sum(errors), sum(filtered), count(*), count(distinct window_start)"
    with pipeline.sql_client() as sql, sql.execute_query(f"select {columns} from event_delivery") as cursor:
        (found,) = cursor.fetchall()
    with tallyfold.Client.from_env() as client:
        table = client.collect("event_delivery", START, end, NAMES, window="15m")
    totals = table.totals
    expected = (totals.success, totals.errors, totals.filtered, len(table.by_window()), 192)
    assert tuple(int(value) for value in found) == expected


@pytest.mark.parametrize("name", ["duckdb", "postgres"])
def test_the_program_of_the_guide(name: str, sandbox: tallyfold.Sandbox, tmp_path: Path, postgres: str) -> None:
    page = Path(__file__).parents[2] / "docs/guides/warehouses.md"
    program, line = re.findall("^```py\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)
    if name == "postgres":
        # The page shows the line that changes.
        changed = re.sub("^pipeline = .*\n", line, program, flags=re.MULTILINE)
        assert changed != program
        program = changed
    environment = {
        "DLT_DATA_DIR": str(tmp_path),
        "RUNTIME__DLTHUB_TELEMETRY": "false",
        "DESTINATION__POSTGRES__CREDENTIALS": postgres,
    }
    program += """
with pipeline.sql_client() as sql:
    print(*sql.execute_sql("select max(window_end) from event_delivery")[0])
"""
    run = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert "load package(s) were loaded to destination " + name in run.stdout
    *rows, end = run.stdout.splitlines()[-4:]
    # It starts yesterday, so that it ends soon.
    assert sandbox.stats["event_delivery"] == sandbox.stats["event_ingestion"] <= 192
    until = datetime.fromisoformat(end)
    start = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=1)
    with tallyfold.Client.from_env() as client:
        table = client.collect("event_delivery", start, until, NAMES, window="15m")
    expected = [f"{row.dimensions['integration']} {row.errors}" for row in table.group_by("integration").top(3, by="errors")]
    assert rows == expected
