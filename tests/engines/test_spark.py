"""`tallyfold.spark` in local mode with two executors: batches, filters, and streams that are killed and resumed."""

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest
import tallyfold
import tallyfold.spark
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.datasource import EqualTo, Filter, GreaterThan, LessThan
from pyspark.sql.types import StructType
from tallyfold._ranges.parts import Assignment, Outcome, encoded

DAY = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"
WINDOWS = 96
COUNTS = ("success", "errors", "filtered")


@pytest.fixture
def spark(sandbox: tallyfold.Sandbox) -> Iterator[SparkSession]:
    """A session whose Python workers have the environment of the sandbox."""
    del sandbox
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    session = builder.config("spark.sql.session.timeZone", "UTC").config("spark.sql.shuffle.partitions", "2").getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    tallyfold.spark.register(session)
    yield session
    session.stop()
    # The next one has another sandbox in its environment, which its JVM gets when it starts.
    gateway = type(session.sparkContext)._gateway
    if gateway is not None:
        gateway.shutdown()
        type(session.sparkContext)._gateway = None
        type(session.sparkContext)._jvm = None


def day(spark: SparkSession, **options: str) -> DataFrame:
    return spark.read.format("tallyfold").options(start=DAY[0], end=DAY[1], **options).load()


def sums(frame: DataFrame, *names: str) -> dict[tuple[str, ...], tuple[int, ...]]:
    added = frame.groupBy(*names).agg(*(F.sum(name).alias(name) for name in COUNTS)).collect()
    return {tuple(row[name] for name in names): tuple(row[name] for name in COUNTS) for row in added}


def rows(table: tallyfold.CountTable) -> dict[tuple[str, ...], tuple[int, ...]]:
    return {row.values: (row.success, row.errors, row.filtered) for row in table}


def test_a_batch_is_what_a_collect_gives(spark: SparkSession, sandbox: tallyfold.Sandbox) -> None:
    frame = day(spark, dimensions="write_key,integration,reason", partitions="5")
    found = sums(frame, "write_key", "integration", "reason")
    assert sandbox.stats["control_token"] == 1
    assert sandbox.stats["event_delivery"] == WINDOWS
    with tallyfold.Client.from_env() as client:
        table = client.collect("event_delivery", *DAY, ["write_key", "integration", "reason"], window="15m")
    assert found == rows(table)
    windows = frame.select("window_start", "window_end", "settled").distinct().collect()
    assert len(windows) == WINDOWS
    assert all(row.settled and row.window_end - row.window_start == timedelta(minutes=15) for row in windows)


def test_without_an_end_only_windows_that_have_ended_are_read(spark: SparkSession) -> None:
    start = datetime.now(UTC).replace(minute=0, second=0, microsecond=0) - timedelta(hours=2)
    frame = spark.read.format("tallyfold").options(start=start.isoformat(), partitions="2").load()
    windows = frame.select(F.unix_timestamp("window_start"), F.unix_timestamp("window_end")).distinct().collect()
    assert {end - begin for begin, end in windows} == {900}
    newest = max(end for _, end in windows)
    assert 0 <= datetime.now(UTC).timestamp() - newest < 2 * 900
    # No window has ended since then.
    now = datetime.now(UTC).isoformat()
    assert spark.read.format("tallyfold").options(start=now).load().count() == 0


def test_filters_reach_the_service(spark: SparkSession, sandbox: tallyfold.Sandbox) -> None:
    frame = day(spark)
    hour = frame.where("window_start >= '2026-01-01T06:00:00Z' and window_start < '2026-01-01T07:00:00Z' and integration = 'CRM'")
    found = sums(hour, "integration", "reason")
    assert sandbox.stats["event_delivery"] == 4
    with tallyfold.Client.from_env() as client:
        table = client.collect("event_delivery", "2026-01-01T06:00:00Z", "2026-01-01T07:00:00Z", ["integration", "reason"], window="15m")
    assert found == rows(table.filter(integration="CRM"))
    before = sandbox.stats["event_delivery"]
    assert sums(frame.where("window_start > '2027-01-01'"), "integration") == {}
    assert sums(frame.where("integration in ('CRM', 'SMS') and integration = 'Billing'"), "integration") == {}
    assert sandbox.stats["event_delivery"] == before


ADDRESS = "https://cluster.example"
QUARTER = timedelta(minutes=15)


class Troubled(httpx2.BaseTransport):
    """A service that answers some queries with a status and no body."""

    def __init__(self, sandbox: tallyfold.Sandbox, is_slow: Callable[[datetime, datetime], bool]) -> None:
        self.is_slow = is_slow
        self.refused, self.status = 0, 504
        self._sandbox = sandbox.transport()

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        body = json.loads(request.content)
        if "start" in body and self.is_slow(*(datetime.fromisoformat(body[name]) for name in ("start", "end"))):
            self.refused += 1
            return httpx2.Response(self.status)
        return self._sandbox.handle_request(request)

    def client(self, sandbox: tallyfold.Sandbox) -> tallyfold.Client:
        return tallyfold.Client(cluster_endpoint=ADDRESS, transport=self, max_retries=0, **sandbox.credentials)


def record(sandbox: tallyfold.Sandbox, at: datetime, count: int) -> None:
    sandbox.record(at, "success", event_name="order", write_key="web", integration="crm", count=count)


@pytest.mark.parametrize("settle", [3600, 10**10])
def test_rows_have_the_windows_of_the_range(sandbox: tallyfold.Sandbox, monkeypatch: pytest.MonkeyPatch, settle: int) -> None:
    del sandbox
    quiet, midnight = tallyfold.Sandbox(), datetime(2026, 1, 1, tzinfo=UTC)
    for minute, count in [(3, 64), (8, 4), (12, 2), (16, 1), (29, 8), (31, 16)]:
        record(quiet, midnight + timedelta(minutes=minute), count)
    # Each window is read in parts.
    troubled = Troubled(quiet, lambda start, end: end - start >= timedelta(minutes=8))

    def read_part(assignment: Assignment) -> Outcome:
        with troubled.client(quiet) as client:
            table = client.collect(*assignment.query, **assignment.options)
        return Outcome(assignment.part.task, encoded(table))

    monkeypatch.setattr(tallyfold.spark, "read_part", read_part)
    schema = StructType().add("window_start", "timestamp").add("window_end", "timestamp").add("settled", "boolean")
    schema = schema.add("integration", "string").add("success", "long")

    def read(*filters: Filter) -> list[tuple[Any, ...]]:
        options = {"start": "2026-01-01T00:07:00Z", "end": "2026-01-01T00:40:00Z", "partitions": "1", "settle": str(settle)}
        reader = tallyfold.spark.CountsSource(options).reader(schema)
        assert list(reader.pushFilters(list(filters))) == list(filters)
        batches = [batch for part in reader.partitions() for batch in reader.read(part)]
        return [tuple(row.values()) for batch in batches for row in batch.to_pylist()]

    edges = [midnight + timedelta(minutes=minute) for minute in (7, 15, 30, 40)]
    rows = [(*edges[place : place + 2], settle == 3600, "crm", count) for place, count in enumerate([6, 9, 16])]
    assert read() == rows
    start, end = ("window_start",), ("window_end",)
    assert read(EqualTo(start, edges[0])) == rows[:1]
    assert read(LessThan(start, edges[1])) == rows[:1]
    assert read(GreaterThan(end, edges[2])) == rows[2:]


def test_a_stream_waits_for_a_service_that_is_down(caplog: pytest.LogCaptureFixture) -> None:
    sandbox = tallyfold.Sandbox()
    first = datetime.now(UTC).replace(minute=0, second=0, microsecond=0) - timedelta(hours=3)
    for quarter in range(4):
        record(sandbox, first + quarter * QUARTER, quarter + 1)
    # The first two windows can be read.
    troubled = Troubled(sandbox, lambda start, _: start >= first + 2 * QUARTER)
    options = {"start": first.isoformat(), "end": (first + 4 * QUARTER).isoformat()}
    stream = tallyfold.spark.CountsSource(options).streamReader(StructType().add("integration", "string"))
    stream._client = troubled.client(sandbox)

    def counts(offset: dict[str, str]) -> list[object]:
        return [row[-3] for row in tallyfold.spark._unpacked(offset["changes"])]

    try:
        some = stream.latestOffset(stream.initialOffset())
        assert counts(some) == [1, 2]
        refused = troubled.refused
        # By default, Spark begins a micro-batch every 10 ms, which is no reason for a request.
        assert [stream.latestOffset(some) for _ in range(5)] == [some] * 5
        assert troubled.refused == refused
        assert [record.levelname for record in caplog.records] == ["WARNING"]
        troubled.is_slow = lambda *_: False
        # A restarted query does not wait.
        stream._offset = None
        assert counts(stream.latestOffset(some)) == [3, 4]
        sandbox.inject("status", endpoint="event_delivery", status=403)
        with pytest.raises(tallyfold.ServiceError, match="forbidden"):
            stream.latestOffset(some)
    finally:
        stream.stop()


def test_a_stream_reads_the_other_windows_if_a_response_is_invalid(caplog: pytest.LogCaptureFixture) -> None:
    sandbox = tallyfold.Sandbox()
    first = datetime.now(UTC).replace(minute=0, second=0, microsecond=0) - timedelta(hours=3)
    troubled = Troubled(sandbox, lambda start, _: start == first + QUARTER)
    troubled.status = 200
    options = {"start": first.isoformat(), "end": (first + 4 * QUARTER).isoformat()}
    stream = tallyfold.spark.CountsSource(options).streamReader(StructType().add("integration", "string"))
    stream._client = troubled.client(sandbox)
    for quarter in range(4):
        record(sandbox, first + quarter * QUARTER, quarter + 1)
    offset, found = stream.initialOffset(), []
    try:
        for _ in range(5):
            end = stream.latestOffset(offset)
            if end != offset:
                found += [row[-3] for row in tallyfold.spark._unpacked(end["changes"])]
            offset = end
    finally:
        stream.stop()
    # The window with the invalid response rests, and the log names it once.
    assert (found, troubled.refused) == ([1, 3, 4], 1)
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "is read again later" in caplog.text


def test_a_schema_requests_its_dimensions_only(spark: SparkSession) -> None:
    reader = spark.read.format("tallyfold").options(start=DAY[0], end=DAY[1])
    frame = reader.schema("integration string, errors long").load()
    assert frame.columns == ["integration", "errors"]
    found = {row["integration"]: row["errors"] for row in frame.groupBy("integration").agg(F.sum("errors").alias("errors")).collect()}
    with tallyfold.Client.from_env() as client:
        table = client.collect("event_delivery", *DAY, ["integration"], window="15m")
    # One row for each window and integration, whatever reasons there are.
    assert frame.count() == sum(1 for _ in table.by_window("15m"))
    assert found == {row.dimensions["integration"]: row.errors for row in table}


def test_no_plan_has_a_secret(spark: SparkSession, capfd: pytest.CaptureFixture[str]) -> None:
    frame = day(spark).where("integration = 'CRM'")
    frame.explain(mode="extended")
    text = capfd.readouterr().out
    assert "tallyfold" in text
    assert os.environ["TALLYFOLD_CLIENT_SECRET"] not in text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"start": DAY[0], "dimension": "integration"}, "dimension: there is no such option"),
        ({}, "start: want the start of the range"),
        ({"start": DAY[0], "dimensions": "integration,nothing"}, "'nothing': want one or more of"),
        ({"start": DAY[0], "partitions": "none"}, "'none': want a whole number above 0"),
    ],
)
def test_a_bad_option_is_named(spark: SparkSession, options: dict[str, str], message: str) -> None:
    with pytest.raises(PySparkException) as caught:
        spark.read.format("tallyfold").options(**options).load()
    assert message in str(caught.value)


PAGE = (Path(__file__).parents[2] / "docs/guides/spark.md").read_text()
PROGRAMS = re.findall("^```py\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def test_the_programs_of_the_guide_count_the_truth(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Java has its own working folder.
    placed = [re.sub('"(counts|changes|checkpoint)"', rf'"{tmp_path}/\1"', program) for program in PROGRAMS]
    batch, columns, year, stream, newest = placed
    monkeypatch.setattr(sys, "argv", ["year.py", "eu-1"])
    with tallyfold.Client.from_env() as client:
        table = client.collect("event_delivery", *DAY, ["integration", "reason"], window="15m")
    wanted = rows(table.group_by("integration"))
    named: dict[str, Any] = {"spark": spark}
    exec(batch, named)  # noqa: S102
    assert sums(named["counts"], "integration") == wanted
    exec(columns, named)  # noqa: S102
    found = named["errors"].groupBy("integration").agg(F.sum("errors").alias("errors")).collect()
    assert {(row["integration"],): row["errors"] for row in found} == {name: counts[1] for name, counts in wanted.items()}
    exec(year.replace("2026-01-01", "2026-01-02").replace("2025-01-01", "2026-01-01").replace("365", "4"), named)  # noqa: S102
    stored = spark.read.parquet(str(tmp_path / "counts"))
    assert sums(stored, "integration") == wanted
    assert {row.cluster for row in stored.select("cluster").distinct().collect()} == {"eu-1"}
    hours_ago = datetime.now(UTC).replace(minute=0, second=0, microsecond=0) - timedelta(hours=3)
    exec(stream.replace("2026-01-31T00:00:00Z", hours_ago.isoformat().replace("+00:00", "Z")), named)  # noqa: S102
    named["query"].processAllAvailable()
    named["query"].stop()
    exec(newest, named)  # noqa: S102
    with tallyfold.Client.from_env() as client:
        end = hours_ago + timedelta(hours=2)
        table = client.collect("event_delivery", hours_ago, end, ["integration"], window="15m")
    changes = named["changes"].where(F.col("window_end") <= F.lit(end.isoformat()).cast("timestamp"))
    assert sums(changes, "integration") == rows(table)


STREAM = """
import sys
import tallyfold.spark
from pyspark.sql import SparkSession

start, folder = sys.argv[1:]
builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
spark = builder.config("spark.sql.session.timeZone", "UTC").config("spark.sql.shuffle.partitions", "2").getOrCreate()
tallyfold.spark.register(spark)
counts = spark.readStream.format("tallyfold").options(start=start, reread="1", windowsPerBatch="5").load()
query = counts.writeStream.format("parquet").option("checkpointLocation", f"{folder}/checkpoint")
print("begun", flush=True)
query.trigger(processingTime="0 seconds").start(f"{folder}/counts").awaitTermination()
"""


def test_a_stream_that_is_killed_counts_late_events_once(sandbox: tallyfold.Sandbox, tmp_path: Path) -> None:
    """Five processes follow the last two hours one after the other, and each is killed. Events arrive late meanwhile."""
    draw = random.Random(5)
    now = datetime.now(UTC).replace(second=0, microsecond=0)
    start = now - timedelta(minutes=120 + now.minute % 15)
    truth: dict[tuple[str, ...], list[int]] = {}

    def arrive(at: datetime) -> None:
        group = draw.choice(["warehouse", 'a "quoted", one', "größe = 😀"]), draw.choice(["", "consent"])
        outcome = draw.choice(COUNTS)
        count = draw.choice([1, 7, 2**40 + 1])
        sandbox.record(at.isoformat(), outcome, event_name="late", write_key="web", integration=group[0], reason=group[1], count=count)
        truth.setdefault(group, [0, 0, 0])[COUNTS.index(outcome)] += count

    # The sandbox makes traffic up, which is part of the truth: so it is read at the end.
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable}
    program = [sys.executable, "-c", STREAM, start.isoformat().replace("+00:00", "Z"), str(tmp_path)]
    for number in range(5):
        process = subprocess.Popen(program, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True)
        assert process.stdout is not None
        assert process.stdout.readline() == b"begun\n"
        before = sandbox.stats["event_delivery"]
        until = time.monotonic() + 60
        while sandbox.stats["event_delivery"] < before + 12 + 3 * number:
            assert time.monotonic() < until
            time.sleep(0.05)
            # Windows that have ended less than an hour ago are read again.
            arrive(now - timedelta(minutes=draw.randrange(16, 40)))
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    with tallyfold.Client.from_env() as client:
        end = now - timedelta(minutes=now.minute % 15)
        table = client.collect("event_delivery", start, end, ["integration", "reason"], window="15m")
    wanted = rows(table)
    process = subprocess.Popen(program, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        reader = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
        until = time.monotonic() + 120
        while True:
            found = {}
            if (tmp_path / "counts" / "_spark_metadata").exists():
                limit = F.lit(end.isoformat()).cast("timestamp")
                stored = reader.read.parquet(str(tmp_path / "counts"))
                found = {group: of for group, of in sums(stored.where(F.col("window_end") <= limit), "integration", "reason").items() if any(of)}
            if found == wanted:
                break
            assert time.monotonic() < until, {group: (of, wanted.get(group)) for group, of in found.items() if of != wanted.get(group)}
            time.sleep(0.5)
        revisions = {row.revision for row in stored.select("revision").distinct().collect()}
        assert len(revisions) > 1
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        reader.stop()
