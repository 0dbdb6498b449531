"""Pushes to receivers that fail, and by processes that are killed: nothing is lost and nothing counts twice."""

import random
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import readers
import tallyfold
import week
from pusher import Pusher, Refused, changes_of, pushed
from readers import Reader, Samples
from receiver import Datagrams, Exchange, Receiver, accept
from servers import COUNTS, InfluxDB, Prometheus, Server, Sums, VictoriaMetrics

WINDOWS = 60
END_MS = week.START_MS + WINDOWS * week.QUARTER_MS
OUT_OF_ORDER = "storage:\n  tsdb:\n    out_of_order_time_window: 2h\n"
READERS: dict[str, Reader] = {
    "remote-write": readers.remote_write,
    "remote-write-2": readers.remote_write_2,
    "otlp": readers.otlp,
    "otlp-json": readers.otlp_json,
    "dogstatsd": readers.dogstatsd,
}

#: A receiver of one of the tests takes messages of up to so many bytes: those of two groups, or more.
MOST_BYTES = {"remote-write": 900, "remote-write-2": 1500, "otlp": 3000, "otlp-json": 6000}

Changes = dict[str, object]


@pytest.fixture(scope="module")
def revisions() -> list[tallyfold.Revision]:
    """Gives the revisions of 15 hours."""
    drawn = week.events(seed=3, windows=WINDOWS)
    return [revision for revision, _ in week.follow(week.Service(drawn), windows=WINDOWS)]


@pytest.fixture(scope="module")
def changes(revisions: list[tallyfold.Revision]) -> list[Changes]:
    """Gives their changes."""
    return [changes_of(revision) for revision in revisions]


@pytest.fixture(scope="module")
def truth(revisions: list[tallyfold.Revision]) -> Sums:
    """Gives what they come to."""
    truth = week.Truth()
    for revision in revisions:
        truth.add(revision)
    assert truth.sums == week.drawn_sums(week.events(seed=3, windows=WINDOWS))
    return truth.sums


def wanted(changes: list[Changes], form: str) -> Samples:
    """Gives the samples that a receiver must get."""
    with Pusher() as pusher:
        found: Samples = {}
        for one in changes:
            read = READERS[form](pusher.export(one, form))
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


class Trouble:
    """A receiver's fate that is drawn for each message. With `unsure`, nobody can know what became of some."""

    def __init__(self, form: str, seed: int, *, unsure: bool) -> None:
        self._most_bytes = MOST_BYTES[form]
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
                exchange.answer(204)
            case "429" | "503" | "413":
                exchange.answer(int(kind))
            case "429 for long":
                self.asked_until = time.monotonic() + 0.05
                exchange.answer(429, retry_after="5")
            case "502 though taken":
                exchange.answer(502)
            case "slow":
                time.sleep(0.2)
                exchange.answer(204)
            case "reset" | "reset though taken":
                exchange.reset()


#: The waits of a push take a hundredth of their time here.
FAST = {"speed": 100.0, "timeout_ms": 10_000}
#: With a limit that slow answers do not keep.
HASTY = {"speed": 100.0, "timeout_ms": 100}


@pytest.mark.parametrize("form", ["remote-write", "remote-write-2"])
def test_a_receiver_that_fails_in_every_way_has_the_truth(form: str, changes: list[Changes], truth: Sums, pusher: Pusher) -> None:
    trouble = Trouble(form, 5, unsure=True)
    with Receiver(READERS[form], trouble) as receiver:
        retries = 0
        for one in changes:
            report = pusher.push(one, form, receiver.url, **HASTY)["report"]
            assert report["unsure"] == 0
            retries += report["retries"]
    assert len(trouble.met) == 8
    assert not trouble.early
    assert retries > 50
    assert not receiver.taken.wrong
    assert receiver.taken.values == wanted(changes, form)
    assert sums_of(receiver.taken.values, f"{week.STEM}_{{}}_events") == truth
    # It was sent twice, and each time the same.
    assert max(receiver.taken.times.values()) > 1


@pytest.mark.parametrize("guarantee", ["at_most_once", "at_least_once"])
@pytest.mark.parametrize("form", ["otlp", "otlp-json"])
def test_clear_refusals_lose_and_double_nothing(form: str, guarantee: str, changes: list[Changes], truth: Sums, pusher: Pusher) -> None:
    trouble = Trouble(form, 6, unsure=False)
    with Receiver(READERS[form], trouble) as receiver:
        for one in changes:
            pusher.push(one, form, receiver.url, guarantee=guarantee, **FAST)
    assert len(trouble.met) == 5
    assert not trouble.early
    assert set(receiver.taken.times.values()) == {1}
    assert receiver.taken.values == wanted(changes, form)
    stem = "tallyfold.event_delivery.by_integration_reason_write_key.{}"
    assert sums_of(receiver.taken.values, stem) == truth


@pytest.mark.parametrize("form", ["otlp", "otlp-json"])
def test_guarantees_hold_where_nobody_knows(form: str, changes: list[Changes], pusher: Pusher) -> None:
    every = wanted(changes, form)
    for guarantee in ("at_most_once", "at_least_once"):
        trouble, unsure = Trouble(form, 8, unsure=True), 0
        with Receiver(READERS[form], trouble) as receiver:
            for one in changes:
                try:
                    answer = pusher.push(one, form, receiver.url, guarantee=guarantee, **HASTY)
                except Refused as refused:
                    # What is in doubt is not sent again, and what comes after it stays unsent.
                    assert guarantee == "at_most_once"
                    answer = refused.answer
                unsure += answer["report"]["unsure"]
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


def push_and_kill(changes: list[Changes], form: str, url: str, outbox: Path, seed: int, **target: Any) -> int:
    """Pushes by processes that are killed at any moment. Gives how often one left something to send."""
    draw = random.Random(seed)
    pusher = Pusher()
    place, left, usual = 0, 0, 0.01
    try:
        while place < len(changes):
            began = time.monotonic()
            order = pushed(changes[place], form, url, outbox=outbox, state=str(place + 1), **target)
            pusher.begin(**order)
            if draw.random() < 0.3:
                time.sleep(draw.random() * usual)
                pusher.kill()
                pusher = Pusher()
                # What is left goes first. Then the follow goes on after the newest state that is stored.
                left += b'"pending":null' not in (outbox.read_bytes() if outbox.exists() else b"")
                answer = pusher.push(None, form, url, outbox=outbox, **target)
                place = int(answer["state"] or 0)
            else:
                assert pusher.end()["state"] == str(place + 1)
                usual = 0.8 * usual + 0.3 * (time.monotonic() - began)
                place += 1
    finally:
        pusher.kill()
    return left


def test_killed_pushers_bring_real_servers_the_truth(tmp_path: Path, changes: list[Changes], truth: Sums) -> None:
    prometheus = Prometheus(tmp_path / "prometheus", OUT_OF_ORDER, "--web.enable-remote-write-receiver")
    victoria = VictoriaMetrics(tmp_path / "victoria", "-dedup.minScrapeInterval=1ms")
    influx = InfluxDB(tmp_path / "influx")
    with ExitStack() as stack:
        for number, server in enumerate((prometheus, victoria, influx)):
            stack.enter_context(server.running())
            form = "influx" if server is influx else "remote-write"
            outbox = tmp_path / f"outbox-{number}"
            assert push_and_kill(changes, form, server.write_url, outbox, seed=number) > 10
        for server in (prometheus, victoria):
            assert server.sums(week.STEM, week.DIMENSIONS, "7d", END_MS) == truth
        assert influx.sums(week.STEM, week.DIMENSIONS, week.START_MS, END_MS) == truth


@pytest.mark.parametrize("kind", [Prometheus, InfluxDB])
def test_killed_servers_have_the_truth(kind: type[Server], tmp_path: Path, changes: list[Changes], truth: Sums, pusher: Pusher) -> None:
    """Both write down what they take before they answer. VictoriaMetrics does not, so it is not here."""
    options = (OUT_OF_ORDER, "--web.enable-remote-write-receiver") if kind is Prometheus else ()
    server = kind(tmp_path, *options)
    assert isinstance(server, Prometheus | InfluxDB)
    form = "remote-write" if kind is Prometheus else "influx"
    kills, retries = 0, 0
    draw = random.Random(4)
    with server.running():
        for position, one in enumerate(changes):
            order = pushed(one, form, server.write_url, speed=20.0, timeout_ms=5000)
            if position % 36 == 20:
                pusher.begin(**order)
                time.sleep(draw.random() * 0.01)
                server.stop(signal.SIGKILL)
                kills += 1
                time.sleep(0.1)
                server.start()
                retries += pusher.end()["report"]["retries"]
            else:
                retries += pusher.order(**order)["report"]["retries"]
        assert kills >= 4
        if isinstance(server, Prometheus):
            assert server.sums(week.STEM, week.DIMENSIONS, "7d", END_MS) == truth
        else:
            assert server.sums(week.STEM, week.DIMENSIONS, week.START_MS, END_MS) == truth


@pytest.fixture(params=["otlp", "otlp-json", "dogstatsd"])
def once(request: pytest.FixtureRequest) -> Iterator[tuple[str, Receiver | Datagrams]]:
    """Gives a receiver that adds up whatever comes, also twice."""
    form = request.param
    kind = Datagrams if form == "dogstatsd" else Receiver
    with kind(READERS[form]) as receiver:
        yield form, receiver


@pytest.mark.parametrize("guarantee", ["at_most_once", "at_least_once"])
def test_killed_pushers_keep_their_guarantee(
    once: tuple[str, Receiver | Datagrams],
    guarantee: str,
    tmp_path: Path,
    changes: list[Changes],
) -> None:
    form, receiver = once
    few = changes[:90]
    left = push_and_kill(few, form, receiver.url, tmp_path / "outbox", seed=12, guarantee=guarantee, max_bytes=600)
    assert left > 5
    every, taken = wanted(few, form), receiver.taken
    time.sleep(0.1)
    assert not taken.wrong
    assert taken.values.items() <= every.items()
    if guarantee == "at_most_once":
        assert set(taken.times.values()) == {1}
    else:
        assert taken.values == every


def test_influxdb_says_what_it_rejects(tmp_path: Path, changes: list[Changes], pusher: Pusher) -> None:
    server = InfluxDB(tmp_path)
    with server.running():
        server.query('CREATE RETENTION POLICY "short" ON "counts" DURATION 1d REPLICATION 1 DEFAULT')
        report = pusher.push(changes[0], "influx", server.write_url)["report"]
    (rejected,) = report["rejected"]
    assert rejected["points"] > 0
    assert "retention" in rejected["message"]
    assert report["retries"] == 0


def test_a_refusal_ends_a_push(pusher: Pusher, changes: list[Changes]) -> None:
    def refuse(exchange: Exchange) -> None:
        exchange.answer(400)

    with Receiver(readers.remote_write, refuse) as receiver:
        with pytest.raises(Refused) as caught:
            pusher.push(changes[0], "remote-write", receiver.url)
        assert caught.value.code == "unexpected_status"
        assert len(receiver.arrivals) == 1
        receiver.fate = accept
        pusher.push(changes[0], "remote-write", receiver.url)
    assert receiver.taken.values
