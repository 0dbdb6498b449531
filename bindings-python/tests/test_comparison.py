"""Comparisons: what changed from one table to another."""

import copy
import json
import pickle

import pytest
from support import END, START, body, record

import tallyfold
from tallyfold import ComparisonRow, Counts, Deltas, Shares

LAST = "2026-01-01T00:30:00Z"


@pytest.fixture
def before(client: tallyfold.Client) -> tallyfold.CountTable:
    """Gives a quarter of an hour by integration."""
    return client.event_delivery(START, END, ["integration"])


@pytest.fixture
def after(sandbox: tallyfold.Sandbox, client: tallyfold.Client) -> tallyfold.CountTable:
    """Gives the next quarter: email is gone, push better, sms new, warehouse as it was."""
    for integration, success, errors in [("push", 6, 1), ("sms", 0, 5), ("warehouse", 7, 0)]:
        for outcome, count in [("success", success), ("errors", errors)]:
            record(sandbox, outcome, integration, count=count, at="2026-01-01T00:20:00Z")
    return client.event_delivery(END, LAST, ["integration"])


@pytest.fixture
def comparison(before: tallyfold.CountTable, after: tallyfold.CountTable) -> tallyfold.Comparison:
    """Gives what changed."""
    return tallyfold.compare(before, after)


def test_it_says_what_it_holds(
    comparison: tallyfold.Comparison, before: tallyfold.CountTable, after: tallyfold.CountTable
) -> None:
    assert comparison.dimensions == ("integration",)
    assert comparison.metric == "event_delivery"
    assert (comparison.before_totals, comparison.after_totals) == (before.totals, after.totals)
    assert comparison.before_coverage == before.coverage
    assert comparison.after_coverage == after.coverage
    assert comparison.total_delta == Deltas(success=1, errors=0, filtered=-3)
    assert len(comparison) == 4
    assert repr(comparison) == (
        "<Comparison: event_delivery by ('integration',), 4 rows, "
        "success=+1, errors=+0, filtered=-3>"
    )


def test_rows_show_each_group(comparison: tallyfold.Comparison) -> None:
    names: tuple[tallyfold.DimensionName, ...] = ("integration",)
    email, push, sms, warehouse = rows = list(comparison)
    assert email == ComparisonRow(
        names,
        ("email",),
        "vanished",
        Counts(5, 2, 3),
        None,
        Deltas(-5, -2, -3),
        Shares(-5.0, None, 1.0),
    )
    assert (sms.presence, sms.before, sms.after) == ("new", None, Counts(0, 5, 0))
    assert (push.presence, push.delta) == ("both", Deltas(6, -3, 0))
    assert (push.before, push.after) == (Counts(0, 4, 0), Counts(6, 1, 0))
    assert warehouse.delta == Deltas(0, 0, 0)
    assert warehouse.share == Shares(0.0, None, 0.0)
    assert email.dimensions == {"integration": "email"}
    assert comparison.new == [sms]
    assert comparison.vanished == [email]
    assert [comparison[index] for index in (0, 1, -2, -1)] == rows
    assert comparison[::-1] == list(reversed(comparison)) == rows[::-1]
    with pytest.raises(IndexError):
        comparison[4]


def test_a_row_does_not_change(comparison: tallyfold.Comparison) -> None:
    row = comparison[0]
    with pytest.raises(AttributeError, match="a ComparisonRow does not change"):
        row.after = None
    assert repr(row) == (
        "ComparisonRow({'integration': 'email'}, 'vanished', "
        "before=Counts(success=5, errors=2, filtered=3), after=None, "
        "delta=Deltas(success=-5, errors=-2, filtered=-3))"
    )
    assert row in set(comparison)
    assert row != comparison[1]
    match row:
        case ComparisonRow(_, values, presence):
            assert (values, presence) == (("email",), "vanished")


def test_the_largest_changes(comparison: tallyfold.Comparison) -> None:
    assert [row.values[0] for row in comparison.top(3)] == ["sms", "push", "email"]
    assert [row.delta.success for row in comparison.top(2, by="success")] == [6, -5]
    assert comparison.top(0) == []
    assert len(comparison.top(99, by="filtered")) == 4
    with pytest.raises(tallyfold.ConfigError) as caught:
        comparison.top(1, by="delta")  # type: ignore[arg-type]
    assert (caught.value.code, caught.value.argument) == ("invalid_argument", "by")
    with pytest.raises(tallyfold.ConfigError) as caught:
        comparison.top(-1)
    assert (caught.value.code, caught.value.argument) == ("invalid_argument", "n")


def test_only_like_is_compared(before: tallyfold.CountTable, client: tallyfold.Client) -> None:
    for other in (
        client.event_delivery(START, END, ["reason"]),
        client.event_ingestion(START, END, ["integration"]),
        before.filter(integration="email"),
    ):
        with pytest.raises(tallyfold.ConfigError) as caught:
            tallyfold.compare(before, other)
        assert (caught.value.code, caught.value.argument) == ("incompatible_tables", "after")
    with pytest.raises(TypeError):
        tallyfold.compare(before, before.to_json())  # type: ignore[arg-type]


def test_it_is_a_value(comparison: tallyfold.Comparison, before: tallyfold.CountTable) -> None:
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(comparison, protocol)) == comparison
    assert copy.deepcopy(comparison) == comparison
    rows = list(comparison)
    assert pickle.loads(pickle.dumps(rows)) == rows
    assert comparison != tallyfold.compare(before, before)
    assert comparison != rows
    with pytest.raises(TypeError):
        hash(comparison)


def test_deltas_are_exact() -> None:
    tables = []
    for count in (2**64 - 1, 0, 2**53 + 1):
        aggregator = tallyfold.Aggregator(["integration"])
        aggregator.push(body([({"integration": "a"}, count, 0, 0)]))
        tables.append(aggregator.finish())
    most, none, some = tables
    assert tallyfold.compare(most, none)[0].delta.success == 1 - 2**64
    assert tallyfold.compare(none, most).total_delta.success == 2**64 - 1
    assert tallyfold.compare(none, some)[0].delta.success == 2**53 + 1


def test_json_holds_both_sides(comparison: tallyfold.Comparison) -> None:
    document = json.loads(comparison.to_json())
    assert document["format"] == "tallyfold-comparison/1"
    assert document["delta"] == {"success": "1", "errors": "0", "filtered": "-3"}
    assert [row["presence"] for row in document["rows"]] == ["vanished", "both", "new", "both"]


def test_html_shows_changes_and_is_escaped(comparison: tallyfold.Comparison) -> None:
    html = comparison._repr_html_()
    assert f"[{START}, {END}) → [{END}, {LAST})" in html
    assert "<tr><td>push</td><td>both</td><td>0 → 6 (+6)</td><td>4 → 1 (-3)</td>" in html
    assert "<tr><td>sms</td><td>new</td><td>none → 0 (+0)</td><td>none → 5 (+5)</td>" in html
    assert '<th colspan="2">total</th><td>12 → 13 (+1)</td>' in html

    tables = []
    for names in (["<b>", *map(str, range(60))], []):
        aggregator = tallyfold.Aggregator(["integration"])
        aggregator.push(body([({"integration": name}, 1, 0, 0) for name in names]))
        tables.append(aggregator.finish())
    html = tallyfold.compare(*tables)._repr_html_()
    assert '<td colspan="5">and 11 more rows</td>' in html
