"""A month of five clusters in a time of the tests' own, in which everything goes wrong.

Events come late, the service is down now and then, the computer's clock jumps, and each job is
killed about every hour, at any of the operations that leave the process. What the jobs have counted
in the end is the truth, to the last digit.
"""

import asyncio
import bisect
import os
import random
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from email.utils import formatdate
from pathlib import Path
from typing import Any

import httpx2
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from support import ADDRESS, record

import tallyfold
from tallyfold._calls import async_driver
from tallyfold._export import async_sender, sender
from tallyfold._files import file
from tallyfold._http.stop import Stop

SEED = int(os.environ.get("SOAK_SEED", "20260101"))
START, END = "2026-01-01T00:00:00Z", "2026-01-31T00:00:00Z"
START_MS = 1_767_225_600_000
MINUTE, HOUR = 60_000, 3_600_000
HOURS = 720
WINDOW = "2h"
DIMENSIONS: list[tallyfold.DimensionName] = ["integration"]
INTEGRATIONS = ("email", "push", "CRM")
COUNTS: tuple[tallyfold.CountName, ...] = ("success", "errors", "filtered")
JUMPS = (-26 * HOUR, -2 * HOUR, -3 * MINUTE, 4 * MINUTE, HOUR, 3 * HOUR, 50 * HOUR)

pytestmark = [
    pytest.mark.filterwarnings("ignore::tallyfold.ClockWarning"),
    # A busy machine takes several times as long as others.
    pytest.mark.timeout(900),
]

Sums = Counter[tuple[str, str]]


class Killed(BaseException):
    """Ends a process: from then on it does nothing that others could see."""


class World(httpx2.BaseTransport, httpx2.AsyncBaseTransport):
    """A cluster, the network, the disk and the clocks of one job."""

    def __init__(self, seed: int) -> None:
        print(f"SOAK_SEED={SEED}")
        self.draw = random.Random(seed)
        self.sandbox = tallyfold.Sandbox()
        self.truth = Sums()
        self.points: dict[tuple[str, str], str] = {}
        """What a receiver of lines for InfluxDB keeps."""
        self.ms = 0
        """Milliseconds since the start of the month, by a clock that is right."""
        self.is_dead = False
        self.kills = self.refusals = 0
        self._left: int | None = None
        """How many operations the process has left, once its kill is due."""
        self._lock = threading.RLock()
        self._next_kill = 0
        self._set_kill()
        self._events = sorted((self._event() for _ in range(HOURS * 4)), key=lambda event: event[0])
        starts = sorted(self.draw.sample(range(HOURS), 30))
        self._outages = [
            (start * HOUR, start * HOUR + self.draw.randrange(90 * MINUTE)) for start in starts
        ]
        jumps = sorted(self.draw.sample(range(HOURS), 40))
        self._jumps = [(0, 0)]
        for number, jump in enumerate(jumps):
            # Each second one sets the clock right.
            wrong = self.draw.choice(JUMPS) if number % 2 == 0 else 0
            self._jumps.append((jump * HOUR + self.draw.randrange(HOUR), wrong))

    def _event(self) -> tuple[int, Callable[[], None]]:
        at = self.draw.randrange(HOURS * HOUR) // 1000 * 1000
        name, outcome = self.draw.choice(INTEGRATIONS), self.draw.choice(COUNTS)
        count = self.draw.randrange(1, 1000)
        self.truth[name, outcome] += count
        time = datetime.fromtimestamp((START_MS + at) / 1000, UTC)
        text = f"{time:%Y-%m-%dT%H:%M:%SZ}"

        def happen() -> None:
            record(self.sandbox, outcome, name, count=count, at=text)

        return at + self.draw.randrange(59 * MINUTE), happen

    # The clocks.

    def now(self) -> tallyfold.Now:
        """What the computer believes."""
        _, wrong = self._jumps[bisect.bisect_right(self._jumps, (self.ms, 10**12)) - 1]
        return tallyfold.Now(self.ms, START_MS + self.ms + wrong)

    def wait(self, seconds: float) -> None:
        with self._lock:
            self.operation()
            self._pass(round(seconds * 1000))

    def _pass(self, ms: int) -> None:
        self.ms += ms
        while self._events and self._events[0][0] <= self.ms:
            self._events.pop(0)[1]()

    # The end of processes.

    def operation(self) -> None:
        """Something that others could see. It may be the last of a process."""
        with self._lock:
            if self._left is None and self.ms >= self._next_kill:
                self._left = self.draw.randrange(12)
            if self._left is not None and not self.is_dead:
                self._left -= 1
                self.is_dead = self._left < 0
            if self.is_dead:
                raise Killed

    def _set_kill(self) -> None:
        self._next_kill = self.ms + 30 * MINUTE + self.draw.randrange(HOUR)

    def restart(self) -> None:
        with self._lock:
            self.kills += 1
            self.is_dead, self._left = False, None
            self._pass(self.draw.randrange(2 * MINUTE))
            self._set_kill()

    # The network.

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        self.operation()
        with self._lock:
            self._pass(self.draw.randrange(3000))
            answer = self._answer(request)
        self.operation()
        return answer

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        await asyncio.sleep(0)
        return self.handle_request(request)

    def _answer(self, request: httpx2.Request) -> httpx2.Response:
        if any(start <= self.ms < end for start, end in self._outages):
            if self.draw.random() < 0.5:
                raise httpx2.ConnectError("refused", request=request)
            return httpx2.Response(503, content=b"")
        content = request.read()
        if request.url.path == "/write":
            for line in content.decode().splitlines():
                series, fields, at = line.split(" ")
                assert self.points.setdefault((series, at), fields) == fields, "another value"
            return httpx2.Response(204)
        now = tallyfold.Now(self.ms, START_MS + self.ms)
        target = request.url.raw_path.decode("ascii")
        of = self.sandbox.handle(
            request.method, target, request.headers.multi_items(), content, now
        )
        date = "date", formatdate(now.unix_ms // 1000, usegmt=True)
        return httpx2.Response(of.status, headers=[*of.headers, date], content=of.body)

    def received(self) -> Sums:
        sums = Sums()
        for (series, _), fields in self.points.items():
            labels = dict(pair.split("=") for pair in series.split(",")[1:])
            for count, value in (field.split("=") for field in fields.split(",")):
                sums[labels["integration"], count] += int(value.removesuffix("i"))
        return sums

    def client(self) -> tallyfold.Client:
        return tallyfold.Client(
            cluster_endpoint=ADDRESS, transport=self, **self.sandbox.credentials
        )

    def async_client(self) -> tallyfold.AsyncClient:
        return tallyfold.AsyncClient(
            cluster_endpoint=ADDRESS, transport=self, **self.sandbox.credentials
        )

    def run(self, job: Callable[[], object]) -> None:
        """Runs a job until it ends, as a supervisor does."""
        while True:
            try:
                job()
            except Killed:
                self.restart()
            except tallyfold.ConfigError as error:
                if "from the future" not in str(error):
                    raise
                # The clock is a day behind, so what was stored seems to come from there.
                self.refusals += 1
                self.is_dead, self._left = False, None
                self._pass(HOUR)
            else:
                return


@pytest.fixture
def drive(monkeypatch: pytest.MonkeyPatch) -> Callable[[World], None]:
    """Lets clients, iterators and files go by a world."""

    def drive(world: World) -> None:
        async def pause(_: object, seconds: float) -> None:
            world.wait(seconds)
            await asyncio.sleep(0)

        rename = file._rename  # noqa: SLF001

        def killable(new: Path, to: Path) -> None:
            world.operation()
            rename(new, to)
            world.operation()

        monkeypatch.setattr(tallyfold.Now, "read", world.now)
        monkeypatch.setattr(Stop, "wait", lambda _, seconds: world.wait(seconds))
        monkeypatch.setattr(async_driver.AsyncReader, "pause", pause)
        monkeypatch.setattr(async_driver.AsyncDriver, "_pause", pause)
        monkeypatch.setattr(sender.Sender, "pause", lambda _, seconds: world.wait(seconds))
        monkeypatch.setattr(async_sender.AsyncSender, "pause", pause)
        monkeypatch.setattr(file, "_rename", killable)
        # No machine loses its power here.
        monkeypatch.setattr(file, "_sync", lambda opened: opened.flush())
        monkeypatch.setattr(file, "_sync_names", lambda _: None)

    return drive


@pytest.fixture
def folder() -> Iterator[Path]:
    """Gives a directory, in memory where the system has one: a disk would take most of the time."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        yield Path(folder)


QUERY: Any = ("event_delivery", START, DIMENSIONS)
FOLLOW: Any = {"window": WINDOW, "end": END}
Job = Callable[[World, Path], Callable[[], object]]


def ledger(world: World, path: Path) -> Callable[[], object]:
    def job() -> None:
        totals = tallyfold.Ledger(path)
        revisions = world.client().follow(*QUERY, **FOLLOW, state=totals.state)
        for revision in revisions:
            totals.add(revision, revisions.state())

    return job


def async_ledger(world: World, path: Path) -> Callable[[], object]:
    async def main() -> None:
        totals = tallyfold.Ledger(path)
        revisions = world.async_client().follow(*QUERY, **FOLLOW, state=totals.state)
        async for revision in revisions:
            totals.add(revision, revisions.state())

    return lambda: asyncio.run(main())


URL = "http://127.0.0.1:9/write"


def outbox(world: World, path: Path) -> Callable[[], object]:
    def job() -> None:
        held = tallyfold.Outbox(path, "influx")
        held.push(URL, transport=world, patience=7200)
        revisions = world.client().follow(*QUERY, **FOLLOW, state=held.state)
        for revision in revisions:
            held.put(revision, revisions.state())
            held.push(URL, transport=world, patience=7200)

    return job


def async_outbox(world: World, path: Path) -> Callable[[], object]:
    async def main() -> None:
        held = tallyfold.Outbox(path, "influx")
        await held.async_push(URL, transport=world, patience=7200)
        revisions = world.async_client().follow(*QUERY, **FOLLOW, state=held.state)
        async for revision in revisions:
            held.put(revision, revisions.state())
            await held.async_push(URL, transport=world, patience=7200)

    return lambda: asyncio.run(main())


def of_totals(path: Path) -> Sums:
    sums = Sums()
    text = tallyfold.Ledger(path).openmetrics()
    for family in text_string_to_metric_families(text):  # type: ignore[no-untyped-call]
        for sample in family.samples:
            if sample.name.endswith("_total"):
                (count,) = (count for count in COUNTS if count in sample.name)
                sums[sample.labels["integration"], count] += int(sample.value)
    return sums


@pytest.mark.parametrize("number", range(4))
def test_a_month_of_a_follow(number: int, drive: Callable[[World], None], folder: Path) -> None:
    job: Job = [ledger, outbox, async_ledger, async_outbox][number]
    world, path = World(SEED + number), folder / "state.json"
    drive(world)
    world.run(job(world, path))
    found = world.received() if world.points else of_totals(path)
    assert +found == world.truth
    assert world.kills > 200


def test_a_month_of_collects(drive: Callable[[World], None], folder: Path) -> None:
    world = World(SEED + 4)
    drive(world)
    tables: list[tallyfold.CountTable] = []

    def job() -> None:
        client = world.client()
        while not tables or tables[-1].provisional or world.ms < HOURS * HOUR:
            hours = (world.now().unix_ms - START_MS) // HOUR
            end = datetime.fromtimestamp((START_MS + min(hours, HOURS) * HOUR) / 1000, UTC)
            if hours > 0:
                table = client.collect(
                    "event_delivery",
                    START,
                    end,
                    DIMENSIONS,
                    window=WINDOW,
                    concurrency=4,
                    checkpoint=folder / "month",
                    patience=7200,
                )
                tables[:] = [table]
            world.wait(6 * 3600)

    world.run(job)
    (table,) = tables
    found = Sums(
        {
            (row.dimensions["integration"], name): getattr(row, name)
            for row in table
            for name in COUNTS
        }
    )
    assert +found == world.truth
    assert world.kills > 100
