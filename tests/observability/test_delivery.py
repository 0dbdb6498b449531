"""Pushes to receivers that fail, and by processes that are killed: nothing is lost and nothing counts twice."""

import json
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import follower
import httpx2
import pytest
import readers
import tallyfold
import week
from readers import Reader, Samples
from receiver import Datagrams, Exchange, Receiver, accept
from servers import COUNTS, InfluxDB, Prometheus, Server, Sums, VictoriaMetrics
from tallyfold._export.sender import Sender

# A busy machine takes several times as long as others.
pytestmark = pytest.mark.timeout(1800)

WINDOWS = 60
#: Processes that are killed push the revisions of so many.
FEW = 40
END_MS = week.START_MS + WINDOWS * week.QUARTER_MS
READERS: dict[tallyfold.ExportFormat, Reader] = {
    "remote-write": readers.remote_write,
    "remote-write-2": readers.remote_write_2,
    "otlp": readers.otlp,
    "otlp-json": readers.otlp_json,
    "dogstatsd": readers.dogstatsd,
}

#: A receiver of one of the tests takes messages of up to so many bytes: those of two groups, or more.
MOST_BYTES: dict[tallyfold.ExportFormat, int] = {"remote-write": 900, "remote-write-2": 1500, "otlp": 3000, "otlp-json": 6000}

Revisions = list[tallyfold.Revision]
Form = tallyfold.ExportFormat
Push = Callable[..., tallyfold.PushReport]


@pytest.fixture(scope="module")
def revisions() -> list[tallyfold.Revision]:
    """Gives the revisions of 15 hours."""
    drawn = week.events(follower.SEED, WINDOWS)
    return [revision for revision, _ in week.follow(week.Service(drawn), windows=WINDOWS)]


@pytest.fixture(scope="module")
def few() -> Revisions:
    """Gives the revisions that processes push which are killed."""
    drawn = week.events(follower.SEED, FEW)
    return [revision for revision, _ in week.follow(week.Service(drawn), windows=FEW)]


@pytest.fixture
def push(transport: httpx2.HTTPTransport, monkeypatch: pytest.MonkeyPatch) -> Push:
    """Gives a push whose waits take a hundredth of their time."""
    ahead_ms = 0
    read = tallyfold.Now.read

    def now() -> tallyfold.Now:
        real = read()
        return tallyfold.Now(real.monotonic_ms + ahead_ms, real.unix_ms + ahead_ms)

    def pause(_: object, seconds: float) -> None:
        nonlocal ahead_ms
        time.sleep(seconds / 100)
        ahead_ms += round(seconds * 1000)

    monkeypatch.setattr(tallyfold.Now, "read", now)
    monkeypatch.setattr(Sender, "pause", pause)
    return lambda *args, **options: tallyfold.push(*args, **options, transport=transport)


@pytest.fixture(scope="module")
def truth(revisions: list[tallyfold.Revision]) -> Sums:
    """Gives what they come to."""
    truth = week.Truth()
    for revision in revisions:
        truth.add(revision)
    assert truth.sums == week.drawn_sums(week.events(follower.SEED, WINDOWS))
    return truth.sums


def wanted(revisions: Revisions, form: Form) -> Samples:
    """Gives the samples that a receiver must get."""
    found: Samples = {}
    for revision in revisions:
        read = READERS[form](tallyfold.export(revision, form))
        assert not read.keys() & found.keys()
        found |= read
    return found


def sums_of(found: Samples, name: str) -> Sums:
    """Adds samples up by group, as the documented queries do."""
    sums: dict[tuple[str, ...], list[int]] = {}
    for (metric, pairs, _), value in found.items():
        labels = dict(pairs)
        group = tuple(labels.get(dimension, "") for dimension in week.DIMENSIONS)
        (position,) = (place for place, count in enumerate(COUNTS) if metric == name.format(count))
        sums.setdefault(group, [0, 0, 0])[position] += value
    return {group: tuple(of) for group, of in sums.items() if any(of)}  # type: ignore[misc]


#: Processes that push are killed so often, each within so many revisions.
KILLS, KILLED_WITHIN = 16, 8


class Trouble:
    """A receiver's fate that is drawn for each message. With `unsure`, nobody can know what became of some."""

    def __init__(self, form: Form, seed: int, *, unsure: bool) -> None:
        self._most_bytes = MOST_BYTES[form]
        self._yes = 200 if form.startswith("otlp") else 204
        self._draw = random.Random(seed)
        self._unsure = unsure
        self.asked_until = 0.0
        self.met: set[str] = set()
        self.early: list[float] = []
        self._lock = threading.Lock()

    def __call__(self, exchange: Exchange) -> None:
        with self._lock:
            kinds = ["taken"] * 8 + ["429", "429 for long", "503"]
            if self._unsure:
                kinds += ["502 though taken", "slow", "reset", "reset though taken"]
            kind = self._draw.choice(kinds)
            # A wait that the receiver asked for is waited for: 100 times as fast as usual.
            if time.monotonic() < self.asked_until:
                self.early.append(self.asked_until - time.monotonic())
        if len(exchange.body) > self._most_bytes:
            kind = "413"
        self.met.add(kind)
        if "taken" in kind or kind == "slow":
            exchange.take()
        match kind:
            case "taken":
                exchange.answer(self._yes)
            case "429" | "503" | "413":
                exchange.answer(int(kind))
            case "429 for long":
                self.asked_until = time.monotonic() + 0.05
                exchange.answer(429, retry_after="5")
            case "502 though taken":
                exchange.answer(502)
            case "slow":
                time.sleep(0.2)
                exchange.answer(self._yes)
            case "reset" | "reset though taken":
                exchange.reset()


#: Seconds that slow answers do not keep.
HASTY = 0.1


@pytest.mark.parametrize("form", ["remote-write", "remote-write-2"])
def test_a_receiver_that_fails_in_every_way_has_the_truth(form: Form, revisions: Revisions, truth: Sums, push: Push) -> None:
    trouble = Trouble(form, 5, unsure=True)
    with Receiver(READERS[form], trouble) as receiver:
        retries = 0
        for revision in revisions:
            report = push(revision, form, receiver.url, timeout=HASTY)
            assert report.unsure == 0
            retries += report.retries
    assert len(trouble.met) == 8
    assert retries > 50
    assert not receiver.taken.wrong
    assert receiver.taken.values == wanted(revisions, form)
    assert sums_of(receiver.taken.values, f"{week.STEM}_{{}}_events") == truth
    # It was sent twice, and each time the same.
    assert max(receiver.taken.times.values()) > 1


@pytest.mark.parametrize("guarantee", ["at_most_once", "at_least_once"])
@pytest.mark.parametrize("form", ["otlp", "otlp-json"])
def test_clear_refusals_lose_and_double_nothing(form: Form, guarantee: str, revisions: Revisions, truth: Sums, push: Push) -> None:
    trouble = Trouble(form, 6, unsure=False)
    with Receiver(READERS[form], trouble) as receiver:
        for revision in revisions:
            push(revision, form, receiver.url, guarantee=guarantee)
    assert len(trouble.met) == 5
    assert not trouble.early
    assert set(receiver.taken.times.values()) == {1}
    assert receiver.taken.values == wanted(revisions, form)
    stem = "tallyfold.event_delivery.by_integration_reason_write_key.{}"
    assert sums_of(receiver.taken.values, stem) == truth


@pytest.mark.parametrize("form", ["otlp", "otlp-json"])
def test_guarantees_hold_where_nobody_knows(form: Form, revisions: Revisions, push: Push) -> None:
    every = wanted(revisions, form)
    for guarantee in ("at_most_once", "at_least_once"):
        trouble, unsure = Trouble(form, 8, unsure=True), 0
        with Receiver(READERS[form], trouble) as receiver:
            for revision in revisions:
                try:
                    report = push(revision, form, receiver.url, guarantee=guarantee, timeout=HASTY)
                except tallyfold.ServiceError as error:
                    # What is in doubt is not sent again, and what comes after it stays unsent.
                    assert guarantee == "at_most_once"
                    assert error.report is not None
                    report = error.report
                unsure += report.unsure
        taken = receiver.taken
        assert not taken.wrong
        assert taken.values.items() <= every.items()
        if guarantee == "at_most_once":
            assert set(taken.times.values()) == {1}
            assert len(taken.values) < len(every)
            assert unsure > 0
        else:
            assert taken.values == every
            assert max(taken.times.values()) > 1
            assert unsure == 0


def push_and_kill(form: Form, url: str, outbox: Path, seed: int, **options: Any) -> None:
    """Pushes by processes that are killed at any moment, but for the last one."""
    draw = random.Random(seed)
    command = [sys.executable, follower.__file__, form, url, str(outbox), str(FEW), json.dumps(options)]
    left = 0
    for number in range(KILLS + 1):
        # A revision takes a few milliseconds.
        kill = [str(draw.randrange(KILLED_WITHIN)), str(0.0001 + draw.random() * 0.006)] if number < KILLS else []
        done = subprocess.run([*command, *kill], stdout=subprocess.PIPE, check=False)
        assert done.returncode == (-signal.SIGALRM if kill else 0)
        was_left, *revisions = done.stdout.splitlines()
        left += was_left == b"True"
        # Something is left for the last one.
        assert revisions or kill
    # Some were killed while a revision was stored, but not noted as sent.
    assert left > 1


def test_killed_pushers_bring_real_servers_the_truth(tmp_path: Path, few: Revisions) -> None:
    whole = week.Truth()
    for revision in few:
        whole.add(revision)
    truth = whole.sums
    assert truth == week.drawn_sums(week.events(follower.SEED, FEW))
    prometheus = Prometheus.receiving(tmp_path / "prometheus")
    victoria = VictoriaMetrics(tmp_path / "victoria", "-dedup.minScrapeInterval=1ms")
    influx = InfluxDB(tmp_path / "influx")
    with ExitStack() as stack:
        for number, server in enumerate((prometheus, victoria, influx)):
            stack.enter_context(server.running())
            form: Form = "influx" if server is influx else "remote-write"
            push_and_kill(form, server.write_url, tmp_path / f"outbox-{number}", seed=number)
        for server in (prometheus, victoria):
            assert server.sums(week.STEM, week.DIMENSIONS, "7d", END_MS) == truth
        assert influx.sums(week.STEM, week.DIMENSIONS, week.START_MS, END_MS) == truth


@pytest.mark.parametrize("kind", [Prometheus, InfluxDB])
def test_killed_servers_have_the_truth(kind: type[Server], tmp_path: Path, revisions: Revisions, truth: Sums, push: Push) -> None:
    """Both write down what they take before they answer. VictoriaMetrics does not, so it is not here."""
    server = Prometheus.receiving(tmp_path) if kind is Prometheus else kind(tmp_path)
    assert isinstance(server, Prometheus | InfluxDB)
    form: Form = "remote-write" if kind is Prometheus else "influx"
    kills, retries = 0, 0
    draw = random.Random(4)
    with server.running(), ThreadPoolExecutor(1) as pool:
        for position, revision in enumerate(revisions):
            # A push finds no server, and a server ends while a push is under way.
            is_down = position % 60 == 10
            if is_down:
                server.stop(signal.SIGKILL)
            pushing = pool.submit(push, revision, form, server.write_url, patience=None)
            if is_down or position % 60 == 40:
                time.sleep(draw.random() * 0.01)
                server.stop(signal.SIGKILL)
                kills += 1
                time.sleep(0.05)
                server.start()
            retries += pushing.result().retries
        assert kills == 6
        assert retries > 0
        if isinstance(server, Prometheus):
            assert server.sums(week.STEM, week.DIMENSIONS, "7d", END_MS) == truth
        else:
            assert server.sums(week.STEM, week.DIMENSIONS, week.START_MS, END_MS) == truth


@pytest.fixture(params=["otlp", "otlp-json", "dogstatsd"])
def once(request: pytest.FixtureRequest) -> Iterator[tuple[Form, Receiver | Datagrams]]:
    """Gives a receiver that adds up whatever comes, also twice."""
    form = request.param
    kind = Datagrams if form == "dogstatsd" else Receiver
    with kind(READERS[form]) as receiver:
        yield form, receiver


@pytest.mark.parametrize("guarantee", ["at_most_once", "at_least_once"])
def test_killed_pushers_keep_their_guarantee(
    once: tuple[Form, Receiver | Datagrams],
    guarantee: str,
    tmp_path: Path,
    few: Revisions,
) -> None:
    form, receiver = once
    # Small messages, so that a revision takes many.
    push_and_kill(form, receiver.url, tmp_path / "outbox", 12, guarantee=guarantee, max_bytes=600)
    every, taken = wanted(few, form), receiver.taken
    time.sleep(0.1)
    until = time.monotonic() + 60
    while guarantee == "at_least_once" and taken.values != every and time.monotonic() < until:
        time.sleep(0.1)
    assert not taken.wrong
    assert taken.values.items() <= every.items()
    if guarantee == "at_most_once":
        assert set(taken.times.values()) == {1}
    else:
        assert taken.values == every


def test_influxdb_says_what_it_rejects(tmp_path: Path, revisions: Revisions, push: Push) -> None:
    server = InfluxDB(tmp_path)
    with server.running():
        server.query('CREATE RETENTION POLICY "short" ON "counts" DURATION 1d REPLICATION 1 DEFAULT')
        report = push(revisions[0], "influx", server.write_url)
    (rejected,) = report.rejected
    assert rejected.points
    assert "retention" in rejected.message
    assert report.retries == 0


def test_a_refusal_ends_a_push(push: Push, revisions: Revisions) -> None:
    def refuse(exchange: Exchange) -> None:
        exchange.answer(400)

    with Receiver(readers.remote_write, refuse) as receiver:
        with pytest.raises(tallyfold.ServiceError) as caught:
            push(revisions[0], "remote-write", receiver.url)
        assert caught.value.code == "unexpected_status"
        assert len(receiver.arrivals) == 1
        receiver.fate = accept
        push(revisions[0], "remote-write", receiver.url)
    assert receiver.taken.values
