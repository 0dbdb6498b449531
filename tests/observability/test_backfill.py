"""A day as OpenMetrics becomes blocks of a real Prometheus, whose sums are the table's own numbers."""

import subprocess
from pathlib import Path

import pytest
import tallyfold
import week
from servers import Counts, Group, Prometheus, Sums, binary

START_MS = 1_767_571_200_000
DAY_MS = 24 * 3_600_000
DIMENSIONS: tuple[tallyfold.DimensionName, ...] = ("integration", "reason")
STEM = "tallyfold_event_delivery_by_integration_reason"
TOTAL_STEM = "tallyfold_event_delivery"


@pytest.fixture(scope="module")
def day() -> tallyfold.CountTable:
    """Gives a day of generated traffic, in windows of 5 minutes."""
    sandbox = tallyfold.Sandbox(seed=11)
    with tallyfold.Client(
        cluster_endpoint="https://service.example",
        transport=sandbox.transport(),
        **sandbox.credentials,
    ) as client:
        start, end = week.text(START_MS), week.text(START_MS + DAY_MS)
        return client.collect("event_delivery", start, end, DIMENSIONS, window="5m")


def sums_of(table: tallyfold.CountTable, start_ms: int, end_ms: int) -> Sums:
    """Adds up the windows of a range, by group."""
    sums: dict[Group, Counts] = {}
    for row in table.by_window("5m"):
        if start_ms <= week.ms(row.window.start_text) < end_ms:
            before = sums.get(row.values, (0, 0, 0))
            counts = week.counts_of(row)
            sums[row.values] = (
                before[0] + counts[0],
                before[1] + counts[1],
                before[2] + counts[2],
            )
    return {group: counts for group, counts in sums.items() if any(counts)}


def total_of(sums: Sums) -> Sums:
    first, second, third = zip(*sums.values(), strict=True)
    return {(): (sum(first), sum(second), sum(third))}


def backfill(directory: Path, *exports: tallyfold.Export) -> None:
    directory.mkdir(exist_ok=True)
    for number, export in enumerate(exports):
        path = directory / f"{number}.om"
        export.write_to(path)
        # It reads the text with Prometheus' own parser, and fails if there is anything wrong.
        made = subprocess.run(
            [binary("promtool"), "tsdb", "create-blocks-from", "openmetrics", path, "data"],
            cwd=directory,
            capture_output=True,
            text=True,
            check=False,
        )
        assert made.returncode == 0, made.stderr[-1000:]


def test_sums_of_blocks_are_the_numbers_of_the_table(tmp_path: Path, day: tallyfold.CountTable) -> None:
    whole = day.by_window("5m")
    assert len(whole.windows) == 288
    assert len(sums_of(day, START_MS, START_MS + DAY_MS)) > 100
    total = day.group_by()
    # Rows and totals have different names, so no sum holds an event twice.
    backfill(tmp_path, tallyfold.export(whole, "openmetrics"), tallyfold.export(total, "openmetrics"))
    spans = [("20m", 20, range(0, 24 * 60, 220)), ("1h", 60, range(0, 24 * 60, 300)), ("1d", 1440, [0])]
    server = Prometheus(tmp_path)
    with server.running():
        for span, minutes, starts in spans:
            for after in starts:
                start = START_MS + after * 60_000
                end = start + minutes * 60_000
                truth = sums_of(day, start, end)
                assert truth
                assert server.sums(STEM, DIMENSIONS, span, end) == truth
                assert server.sums(TOTAL_STEM, (), span, end) == total_of(truth)
                # The same from any millisecond until the next window is in: it is 1 ms before its end.
                assert server.sums(TOTAL_STEM, (), span, end + 299_998) == total_of(truth)
    assert server.questions > 35
    everything = sums_of(day, START_MS, START_MS + DAY_MS)
    assert total_of(everything) == {(): week.counts_of(day.totals)}
