"""Series: a table's counts by window, and rates."""

import copy
import io
import json
import pickle
import struct
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pandas as pd
import pytest
from service import Service
from support import START, record

import tallyfold
from tallyfold import Counts, Rates, SeriesRow, SeriesWindow

LATER, LAST = "2026-01-01T00:15:00Z", "2026-01-01T00:30:00Z"


@pytest.fixture
def merged(sandbox: tallyfold.Sandbox, client: tallyfold.Client) -> tallyfold.CountTable:
    """Gives two quarters of an hour by integration, the second one with one more."""
    record(sandbox, "errors", "sms", count=3, at="2026-01-01T00:20:00Z")
    record(sandbox, "success", "push", count=9, at="2026-01-01T00:20:00Z")
    first = client.event_delivery(START, LATER, ["integration"])
    return first.merge(client.event_delivery(LATER, LAST, ["integration"]))


def test_it_says_what_it_holds(merged: tallyfold.CountTable) -> None:
    series = merged.by_window("15m")
    assert series.dimensions == ("integration",)
    assert series.metric == "event_delivery"
    assert series.step == "15m"
    assert series.totals == merged.totals
    assert len(series) == 5
    assert repr(series) == (
        "<Series: event_delivery by ('integration',), 2 windows of 15m, 5 rows, "
        "success=21, errors=9, filtered=3>"
    )
    assert repr(merged.by_window()).startswith(
        "<Series: event_delivery by ('integration',), 2 windows, 5 rows, "
    )
    first, second = series.windows
    assert repr(first) == f"SeriesWindow('{START}', '{LATER}', complete=True)"
    assert first.start == datetime(2026, 1, 1, tzinfo=UTC)
    assert (first.end, second.end_text) == (second.start, LAST)


def test_rows_stand_in_their_windows(merged: tallyfold.CountTable) -> None:
    series = merged.by_window()
    first, second = series.windows
    names: tuple[tallyfold.DimensionName, ...] = ("integration",)
    rows = [
        SeriesRow(first, names, ("email",), 5, 2, 3),
        SeriesRow(first, names, ("push",), 0, 4, 0),
        SeriesRow(first, names, ("warehouse",), 7, 0, 0),
        SeriesRow(second, names, ("push",), 9, 0, 0),
        SeriesRow(second, names, ("sms",), 0, 3, 0),
    ]
    assert list(series) == rows
    assert list(reversed(series)) == rows[::-1]
    assert series[-1] == rows[4]
    assert series[1:4:2] == rows[1:4:2]
    assert series[0].window is series[1].window is series.windows[0]
    assert series[4].dimensions == {"integration": "sms"}
    for index in (5, -6, 2**100):
        with pytest.raises(IndexError):
            series[index]


def test_a_row_does_not_change(merged: tallyfold.CountTable) -> None:
    row = merged.by_window()[0]
    with pytest.raises(AttributeError, match="a SeriesRow does not change"):
        row.success = 1
    with pytest.raises(AttributeError):
        del row.window
    assert repr(row) == (
        f"SeriesRow(SeriesWindow('{START}', '{LATER}', complete=True), "
        "{'integration': 'email'}, success=5, errors=2, filtered=3)"
    )
    same = SeriesRow(row.window, row.names, row.values, 5, 2, 3)
    assert row in {same}
    part = SeriesWindow(START, LATER, complete=False)
    assert row != SeriesRow(part, row.names, row.values, 5, 2, 3)
    # A table's row is of no window.
    plain = merged.group_by("integration")[0]
    assert (plain.values, plain.success, plain.errors, plain.filtered) == (row.values, 5, 2, 3)
    assert plain != row
    assert row != plain
    match row:
        case SeriesRow(window, _, values):
            assert (window, values) == (part.__class__(START, LATER, complete=True), ("email",))


@pytest.mark.parametrize(
    "step",
    ["1h", "60m", "3600s", timedelta(hours=1), timedelta(minutes=60), pd.Timedelta("1h")],
)
def test_a_step_is_text_or_a_timedelta(merged: tallyfold.CountTable, step: str | timedelta) -> None:
    series = merged.by_window(step)
    assert series == merged.by_window(step="1h")
    assert series.step == "1h"
    assert series.windows == [SeriesWindow(START, "2026-01-01T01:00:00Z", complete=False)]
    assert [(row.values[0], row.success, row.complete) for row in series][1] == ("push", 9, False)


@pytest.mark.parametrize(
    "step",
    [
        "7m",
        "1 h",
        "\ud800",
        timedelta(0),
        timedelta(minutes=7),
        timedelta(days=2),
        timedelta.max,
        -timedelta(hours=1),
        timedelta(hours=1, microseconds=1),
        timedelta(seconds=0.5),
        pd.Timedelta(hours=1, nanoseconds=1),
    ],
)
def test_other_steps_are_refused(merged: tallyfold.CountTable, step: str | timedelta) -> None:
    with pytest.raises(tallyfold.ConfigError) as caught:
        merged.by_window(step)
    assert (caught.value.code, caught.value.argument) == ("invalid_argument", "step")


def test_a_step_is_nothing_else(merged: tallyfold.CountTable) -> None:
    for step in (900, 900.0, b"15m", ["15m"]):
        with pytest.raises(TypeError, match="want a str or a timedelta"):
            merged.by_window(step)  # type: ignore[arg-type]


@pytest.mark.parametrize("zone", ["Asia/Kolkata", ZoneInfo("Asia/Kolkata")])
def test_days_of_a_zone(merged: tallyfold.CountTable, zone: str | ZoneInfo) -> None:
    series = merged.by_window("1d", zone)
    assert series == merged.by_window(timedelta(days=1), zone=zone)
    assert (series.step, series.zone) == ("1d", "Asia/Kolkata")
    day = SeriesWindow("2025-12-31T18:30:00Z", "2026-01-01T18:30:00Z", complete=False)
    assert series.windows == [day]
    assert series.totals == merged.totals
    assert merged.by_window("1d").zone is None
    assert merged.by_window("1d", "UTC").windows == merged.by_window("1d").windows
    assert ", 1 windows of 1d of Asia/Kolkata, 4 rows, " in repr(series)
    assert "<caption>event_delivery by 1d of Asia/Kolkata</caption>" in series._repr_html_()
    assert json.loads(series.to_json())["zone"] == "Asia/Kolkata"
    assert pickle.loads(pickle.dumps(series)) == copy.deepcopy(series) == series


NAMELESS = ZoneInfo.from_file(
    io.BytesIO(b"TZif" + bytes(16) + struct.pack(">6l", 0, 0, 0, 0, 1, 4) + bytes(6) + b"UTC\0")
)


@pytest.mark.parametrize(
    "zone", ["", "Mars/Olympus", "../UTC", "America", "localtime", "\0", 5, UTC, ["UTC"], NAMELESS]
)
def test_a_zone_that_is_none(merged: tallyfold.CountTable, zone: Any) -> None:
    with pytest.raises(tallyfold.ConfigError, match="America/New_York") as caught:
        merged.by_window("1d", zone)
    assert (caught.value.code, caught.value.argument) == ("invalid_argument", "zone")


def test_days_before_the_first_and_after_the_last_of_a_zone() -> None:
    """Python has dates only for the years 1 to 9999."""
    for start, end in [
        ("0000-12-31T23:00:00Z", "0000-12-31T23:30:00Z"),
        ("0001-01-01T01:00:00Z", "0001-01-01T02:00:00Z"),
        ("9999-12-31T22:00:00Z", "9999-12-31T23:00:00Z"),
    ]:
        body = f'''{{"start": "{start}", "end": "{end}", "totalDelivered": "0", "totalErrors": "0",
            "totalFiltered": "0", "counts": []}}'''
        aggregator = tallyfold.Aggregator(["reason"])
        aggregator.push(body.encode())
        with pytest.raises(tallyfold.ConfigError, match="years 2 to 9998") as caught:
            aggregator.finish().by_window("1d", "America/New_York")
        assert caught.value.argument == "zone"


def test_slices_of_time(merged: tallyfold.CountTable) -> None:
    end = "2026-01-01T00:30:00Z"
    first, second = merged.between(START, LATER), merged.between(datetime.fromisoformat(LATER), end)
    assert first.merge(second) == merged
    assert [window.start_text for window in second.windows] == [LATER]
    series = merged.by_window("15m")
    assert series.between(LATER, end) == second.by_window("15m")
    filled = series.fill_zeros().between(start=LATER, end=end)
    assert filled == second.by_window("15m").fill_zeros()
    day = merged.by_window("1d", "Asia/Kolkata").between(LATER, end)
    assert day == second.by_window("1d", "Asia/Kolkata")
    assert pickle.loads(pickle.dumps(filled)) == copy.deepcopy(filled) == filled
    for frame in (merged, series):
        with pytest.raises(tallyfold.ConfigError, match="can't be cut") as caught:
            frame.between("2026-01-01T00:10:00Z", end)
        assert (caught.value.code, caught.value.argument) == ("unaligned_window", "start")
        with pytest.raises(tallyfold.ConfigError, match="no window is in") as caught:
            frame.between(end, "2026-01-01T01:00:00Z")
        assert caught.value.code == "invalid_window"
        with pytest.raises(tallyfold.ConfigError, match="isn't a timestamp"):
            frame.between(datetime(2026, 1, 1), end)  # noqa: DTZ001


def test_empty_windows_are_filled_with_zeros(merged: tallyfold.CountTable) -> None:
    series = merged.by_window("15m")
    filled = series.fill_zeros()
    found = [(row.window.start_text, row.values[0], row.success, row.errors) for row in filled]
    assert found == [
        (START, "email", 5, 2),
        (START, "push", 0, 4),
        (START, "sms", 0, 0),
        (START, "warehouse", 7, 0),
        (LATER, "email", 0, 0),
        (LATER, "push", 9, 0),
        (LATER, "sms", 0, 3),
        (LATER, "warehouse", 0, 0),
    ]
    assert (filled.windows, filled.totals) == (series.windows, series.totals)
    assert filled != series
    assert filled == filled.fill_zeros()
    assert pickle.loads(pickle.dumps(filled)) == copy.deepcopy(filled) == filled


def test_nothing_is_said_of_windows_that_were_not_read(client: tallyfold.Client) -> None:
    quiet = client.event_delivery("2020-01-01T00:00:00Z", "2020-01-01T00:15:00Z", ["reason"])
    gap = quiet.merge(client.event_delivery(START, LATER, ["reason"])).group_by()
    zero, counted = gap.by_window("15m").fill_zeros()
    assert (zero.window.start.year, zero.success) == (2020, 0)
    assert (counted.window.start_text, counted.success) == (START, 12)


def test_it_is_complete_if_all_of_its_windows_are(merged: tallyfold.CountTable) -> None:
    assert merged.by_window("30m").complete
    assert merged.by_window().complete
    assert not merged.by_window("1h").complete


def test_counts_are_not_cut(merged: tallyfold.CountTable) -> None:
    with pytest.raises(tallyfold.ConfigError) as caught:
        merged.by_window("5m")
    assert (caught.value.code, caught.value.argument) == ("unaligned_window", "step")


def test_the_top_rows_of_any_window(merged: tallyfold.CountTable) -> None:
    series = merged.by_window()
    assert [(row.window.start_text, row.values, row.errors) for row in series.top(2)] == [
        (START, ("push",), 4),
        (LATER, ("sms",), 3),
    ]


def test_it_is_a_value(merged: tallyfold.CountTable) -> None:
    for step in (None, "15m", timedelta(hours=1)):
        series = merged.by_window(step)
        assert series == merged.by_window(step)
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
            assert pickle.loads(pickle.dumps(series, protocol)) == series
        assert copy.deepcopy(series) == series
        rows = list(series)
        assert pickle.loads(pickle.dumps(rows)) == rows
    assert merged.by_window() != merged.by_window("15m")
    assert merged.by_window() != merged
    with pytest.raises(TypeError):
        hash(merged.by_window())


def test_json_goes_by_window(merged: tallyfold.CountTable) -> None:
    document = json.loads(merged.by_window("1d").to_json())
    assert (document["format"], document["step"]) == ("tallyfold-series/1", "1d")
    (window,) = document["windows"]
    assert window["rows"][1] == {
        "values": ["push"],
        "success": "9",
        "errors": "4",
        "filtered": "0",
    }


def test_a_window_may_be_provisional(hour: datetime) -> None:
    sandbox = tallyfold.Sandbox()
    start, middle, end = hour - timedelta(hours=2), hour - timedelta(hours=1), hour
    record(sandbox, "success", "push", at=start.isoformat())
    record(sandbox, "success", "push", at=middle.isoformat())
    with Service(sandbox).client() as client:
        table = client.event_delivery(start, middle, ["integration"])
        table = table.merge(client.event_delivery(middle, end, ["integration"]))
    series = table.by_window("1h").fill_zeros()
    assert [window.provisional for window in series.windows] == [False, True]
    assert [row.provisional for row in series] == [False, True]
    first, second = series.windows
    assert "provisional" not in repr(first)
    assert repr(second).endswith(", complete=True, provisional=True)")
    assert second == SeriesWindow(
        second.start_text, second.end_text, complete=True, provisional=True
    )
    assert second != SeriesWindow(second.start_text, second.end_text, complete=True)
    assert pickle.loads(pickle.dumps(series)) == series
    assert pickle.loads(pickle.dumps(second)) == copy.copy(second) == second
    documents = json.loads(series.to_json())["windows"]
    assert ["provisional" in documents[0], documents[1]["provisional"]] == [False, True]
    assert series._repr_html_().count("), provisional</td>") == 1


def test_html_marks_what_is_covered_in_part(merged: tallyfold.CountTable) -> None:
    assert "in part" not in merged.by_window("15m")._repr_html_()
    html = merged.by_window("1h")._repr_html_()
    assert "<caption>event_delivery by 1h</caption>" in html
    assert html.count("[2026-01-01T00:00:00Z, 2026-01-01T01:00:00Z), in part</td>") == 4
    total = "<td>21</td><td>9</td><td>3</td></tr></tfoot>"
    assert html.endswith(f'<tfoot><tr><th colspan="2">total</th>{total}</table>')


def test_rates_of_rows_and_totals(table: tallyfold.CountTable) -> None:
    assert table.totals.rates == Rates(delivery=12 / 18, error=6 / 18, filter=3 / 21)
    assert table[2].rates == Rates(0.0, 1.0, 0.0)
    assert table[1].rates == Rates(None, None, 1.0)
    assert [row.rates for row in table.by_window("1h")] == [row.rates for row in table]
    reported = table.reported
    assert reported is not None
    assert reported.rates == table.totals.rates


def test_rates_of_what_is_no_count() -> None:
    for counts, argument in [
        (Counts(-1, 0, 0), "success"),
        (Counts(0, 2**64, 0), "errors"),
        (Counts(0, 0, 2**100), "filtered"),
    ]:
        with pytest.raises(tallyfold.ConfigError) as caught:
            _ = counts.rates
        assert (caught.value.code, caught.value.argument) == ("invalid_argument", argument)
    with pytest.raises(TypeError):
        _ = Counts(0.5, 0, 0).rates  # type: ignore[arg-type]
