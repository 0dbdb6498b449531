"""Plans: sequences of windows, and their parts."""

import copy
import pickle
from datetime import UTC, datetime, timedelta

import pytest

import tallyfold
from tallyfold._ranges.ended import ended_windows

EDGES = "2026-01-31T09:10:00Z", "2026-01-31T10:05:00Z"


def test_a_plan_is_a_sequence_of_windows() -> None:
    plan = tallyfold.Plan(*EDGES, "15m")
    windows = list(plan)
    assert len(plan) == len(windows) == 5
    assert windows[0] == plan[0] == tallyfold.Window(EDGES[0], "2026-01-31T09:15:00Z")
    assert windows[-1] == plan[-1] == tallyfold.Window("2026-01-31T10:00:00Z", EDGES[1])
    assert plan[1:4:2] == windows[1:4:2]
    assert list(reversed(plan)) == windows[::-1]
    assert (plan.range, plan.step) == (tallyfold.Window(*EDGES), "15m")
    assert repr(plan) == "<Plan: 5 windows of 15m, [2026-01-31T09:10:00Z, 2026-01-31T10:05:00Z)>"
    with pytest.raises(IndexError):
        plan[5]
    assert dict.fromkeys(windows, 1)[plan[2]] == 1


def test_arguments_may_be_those_of_datetime() -> None:
    start = datetime(2026, 1, 31, 9, 10, tzinfo=UTC)
    plan = tallyfold.Plan(start, start + timedelta(minutes=55), timedelta(minutes=15))
    assert plan == tallyfold.Plan(*EDGES, "15m")
    assert plan != tallyfold.Plan(*EDGES, "5m")
    assert plan != 5


def test_a_year_of_seconds_costs_nothing() -> None:
    plan = tallyfold.Plan("2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z", "1s")
    assert len(plan) == 365 * 86_400
    assert plan[-1].end_text == "2027-01-01T00:00:00Z"


def test_parts_are_disjoint_and_complete() -> None:
    plan = tallyfold.Plan("2026-01-31T00:00:00Z", "2026-02-01T00:00:00Z", "15m")
    parts = [plan.part(index, 7) for index in range(7)]
    together = [window for part in parts for window in part]
    assert len(together) == 96
    assert set(together) == set(plan)
    assert list(parts[2].part(1, 2)) == list(plan)[9::14]
    assert list(plan.part(96, 1000)) == []


def test_a_plan_travels() -> None:
    plan = tallyfold.Plan(*EDGES, "15m")
    for made in (plan, plan.part(1, 2), plan.part(1, 2).part(0, 2)):
        for other in (pickle.loads(pickle.dumps(made)), copy.deepcopy(made)):
            assert other == made
            assert list(other) == list(made)


def test_what_is_no_plan_is_refused() -> None:
    for arguments, code in [
        ((EDGES[1], EDGES[0], "15m"), "invalid_window"),
        ((*EDGES, "7m"), "invalid_argument"),
        (("2026-01-31", EDGES[1], "15m"), "invalid_timestamp"),
    ]:
        with pytest.raises(tallyfold.ConfigError) as caught:
            tallyfold.Plan(*arguments)
        assert caught.value.code == code
    plan = tallyfold.Plan(*EDGES, "15m")
    for index, of in [(1, 1), (0, 0), (-1, 2), (0, 2**32)]:
        with pytest.raises(tallyfold.ConfigError) as caught:
            plan.part(index, of)
        assert caught.value.code == "invalid_argument"


def test_tables_know_their_gaps(client: tallyfold.Client) -> None:
    plan = tallyfold.Plan("2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z", "15m")
    tables = [
        client.event_delivery(window.start_text, window.end_text, ["integration"])
        for window in (plan[0], plan[2])
    ]
    table = tallyfold.CountTable.merge_all(tables)
    assert table.gaps() == [plan[1]]
    assert table.gaps(end=plan.range.end) == [plan[1], plan[3]]
    assert table.gaps("2025-12-31T00:00:00Z", plan[0].start) == [
        tallyfold.Window("2025-12-31T00:00:00Z", plan[0].start_text)
    ]
    with pytest.raises(tallyfold.ConfigError) as caught:
        table.gaps(plan[3].end_text)
    assert caught.value.code == "invalid_window"


def test_merging_refuses_what_can_not_be_added(client: tallyfold.Client) -> None:
    table = client.event_delivery(*("2026-01-01T00:00:00Z", "2026-01-01T00:15:00Z"), ["reason"])
    other = client.event_delivery(*("2026-01-01T00:15:00Z", "2026-01-01T00:30:00Z"), ["write_key"])
    for tables, code in [
        ([], "missing_argument"),
        ([table, table], "overlapping_coverage"),
        ([table, other], "incompatible_tables"),
    ]:
        with pytest.raises(tallyfold.ConfigError) as caught:
            tallyfold.CountTable.merge_all(tables)
        assert caught.value.code == code
    for wrong in (5, [5], "text"):
        with pytest.raises(TypeError):
            tallyfold.CountTable.merge_all(wrong)  # type: ignore[arg-type]
    assert tallyfold.CountTable.merge_all(iter([table])) == table


def test_revisions_can_be_shown_but_their_changes_do_not_travel(client: tallyfold.Client) -> None:
    (revision,) = client.follow(
        "event_delivery",
        "2026-01-01T00:00:00Z",
        ["integration"],
        window="15m",
        end="2026-01-01T00:15:00Z",
    )
    assert "settled=True" in repr(revision)
    assert pickle.loads(pickle.dumps(revision.table)) == revision.table
    with pytest.raises(TypeError, match="can't be pickled"):
        pickle.dumps(revision.changes)


@pytest.mark.parametrize(
    ("start", "now", "wanted"),
    [
        ("09:10", "10:05:00.5", ["09:15", "09:30", "09:45", "10:00"]),
        ("09:10", "10:00:00", ["09:15", "09:30", "09:45", "10:00"]),
        ("09:10", "09:59:59.999999", ["09:15", "09:30", "09:45"]),
        ("10:01", "10:05:00", []),
        ("10:06", "10:05:00", []),
    ],
)
def test_without_an_end_the_windows_are_whole_and_have_ended(
    start: str, now: str, wanted: list[str]
) -> None:
    at = datetime.fromisoformat(f"2026-01-31T{now}Z")
    windows = ended_windows(f"2026-01-31T{start}:00Z", None, "15m", at)
    assert [window.end_text[11:16] for window in windows] == wanted


def test_the_windows_of_a_day_have_ended_at_midnight() -> None:
    at = datetime(2026, 1, 31, 23, 59, tzinfo=UTC)
    assert [one.end_text for one in ended_windows("2026-01-29T00:00:00Z", None, "1d", at)] == [
        "2026-01-30T00:00:00Z",
        "2026-01-31T00:00:00Z",
    ]


def test_a_given_end_cuts_the_last_window() -> None:
    at = datetime(2026, 2, 1, tzinfo=UTC)
    assert ended_windows(*EDGES, "15m", at) == list(tallyfold.Plan(*EDGES, "15m"))
    assert ended_windows(*EDGES, "15m", at - timedelta(days=1)) == []
