"""Running totals for scrapes and OTLP: they never go down, whatever ends the process."""

import asyncio
import itertools
import os
import pathlib
import pickle
import resource
import signal
import subprocess
import sys
import warnings
from collections.abc import Callable
from typing import Any

import httpx2
import pytest
import readers
from prometheus_client import CollectorRegistry
from prometheus_client.openmetrics.exposition import generate_latest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parsed
from support import connect, interrupting_at, record

import tallyfold

QUERY: tuple[Any, ...] = ("event_delivery", "2026-01-01T00:00:00Z", ["integration", "reason"])
LAST = "2026-01-01T03:00:00Z"
STEM = "tallyfold_event_delivery_by_integration_reason"


@pytest.fixture
def day() -> tallyfold.Sandbox:
    """Gives a service with events in each quarter of three hours."""
    sandbox = tallyfold.Sandbox()
    for number in range(12):
        at = f"2026-01-01T{number // 4:02}:{number % 4 * 15 + 5:02}:00Z"
        for integration in ("a", 'b "x"\n'):
            record(sandbox, "success", integration, count=number + 1, at=at)
    return sandbox


def values(text: str) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    """The counters of a scrape; a label with an empty value is the same as none."""
    return {
        (
            sample.name,
            frozenset((name, of) for name, of in sample.labels.items() if of),
        ): sample.value
        for family in parsed(text)  # type: ignore[no-untyped-call]
        for sample in family.samples
        if family.type == "counter"
    }


def test_totals_never_go_down_over_restarts(day: tallyfold.Sandbox, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "totals.json"
    seen: dict[Any, float] = {}
    steps = 0
    with connect(day) as client:
        while True:
            # A new process: nothing but the file is left.
            ledger = tallyfold.Ledger(path)
            before = values(ledger.openmetrics())
            assert before == seen
            state = {} if ledger.state is None else {"state": ledger.state}
            options: Any = {"window": "15m", "end": LAST, **state}
            with client.follow(*QUERY, **options) as revisions:
                revision = next(revisions, None)
                if revision is None:
                    break
                ledger.add(revision, revisions.state())
            steps += 1
            seen = values(ledger.openmetrics())
            assert all(seen[key] >= count for key, count in before.items())
        whole = client.event_delivery(QUERY[1], LAST, QUERY[2])
    assert steps == 12
    assert len(whole) == 2
    for row in whole:
        labels = frozenset((name, of) for name, of in row.dimensions.items() if of)
        assert seen[f"{STEM}_success_settled_events_total", labels] == row.success == 78
    assert ledger.settled_until is not None
    assert ledger.settled_until.isoformat() == "2026-01-01T03:00:00+00:00"
    assert repr(ledger) == "<Ledger until 2026-01-01T03:00:00Z>"


def test_a_skipped_window_is_refused(day: tallyfold.Sandbox) -> None:
    ledger = tallyfold.Ledger()
    with connect(day) as client:
        with client.follow(*QUERY, window="15m", end=LAST) as revisions:
            given = [(revision, revisions.state()) for revision in revisions]
        settled = [revision for revision, _ in given if revision.settled]
        lost = settled[1]
        for revision, state in given:
            if revision is lost:
                continue
            if revision.settled and revision.window.start > lost.window.start:
                with pytest.raises(
                    tallyfold.ConfigError, match=r"was skipped.* state in the ledger"
                ) as error:
                    ledger.add(revision, state)
                assert (error.value.code, error.value.argument) == ("out_of_order", "revision")
                break
            ledger.add(revision, state)
        with client.follow(*QUERY, window="15m", end=LAST, state=ledger.state) as revisions:
            for revision in revisions:
                ledger.add(revision, revisions.state())
    whole = tallyfold.Ledger()
    filled(day, whole)
    assert ledger.openmetrics() == whole.openmetrics()


def test_a_gap_is_left_if_that_is_wanted(
    revisions: list[tuple[tallyfold.Revision, str]], tmp_path: pathlib.Path
) -> None:
    path = tmp_path / "totals.json"
    ledger = tallyfold.Ledger(path)
    ledger.add(*revisions[0])
    stored = path.read_bytes()
    gap = r"revision: \[2026-01-01T00:15:00Z, 2026-01-01T01:00:00Z\) was skipped.* set allow_gap"
    with pytest.raises(tallyfold.ConfigError, match=gap) as error:
        ledger.add(*revisions[4])
    assert error.value.code == "out_of_order"
    with pytest.raises(tallyfold.ConfigError, match="allow_gap: want True or False"):
        ledger.add(*revisions[4], allow_gap="yes")  # type: ignore[arg-type]
    assert path.read_bytes() == stored
    ledger.add(*revisions[4], allow_gap=True)
    # The process is started again, and the gap is no error any more.
    ledger = tallyfold.Ledger(path)
    for revision, state in revisions[5:]:
        ledger.add(revision, state)
    totals = values(ledger.openmetrics())
    lost = sum(revision.table.totals.success for revision, _ in revisions[1:4])
    assert sum(totals.values()) == 2 * 78 - lost


@pytest.mark.parametrize(
    "name",
    ["", "1", "a b", "a.b", "a\0", "a\u202eb", 'a"} 1\nown{x="', "x" * 101, 5],
)
def test_a_name_that_is_no_name_of_a_metric_is_refused(
    name: Any, revisions: list[tuple[tallyfold.Revision, str]]
) -> None:
    full = tallyfold.Ledger()
    full.add(*revisions[0])
    for ledger in (tallyfold.Ledger(), full):
        for act in (ledger.openmetrics, ledger.collector):
            with pytest.raises(tallyfold.ConfigError, match=r"name: .*want") as error:
                act(name=name)
            assert (error.value.code, error.value.argument) == ("invalid_argument", "name")
            assert str(error.value).isprintable()
            assert len(str(error.value)) < 200
    longest = "x" * 100
    assert f"{longest}_by_integration_reason_success" in full.openmetrics(name=longest)


def scraped(registry: CollectorRegistry) -> str:
    text: bytes = generate_latest(registry)  # type: ignore[no-untyped-call]
    return text.decode()


def filled(sandbox: tallyfold.Sandbox, ledger: tallyfold.Ledger) -> None:
    with (
        connect(sandbox) as client,
        client.follow(*QUERY, window="15m", end=LAST) as revisions,
    ):
        for revision in revisions:
            ledger.add(revision, revisions.state())


def until(text: str) -> list[Any]:
    """The gauge with the end of the newest window, as a scrape has it."""
    families = parsed(text)  # type: ignore[no-untyped-call]
    return [family for family in families if family.name.endswith("_settled_until_seconds")]


def test_a_registry_shows_the_totals(day: tallyfold.Sandbox) -> None:
    ledger = tallyfold.Ledger()
    registry = CollectorRegistry()
    registry.register(ledger.collector({"cluster": "eu-1"}))
    assert values(scraped(registry)) == {}
    filled(day, ledger)
    found = values(scraped(registry))
    assert found == values(ledger.openmetrics({"cluster": "eu-1"}))
    assert len(found) == 6
    assert sum(found.values()) == 2 * 78
    assert until(scraped(registry)) == until(ledger.openmetrics({"cluster": "eu-1"})) != []
    labelled = CollectorRegistry()
    labelled.register(ledger.collector({"cluster": "eu-1", "zone": ""}, name="ours"))
    assert until(scraped(labelled)) == until(
        ledger.openmetrics({"cluster": "eu-1", "zone": ""}, name="ours")
    )
    named = CollectorRegistry()
    named.register(ledger.collector(name="ours"))
    assert {name for name, _ in values(scraped(named))} == {
        f"ours_by_integration_reason_{count}_settled_events_total"
        for count in ("success", "errors", "filtered")
    }


def test_a_revision_that_can_not_be_stored_is_not_shown(
    day: tallyfold.Sandbox, tmp_path: pathlib.Path
) -> None:
    path = tmp_path / "totals.json"
    ledger = tallyfold.Ledger(path)
    with (
        connect(day) as client,
        client.follow(*QUERY, window="15m", end=LAST) as revisions,
    ):
        ledger.add(next(revisions), revisions.state())
        stored, shown = path.read_bytes(), ledger.openmetrics()
        revision = next(revisions)
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))
        try:
            with pytest.raises(OSError, match="too large"):
                ledger.add(revision, revisions.state())
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert (path.read_bytes(), ledger.openmetrics()) == (stored, shown)
        assert list(tmp_path.iterdir()) == [path]
        ledger.add(revision, revisions.state())
        assert ledger.openmetrics() != shown


PROGRAM = """
import random
import signal
import sys
import tallyfold
from test_ledger import QUERY, LAST
from support import connect
sandbox = tallyfold.Sandbox(seed=7)
ledger = tallyfold.Ledger(sys.argv[1])
with connect(sandbox) as client:
    revisions = client.follow(*QUERY, window="5m", end=LAST, state=ledger.state)
    for number, revision in enumerate(revisions, 1):
        ledger.add(revision, revisions.state())
        if number == 5:
            # The system kills this process soon, whatever it does then.
            signal.setitimer(signal.ITIMER_REAL, 0.0001 + random.random() * 0.003)
"""


def test_a_killed_process_goes_on(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "totals.json"
    here = pathlib.Path(__file__).parent
    tests = os.pathsep.join(map(os.fspath, [here, here.parents[1] / "tests/observability"]))
    command = [sys.executable, "-c", PROGRAM, os.fspath(path)]
    environment = {**os.environ, "PYTHONPATH": tests}
    before: dict[Any, float] = {}
    runs = 0
    while True:
        code = subprocess.run(command, env=environment, check=False).returncode
        assert code in {0, -signal.SIGALRM}
        after = values(tallyfold.Ledger(path).openmetrics())
        assert all(after[key] >= count for key, count in before.items())
        before = after
        runs += 1
        if code == 0:
            break
    assert runs > 3
    with connect(tallyfold.Sandbox(seed=7)) as client:
        whole = client.event_delivery(QUERY[1], LAST, QUERY[2])
    assert sum(before.values()) == sum(
        (whole.totals.success, whole.totals.errors, whole.totals.filtered)
    )


def test_a_damaged_file_is_refused(day: tallyfold.Sandbox, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "totals.json"
    filled(day, tallyfold.Ledger(path))
    whole = path.read_bytes()
    for damaged in (b"", whole[:-1], whole.replace(b"78", b"79"), b"{}"):
        path.write_bytes(damaged)
        with pytest.raises(tallyfold.ConfigError) as raised:
            tallyfold.Ledger(path)
        assert raised.value.code == "invalid_checkpoint"
        assert str(raised.value).startswith(f"invalid_checkpoint: {path}: ")


def test_totals_of_something_else_are_refused(day: tallyfold.Sandbox) -> None:
    ledger = tallyfold.Ledger()
    filled(day, ledger)
    before = ledger.save()
    other: tuple[Any, ...] = ("event_delivery", QUERY[1], ["integration"])
    with (
        connect(day) as client,
        client.follow(*other, window="15m", end=LAST) as revisions,
        pytest.raises(tallyfold.ConfigError, match="incompatible_tables"),
    ):
        ledger.add(next(revisions), revisions.state())
    assert ledger.save() == before


def test_a_window_is_counted_once(day: tallyfold.Sandbox, tmp_path: pathlib.Path) -> None:
    """Also if the follow of the next process begins without the state."""
    path = tmp_path / "totals.json"
    filled(day, tallyfold.Ledger(path))
    stored = path.read_bytes()
    with pytest.raises(tallyfold.ConfigError, match="was added before") as caught:
        filled(day, tallyfold.Ledger(path))
    assert caught.value.code == "overlapping_coverage"
    assert path.read_bytes() == stored


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda of: of.add(5, "state"), "revision: want a Revision"),
        (lambda _: tallyfold.Ledger().add(quarter(), ""), "state: want the state of the follow"),
        (lambda of: tallyfold.Ledger().add(quarter(), of.state[:-1]), "state: .*was damaged"),
        (lambda of: of.openmetrics({"1": "x"}), "labels: "),
        (lambda of: of.openmetrics(name="1"), "name: "),
        (lambda of: of.collector({"revision": 5}), "labels: want"),
        (lambda _: tallyfold.Ledger(""), "path: this is empty"),
        (lambda _: tallyfold.Ledger(5), "path: want"),  # type: ignore[arg-type]
        (lambda _: tallyfold.Ledger(saved=5), "saved: want"),  # type: ignore[arg-type]
    ],
)
def test_wrong_arguments(
    act: Callable[[Any], object], message: str, day: tallyfold.Sandbox
) -> None:
    ledger = tallyfold.Ledger()
    filled(day, ledger)
    with pytest.raises(tallyfold.ConfigError, match=message):
        act(ledger)


def quarter() -> tallyfold.Revision:
    """A revision that no ledger has."""
    sandbox = tallyfold.Sandbox()
    with connect(sandbox) as client, client.follow(*QUERY, window="15m", end=LAST) as revisions:
        return next(revisions)


def test_a_total_that_prometheus_rounds_is_a_warning() -> None:
    sandbox = tallyfold.Sandbox()
    record(sandbox, "success", "a", count=2**53, at="2026-01-01T00:05:00Z")
    record(sandbox, "success", "a", count=1, at="2026-01-01T00:20:00Z")
    ledger = tallyfold.Ledger()
    with connect(sandbox) as client:
        revisions = client.follow(*QUERY, window="15m", end="2026-01-01T00:30:00Z")
        ledger.add(next(revisions), "one")
        second, before = next(revisions), ledger.save()
        with (
            warnings.catch_warnings(action="error"),
            pytest.raises(tallyfold.InexactCountWarning),
        ):
            ledger.add(second, "two")
        # An error leaves the ledger unchanged, so the revision can be added again.
        assert ledger.save() == before
        with pytest.warns(tallyfold.InexactCountWarning, match="9007199254740993, is above 2"):
            ledger.add(second, "two")
        assert ledger.state == "two"
        revisions.close()


def test_a_ledger_is_not_pickled() -> None:
    with pytest.raises(TypeError, match="save"):
        pickle.dumps(tallyfold.Ledger())


def test_two_processes_never_add_to_the_same_file(
    day: tallyfold.Sandbox, tmp_path: pathlib.Path
) -> None:
    path = tmp_path / "totals.json"
    one, other = tallyfold.Ledger(path), tallyfold.Ledger(path)
    with (
        connect(day) as client,
        client.follow(*QUERY, window="15m", end=LAST) as revisions,
    ):
        revision = next(revisions)
        one.add(revision, revisions.state())
        stored = path.read_bytes()
        with pytest.raises(BlockingIOError, match="since it was read"):
            other.add(revision, revisions.state())
        assert path.read_bytes() == stored
        assert other.state is None
        # Another process, of any language, is about to write.
        lease = tmp_path / "totals.json.lease"
        lease.mkdir()
        foreign = lease / "lock-0123456789abcdef-1-1-00"
        foreign.touch()
        later = next(revisions)
        with pytest.raises(BlockingIOError, match="another process is writing"):
            one.add(later, revisions.state())
        foreign.unlink()
        one.add(later, revisions.state())
    assert [file.name for file in tmp_path.iterdir()] == ["totals.json"]


OTLP = "https://otlp.example/v1/metrics"
START_MS = 1_770_000_000_000


class Target(httpx2.BaseTransport):
    """Takes messages, and has the points of each, by group and count."""

    def __init__(self, status: int = 200) -> None:
        self.status = status
        self.starts: list[int] = []
        self.times: list[int] = []
        self.totals: list[dict[tuple[str, str], int]] = []

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        points = list(readers.otlp_totals(request.read()))
        ((start, at),) = {(start, at) for _, _, start, at, _ in points}
        self.starts.append(start)
        self.times.append(at)
        self.totals.append(
            {
                (labels["integration"], name.rpartition(".")[2]): value
                for name, labels, _, _, value in points
            }
        )
        return httpx2.Response(self.status)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Gives the wall clock of ledgers and pushes, which the test sets."""
    unix_ms = [START_MS]
    monkeypatch.setattr(tallyfold.Now, "read", lambda: tallyfold.Now(0, unix_ms[0]))
    return unix_ms


@pytest.fixture
def revisions(day: tallyfold.Sandbox) -> list[tuple[tallyfold.Revision, str]]:
    """Gives settled revisions, each with the state of its follow after it."""
    with connect(day) as client, client.follow(*QUERY, window="15m", end=LAST) as revisions:
        return [(revision, revisions.state()) for revision in revisions]


def pushed(ledger: tallyfold.Ledger, target: Target, way: str, **options: Any) -> Any:
    if way == "sync":
        return ledger.push("otlp", OTLP, transport=target, **options)

    async def handle(request: httpx2.Request) -> httpx2.Response:
        return target.handle_request(request)

    transport = httpx2.MockTransport(handle)
    return asyncio.run(ledger.async_push("otlp", OTLP, transport=transport, **options))


@pytest.mark.parametrize("way", ["sync", "async"])
def test_totals_have_one_start_over_restarts_and_no_time_twice(
    way: str,
    revisions: list[tuple[tallyfold.Revision, str]],
    clock: list[int],
    tmp_path: pathlib.Path,
) -> None:
    path, target = tmp_path / "totals.json", Target()
    assert pushed(tallyfold.Ledger(path), target, way).messages == 0
    steps = [900_000, 0, -240_000, 3_600_000]
    for (revision, state), step in zip(revisions, itertools.cycle(steps), strict=False):
        clock[0] += step
        ledger = tallyfold.Ledger(path)
        ledger.add(revision, state)
        # Each process ends after its message, and the next one sends the same once more.
        for _ in range(2):
            report = pushed(tallyfold.Ledger(path), target, way)
            assert (report.messages, report.unsure) == (1, 0)
            assert tallyfold.Ledger(path).save() == path.read_text()
    assert set(target.starts) == {START_MS * 1_000_000}
    assert target.times == sorted(set(target.times))
    assert target.times[-1] >= clock[0] * 1_000_000
    for before, after in itertools.pairwise(target.totals):
        assert all(after[key] >= total for key, total in before.items())
    assert target.totals[-1]["a", "success"] == 78
    # Five minutes behind the last message.
    stored = path.read_bytes()
    clock[0] -= 3_600_000 * 2
    with pytest.raises(tallyfold.ConfigError, match="from the future"):
        pushed(tallyfold.Ledger(path), target, way)
    assert path.read_bytes() == stored
    # A ledger that begins anew has another start.
    other = tallyfold.Ledger()
    other.add(*revisions[0])
    pushed(other, target, way)
    assert target.starts[-1] == clock[0] * 1_000_000 != target.starts[0]


@pytest.mark.parametrize("way", ["sync", "async"])
def test_totals_have_the_services_time_if_the_clock_is_ahead(
    way: str, day: tallyfold.Sandbox, clock: list[int], tmp_path: pathlib.Path
) -> None:
    path, target = tmp_path / "totals.json", Target()
    ahead_ms, unix_ms = 3 * 3_600_000, START_MS + 6 * 3_600_000
    clock[0] = unix_ms + ahead_ms
    ledger = tallyfold.Ledger(path)
    day.inject("date", milliseconds=ahead_ms, every=1)
    with connect(day) as client, client.follow(*QUERY, window="15m", end=LAST) as revisions:
        with pytest.warns(tallyfold.ClockWarning):
            revision = next(revisions)
        ledger.add(revision, revisions.state())
    assert ahead_ms / 1000 - 2 <= revision.clock_ahead <= ahead_ms / 1000
    pushed(ledger, target, way)
    # A new process, and then the clock is set right.
    clock[0] += 60_000
    pushed(tallyfold.Ledger(path), target, way)
    clock[0] = unix_ms + 120_000
    pushed(tallyfold.Ledger(path), target, way)
    assert set(target.starts) == {target.starts[0]}
    seconds = [time / 1e9 - unix_ms / 1000 for time in (target.starts[0], *target.times)]
    assert [round(second / 10) for second in seconds] == [0, 0, 6, 6]
    assert target.times == sorted(set(target.times))


def test_a_push_of_totals_is_never_in_doubt(
    revisions: list[tuple[tallyfold.Revision, str]], tmp_path: pathlib.Path
) -> None:
    ledger = tallyfold.Ledger(tmp_path / "totals.json")
    ledger.add(*revisions[0])
    target, breaks = Target(), 0

    def handle(request: httpx2.Request) -> httpx2.Response:
        nonlocal breaks
        taken = target.handle_request(request)
        if breaks == 0:
            breaks += 1
            raise httpx2.ReadError("taken, and broken before the answer")
        return taken

    report = ledger.push("otlp", OTLP, transport=httpx2.MockTransport(handle))
    assert (report.retries, report.unsure) == (1, 0)
    assert target.times[0] == target.times[1]
    assert target.totals[0] == target.totals[1]
    with pytest.raises(tallyfold.ServiceError) as failed:
        ledger.push("otlp", OTLP, transport=Target(500))
    assert failed.value.report is not None
    assert failed.value.report.unsure == 0
    with pytest.raises(tallyfold.ConfigError, match="guarantee"):
        ledger.push("otlp", OTLP, transport=target, guarantee="at_least_once")
    with pytest.raises(tallyfold.ConfigError, match="no running totals"):
        ledger.push("remote-write", OTLP, transport=target)


def test_on_finished_gets_numbers_of_samples(
    revisions: list[tuple[tallyfold.Revision, str]],
) -> None:
    ledger, noted = tallyfold.Ledger(), []
    ledger.add(*revisions[0])

    async def note(samples: int) -> None:
        noted.append(samples)

    report = ledger.push("otlp", OTLP, transport=Target(), on_finished=noted.append)
    target = httpx2.MockTransport(Target().handle_request)
    asyncio.run(ledger.async_push("otlp", OTLP, transport=target, on_finished=note))
    assert noted == [report.samples, report.samples]


def test_of_two_processes_one_pushes(
    revisions: list[tuple[tallyfold.Revision, str]], tmp_path: pathlib.Path
) -> None:
    path, target = tmp_path / "totals.json", Target()
    one = tallyfold.Ledger(path)
    one.add(*revisions[0])
    other = tallyfold.Ledger(path)
    one.push("otlp", OTLP, transport=target)
    with pytest.raises(BlockingIOError, match="since it was read"):
        other.push("otlp", OTLP, transport=target)
    assert len(target.times) == 1
    refused: list[object] = []

    def handle(request: httpx2.Request) -> httpx2.Response:
        # Others may add meanwhile, but not push.
        one.add(*revisions[1])
        with pytest.raises(tallyfold.ConfigError) as error:
            one.push("otlp", OTLP, transport=target)
        refused.append(error.value.code)
        return target.handle_request(request)

    one.push("otlp", OTLP, transport=httpx2.MockTransport(handle))
    assert refused == ["out_of_order"]
    one.push("otlp", OTLP, transport=target)
    assert len(target.times) == 3


# The collector closes a file that an interrupt has left open.
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize("work", ["add", "push"])
def test_an_interrupt_at_any_moment_keeps_nobody_out(
    work: str, revisions: Any, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # None of the hundreds of files has to survive a power failure.
    monkeypatch.setattr(os, "fsync", lambda _: None)
    for position in itertools.count():
        path, target = tmp_path / f"{position}.json", Target()
        ledger = tallyfold.Ledger(path)
        if work == "push":
            ledger.add(*revisions[0])
        try:
            with interrupting_at(position):
                if work == "add":
                    ledger.add(*revisions[0])
                else:
                    ledger.push("otlp", OTLP, transport=target)
        except KeyboardInterrupt:
            # The frames of the interrupted call still exist here.
            if ledger.state is None:
                ledger.add(*revisions[0])
            ledger.push("otlp", OTLP, transport=target)
            again = tallyfold.Ledger(path)
            assert again.state == revisions[0][1]
            again.add(*revisions[1])
            again.push("otlp", OTLP, transport=target)
            assert target.totals[-1]["a", "success"] == 3
            assert sorted(target.times) == target.times
            assert list(tmp_path.iterdir()) == [path]
            path.unlink()
        else:
            assert position > 100
            return


def test_totals_of_an_older_file_go_on_from_there(
    revisions: list[tuple[tallyfold.Revision, str]], tmp_path: pathlib.Path
) -> None:
    path, target = tmp_path / "totals.json", Target()
    ledger = tallyfold.Ledger(path)
    ledger.add(*revisions[0])
    older = path.read_bytes()
    ledger.add(*revisions[1])
    ledger.push("otlp", OTLP, transport=target)
    # A process that runs notices that its file was replaced.
    path.unlink()
    path.write_bytes(older)
    with pytest.raises(BlockingIOError, match="written or replaced"):
        ledger.push("otlp", OTLP, transport=target)
    # The next process can't: what it sends is smaller, and has the same start.
    ledger = tallyfold.Ledger(path)
    ledger.push("otlp", OTLP, transport=target)
    ledger.add(*revisions[1])
    ledger.push("otlp", OTLP, transport=target)
    successes = [totals["a", "success"] for totals in target.totals]
    assert successes == [3, 1, 3]
    assert len(set(target.starts)) == 1


def test_labels_beyond_the_limits_of_a_reader_are_warnings(
    revisions: list[tuple[tallyfold.Revision, str]],
) -> None:
    ledger = tallyfold.Ledger()
    ledger.add(*revisions[0])
    for labels, kind in [
        ({f"label_{number}": "x" for number in range(40)}, tallyfold.LabelLimitWarning),
        ({"own": "x" * 4097}, tallyfold.LongValueWarning),
    ]:
        with pytest.warns(kind, match="VictoriaMetrics"):
            ledger.push("otlp", OTLP, labels, transport=Target())
