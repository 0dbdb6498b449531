"""A week with late counts goes into real servers revision by revision, and their sums are the truth."""

from collections.abc import Callable
from pathlib import Path

import httpx2
import pytest
import tallyfold
import week
from servers import InfluxDB, Prometheus, Sums, VictoriaMetrics

# A busy machine takes several times as long as others.
pytestmark = pytest.mark.timeout(1800)

END_MS = week.START_MS + week.WINDOWS * week.QUARTER_MS
#: Every so many revisions, the sums over the whole week are compared.
EVERY = 50

Revisions = list[tallyfold.Revision]


@pytest.fixture(scope="module")
def revisions(drawn: list[week.Event]) -> Revisions:
    """Gives the revisions of the week, in the order in which a follow gives them."""
    revisions = [revision for revision, _ in week.follow(week.Service(drawn))]
    assert [number_of for number_of in range(3)] == sorted({one.number for one in revisions})
    assert len(revisions) == 3 * week.WINDOWS
    assert sum(min(delta_of(one)) < 0 for one in revisions) > 100
    assert sum(one.settled for one in revisions) == week.WINDOWS
    return revisions


def delta_of(revision: tallyfold.Revision) -> tuple[int, ...]:
    rows = revision.changes
    return tuple(value for row in rows for value in (row.delta.success, row.delta.errors)) or (0,)


@pytest.fixture(scope="module")
def truth(drawn: list[week.Event], revisions: Revisions) -> Sums:
    """Gives the sums of the whole week, which three ways give alike."""
    truth = week.Truth()
    for revision in revisions:
        truth.add(revision)
    assert truth.sums == week.drawn_sums(drawn)
    return truth.sums


def push_week(revisions: Revisions, form: tallyfold.ExportFormat, url: str, check: Callable[[int, week.Truth], None]) -> None:
    truth = week.Truth()
    with httpx2.HTTPTransport(trust_env=False) as transport:
        for position, revision in enumerate(revisions):
            report = tallyfold.push(revision, form, url, transport=transport)
            assert report.retries == 0
            assert not report.rejected
            truth.add(revision)
            check(position, truth)


def is_due(position: int, revisions: Revisions) -> bool:
    return position % EVERY == EVERY - 1 or position == len(revisions) - 1


def test_prometheus_has_the_truth_after_every_revision(tmp_path: Path, revisions: Revisions, truth: Sums) -> None:
    # Late samples are at most as old as the counts of a window may change: 40 minutes here.
    server = Prometheus.receiving(tmp_path)

    def check(position: int, truth: week.Truth) -> None:
        window = revisions[position].window
        start, end = week.ms(window.start_text), week.ms(window.end_text)
        assert server.sums(week.STEM, week.DIMENSIONS, "15m", end) == truth.windows[start]
        if is_due(position, revisions):
            assert server.sums(week.STEM, week.DIMENSIONS, "7d", END_MS) == truth.sums

    with server.running():
        push_week(revisions, "remote-write", server.write_url, check)
        assert server.sums(week.STEM, week.DIMENSIONS, "7d", END_MS) == truth


def test_prometheus_takes_the_same_samples_again(tmp_path: Path, revisions: Revisions) -> None:
    """A message that is sent again changes nothing, also if other samples came in between."""
    some, truth = revisions[:600], week.Truth()
    for revision in some:
        truth.add(revision)
    server = Prometheus.receiving(tmp_path, "8d")
    with server.running():
        for _ in range(2):
            push_week(some, "remote-write", server.write_url, lambda *_: None)
            assert server.sums(week.STEM, week.DIMENSIONS, "7d", END_MS) == truth.sums


def test_victoriametrics_has_the_truth(tmp_path: Path, revisions: Revisions, truth: Sums) -> None:
    # Without this, samples that were sent twice count twice.
    server = VictoriaMetrics(tmp_path, "-dedup.minScrapeInterval=1ms")

    def check(position: int, truth: week.Truth) -> None:
        if is_due(position, revisions):
            assert server.sums(week.STEM, week.DIMENSIONS, "7d", END_MS) == truth.sums

    with server.running():
        push_week(revisions, "remote-write", server.write_url, check)
        # Everything once more.
        push_week(revisions, "remote-write", server.write_url, lambda *_: None)
        assert server.sums(week.STEM, week.DIMENSIONS, "7d", END_MS) == truth


def test_victoriametrics_counts_twice_without_deduplication(tmp_path: Path, revisions: Revisions) -> None:
    """That is why the guide wants `-dedup.minScrapeInterval=1ms`."""
    server = VictoriaMetrics(tmp_path)
    with server.running():
        for times in (1, 2):
            push_week(revisions[:1], "remote-write", server.write_url, lambda *_: None)
            sums = server.sums(week.STEM, week.DIMENSIONS, "7d", END_MS)
            one = week.Truth()
            one.add(revisions[0])
            assert sums == {group: tuple(times * count for count in counts) for group, counts in one.sums.items()}


def test_influxdb_has_the_truth(tmp_path: Path, revisions: Revisions, truth: Sums) -> None:
    server = InfluxDB(tmp_path)

    def check(position: int, truth: week.Truth) -> None:
        if is_due(position, revisions):
            sums = server.sums(week.STEM, week.DIMENSIONS, week.START_MS, END_MS)
            assert sums == truth.sums

    with server.running():
        push_week(revisions, "influx", server.write_url, check)
        push_week(revisions, "influx", server.write_url, lambda *_: None)
        assert server.sums(week.STEM, week.DIMENSIONS, week.START_MS, END_MS) == truth
