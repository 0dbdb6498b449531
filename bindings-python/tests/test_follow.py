"""Windows as they close, in a time of the tests' own."""

import asyncio
import contextlib
import itertools
import random
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import httpx2
import pytest
from clock import Clock
from service import Service, answer, busy_day, other_tasks
from support import interrupting, record

import tallyfold

START, LATER = "2026-01-01T00:00:00Z", "2026-01-01T00:15:00Z"
START_MS = 1_767_225_600_000
DIMENSIONS: list[tallyfold.DimensionName] = ["integration"]
SIX_HOURS = START, "2026-01-01T06:00:00Z"


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Gives the time that clients, the sandbox and iterators go by."""
    clock = Clock(START_MS)
    clock.drive(monkeypatch)
    return clock


def late_events(sandbox: tallyfold.Sandbox, clock: Clock) -> int:
    """Lets an event come every minute of six hours, each third one up to 40 minutes late."""
    total = 0
    for minute in range(6 * 60):
        at = f"2026-01-01T{minute // 60:02}:{minute % 60:02}:30Z"
        comes = (minute + 1) * 60_000 + (minute * 7 % 40 * 60_000 if minute % 3 == 0 else 0)
        count = minute % 5 + 1
        total += count

        def happen(at: str = at, count: int = count, name: str = str(minute % 4)) -> None:
            record(sandbox, "success", name, count=count, at=at)

        clock.events.append((comes, happen))
    clock.events.sort(key=lambda event: event[0])
    return total


class Sums:
    """A running sum of changes, next to the newest table of each window."""

    def __init__(self) -> None:
        self.sum: Counter[str] = Counter()
        self.tables: dict[str, tallyfold.CountTable] = {}
        self.settled: list[str] = []
        self.revisions: Counter[str] = Counter()

    def add(self, revision: tallyfold.Revision) -> None:
        for row in revision.changes:
            self.sum[row.dimensions["integration"]] += row.delta.success
        self.tables[revision.window.start_text] = revision.table
        if revision.settled:
            self.settled.append(revision.window.start_text)
        assert revision.number == self.revisions[revision.window.start_text]
        self.revisions[revision.window.start_text] += 1
        assert +self.sum == self.newest()

    def newest(self) -> Counter[str]:
        newest: Counter[str] = Counter()
        for table in self.tables.values():
            for row in table:
                newest[row.dimensions["integration"]] += row.success
        return newest


OPTIONS: dict[str, Any] = {"window": "15m", "end": "2026-01-01T06:00:00Z"}


def check_end(sums: Sums, service: Service, total: int) -> None:
    assert sum(sums.sum.values()) == total
    assert len(sums.settled) == len(set(sums.settled)) == 24
    with service.client() as client:
        whole = client.event_delivery(START, OPTIONS["end"], DIMENSIONS)
    assert {row.dimensions["integration"]: row.success for row in whole} == sums.sum
    assert len(service.asked) > 24 * 2


def test_a_running_sum_is_the_newest_truth(clock: Clock) -> None:
    service, sums = Service(tallyfold.Sandbox()), Sums()
    total = late_events(service.sandbox, clock)
    with service.client() as client:
        for revision in client.follow("event_delivery", START, DIMENSIONS, **OPTIONS, reread=2700):
            sums.add(revision)
    check_end(sums, service, total)


def quiet_day(sandbox: tallyfold.Sandbox, clock: Clock) -> int:
    """Lets 1,976 events of a day come up to 59 minutes late."""
    draw = random.Random(1976)
    for _ in range(1976):
        ms = draw.randrange(86_400_000)
        at = f"2026-01-01T{ms // 3_600_000:02}:{ms // 60_000 % 60:02}:{ms // 1000 % 60:02}Z"

        def happen(at: str = at) -> None:
            record(sandbox, "success", "email", count=1, at=at)

        clock.events.append((ms + draw.randrange(59 * 60_000), happen))
    clock.events.sort(key=lambda event: event[0])
    return 1976


def test_a_quiet_day_with_late_events_gives_the_truth(clock: Clock) -> None:
    service, day = Service(tallyfold.Sandbox()), {**OPTIONS, "end": "2026-01-02T00:00:00Z"}
    total = quiet_day(service.sandbox, clock)
    with service.client() as client:
        revisions = list(client.follow("event_delivery", START, DIMENSIONS, **day))
    assert sum(revision.changes.total_delta.success for revision in revisions) == total
    assert sum(revision.settled for revision in revisions) == 96


def test_a_window_settles_early_only_if_asked_to(clock: Clock) -> None:
    service, day = Service(tallyfold.Sandbox()), {**OPTIONS, "end": "2026-01-02T00:00:00Z"}
    total = quiet_day(service.sandbox, clock)
    with service.client() as client:
        revisions = list(
            client.follow("event_delivery", START, DIMENSIONS, **day, settle_when_unchanged=True)
        )
    assert sum(revision.changes.total_delta.success for revision in revisions) < total
    assert len(revisions) < 5 * 96


def test_a_clock_that_is_ahead_settles_nothing(clock: Clock) -> None:
    service = Service(tallyfold.Sandbox())
    # The service's clock is three hours behind this machine's.
    service.sandbox.inject("date", milliseconds=3 * 3_600_000, every=1)
    seen: list[tallyfold.Attempt] = []
    clock.ms = 5 * 3_600_000
    with service.client(on_attempt=seen.append) as client:
        revisions = client.follow("event_delivery", START, DIMENSIONS, window="1h")
        with pytest.warns(tallyfold.ClockWarning, match="180 min ahead of the service's"):
            first = next(revisions)
        second = next(revisions)
        assert first.settled
        assert not second.settled
        # By the service's clock, the next one ends in an hour. Clocks may differ by a minute.
        third = next(revisions)
        assert third.window.start_text == "2026-01-01T02:00:00Z"
        assert clock.ms >= (5 * 60 + 59) * 60_000
        state = revisions.state()
    clocks = [attempt.clock for attempt in seen]
    assert all(clock is not None and clock.is_alarming for clock in clocks)
    assert clocks[0] is not None
    assert clocks[0].ahead == 3 * 3600
    clock.ms = 0
    with service.client() as client, pytest.raises(tallyfold.ConfigError) as caught:
        next(client.follow("event_delivery", START, DIMENSIONS, window="1h", state=state))
    assert caught.value.argument == "state"
    assert "from the future" in str(caught.value)


def test_a_clock_that_is_ahead_freezes_no_checkpoint(clock: Clock, tmp_path: Path) -> None:
    service = Service(busy_day())
    service.sandbox.inject("date", milliseconds=3_600_000, every=1)
    clock.ms = 6 * 3_600_000
    query: Any = ("event_delivery", START, "2026-01-01T05:00:00Z", DIMENSIONS)
    with service.client() as client:
        with pytest.warns(tallyfold.ClockWarning):
            table = client.collect(*query, checkpoint=tmp_path / "hours")
        assert len(table.provisional) == 4
        asked = len(service.asked)
        record(service.sandbox, "success", "late", count=1, at="2026-01-01T04:59:00Z")
        again = client.collect(*query, checkpoint=tmp_path / "hours")
    assert len(service.asked) == asked + 4
    assert again.totals.success == table.totals.success + 1


at_call_and_return = pytest.mark.parametrize("event", ["call", "return"])
of_each_function = pytest.mark.parametrize(
    "function", ["_read", "_next", "now", "settle", "Drive.__init__", "Revision.__init__"]
)


@at_call_and_return
@of_each_function
def test_an_interrupt_loses_no_revision(clock: Clock, function: str, event: str) -> None:
    clock.ms = 6 * 3_600_000
    with Service(busy_day()).client() as client:
        truth = client.collect("event_delivery", *SIX_HOURS, DIMENSIONS).totals.success
        for position in range(4):
            options: Any = {"window": "1h", "end": SIX_HOURS[1], "settle": 0}
            revisions = client.follow("event_delivery", START, DIMENSIONS, **options)
            total = 0
            with interrupting(function, event, position), contextlib.suppress(KeyboardInterrupt):
                for revision in revisions:
                    total += revision.changes.total_delta.success
            total += sum(revision.changes.total_delta.success for revision in revisions)
            assert total == truth, position


@at_call_and_return
@of_each_function
@pytest.mark.parametrize("stores_each", [False, True])
def test_the_state_after_an_interrupt_has_what_was_yielded(
    clock: Clock, function: str, event: str, *, stores_each: bool
) -> None:
    clock.ms = 6 * 3_600_000
    with Service(busy_day()).client() as client:
        truth = client.collect("event_delivery", *SIX_HOURS, DIMENSIONS).totals.success
        for position in range(4):
            options: Any = {"window": "1h", "end": SIX_HOURS[1], "settle": 0}
            revisions = client.follow("event_delivery", START, DIMENSIONS, **options)
            total = 0
            with interrupting(function, event, position), contextlib.suppress(KeyboardInterrupt):
                for revision in revisions:
                    total += revision.changes.total_delta.success
                    if stores_each:
                        revisions.state()
            state = revisions.state()
            # The iterator itself resumes there, too.
            rest = sum(revision.changes.total_delta.success for revision in revisions)
            assert total + rest == truth, position
            resumed = client.follow("event_delivery", START, DIMENSIONS, **options, state=state)
            total += sum(revision.changes.total_delta.success for revision in resumed)
            assert total == truth, position


def test_tasks_follow_too(clock: Clock) -> None:
    service, sums = Service(tallyfold.Sandbox()), Sums()
    total = late_events(service.sandbox, clock)

    async def main() -> None:
        async with service.async_client() as client:
            revisions = client.follow("event_delivery", START, DIMENSIONS, **OPTIONS, reread=2700)
            async for revision in revisions:
                sums.add(revision)
            with pytest.raises(StopAsyncIteration):
                await anext(revisions)

    asyncio.run(main())
    check_end(sums, service, total)


STATEFUL: dict[str, Any] = {**OPTIONS, "reread": 2700}


@pytest.mark.parametrize("given", [1, 7])
def test_a_follow_goes_on_from_its_state(clock: Clock, given: int) -> None:
    service, sums = Service(tallyfold.Sandbox()), Sums()
    total = late_events(service.sandbox, clock)
    state, follows = None, 0
    while True:
        follows += 1
        with service.client() as client:
            revisions = client.follow("event_delivery", START, DIMENSIONS, **STATEFUL, state=state)
            taken = list(itertools.islice(revisions, given))
            state = revisions.state()
        for revision in taken:
            sums.add(revision)
        if len(taken) < given:
            break
    assert follows > 4
    check_end(sums, service, total)


def test_tasks_go_on_from_a_state(clock: Clock) -> None:
    service, sums = Service(tallyfold.Sandbox()), Sums()
    total = late_events(service.sandbox, clock)

    async def follow(state: str | None) -> str | None:
        async with service.async_client() as client:
            revisions = client.follow("event_delivery", START, DIMENSIONS, **STATEFUL, state=state)
            for _ in range(5):
                try:
                    sums.add(await anext(revisions))
                except StopAsyncIteration:
                    return None
            return revisions.state()

    state = asyncio.run(follow(None))
    while state is not None:
        state = asyncio.run(follow(state))
    check_end(sums, service, total)


def test_a_state_belongs_to_its_query(clock: Clock) -> None:
    del clock
    with Service(tallyfold.Sandbox()).client() as client:
        revisions = client.follow("event_delivery", START, DIMENSIONS, **STATEFUL)
        next(revisions)
        state = revisions.state()
        with pytest.raises(tallyfold.ConfigError) as caught:
            client.follow("event_delivery", START, ["reason"], **STATEFUL, state=state)
        assert caught.value.argument == "state"
        with pytest.raises(tallyfold.ConfigError) as caught:
            client.follow("event_delivery", START, DIMENSIONS, **STATEFUL, state=state[:-2])
        assert caught.value.argument == "state"


def test_a_failed_reading_is_raised_and_made_again(clock: Clock) -> None:
    service, sums = Service(tallyfold.Sandbox()), Sums()
    total = late_events(service.sandbox, clock)
    failing = {"2026-01-01T01:00:00Z", "2026-01-01T02:30:00Z"}
    service.troubles = dict.fromkeys(failing, answer(500))
    errors = 0
    with service.client() as client:
        revisions = client.follow(
            "event_delivery", START, DIMENSIONS, **OPTIONS, reread=2700, patience=0
        )
        while True:
            try:
                sums.add(next(revisions))
            except tallyfold.ServiceError:
                errors += 1
                if errors == 3:
                    service.troubles.clear()
            except StopIteration:
                break
        assert list(revisions) == []
    assert errors >= 3
    check_end(sums, service, total)


def test_a_failed_reading_of_tasks(clock: Clock) -> None:
    service = Service(tallyfold.Sandbox())
    service.troubles = {START: answer(500)}

    async def main() -> None:
        async with service.async_client() as client:
            revisions = client.follow("event_delivery", START, DIMENSIONS, window="15m", patience=0)
            with pytest.raises(tallyfold.ServiceError):
                await anext(revisions)
            service.troubles.clear()
            # The next window has closed by now.
            assert (await anext(revisions)).window.start_text == "2026-01-01T00:00:00Z"
            await revisions.close()
            with pytest.raises(StopAsyncIteration):
                await anext(revisions)

    asyncio.run(main())
    assert clock.ms >= 2 * 900_000


def test_delay_and_settle(clock: Clock) -> None:
    with Service(tallyfold.Sandbox()).client() as client:
        revisions = client.follow(
            "event_delivery", START, DIMENSIONS, **OPTIONS, delay=30.5, settle=0
        )
        assert next(revisions).settled
        assert clock.ms == 15 * 60_000 + 30_500


@pytest.mark.parametrize(
    ("options", "argument"),
    [
        ({"window": "7m"}, "window"),
        ({"window": "15m", "reread": 0}, "reread"),
        ({"window": "15m", "delay": -1}, "delay"),
        ({"window": "15m", "end": "soon"}, "end"),
        ({"window": "15m", "group_by": ["reason"]}, "group_by"),
    ],
)
def test_arguments_are_refused_by_name(options: dict[str, Any], argument: str) -> None:
    with Service(tallyfold.Sandbox()).client() as client:
        with pytest.raises(tallyfold.ConfigError) as caught:
            client.follow("event_delivery", START, DIMENSIONS, **options)
        assert caught.value.argument == argument


def test_closing_ends_a_wait() -> None:
    with Service(tallyfold.Sandbox()).client() as client:
        revisions = client.follow("event_delivery", "2999-01-01T00:00:00Z", DIMENSIONS, window="1d")
        closer = threading.Timer(0.1, revisions.close)
        closer.start()
        begin = time.monotonic()
        assert list(revisions) == []
        assert time.monotonic() - begin < 5
        closer.join()


def test_closing_the_client_ends_a_wait() -> None:
    client = Service(tallyfold.Sandbox()).client()
    revisions = client.follow("event_delivery", "2999-01-01T00:00:00Z", DIMENSIONS, window="1d")
    closer = threading.Timer(0.1, client.close)
    closer.start()
    with pytest.raises(RuntimeError, match="this Client is closed"):
        next(revisions)
    closer.join()


@pytest.mark.parametrize("phase", ["wait", "transfer"])
def test_closing_what_tasks_wait_for(phase: str) -> None:
    service = Service(tallyfold.Sandbox())
    if phase == "transfer":
        service.sandbox.inject("delay", endpoint="event_delivery", milliseconds=20_000)
    start = START if phase == "transfer" else "2999-01-01T00:00:00Z"

    async def main() -> None:
        async with service.async_client() as client:
            revisions = client.follow("event_delivery", start, DIMENSIONS, window="1d")
            task = asyncio.create_task(collect_all(revisions))
            await asyncio.sleep(0.1)
            await revisions.close()
            assert await task == []
            assert await other_tasks() == []

            again = client.follow("event_delivery", "2999-01-01T00:00:00Z", DIMENSIONS, window="1d")
            task = asyncio.create_task(collect_all(again))
            await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert await other_tasks() == []

    begin = time.monotonic()
    asyncio.run(main())
    assert time.monotonic() - begin < 10


def test_closing_ends_every_transfer() -> None:
    service = Service(tallyfold.Sandbox())
    service.sandbox.inject("delay", endpoint="event_delivery", every=1, milliseconds=20_000)

    async def main() -> None:
        async with service.async_client() as client:
            revisions = client.follow("event_delivery", START, DIMENSIONS, window="1d")
            tasks = [asyncio.create_task(collect_all(revisions)) for _ in range(3)]
            await asyncio.sleep(0.1)
            await revisions.close()
            assert await asyncio.gather(*tasks) == [[], [], []]
            assert await other_tasks() == []

    begin = time.monotonic()
    asyncio.run(main())
    assert time.monotonic() - begin < 10


async def collect_all(revisions: tallyfold.AsyncRevisions) -> list[tallyfold.Revision]:
    return [revision async for revision in revisions]


def test_once_gives_what_is_due_and_goes_on_from_its_state(clock: Clock) -> None:
    service = Service(tallyfold.Sandbox())
    record(service.sandbox, "success", "email", count=5, at=START)
    state, found = None, []
    # Before the first window has ended; once it has; at once again; and after the other windows.
    for minutes in (10, 5, 0, 40, 120):
        clock.wait(minutes * 60)
        before = clock.ms
        with service.client() as client:
            revisions = client.follow(
                "event_delivery", START, DIMENSIONS, window="15m", state=state, once=True
            )
            sums = [revision.changes.total_delta.success for revision in revisions]
            assert list(revisions) == []
        assert clock.ms == before
        state = revisions.state()
        found.append(sums)
    assert found[:3] == [[], [5], []]
    assert (len(found[3]), len(found[4])) == (3, 11)
    assert sum(map(sum, found)) == 5


def test_once_for_tasks(clock: Clock) -> None:
    service = Service(tallyfold.Sandbox())
    clock.wait(45 * 60)

    async def run() -> int:
        async with service.async_client() as client:
            revisions = client.follow("event_delivery", START, DIMENSIONS, window="15m", once=True)
            return len([revision async for revision in revisions])

    assert asyncio.run(run()) == 3


def test_once_raises_what_would_be_waited_for(clock: Clock) -> None:
    service = Service(tallyfold.Sandbox())
    clock.wait(20 * 60)
    service.sandbox.inject("status", endpoint="event_delivery", status=503, every=1)
    with service.client() as client:
        revisions = client.follow("event_delivery", START, DIMENSIONS, window="15m", once=True)
        with pytest.raises(tallyfold.ServiceError, match="503"):
            next(revisions)
        wrong: Any = "yes"
        with pytest.raises(TypeError, match="once"):
            client.follow("event_delivery", START, DIMENSIONS, window="15m", once=wrong)


def test_an_interrupted_reading_is_made_again() -> None:
    service = Service(tallyfold.Sandbox())

    def interrupt() -> httpx2.Response:
        raise KeyboardInterrupt

    service.troubles = {START: interrupt}
    with service.client() as client:
        revisions = client.follow("event_delivery", START, DIMENSIONS, window="15m")
        with pytest.raises(KeyboardInterrupt):
            next(revisions)
        service.troubles.clear()
        assert next(revisions).window.start_text == START


WINDOW: dict[str, Any] = {"window": "15m", "end": LATER}


class FullLog:
    """A callback that raises the first time that a window was read."""

    def __init__(self, error: Exception) -> None:
        self.error: Exception | None = error

    def __call__(self, attempt: tallyfold.Attempt) -> None:
        if attempt.target == "event_delivery" and self.error is not None:
            error, self.error = self.error, None
            raise error


@pytest.mark.parametrize("error", [LookupError(), tallyfold.ConfigError("no", code="forbidden")])
def test_a_revision_that_nobody_got_is_made_again(error: Exception) -> None:
    service = Service(tallyfold.Sandbox())
    record(service.sandbox, "success", "email", count=7, at=START)
    with service.client(on_attempt=FullLog(error)) as client:
        revisions = client.follow("event_delivery", START, DIMENSIONS, **WINDOW)
        with pytest.raises(type(error)):
            next(revisions)
        (only,) = revisions
    assert (only.changes.total_delta.success, only.number, only.settled) == (7, 0, True)


def test_a_revision_that_no_task_got_is_made_again() -> None:
    service = Service(tallyfold.Sandbox())
    record(service.sandbox, "success", "email", count=7, at=START)

    async def main() -> None:
        async with service.async_client(on_attempt=FullLog(LookupError())) as client:
            revisions = client.follow("event_delivery", START, DIMENSIONS, **WINDOW)
            with pytest.raises(LookupError):
                await anext(revisions)
            (only,) = [revision async for revision in revisions]
            assert (only.changes.total_delta.success, only.number) == (7, 0)

    asyncio.run(main())


def test_the_cause_of_a_missing_token_is_told() -> None:
    def provide(_: str) -> tuple[str, int]:
        raise LookupError

    options: dict[str, Any] = {"access_token": provide, "client_id": None, "client_secret": None}
    with Service(tallyfold.Sandbox()).client(**options) as client:
        revisions = client.follow("event_delivery", START, DIMENSIONS, window="15m")
        with pytest.raises(tallyfold.AuthError) as caught:
            next(revisions)
        assert isinstance(caught.value.__cause__, LookupError)
