"""A simulated week of a service whose counts come late and are corrected, read by a follow in virtual time."""

import json
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime

import tallyfold
from servers import COUNTS, Counts, Group, Sums

DIMENSIONS: tuple[tallyfold.DimensionName, ...] = ("integration", "reason", "write_key")
STEM = "tallyfold_event_delivery_by_integration_reason_write_key"
QUARTER_MS = 15 * 60_000
#: A Monday. The week is over, whatever the clock says: VictoriaMetrics refuses what is in the future.
START_MS = 1_736_121_600_000
WINDOWS = 7 * 96
#: The service takes back errors that a later try made good, that long after the end of a window.
CORRECTED_MS = 30 * 60_000

#: Some have what text formats must escape.
INTEGRATIONS = (
    "warehouse",
    'a "quoted", one',
    "back\\slash\\",
    "größe = 😀 100%",
    "two\nlines",
    "email",
)
REASONS = ("playbook <b>", "consent|denied", "sampling #2, kept=no")
WRITE_KEYS = ("web", "ios", "server side")


@dataclass(frozen=True)
class Event:
    """Events of one group in one window."""

    comes_ms: int
    """When the service hears of them."""
    at_ms: int
    first: tallyfold.CountName
    """What became of them, as the service says at first."""
    last: tallyfold.CountName
    """And what it says in the end."""
    group: Group
    count: int


def events(seed: int, windows: int = WINDOWS) -> list[Event]:
    """Draws a week, in the order in which the service hears of it."""
    draw = random.Random(seed)
    drawn = []
    for number in range(windows):
        start = START_MS + number * QUARTER_MS
        for _ in range(draw.randrange(16, 40)):
            at = start + draw.randrange(QUARTER_MS)
            last = draw.choices(COUNTS, (8, 2, 2))[0]
            is_corrected = last == "success" and draw.random() < 0.15
            late = draw.choices((0, 12, 25, 35), (70, 15, 10, 5))[0] * 60_000
            reason = draw.choice(REASONS) if last == "filtered" else ""
            drawn.append(
                Event(
                    comes_ms=at + late,
                    at_ms=at,
                    first="errors" if is_corrected else last,
                    last=last,
                    group=(draw.choice(INTEGRATIONS), reason, draw.choice(WRITE_KEYS)),
                    count=2**40 + 1 if draw.random() < 0.02 else draw.randrange(1, 5000),
                )
            )
    return sorted(drawn, key=lambda event: (event.comes_ms, event.at_ms))


class Service:
    """A service that hears of events late, and takes errors back: two sandboxes, of which one answers."""

    def __init__(self, drawn: list[Event]) -> None:
        self._first, self.last = tallyfold.Sandbox(), tallyfold.Sandbox()
        self._coming = drawn
        self._heard = 0

    def machine(self) -> tallyfold.Machine:
        """Gives a client's machine of it."""
        return tallyfold.Machine(cluster_endpoint="https://service.example", **self.last.credentials)

    def hear(self, now_ms: int) -> None:
        """Lets come what has come by now."""
        while self._heard < len(self._coming) and self._coming[self._heard].comes_ms <= now_ms:
            event = self._coming[self._heard]
            self._heard += 1
            integration, reason, write_key = event.group
            for sandbox, outcome in (self._first, event.first), (self.last, event.last):
                sandbox.record(
                    text(event.at_ms),
                    outcome,
                    event_name="Order Completed",
                    write_key=write_key,
                    integration=integration,
                    reason=reason,
                    count=event.count,
                )

    def answer(self, call: tallyfold.Call[tallyfold.CountTable], now: tallyfold.Now) -> None:
        """Drives a call to its end, at that moment."""
        while True:
            match call.step(now):
                case tallyfold.Send(request=request):
                    parts = request.method, request.url.removeprefix("https://service.example")
                    asked = [sandbox.handle(*parts, request.headers, request.body or b"", now) for sandbox in (self._first, self.last)]
                    body = json.loads(request.body or b"{}")
                    end = body.get("end")
                    is_first = end is not None and now.unix_ms < ms(end) + CORRECTED_MS
                    # Both gave out the same token, as each counts its own.
                    assert end is not None or asked[0].body == asked[1].body
                    answer = asked[0] if is_first else asked[1]
                    assert answer.status == 200, (answer.status, answer.body)
                    call.head(answer.status, answer.headers)
                    call.chunk(answer.body)
                    call.end()
                case tallyfold.Done():
                    return
                case step:
                    raise AssertionError(step)


class Clock:
    """A time of the tests' own, which only waiting moves. It begins where a follow ended that left this state."""

    def __init__(self, state: str | None = None) -> None:
        self._passed_ms = 0
        if state is not None:
            reached = json.loads(state)
            begun_ms = [datetime.fromisoformat(reached["next"]).timestamp() * 1000, *map(int, reached["read_ms"])]
            self._passed_ms = max(0, int(max(begun_ms)) - START_MS)

    def now(self) -> tallyfold.Now:
        return tallyfold.Now(self._passed_ms, START_MS + self._passed_ms)

    def wait(self, wait_ms: int) -> None:
        self._passed_ms += wait_ms


class FastClock(Clock):
    """The host's time, but many times as fast, for processes that follow the same week one after the other."""

    def __init__(self, began: float, speed: float) -> None:
        self._began = began
        self._speed = speed

    def now(self) -> tallyfold.Now:
        passed_ms = int((time.time() - self._began) * self._speed * 1000)
        return tallyfold.Now(passed_ms, START_MS + passed_ms)

    def wait(self, wait_ms: int) -> None:
        time.sleep(wait_ms / 1000 / self._speed)


def follow(
    service: Service,
    *,
    windows: int = WINDOWS,
    state: str | None = None,
    clock: Clock | None = None,
) -> Iterator[tuple[tallyfold.Revision, str]]:
    """Follows the service in virtual time. Gives each revision, and the state of the follow after it."""
    clock = clock or Clock(state)
    machine = service.machine()
    following = machine.follow(
        "event_delivery",
        text(START_MS),
        DIMENSIONS,
        window="15m",
        end=text(START_MS + windows * QUARTER_MS),
        reread=20 * 60,
        settle=40 * 60,
        state=state,
    )
    while True:
        now = clock.now()
        match following.next(now):
            case tallyfold.Wait(ms=wait_ms):
                clock.wait(wait_ms)
            case tallyfold.Drive() as drive:
                service.hear(now.unix_ms)
                service.answer(drive.call, now)
                revision = following.settle(drive.task, drive.call, now)
                assert revision is not None
                yield revision, following.state()
            case tallyfold.Done():
                return
            case step:
                raise AssertionError(step)


@dataclass
class Truth:
    """What the service has said last of each window."""

    windows: dict[int, Sums] = field(default_factory=dict)
    sums: Sums = field(default_factory=dict)

    def add(self, revision: tallyfold.Revision) -> None:
        """Takes the table of a revision in place of the window's last one."""
        start = ms(revision.window.start_text)
        for group, counts in self.windows.get(start, {}).items():
            self._change(group, counts, -1)
        of_window = {row.values: counts_of(row) for row in revision.table}
        for group, counts in of_window.items():
            self._change(group, counts, 1)
        self.windows[start] = {group: counts for group, counts in of_window.items() if any(counts)}

    def _change(self, group: Group, counts: Counts, sign: int) -> None:
        before = self.sums.pop(group, (0, 0, 0))
        after = tuple(old + sign * new for old, new in zip(before, counts, strict=True))
        if any(after):
            self.sums[group] = after  # type: ignore[assignment]


def drawn_sums(drawn: list[Event]) -> Sums:
    """Gives what the week must come to in the end."""
    sums: dict[Group, list[int]] = {}
    for event in drawn:
        of_group = sums.setdefault(event.group, [0, 0, 0])
        of_group[COUNTS.index(event.last)] += event.count
    return {group: tuple(counts) for group, counts in sums.items()}  # type: ignore[misc]


def counts_of(row: tallyfold.Row | tallyfold.SeriesRow | tallyfold.Counts) -> Counts:
    return row.success, row.errors, row.filtered


def text(unix_ms: int) -> str:
    moment = datetime.fromtimestamp(unix_ms // 1000, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{unix_ms % 1000:03}Z"


def ms(instant: str) -> int:
    return round(datetime.fromisoformat(instant).timestamp() * 1000)
