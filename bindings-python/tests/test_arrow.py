"""Data frame libraries read a table by themselves."""

import resource
import subprocess
import sys
import typing
from datetime import UTC, datetime, timedelta

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from support import END, START, body

import tallyfold

COLUMNS = {
    "integration": ["email", "email", "push", "warehouse"],
    "reason": ["", "playbook <b>", "", ""],
    "success": [5, 0, 0, 7],
    "errors": [2, 0, 4, 0],
    "filtered": [0, 3, 0, 0],
}


def test_polars(table: tallyfold.CountTable) -> None:
    frame = pl.DataFrame(table)
    assert frame.to_dict(as_series=False) == COLUMNS
    assert frame.schema["success"] == pl.UInt64
    by_text = frame.filter(pl.col("integration") == "email").select(pl.col("success").sum())
    assert by_text.item() == 5


def test_pandas(table: tallyfold.CountTable) -> None:
    frame = pd.DataFrame.from_arrow(table)  # type: ignore[attr-defined]
    assert frame.to_dict("list") == COLUMNS
    assert str(frame["errors"].dtype) == "uint64"
    assert frame.groupby("integration", observed=True)["errors"].sum()["push"] == 4


def test_columns_can_be_made_text(table: tallyfold.CountTable) -> None:
    frame = pd.DataFrame.from_arrow(table)  # type: ignore[attr-defined]
    assert str(frame["reason"].dtype) == "category"
    text = frame.astype(dict.fromkeys(table.dimensions, "str"))
    assert str(text["reason"].dtype) == "str"
    assert text.to_dict("list") == COLUMNS
    names = pl.col(*table.dimensions)
    assert pl.DataFrame(table).schema["reason"] == pl.Categorical
    assert pl.DataFrame(table).with_columns(names.cast(pl.String)).schema["reason"] == pl.String


@pytest.mark.parametrize("make", [pd.DataFrame, np.asarray, np.array])
def test_pandas_and_numpy_say_how_to_get_columns(
    table: tallyfold.CountTable, make: typing.Callable[[object], object]
) -> None:
    for frame in (table, table.by_window("15m"), tallyfold.compare(table, table)):
        name = type(frame).__name__
        with pytest.raises(TypeError, match=rf"a {name} is .*pandas\.DataFrame\.from_arrow\("):
            make(frame)


def test_rows_make_a_data_frame_too(table: tallyfold.CountTable) -> None:
    for frame in (table, table.by_window("15m"), tallyfold.compare(table, table)):
        columns = pl.DataFrame(frame).to_dict(as_series=False)
        rows = [row.to_dict() for row in frame]
        assert pl.DataFrame(rows).to_dict(as_series=False) == columns
        assert list(rows[0]) == list(columns)
        pandas = pd.DataFrame(rows)
        assert pandas.columns.to_list() == list(columns)


def test_duckdb(table: tallyfold.CountTable) -> None:
    counts = table
    rows = duckdb.query("select integration, sum(errors) from counts group by 1 order by 1")
    assert counts is table
    assert rows is not None
    assert rows.fetchall() == [("email", 2), ("push", 4), ("warehouse", 0)]


def test_pyarrow(table: tallyfold.CountTable) -> None:
    read = pa.table(table)
    read.validate(full=True)
    assert read.to_pydict() == COLUMNS
    assert read.schema.field("filtered").type == pa.uint64()
    assert not read.schema.field("filtered").nullable


def test_the_largest_count_stays_exact() -> None:
    aggregator = tallyfold.Aggregator(["integration"])
    aggregator.push(body([({"integration": "a"}, 2**64 - 1, 2**53 + 1, 0)]))
    table = aggregator.finish()
    assert pl.DataFrame(table)["success"].to_list() == [2**64 - 1]
    assert pa.table(table)["errors"].to_pylist() == [2**53 + 1]


Addresses = dict[str, list[int]]


def addresses(read: pa.Table) -> Addresses:
    """Gives where the numbers and texts of each column lie in memory."""
    columns = {}
    for name, column in zip(read.column_names, read.columns, strict=True):
        (chunk,) = column.chunks
        buffers = chunk.buffers()
        if pa.types.is_dictionary(chunk.type):
            buffers += chunk.dictionary.buffers()
        columns[name] = [buffer.address for buffer in buffers if buffer is not None]
    return columns


def same_in(*sources: object) -> set[str]:
    """Gives the columns that lie in the same place in all exports, which live at the same time."""
    exports = [pa.table(source) for source in sources]
    first, *others = map(addresses, exports)
    return {name for name in first if all(first[name] == other[name] for other in others)}


def test_columns_are_handed_over_as_they_are(table: tallyfold.CountTable) -> None:
    assert same_in(table, table) == set(COLUMNS)
    assert same_in(table, table.filter()) == set(COLUMNS)
    again = tallyfold.CountTable.from_json(table.to_json())
    assert same_in(table, again) == set()

    series = table.by_window()
    assert same_in(series, series) == set(COLUMNS)
    comparison = tallyfold.compare(table, again)
    assert same_in(comparison, comparison) == {"integration", "reason"} | {
        f"{side}_{count}"
        for side in ("before", "after")
        for count in ("success", "errors", "filtered")
    }


def test_an_export_takes_no_memory_for_rows() -> None:
    rows = 100_000
    aggregator = tallyfold.Aggregator(["integration"])
    aggregator.push(body(({"integration": str(number)}, 1, 2, 3) for number in range(rows)))
    table = aggregator.finish()
    pa.table(table)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    exports = [pa.table(table) for _ in range(100)]
    grown = 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
    assert sum(export.num_rows for export in exports) == 100 * rows
    # A copy of the counts alone would be 240 million bytes.
    assert grown < 16_000_000


def test_buffers_outlive_their_table(client: tallyfold.Client) -> None:
    read = pa.table(client.event_delivery(START, END, ["integration", "reason"]))
    series = pa.table(client.event_delivery(START, END, ["integration"]).by_window())
    assert read.to_pydict() == COLUMNS
    assert series["errors"].to_pylist() == [2, 4, 0]


def test_schemas_are_those_of_the_streams(table: tallyfold.CountTable) -> None:
    for source in (table, table.by_window("1h"), tallyfold.compare(table, table)):
        assert pa.schema(source) == pa.table(source).schema


def test_a_series_has_its_windows(table: tallyfold.CountTable) -> None:
    series = table.by_window("1h")
    start, end = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 1, 1, tzinfo=UTC)
    windows = {"window_start": [start] * 4, "window_end": [end] * 4}
    expected = {**windows, "complete": [False] * 4, "settled": [False] * 4, **COLUMNS}
    read = pa.table(series)
    read.validate(full=True)
    assert read.schema.field("window_start").type == pa.timestamp("us", "UTC")
    assert read.column_names == list(expected)
    assert read.to_pydict() == expected
    frame = pl.DataFrame(series)
    assert frame.schema["window_end"] == pl.Datetime("us", "UTC")
    assert frame.to_dict(as_series=False) == expected
    pandas = pd.DataFrame.from_arrow(series)  # type: ignore[attr-defined]
    assert str(pandas["window_start"].dtype) == "datetime64[us, UTC]"
    assert pandas.to_dict("list") == expected
    rows = duckdb.query("select epoch_ns(window_end), success from series where success > 5")
    assert rows is not None
    assert rows.fetchall() == [(1767229200 * 10**9, 7)]
    assert table.by_window("15m").complete
    assert pl.DataFrame(table.by_window("15m"))["complete"].to_list() == [True] * 4
    assert pl.DataFrame(table.by_window("15m"))["settled"].to_list() == [True] * 4


def test_windows_join_with_the_times_of_others(table: tallyfold.CountTable) -> None:
    series = table.by_window("1h")
    times, names = [datetime(2026, 1, 1, tzinfo=UTC)], ["release"]
    polars = pl.DataFrame({"window_start": times, "note": names})
    assert pl.DataFrame(series).join(polars, on="window_start")["note"].to_list() == names * 4
    pandas = pd.DataFrame({"window_start": times, "note": names})
    own = pd.DataFrame.from_arrow(series)  # type: ignore[attr-defined]
    assert own.merge(pandas, on="window_start")["note"].to_list() == names * 4
    found = duckdb.query("select note from series join polars using (window_start)")
    assert found is not None
    assert found.fetchall() == [("release",)] * 4


def windowed(start: str, end: str) -> tallyfold.Series:
    document = body([({"integration": "a"}, 1, 0, 0)]).decode()
    aggregator = tallyfold.Aggregator(["integration"])
    aggregator.push(document.replace(START, start).replace(END, end).encode())
    return aggregator.finish().by_window()


@pytest.mark.parametrize(
    ("start", "end"),
    [
        ("0000-01-01T00:00:00Z", "9999-12-31T23:59:59.999999999Z"),
        ("1969-12-31T23:59:59.999999999Z", END),
    ],
)
def test_windows_are_rounded_down_to_the_microsecond(start: str, end: str) -> None:
    series = windowed(start, end)
    (window,) = series.windows
    assert window.start_text == start
    read = pa.table(series)
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    for name, text in (("window_start", start), ("window_end", end)):
        (found,) = read[name].cast(pa.int64()).to_pylist()
        if not text.startswith("0000"):
            whole = datetime.fromisoformat(text)
            assert found == (whole - epoch) // timedelta(microseconds=1)
        else:
            assert found == -62_167_219_200 * 10**6


def test_a_comparison_is_exact_everywhere() -> None:
    tables = []
    for name, count in [("a", 2**63), ("b", 2**53 + 1)]:
        aggregator = tallyfold.Aggregator(["integration"])
        aggregator.push(body([({"integration": name}, count, 1, 0)]))
        tables.append(aggregator.finish())
    comparison = tallyfold.compare(*tables)
    read = pa.table(comparison)
    read.validate(full=True)
    assert read.column_names == [
        *("integration", "presence"),
        *("before_success", "before_errors", "before_filtered"),
        *("after_success", "after_errors", "after_filtered"),
        *("delta_success", "delta_errors", "delta_filtered"),
        *("share_success", "share_errors", "share_filtered"),
    ]
    expected = {
        "presence": ["vanished", "new"],
        "before_success": [2**63, 0],
        "after_success": [0, 2**53 + 1],
        "delta_success": [-(2**63), 2**53 + 1],
        "share_success": [row.share.success for row in comparison],
        "share_errors": [None, None],
    }
    assert read.select(list(expected)).to_pydict() == expected
    assert pl.DataFrame(comparison).select(*expected).to_dict(as_series=False) == expected
    frame = pd.DataFrame.from_arrow(comparison)  # type: ignore[attr-defined]
    # With nulls among them these would be floats.
    assert str(frame["before_success"].dtype) == "uint64"
    assert frame["before_success"].to_list() == expected["before_success"]
    assert str(frame["delta_success"].dtype) == "int64"
    assert frame["delta_success"].to_list() == expected["delta_success"]
    assert pl.DataFrame(comparison).schema["delta_success"] == pl.Int64
    rows = duckdb.query("select presence, before_success, delta_success from comparison")
    assert rows is not None
    names = ("presence", "before_success", "delta_success")
    assert rows.fetchall() == list(zip(*(expected[name] for name in names), strict=True))


def test_differences_have_a_sign_only_in_the_columns_of_changes() -> None:
    tables = []
    for count in (5, 3):
        aggregator = tallyfold.Aggregator(["integration"])
        aggregator.push(body([({"integration": "a"}, count, 0, 0)]))
        tables.append(aggregator.finish())
    before, after = tables
    comparison = tallyfold.compare(before, after)
    for read in (pl.DataFrame, pd.DataFrame.from_arrow):  # type: ignore[attr-defined]
        assert read(comparison)["delta_success"].to_list() == [-2]
        # What the documentation warns of.
        wrapped = read(after)["success"] - read(before)["success"]
        assert wrapped.to_list() == [2**64 - 2]


def test_a_change_that_no_signed_column_holds_is_refused() -> None:
    tables = []
    for count in (0, 2**63):
        aggregator = tallyfold.Aggregator(["integration"])
        aggregator.push(body([({"integration": "a"}, count, 0, 0)]))
        tables.append(aggregator.finish())
    comparison = tallyfold.compare(*tables)
    assert comparison[0].delta.success == 2**63
    for read in (pl.DataFrame, pa.table, pa.schema):
        with pytest.raises(tallyfold.ResponseError) as caught:
            read(comparison)
        assert caught.value.code == "count_overflow"


def test_no_rows_and_no_dimensions(client: tallyfold.Client) -> None:
    empty = client.event_delivery("2020-01-01T00:00:00Z", "2020-01-01T00:15:00Z", ["reason"])
    assert pl.DataFrame(empty).shape == (0, 4)
    assert pa.table(empty).num_rows == 0
    total = client.event_delivery(START, END, ["reason"]).group_by()
    assert pl.DataFrame(total).rows() == [(12, 6, 3)]
    for source, width in ((empty.by_window(), 8), (tallyfold.compare(empty, empty), 14)):
        assert pl.DataFrame(source).shape == (0, width)
        assert pa.table(source).num_rows == 0
    assert pl.DataFrame(total.by_window()).shape == (1, 7)


def test_a_stream_outlives_its_table(client: tallyfold.Client) -> None:
    capsule = client.event_delivery(START, END, ["integration"]).__arrow_c_stream__()

    class Holder:
        def __arrow_c_stream__(self, requested_schema: object = None) -> object:
            return capsule

    assert pl.DataFrame(Holder()).height == 3
    # A stream is read once; a capsule that was not read frees it all the same.
    with pytest.raises(Exception, match="released"):
        pa.table(Holder())


@pytest.mark.parametrize(
    "read",
    [
        "import polars; polars.DataFrame(table).height",
        "import duckdb; len(duckdb.query('from table_').fetchall())",
    ],
)
def test_pyarrow_is_not_needed(table: tallyfold.CountTable, read: str) -> None:
    script = (
        "import sys; sys.modules['pyarrow'] = None\n"
        "import tallyfold; table = table_ = tallyfold.CountTable.from_json(sys.stdin.read())\n"
        f"{read.replace('; ', chr(10) + 'print(', 1)})"
    )
    run = subprocess.run(
        [sys.executable, "-c", script], input=table.to_json(), text=True, capture_output=True
    )
    assert (run.stdout, run.stderr) == ("4\n", "")


def test_plain_columns(table: tallyfold.CountTable) -> None:
    series, comparison = table.by_window("15m"), tallyfold.compare(table, table)
    for frame in (table, series, comparison):
        polars, pandas = frame.to_polars(), frame.to_pandas()
        assert polars.columns == pandas.columns.to_list() == pl.DataFrame(frame).columns
        assert pl.Categorical not in polars.dtypes
        assert "category" not in map(str, pandas.dtypes)
    assert table.to_polars().to_dict(as_series=False) == COLUMNS
    assert table.to_pandas().to_dict("list") == COLUMNS
    assert table.to_polars().schema["errors"] == pl.UInt64
    assert str(table.to_pandas()["errors"].dtype) == "uint64"
    # Text joins with text.
    assert len(table.to_pandas().merge(pd.DataFrame({"reason": [""]}), on="reason")) == 3
    assert table.group_by().to_polars().shape == (1, 3)


def test_plain_columns_are_exact() -> None:
    aggregator = tallyfold.Aggregator(["integration"])
    aggregator.push(body([({"integration": "a"}, 2**64 - 1, 2**53 + 1, 0)]))
    table = aggregator.finish()
    assert table.to_polars()["success"].to_list() == [2**64 - 1]
    assert table.to_pandas()["errors"].to_list() == [2**53 + 1]
