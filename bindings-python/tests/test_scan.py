"""Lazy frames: they are what the eager frame is, and read only what a query needs."""

import itertools
import json
import random
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from service import busy_day
from support import record

import tallyfold
from tallyfold import _scan as module

# A busy machine takes several times as long as others.
pytestmark = pytest.mark.timeout(900)

DAY = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"
ALL: list[tallyfold.DimensionName] = ["event_name", "write_key", "integration", "reason"]
TEN = datetime(2026, 1, 1, 10, tzinfo=UTC)
COUNTS = ["success", "errors", "filtered"]


class Watched(tallyfold.Sandbox):
    """A sandbox that remembers the window and the dimensions of each request."""

    def __init__(self, **_: Any) -> None:
        self.asked: list[tuple[str, tuple[str, ...]]] = []

    def handle(self, method: str, target: str, *rest: Any) -> tallyfold.SandboxResponse:
        if "/analytics/" in target:
            asked = json.loads(rest[1])
            self.asked.append((asked["start"], tuple(asked["dimensions"])))
        return super().handle(method, target, *rest)

    def dimensions(self) -> Counter[tuple[str, ...]]:
        return Counter(dimensions for _, dimensions in self.asked)


def connect(sandbox: tallyfold.Sandbox) -> tallyfold.Client:
    return tallyfold.Client(
        cluster_endpoint="https://sandbox.example",
        transport=sandbox.transport(),
        max_retries=0,
        **sandbox.credentials,
    )


@pytest.fixture
def watched() -> Watched:
    return Watched(seed=7)


@pytest.fixture
def client(watched: Watched) -> Iterator[tallyfold.Client]:
    with connect(watched) as client:
        yield client


@pytest.fixture
def frame(client: tallyfold.Client) -> pl.LazyFrame:
    return tallyfold.scan(client, "event_delivery", *DAY)


@pytest.fixture
def sums(client: tallyfold.Client) -> pl.LazyFrame:
    return tallyfold.scan(client, "event_delivery", *DAY, sums_only=True)


def eager(
    client: tallyfold.Client, dimensions: list[tallyfold.DimensionName], **options: Any
) -> pl.DataFrame:
    table = client.collect("event_delivery", *DAY, dimensions, **options)
    return pl.DataFrame(table.by_window()).drop("complete")


def test_it_is_the_eager_frame(client: tallyfold.Client, frame: pl.LazyFrame) -> None:
    expected = eager(client, ALL)
    assert len(expected) > 100_000
    assert frame.collect_schema() == expected.schema
    # In the same order, digit for digit.
    assert_frame_equal(frame.collect(), expected)
    assert_frame_equal(frame.collect(engine="streaming"), expected)


SUCCESS = pl.col("success").sum()
TOTAL = pl.col("success") + pl.col("errors")


@pytest.mark.parametrize(
    "query",
    [
        lambda frame: frame.with_columns(total=TOTAL).filter(pl.col("total") > 50).select(SUCCESS),
        lambda frame: (
            frame.rename({"errors": "failed"}).filter(pl.col("failed") > 3).select(SUCCESS)
        ),
        lambda frame: (
            frame.with_columns(pl.col("errors").cast(pl.Int64))
            .filter(pl.col("errors") > 3)
            .select(SUCCESS)
        ),
        lambda frame: frame.select(pl.col("success").filter(pl.col("errors") > 3).sum()),
        lambda frame: frame.select(
            pl.when(pl.col("errors") > 3).then(pl.col("success")).otherwise(0).sum()
        ),
        lambda frame: frame.filter(TOTAL.max().over("window_start") == TOTAL).select(SUCCESS),
        lambda frame: pl.concat(
            [frame.filter(pl.col("errors") > 3).select(SUCCESS), frame.select(SUCCESS)]
        ),
        lambda frame: frame.select(pl.len(), pl.col("errors").max(), pl.col("success").mean()),
        lambda frame: frame.with_row_index().filter(pl.col("index") < 20).select(SUCCESS),
        lambda frame: pl.SQLContext(frame=frame).execute(
            "SELECT sum(a) FROM (SELECT success AS a, errors + filtered AS b FROM frame) "
            "WHERE b > 10"
        ),
    ],
)
def test_a_query_has_the_result_of_the_eager_frame(
    client: tallyfold.Client,
    watched: Watched,
    query: Callable[[pl.LazyFrame], pl.LazyFrame],
) -> None:
    """polars doesn't pass all conditions on, so the rows must not depend on what it passes on."""
    hours = DAY[0], TEN - timedelta(hours=8)
    table = client.collect("event_delivery", *hours, ALL)
    expected = query(pl.LazyFrame(table.by_window()).drop("complete")).collect()
    watched.asked.clear()
    assert_frame_equal(query(tallyfold.scan(client, "event_delivery", *hours)).collect(), expected)
    assert watched.dimensions().keys() == {tuple(ALL)}


def test_for_sums_only_the_dimensions_that_are_used_are_requested(
    client: tallyfold.Client, watched: Watched, sums: pl.LazyFrame
) -> None:
    frame = sums
    columns = ["window_start", "reason", "integration", "success"]
    selected = frame.select(columns).collect()
    assert watched.dimensions() == {("integration", "reason"): 96}
    assert_frame_equal(selected, eager(client, ["integration", "reason"]).select(columns))

    watched.asked.clear()
    found = frame.group_by("write_key").agg(pl.col(COUNTS).sum()).sort("write_key").collect()
    assert watched.dimensions() == {("write_key",): 96}
    whole = eager(client, ALL)
    assert_frame_equal(
        found, whole.group_by("write_key").agg(pl.col(COUNTS).sum()).sort("write_key")
    )

    watched.asked.clear()
    totals = frame.select(pl.col(COUNTS).sum()).collect()
    assert watched.dimensions() == {("event_name",): 96}
    assert_frame_equal(totals, whole.select(pl.col(COUNTS).sum()))


def test_a_filter_on_time_reads_only_those_windows(
    client: tallyfold.Client, watched: Watched
) -> None:
    frame = tallyfold.scan(client, "event_delivery", *DAY, ["integration"])
    start, end = pl.col("window_start"), pl.col("window_end")
    hour = timedelta(hours=1)
    whole = eager(client, ["integration"])
    for condition, windows in [
        (start >= TEN, 56),
        ((start >= TEN) & (end <= TEN + hour), 4),
        (start.is_between(TEN, TEN + hour), 5),
        ((start < TEN) | (end > TEN + 2 * hour), 88),
        (start.dt.hour() == 23, 4),
        (start > TEN + 24 * hour, 0),
        ((end <= TEN) & (pl.col("errors") > 2) & (start >= TEN - hour), 4),
        ((start < TEN) | (pl.col("errors") > 2), 96),
    ]:
        watched.asked.clear()
        columns = ["window_start", "integration", "errors"]
        found = frame.filter(condition).select(columns).collect()
        assert len(watched.asked) == windows, condition
        assert len({window for window, _ in watched.asked}) == windows
        assert_frame_equal(found, whole.filter(condition).select(columns))


def test_a_filter_on_a_dimension_comes_before_rows(
    client: tallyfold.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    dimensions: list[tallyfold.DimensionName] = ["integration", "reason"]
    frame = tallyfold.scan(client, "event_delivery", *DAY, dimensions)
    made: list[int] = []
    make = module._Source._frame  # noqa: SLF001 - where rows are made

    def spy(*arguments: Any) -> pl.DataFrame:
        frame = make(*arguments)
        made.append(len(frame))
        return frame

    monkeypatch.setattr(module._Source, "_frame", spy)  # noqa: SLF001
    whole = eager(client, dimensions)
    name = pl.col("integration")
    columns = ["integration", "reason", "success"]
    for condition in [
        name == "Warehouse",
        name.is_in(["Warehouse", "Surveys", "none"]) & (pl.col("reason") == ""),
        name.cat.starts_with("A") & (pl.col("window_start") < TEN),
        name == "none",
    ]:
        made.clear()
        found = frame.filter(condition).select(columns).collect()
        expected = whole.filter(condition).select(columns)
        assert_frame_equal(found, expected)
        assert sum(made) == len(expected)


def test_any_condition_gives_what_polars_gives(client: tallyfold.Client) -> None:
    frame = tallyfold.scan(client, "event_delivery", *DAY, ["integration", "reason"])
    whole = eager(client, ["integration", "reason"])
    number = random.Random(7)

    def simple() -> pl.Expr:
        return number.choice(
            [
                pl.col("window_start") >= TEN + timedelta(minutes=number.randrange(-300, 300)),
                pl.col("window_end") < TEN + timedelta(minutes=number.randrange(-300, 300)),
                pl.col("integration").is_in(["Warehouse", "Surveys"]),
                pl.col("reason") != "",
                pl.col("reason").is_not_null(),
                pl.col("success") > number.randrange(500),
                pl.col("errors") * 10 > pl.col("success"),
                pl.col("settled"),
                pl.lit(number.random() < 0.5),
            ]
        )

    def condition(depth: int) -> pl.Expr:
        if depth == 0:
            return simple()
        one, other = condition(depth - 1), condition(depth - 1)
        return number.choice([one & other, one & other, one | other, ~one, one.xor(other)])

    columns = ["window_start", "window_end", "settled", "integration", "reason", *COUNTS]
    for _ in range(60):
        wanted = condition(number.randrange(4))
        found = frame.filter(wanted).select(columns).collect()
        assert_frame_equal(found, whole.filter(wanted).select(columns))


def test_a_condition_on_counts_is_about_rows_of_all_dimensions(
    client: tallyfold.Client, watched: Watched, sums: pl.LazyFrame
) -> None:
    """Otherwise the same condition would leave other events, whatever else is selected."""
    frame = sums
    whole = eager(client, ALL)
    watched.asked.clear()
    many = pl.col("errors") > 3
    for query in [
        frame.filter(many).select(pl.col(COUNTS).sum()),
        frame.filter(many & (pl.col("window_start") >= TEN - timedelta(hours=10))).select(
            pl.col(COUNTS).sum()
        ),
        pl.sql("SELECT sum(success), sum(errors), sum(filtered) FROM frame WHERE errors > 3"),
    ]:
        found = query.collect().row(0) if isinstance(query, pl.LazyFrame) else query.row(0)
        assert found == whole.filter(many).select(pl.col(COUNTS).sum()).row(0)
    assert watched.dimensions() == {tuple(ALL): 3 * 96}
    columns = ["window_start", "integration", "success"]
    assert_frame_equal(
        frame.filter(many).select(columns).collect(), whole.filter(many).select(columns)
    )

    # The dimensions of the frame say what a row is.
    watched.asked.clear()
    coarse = tallyfold.scan(client, "event_delivery", *DAY, ["integration"])
    rows = eager(client, ["integration"])
    watched.asked.clear()
    assert_frame_equal(coarse.filter(many).collect(), rows.filter(many))
    assert watched.dimensions() == {("integration",): 96}


def test_few_rows_take_few_requests(
    client: tallyfold.Client, watched: Watched, frame: pl.LazyFrame
) -> None:
    whole = eager(client, ALL)
    watched.asked.clear()
    assert_frame_equal(frame.head(5).collect(), whole.head(5))
    assert len(watched.asked) <= 8
    assert_frame_equal(frame.slice(20_000, 7).collect(), whole.slice(20_000, 7))
    # The first rows, and then the condition; and the other way round.
    few = pl.col("errors") > 3
    assert_frame_equal(frame.head(9_000).filter(few).collect(), whole.head(9_000).filter(few))
    assert_frame_equal(frame.filter(few).head(9).collect(), whole.filter(few).head(9))


def test_a_source_takes_the_first_rows_before_the_condition(
    client: tallyfold.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources: list[Any] = []

    class Source(module._Source):  # noqa: SLF001 - polars never asks for both
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            sources.append(self)

    monkeypatch.setattr(module, "_Source", Source)
    tallyfold.scan(client, "event_delivery", *DAY, ["integration"])
    condition = (pl.col("integration") == "Warehouse") & (pl.col("window_start") >= TEN)
    pieces = list(sources[0].read(["success", "integration"], condition, 2_000, 7))
    assert max(map(len, pieces)) == 7
    whole = eager(client, ["integration"]).head(2_000).filter(condition)
    assert len(whole) > 7
    assert_frame_equal(pl.concat(pieces), whole.select("success", "integration"))


def test_rows_come_in_batches(client: tallyfold.Client, watched: Watched) -> None:
    frame = tallyfold.scan(client, "event_delivery", *DAY, ["integration"], concurrency=2)
    batches = frame.collect_batches(chunk_size=100, maintain_order=True)
    some = list(itertools.islice(batches, 3))
    assert [len(batch) for batch in some] == [100, 100, 100]
    rest = list(batches)
    whole = pl.concat([*some, *rest])
    assert len(watched.asked) == 96
    assert_frame_equal(whole, eager(client, ["integration"]))


def test_ragged_ranges_and_silence(watched: Watched, client: tallyfold.Client) -> None:
    ragged = "2026-01-01T00:07:00Z", "2026-01-01T01:50:30Z"
    options: dict[str, Any] = {"window": "1h"}
    frame = tallyfold.scan(client, "event_ingestion", *ragged, **options)
    assert "reason" not in frame.collect_schema()
    dimensions: Any = ["event_name", "write_key", "integration"]
    table = client.collect("event_ingestion", *ragged, dimensions, **options)
    expected = pl.DataFrame(table.by_window()).drop("complete")
    assert_frame_equal(frame.collect(), expected)
    assert len(watched.asked) == 4
    with connect(tallyfold.Sandbox()) as silent:
        nothing = tallyfold.scan(silent, "event_delivery", *DAY, ["reason"])
        assert nothing.collect().schema == nothing.collect_schema()
        assert nothing.select("success").sum().collect().item() == 0


class Slow(httpx2.BaseTransport):
    """A service that answers no query of 8 minutes or more in time."""

    def __init__(self, sandbox: tallyfold.Sandbox) -> None:
        self._sandbox = sandbox.transport()

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        asked = json.loads(request.content)
        if "start" in asked:
            start, end = (datetime.fromisoformat(asked[name]) for name in ("start", "end"))
            if end - start >= timedelta(minutes=8):
                return httpx2.Response(504)
        return self._sandbox.handle_request(request)


@pytest.mark.parametrize("settle", [3600, 1e12])
def test_a_window_that_is_read_in_halves_is_one_window(settle: float) -> None:
    sandbox = tallyfold.Sandbox()
    for minute, count in [(7, 4), (12, 2), (16, 1), (29, 8), (31, 16)]:
        record(sandbox, "success", "crm", count=count, at=f"2026-01-01T00:{minute:02}:30Z")
    ragged = "2026-01-01T00:07:00Z", "2026-01-01T00:33:00Z"
    plan = list(tallyfold.Plan(*ragged, "15m"))
    with tallyfold.Client(
        cluster_endpoint="https://sandbox.example",
        transport=Slow(sandbox),
        max_retries=0,
        **sandbox.credentials,
    ) as client:
        frame = tallyfold.scan(client, "event_delivery", *ragged, ["integration"], settle=settle)
        rows = frame.collect()
        assert rows["window_start"].to_list() == [window.start for window in plan]
        assert rows["window_end"].to_list() == [window.end for window in plan]
        assert rows["success"].to_list() == [6, 9, 16]
        assert rows["settled"].to_list() == [settle == 3600] * 3
        for condition in [
            pl.col("window_start") == plan[0].start,
            pl.col("window_start") == plan[1].start,
            pl.col("window_end") <= plan[1].end,
            pl.col("window_start") > plan[1].start,
        ]:
            assert_frame_equal(frame.filter(condition).collect(), rows.filter(condition))


def test_what_is_read_early_is_not_settled() -> None:
    sandbox = busy_day()
    with connect(sandbox) as client:
        frame = tallyfold.scan(client, "event_delivery", *DAY, ["integration"], settle=1e12)
        assert not frame.select("settled").collect()["settled"].any()


def test_errors_come_as_they_are(frame: pl.LazyFrame, client: tallyfold.Client) -> None:
    client.close()
    with pytest.raises(RuntimeError, match="this Client is closed"):
        frame.collect()
    sandbox = tallyfold.Sandbox(seed=1)
    sandbox.inject("status", endpoint="event_delivery", status=403, every=1)
    with connect(sandbox) as refused:
        lazy = tallyfold.scan(refused, "event_delivery", *DAY)
        with pytest.raises(tallyfold.ServiceError) as caught:
            lazy.collect()
    assert caught.value.code == "forbidden"


def test_what_can_not_be_is_refused_at_once(client: tallyfold.Client, watched: Watched) -> None:
    scan: Any = tallyfold.scan
    cases: list[tuple[tuple[Any, ...], dict[str, Any], str]] = [
        ((None, "event_delivery", *DAY), {}, "client"),
        ((client, "delivery", *DAY), {}, "metric"),
        ((client, "event_delivery", *DAY[::-1]), {}, "start"),
        ((client, "event_ingestion", *DAY, ["reason"]), {}, "dimensions"),
        ((client, "event_delivery", *DAY, []), {}, "dimensions"),
        ((client, "event_delivery", *DAY), {"window": "7m"}, "window"),
        ((client, "event_delivery", *DAY), {"keep": "total"}, "keep"),
        ((client, "event_delivery", *DAY), {"sums_only": "no"}, "sums_only"),
    ]
    for arguments, options, argument in cases:
        with pytest.raises(tallyfold.ConfigError) as caught:
            scan(*arguments, **options)
        assert caught.value.argument == argument
    assert watched.asked == []
