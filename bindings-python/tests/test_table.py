"""Tables: their values, and what is made of them."""

import copy
import itertools
import pickle
from datetime import UTC, datetime
from html.parser import HTMLParser
from typing import TYPE_CHECKING

import pytest
from support import END, START, body, record

import tallyfold
from tallyfold import Counts, Row

if TYPE_CHECKING:
    from collections.abc import Sequence


def test_it_says_what_it_holds(table: tallyfold.CountTable) -> None:
    assert table.dimensions == ("integration", "reason")
    assert table.metric == "event_delivery"
    assert table.totals == Counts(success=12, errors=6, filtered=3)
    assert table.reported == table.totals
    assert table.reconciliation == tallyfold.Reconciliation("balanced", 0, 0, 0)
    assert table.notes == tallyfold.Notes(0, 0)
    assert repr(table) == (
        "<CountTable: event_delivery by ('integration', 'reason'), 4 rows, "
        "success=12, errors=6, filtered=3>"
    )


def test_a_flipped_bit_of_its_json_is_refused_or_changes_nothing(
    table: tallyfold.CountTable,
) -> None:
    saved = table.to_json().encode()
    for bit in range(len(saved) * 8):
        flipped = bytearray(saved)
        flipped[bit // 8] ^= 1 << bit % 8
        try:
            assert tallyfold.CountTable.from_json(flipped) == table
        except tallyfold.TallyfoldError as error:
            assert error.code == "invalid_table"  # noqa: PT017 - most of them are refused


def test_rows_come_sorted(table: tallyfold.CountTable) -> None:
    names: tuple[tallyfold.DimensionName, ...] = ("integration", "reason")
    rows = [
        Row(names, ("email", ""), 5, 2, 0),
        Row(names, ("email", "playbook <b>"), 0, 0, 3),
        Row(names, ("push", ""), 0, 4, 0),
        Row(names, ("warehouse", ""), 7, 0, 0),
    ]
    assert list(table) == rows
    assert [table[index] for index in range(len(table))] == rows
    assert [table[index] for index in (-4, -3, -2, -1)] == rows
    for index in (4, -5, 2**62, -(2**62)):
        with pytest.raises(IndexError):
            table[index]


def test_slices_are_lists_of_rows(table: tallyfold.CountTable) -> None:
    rows = list(table)
    ends = (None, 0, 1, 2, 4, 9, -1, -3, -9)
    for part in (slice(*at) for at in itertools.product(ends, ends, (None, 1, 2, -1, -3, 2**62))):
        assert table[part] == rows[part]
    assert table.group_by()[:2] == [table.group_by()[0]]
    assert list(reversed(table)) == rows[::-1]
    with pytest.raises(IndexError):
        table[2**100]
    with pytest.raises(TypeError):
        table["email"]  # type: ignore[call-overload]


def test_a_row_does_not_change(table: tallyfold.CountTable) -> None:
    row = table[0]
    assert row.dimensions == {"integration": "email", "reason": ""}
    row.dimensions["reason"] = "other"
    assert row.dimensions["reason"] == ""
    with pytest.raises(AttributeError):
        row.success = 1
    with pytest.raises(AttributeError):
        del row.success
    assert repr(row) == (
        "Row({'integration': 'email', 'reason': ''}, success=5, errors=2, filtered=0)"
    )
    same = Row(row.names, row.values, 5, 2, 0)
    assert row in {same}
    assert row != Row(row.names, row.values, 5, 2, 1)
    assert row != "a row"
    match row:
        case Row(_, values, success):
            assert (values, success) == (("email", ""), 5)


def test_windows_are_aware_and_exact() -> None:
    start = "2026-01-01T00:00:00.123456789Z"
    aggregator = tallyfold.Aggregator(["integration"])
    aggregator.push(body([]).replace(START.encode(), start.encode()))
    (window,) = aggregator.finish().windows
    assert (window.start_text, window.end_text) == (start, END)
    assert window.start == datetime(2026, 1, 1, 0, 0, 0, 123456, tzinfo=UTC)
    assert window.end == datetime(2026, 1, 1, 0, 15, tzinfo=UTC)


def test_grouping(table: tallyfold.CountTable) -> None:
    by_integration = table.group_by("integration")
    assert [row.values for row in by_integration] == [("email",), ("push",), ("warehouse",)]
    assert by_integration[0].filtered == 3
    assert table.group_by("reason", "integration")[-1].values == ("playbook <b>", "email")
    (everything,) = table.group_by()
    assert everything == Row((), (), 12, 6, 3)
    assert by_integration.reconciliation
    with pytest.raises(TypeError, match=r"group_by\(\*names\)"):
        table.group_by(["integration"])  # type: ignore[arg-type]
    with pytest.raises(tallyfold.ConfigError) as caught:
        table.group_by("write_key")
    assert caught.value.code == "unknown_dimension"


def test_filtering(table: tallyfold.CountTable) -> None:
    assert table.filter(integration="email").totals == Counts(5, 2, 3)
    for wanted in (["email", "push"], {"email", "push"}, iter(("email", "push"))):
        assert table.filter(integration=wanted).totals == Counts(5, 6, 3)
    part = table.filter(integration="email", reason="")
    assert list(part) == [table[0]]
    assert part.reported is None
    assert part.reconciliation == tallyfold.Reconciliation("unavailable")
    assert not part.reconciliation
    with pytest.raises(tallyfold.ConfigError) as caught:
        table.filter(event_name="a")
    assert caught.value.code == "unknown_dimension"


def test_the_top(table: tallyfold.CountTable) -> None:
    assert [row.errors for row in table.top(3)] == [4, 2, 0]
    assert [row.values[0] for row in table.top(2, by="success")] == ["warehouse", "email"]
    assert table.top(0) == []
    assert len(table.top(99, by="filtered")) == 4
    with pytest.raises(tallyfold.ConfigError) as caught:
        table.top(1, by="dropped")  # type: ignore[arg-type]
    assert (caught.value.code, caught.value.argument) == ("invalid_argument", "by")


def test_merging(sandbox: tallyfold.Sandbox, client: tallyfold.Client) -> None:
    middle, end = "2026-01-01T00:15:00Z", "2026-01-01T00:30:00Z"
    record(sandbox, "errors", "sms", at="2026-01-01T00:20:00Z")
    first = client.event_delivery(START, middle, ["integration"])
    second = client.event_delivery(middle, end, ["integration"])
    both = client.event_delivery(START, end, ["integration"])
    merged = first.merge(second)
    assert merged == second.merge(first)
    assert list(merged) == list(both)
    assert merged.coverage == both.coverage
    assert merged.windows == first.windows + second.windows

    with pytest.raises(tallyfold.ConfigError) as caught:
        merged.merge(second)
    assert caught.value.code == "overlapping_coverage"
    record(sandbox, "errors", "sms", at="2026-01-01T00:20:00Z")
    again = client.event_delivery(middle, end, ["integration"])
    assert merged.merge(again, replace=True).totals.errors == merged.totals.errors + 1
    with pytest.raises(tallyfold.ConfigError) as caught:
        merged.merge(client.event_delivery(START, end, ["reason"]))
    assert caught.value.code == "incompatible_tables"


def test_unbalanced_totals_are_told() -> None:
    aggregator = tallyfold.Aggregator(["integration"])
    aggregator.push(body([({"integration": "a"}, 5, 5, 5)], reported=(7, 5, 2**64 - 1)))
    table = aggregator.finish()
    assert table.reported == Counts(7, 5, 2**64 - 1)
    assert table.reconciliation == tallyfold.Reconciliation("unbalanced", 2, 0, 2**64 - 6)
    assert not table.reconciliation


def test_json_and_pickle_bring_it_back(table: tallyfold.CountTable) -> None:
    text = table.to_json()
    for document in (text, text.encode(), bytearray(text.encode())):
        assert tallyfold.CountTable.from_json(document) == table
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(table, protocol)) == table
    assert copy.deepcopy(table) == table
    assert table.group_by("integration") != table
    assert table != "a table"
    with pytest.raises(TypeError):
        hash(table)


def test_small_values_can_be_pickled(table: tallyfold.CountTable) -> None:
    values = [table[0], table.totals, table.coverage[0], table.reconciliation, table.notes]
    assert pickle.loads(pickle.dumps(values)) == values


def test_what_is_no_table_is_refused(table: tallyfold.CountTable) -> None:
    for document in ("{}", "", b"\xff", table.to_json().replace('"7"', '"8"')):
        with pytest.raises(tallyfold.ResponseError):
            tallyfold.CountTable.from_json(document)


def test_html_is_escaped_and_short() -> None:
    value = "<script>alert(\"1\" + '2')</script>&amp;"
    entries = [({"integration": f"{value}{number}"}, number, 0, 0) for number in range(60)]
    aggregator = tallyfold.Aggregator(["integration"])
    aggregator.push(body(entries))
    html = aggregator.finish()._repr_html_()
    assert "<script>" not in html
    assert "and 10 more rows" in html

    cells: list[str] = []

    class Reader(HTMLParser):
        def handle_data(self, data: str) -> None:
            cells.append(data)

    Reader().feed(html)
    assert f"{value}0" in cells


def test_names_of_dimensions_may_be_any_sequence_of_text(client: tallyfold.Client) -> None:
    # What a configuration file gives; mypy checks that it is accepted.
    names: list[str] = ["integration", "reason"]
    more: Sequence[str] = tuple(names)
    table = client.event_delivery(START, END, names, group_by=more)
    assert table == client.collect("event_delivery", START, END, more, window="15m", group_by=names)
    assert table.group_by(*more) == table
    assert tallyfold.Aggregator(names, group_by=more).finish is not None
