"""Collects and follows of a service that is down now and then."""

import asyncio
import random
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

import httpx2
import pytest
from clock import Clock
from service import DAY, Service, answer, busy_day, collecting_threads, other_tasks, truth

import tallyfold

DIMENSIONS: list[tallyfold.DimensionName] = ["integration"]
MONTH = "2026-01-01T00:00:00Z", "2026-01-31T00:00:00Z"
WINDOWS = 2_880
UNIX_MS = 1_780_000_000_000


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Gives the time that clients and iterators go by."""
    clock = Clock(UNIX_MS)
    clock.drive(monkeypatch)
    return clock


class Fragile(Service):
    """A service with outages, each of which begins when so many requests have been answered."""

    def __init__(
        self, sandbox: tallyfold.Sandbox, clock: Clock, outages: dict[int, int], way: str = "status"
    ) -> None:
        super().__init__(sandbox)
        self.clock = clock
        self.outages = sorted(outages.items())
        self.until_ms = 0
        self.answered = 0
        self.requests = 0
        self.way = way
        self._counting = threading.Lock()

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        return self._refusal(request) or super().handle_request(request)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        await asyncio.sleep(0)
        return self._refusal(request) or await super().handle_async_request(request)

    def _refusal(self, request: httpx2.Request) -> httpx2.Response | None:
        self.clock.wait(0.01)
        with self._counting:
            self.requests += 1
            if self.outages and self.outages[0][0] <= self.answered:
                _, ms = self.outages.pop(0)
                self.until_ms = max(self.until_ms, self.clock.ms + ms)
            if self.clock.ms >= self.until_ms:
                self.answered += 1
                return None
        if self.way == "status":
            return answer(503)()
        if self.way == "retry_after":
            return httpx2.Response(503, headers={"retry-after": "20"}, content=b"")
        raise httpx2.ConnectError("refused", request=request)


def eleven_outages(seed: int) -> dict[int, int]:
    """Ten of 0.3 to 120 s, each about twice as long as the one before, and one of an hour."""
    lengths = [300, 600, 1_200, 2_400, 4_700, 9_300, 18_000, 36_000, 71_000, 120_000, 3_600_000]
    starts = random.Random(seed).sample(range(WINDOWS), len(lengths))
    return dict(zip(starts, lengths, strict=True))


def collect(service: Service, span: tuple[str, str], **options: Any) -> tallyfold.CountTable:
    """In threads."""
    retries = options.pop("max_retries", 3)
    with service.client(max_retries=retries) as client:
        return client.collect("event_delivery", *span, DIMENSIONS, **options)


def acollect(service: Service, span: tuple[str, str], **options: Any) -> tallyfold.CountTable:
    """In tasks."""
    retries = options.pop("max_retries", 3)

    async def main() -> tallyfold.CountTable:
        async with service.async_client(max_retries=retries) as client:
            table = await client.collect("event_delivery", *span, DIMENSIONS, **options)
            assert await other_tasks() == []
            return table

    return asyncio.run(main())


BOTH = pytest.mark.parametrize("run", [collect, acollect])
Run = Callable[..., tallyfold.CountTable]


@BOTH
@pytest.mark.parametrize("way", ["status", "retry_after", "connection"])
def test_a_month_with_outages_is_whole(clock: Clock, run: Run, way: str) -> None:
    sandbox = tallyfold.Sandbox(seed=5)
    want = truth(sandbox, *MONTH)
    service = Fragile(sandbox, clock, eleven_outages(7), way)
    table = run(service, MONTH, patience=7200)
    assert list(table) == want
    assert service.outages == []
    assert clock.ms > 3_800_000
    print(f"{way}: {service.requests} requests, {service.requests / WINDOWS:.4f} for each window")
    assert service.requests <= 1.1 * WINDOWS
    assert collecting_threads() == []


@BOTH
def test_without_patience_an_outage_ends_it(clock: Clock, run: Run) -> None:
    service = Fragile(busy_day(), clock, {20: 100_000})
    with pytest.raises(tallyfold.ServiceError) as caught:
        run(service, DAY, patience=0)
    assert caught.value.status == 503
    assert caught.value.gaps


@BOTH
def test_when_the_patience_is_over_it_says_so(
    clock: Clock, run: Run, caplog: pytest.LogCaptureFixture
) -> None:
    service = Fragile(busy_day(), clock, {20: 10**9})
    seen: list[tallyfold.Progress] = []
    with (
        caplog.at_level("INFO", logger="tallyfold"),
        pytest.raises(tallyfold.ServiceError) as caught,
    ):
        run(service, DAY, on_progress=seen.append)
    # The service never came back.
    assert {each.getMessage().partition(",")[0] for each in caplog.records} == {
        "the service is down"
    }
    error = caught.value
    assert "; the service has been down for 9" in str(error)
    assert "longer than the patience for it" in str(error)
    assert error.partial is not None
    assert len(error.partial.windows) == 19, "and a token"
    assert error.gaps
    assert 900_000 <= clock.ms < 1_000_000
    waits = [progress.waiting for progress in seen if progress.waiting is not None]
    assert max(waits) > 15
    assert seen[0].waiting is None


@BOTH
def test_an_outage_leaves_lines_in_the_log(
    clock: Clock, run: Run, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level("INFO", logger="tallyfold"):
        run(Fragile(busy_day(), clock, {20: 60_000}), DAY)
    down, *tries, back = [each for each in caplog.records if each.name == "tallyfold"]
    assert (down.levelname, back.levelname) == ("WARNING", "WARNING")
    assert "the service is down, next try in" in down.getMessage()
    assert "status 503" in down.getMessage()
    assert back.getMessage() == "the service is back"
    assert {each.levelname for each in tries} == {"INFO"}


@BOTH
def test_attempts_tell_of_the_wait(clock: Clock, run: Run) -> None:
    service = Fragile(busy_day(), clock, {20: 60_000})
    attempts: list[tallyfold.Attempt] = []
    plain, service.client = service.client, lambda **of: plain(on_attempt=attempts.append, **of)  # type: ignore[method-assign]
    aplain = service.async_client
    service.async_client = lambda **of: aplain(on_attempt=attempts.append, **of)  # type: ignore[method-assign]
    run(service, DAY)
    waits = [attempt.wait for attempt in attempts if attempt.code == "server_error"]
    assert len(waits) >= 8
    assert all(wait is not None and wait >= 0.25 for wait in waits)
    assert max(wait or 0 for wait in waits) > 8


@BOTH
def test_one_bad_window_stalls_nothing(clock: Clock, run: Run) -> None:
    service = Service(busy_day())
    bad = "2026-01-01T23:45:00Z"
    service.troubles = {bad: answer(500)}
    with pytest.raises(tallyfold.ServiceError) as caught:
        run(service, DAY, patience=None, max_retries=0)
    assert [window.start_text for window in caught.value.gaps] == [bad]
    assert clock.ms < 60_000


def test_ctrl_c_ends_the_wait() -> None:
    service = Fragile(busy_day(), Clock(UNIX_MS), {5: 10**9}, "retry_after")
    began: list[float] = []
    seen: list[tallyfold.Progress] = []

    def press(main: int) -> None:
        while service.until_ms == 0 or not any(progress.done for progress in seen):
            time.sleep(0.001)
        # Into the wait that the service has asked for, which takes 20 seconds.
        time.sleep(0.1)
        began.append(time.monotonic())
        signal.pthread_kill(main, signal.SIGINT)

    thread = threading.Thread(target=press, args=[threading.get_ident()])
    thread.start()
    with pytest.raises(KeyboardInterrupt) as caught:
        collect(service, DAY, on_progress=seen.append)
    thread.join()
    assert time.monotonic() - began[0] < 10
    error: Any = caught.value
    assert error.partial is not None
    assert error.gaps
    assert collecting_threads() == []


def test_cancelling_ends_the_wait() -> None:
    service = Fragile(busy_day(), Clock(UNIX_MS), {5: 10**9}, "retry_after")

    async def main() -> None:
        async with service.async_client(max_retries=3) as client:
            task = asyncio.create_task(client.collect("event_delivery", *DAY, DIMENSIONS))
            while service.until_ms == 0:  # noqa: ASYNC110
                await asyncio.sleep(0.001)
            began = time.monotonic()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert time.monotonic() - began < 10
            assert await other_tasks() == []

    asyncio.run(main())


@pytest.mark.parametrize("what", ["collect", "follow", "call", "transfer", "token", "blocked"])
def test_closing_an_async_client_ends_every_wait(what: str) -> None:
    outages = {1: 10**9} if what in {"collect", "call"} else {}
    service = Fragile(busy_day(), Clock(UNIX_MS), outages, "retry_after")
    if what == "transfer":
        service.sandbox.inject("delay", endpoint="event_delivery", milliseconds=20_000)
    if what == "blocked":
        service.sandbox.inject("delay", endpoint="control_token", milliseconds=20_000)

    async def never(_: str) -> tuple[str, int]:
        await asyncio.sleep(60)
        return "never", 1

    async def main() -> None:
        own = {"access_token": never, "client_id": None, "client_secret": None}
        client = service.async_client(max_retries=3, **(own if what == "token" else {}))

        async def one() -> object:
            return await client.event_delivery(DAY[0], "2026-01-01T00:15:00Z", DIMENSIONS)

        async def two() -> object:
            return await asyncio.gather(one(), one())

        async def follow() -> object:
            future = "2999-01-01T00:00:00Z"
            revisions = client.follow("event_delivery", future, DIMENSIONS, window="1d")
            return await anext(revisions)

        async def whole() -> object:
            return await client.collect("event_delivery", *DAY, DIMENSIONS)

        works = {"collect": whole, "follow": follow, "blocked": two}
        task = asyncio.create_task(works.get(what, one)())
        await asyncio.sleep(0.1)
        assert not task.done()
        began = time.monotonic()
        await client.close()
        with pytest.raises(RuntimeError, match="this AsyncClient is closed"):
            await task
        # None of these waits is over before 20 seconds.
        assert time.monotonic() - began < 10

    asyncio.run(main())


def test_closing_a_client_ends_the_wait() -> None:
    service = Fragile(busy_day(), Clock(UNIX_MS), {5: 10**9}, "retry_after")
    client = service.client(max_retries=3)
    closer = threading.Timer(0.3, client.close)
    closer.start()
    began = time.monotonic()
    with pytest.raises(RuntimeError, match="this Client is closed"):
        client.collect("event_delivery", *DAY, DIMENSIONS)
    assert time.monotonic() - began < 10
    closer.join()


FOLLOWED: dict[str, Any] = {"window": "15m", "end": DAY[1]}


@pytest.mark.parametrize("tasks", [False, True])
def test_a_follow_that_catches_up_raises_nothing(clock: Clock, tasks: bool) -> None:  # noqa: FBT001
    service = Fragile(busy_day(), clock, {10: 400_000, 50: 3_000, 70: 600})

    async def in_tasks() -> list[tallyfold.Revision]:
        async with service.async_client(max_retries=3) as client:
            revisions = client.follow("event_delivery", DAY[0], DIMENSIONS, **FOLLOWED)
            return [revision async for revision in revisions]

    def in_threads() -> list[tallyfold.Revision]:
        with service.client(max_retries=3) as client:
            return list(client.follow("event_delivery", DAY[0], DIMENSIONS, **FOLLOWED))

    revisions = asyncio.run(in_tasks()) if tasks else in_threads()
    assert len({revision.window for revision in revisions}) == len(revisions) == 96
    total = sum(revision.changes.total_delta.success for revision in revisions)
    assert total == sum(range(1, 97))
    assert service.requests < 96 + 25


def test_a_follow_raises_when_its_patience_is_over(clock: Clock) -> None:
    service = Fragile(busy_day(), clock, {10: 450_000})
    read: list[tallyfold.Revision] = []
    errors: list[str] = []
    with service.client(max_retries=3) as client:
        revisions = client.follow("event_delivery", DAY[0], DIMENSIONS, **FOLLOWED, patience=300)
        while len(read) < 96:
            try:
                # Another loop goes on where the last one was broken off.
                read.extend(revisions)
            except tallyfold.ServiceError as error:
                errors.append(str(error))
    assert len(read) == 96
    assert len(errors) == 1
    assert "down for 3" in errors[0]


@pytest.mark.parametrize("tasks", [False, True])
def test_on_failure_takes_the_error_and_the_loop_goes_on(clock: Clock, tasks: bool) -> None:  # noqa: FBT001
    service = Service(busy_day())
    bad = "2026-01-01T05:00:00Z"
    service.troubles = {bad: answer(418)}
    failed: list[tuple[tallyfold.Window, tallyfold.TallyfoldError]] = []

    def on_failure(window: tallyfold.Window, error: tallyfold.TallyfoldError) -> None:
        failed.append((window, error))
        if len(failed) == 3:
            service.troubles.clear()

    async def in_tasks() -> list[tallyfold.Revision]:
        async with service.async_client() as client:
            revisions = client.follow(
                "event_delivery", DAY[0], DIMENSIONS, **FOLLOWED, on_failure=on_failure
            )
            return [revision async for revision in revisions]

    def in_threads() -> list[tallyfold.Revision]:
        with service.client() as client:
            return list(
                client.follow(
                    "event_delivery", DAY[0], DIMENSIONS, **FOLLOWED, on_failure=on_failure
                )
            )

    revisions = asyncio.run(in_tasks()) if tasks else in_threads()
    assert len(revisions) == 96
    assert [window.start_text for window, _ in failed] == [bad] * 3
    assert all(getattr(error, "status", None) == 418 for _, error in failed)
    assert clock.ms >= 3 * 900_000, "it is read again after `reread`"


def test_what_on_failure_raises_ends_the_loop(clock: Clock) -> None:
    service = Service(busy_day())
    service.troubles = {DAY[0]: answer(418)}

    def on_failure(window: tallyfold.Window, error: tallyfold.TallyfoldError) -> None:
        raise KeyError(window.start_text) from error

    with service.client() as client:
        revisions = client.follow(
            "event_delivery", DAY[0], DIMENSIONS, **FOLLOWED, on_failure=on_failure
        )
        with pytest.raises(KeyError):
            next(revisions)
        misspelt: dict[str, Any] = {"on_failur": print}
        with pytest.raises(tallyfold.ConfigError, match="did you mean on_failure"):
            client.follow("event_delivery", DAY[0], DIMENSIONS, **FOLLOWED, **misspelt)
    assert clock.ms < 900_000
