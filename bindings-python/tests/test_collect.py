"""A long range as one call: workers, failures, and all the ways in which it can end."""

import asyncio
import gc
import itertools
import json
import pickle
import signal
import socket
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import anyio
import httpx2
import pytest
from service import (
    DAY,
    HOUR,
    Service,
    answer,
    busy_day,
    collecting_threads,
    late,
    other_tasks,
    starts,
    truth,
)
from support import record

import tallyfold

DIMENSIONS: list[tallyfold.DimensionName] = ["integration"]


@pytest.fixture
def service() -> Service:
    """Gives a service with events in every quarter of an hour of a day."""
    return Service(busy_day())


def collect_day(service: Service, **options: Any) -> tallyfold.CountTable:
    with service.client() as client:
        return client.collect("event_delivery", *DAY, DIMENSIONS, **options)


async def acollect_day(service: Service, **options: Any) -> tallyfold.CountTable:
    async with service.async_client() as client:
        return await client.collect("event_delivery", *DAY, DIMENSIONS, **options)


def collect_day_in_tasks(service: Service, **options: Any) -> tallyfold.CountTable:
    async def main() -> tallyfold.CountTable:
        try:
            return await acollect_day(service, **options)
        finally:
            assert await other_tasks() == []

    return asyncio.run(main())


BOTH = pytest.mark.parametrize("collect", [collect_day, collect_day_in_tasks])
Collecting = Callable[..., tallyfold.CountTable]


@pytest.fixture(autouse=True)
def nothing_stays_behind() -> Iterator[None]:
    """Looks for threads after each test."""
    yield
    assert collecting_threads() == []


@BOTH
@pytest.mark.parametrize("concurrency", [1, 8, 200])
def test_a_day_is_the_sum_of_its_windows(
    service: Service, collect: Collecting, concurrency: int
) -> None:
    table = collect(service, concurrency=concurrency)
    assert list(table) == truth(service.sandbox, *DAY)
    assert len(table.windows) == len(service.asked) == len(set(service.asked)) == 96
    assert table.coverage == [tallyfold.Window(*DAY)]
    assert table.gaps() == table.gaps(*DAY) == []
    assert service.sandbox.stats["control_token"] == 2


def test_so_many_windows_are_read_at_a_time(service: Service) -> None:
    meet = threading.Barrier(6)

    def trouble() -> httpx2.Response:
        # HostError by a timeout, unless six threads come here together.
        meet.wait(60)
        return answer(500)()

    for hour in ("00", "01"):
        service.troubles |= dict.fromkeys(starts(hour), trouble)
    first_six = "2026-01-01T00:00:00Z", "2026-01-01T01:30:00Z"
    with (
        service.client(
            access_token=lambda _: ("a-token", 60), client_id=None, client_secret=None
        ) as client,
        pytest.raises(tallyfold.ServiceError) as caught,
    ):
        client.collect("event_delivery", *first_six, DIMENSIONS, concurrency=6, patience=0)
    assert caught.value.status == 500
    assert service.most_under_way == 6


@BOTH
def test_a_failed_window_leaves_the_others(service: Service, collect: Collecting) -> None:
    first, second = "2026-01-01T07:15:00Z", "2026-01-01T16:00:00Z"
    service.troubles = {second: answer(500), first: answer(418)}
    with pytest.raises(tallyfold.ServiceError) as caught:
        collect(service, patience=0)
    error = caught.value
    assert (error.code, error.status) == ("unexpected_status", 418)
    gaps = [
        tallyfold.Window(first, "2026-01-01T07:30:00Z"),
        tallyfold.Window(second, "2026-01-01T16:15:00Z"),
    ]
    assert error.gaps == gaps
    assert [(window, failure.status) for window, failure in error.failures] == [
        (gaps[0], 418),
        (gaps[1], 500),
    ]
    assert error.partial is not None
    assert error.partial.gaps(*DAY) == gaps
    assert len(error.partial.windows) == 94
    assert str(error).startswith(
        "unexpected_status: 2 of 96 windows failed; first: [2026-01-01T07:"
    )
    assert str(error).endswith("; `partial` has the rest (status 418: no)")

    other = pickle.loads(pickle.dumps(error))
    assert other.partial == error.partial
    assert (other.gaps, str(other.failures)) == (error.gaps, str(error.failures))

    service.troubles, service.asked = {}, []
    table = collect(service, have=error.partial)
    assert service.asked == [first, second]
    assert list(table) == truth(service.sandbox, *DAY)


@BOTH
def test_a_window_that_is_too_large_is_halved(service: Service, collect: Collecting) -> None:
    service.troubles = {"2026-01-01T00:00:00Z": late}
    seen: list[tallyfold.Progress] = []
    with pytest.raises(tallyfold.ServiceError) as caught:
        collect(service, on_progress=seen.append, concurrency=1)
    assert caught.value.code == "timed_out"
    (gap,) = caught.value.gaps
    assert gap == tallyfold.Window("2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z")
    assert seen[0].window == tallyfold.Window("2026-01-01T00:00:00Z", "2026-01-01T00:15:00Z")
    assert (seen[0].planned, seen[0].done, seen[0].failed) == (97, 0, 0)
    assert (seen[-1].planned, seen[-1].done, seen[-1].failed) == (99, 98, 1)


@BOTH
def test_halves_are_read_together(service: Service, collect: Collecting) -> None:
    service.sandbox.inject("delay", endpoint="event_delivery", milliseconds=400, every=1)

    def late_once() -> httpx2.Response:
        service.troubles.clear()
        return late()

    service.troubles = {DAY[0]: late_once}
    table = collect(service, window="1d", concurrency=2)
    assert [window.start.hour for window in table.windows] == [0, 12]
    assert service.most_under_way == 2


def test_no_thread_for_a_half_ends_it(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    start = threading.Thread.start

    def refuse(thread: threading.Thread) -> None:
        if thread.name == "tallyfold-collect-2":
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", refuse)
    service.troubles = {DAY[0]: late}
    with pytest.raises(RuntimeError, match="can't start new thread"):
        collect_day(service, window="1d", concurrency=2)


@BOTH
def test_progress_comes_in_order_from_the_caller(service: Service, collect: Collecting) -> None:
    seen: list[tallyfold.Progress] = []
    threads: set[threading.Thread] = set()

    def note(progress: tallyfold.Progress) -> None:
        seen.append(progress)
        threads.add(threading.current_thread())

    collect(service, on_progress=note)
    assert [progress.done for progress in seen] == list(range(1, 97))
    assert {progress.planned for progress in seen} == {96}
    assert len({progress.window for progress in seen}) == 96
    assert all(0 <= progress.under_way <= 8 for progress in seen)
    elapsed = [progress.elapsed for progress in seen]
    assert elapsed == sorted(elapsed)
    assert elapsed[0] > 0
    assert threads == {threading.main_thread()}
    with pytest.raises(AttributeError):
        seen[0].done = 7  # type: ignore[misc]


class HostError(Exception):
    """A host's own."""


@BOTH
def test_what_on_progress_raises_ends_it(service: Service, collect: Collecting) -> None:
    def refuse(progress: tallyfold.Progress) -> None:
        if progress.done == 10:
            raise HostError

    with pytest.raises(HostError) as caught:
        collect(service, on_progress=refuse, concurrency=2)
    error: Any = caught.value
    assert 10 <= len(error.partial.windows) <= 20
    assert error.partial.gaps(*DAY) == error.gaps
    assert error.failures == []
    asked, service.asked = set(service.asked), []
    table = collect(service, have=error.partial)
    assert len(service.asked) == 96 - len(error.partial.windows)
    assert asked | set(service.asked) == {window.start_text for window in table.windows}
    assert list(table) == truth(service.sandbox, *DAY)


@pytest.mark.parametrize("concurrency", [1, 8])
def test_what_on_attempt_raises_ends_it(service: Service, concurrency: int) -> None:
    def refuse(attempt: tallyfold.Attempt) -> None:
        if attempt.window and attempt.window.start.hour == 2:
            raise HostError

    options = {"on_attempt": refuse}
    with service.client(**options) as client, pytest.raises(HostError) as caught:
        client.collect("event_delivery", *DAY, DIMENSIONS, concurrency=concurrency)
    partial: tallyfold.CountTable = caught.value.partial  # type: ignore[attr-defined]
    # Of the eight windows before that hour, all workers but one may still be reading theirs.
    assert 8 - (concurrency - 1) <= len(partial.windows) < 96

    async def main() -> None:
        async with service.async_client(**options) as client:
            await client.collect("event_delivery", *DAY, DIMENSIONS, concurrency=concurrency)

    with pytest.raises(HostError):
        asyncio.run(main())


@BOTH
def test_a_failed_authentication_ends_it(service: Service, collect: Collecting) -> None:
    service.sandbox.inject("status", endpoint="control_token", status=401)
    with pytest.raises(tallyfold.AuthError) as caught:
        collect(service, concurrency=1)
    assert (caught.value.code, caught.value.partial) == ("token_refused", None)
    assert caught.value.gaps == [tallyfold.Window(*DAY)]
    assert service.asked == []


def test_the_cause_of_a_missing_token_is_told(service: Service) -> None:
    def provide(_: str) -> tuple[str, int]:
        raise HostError

    options: dict[str, Any] = {"access_token": provide, "client_id": None, "client_secret": None}
    with service.client(**options) as client, pytest.raises(tallyfold.AuthError) as caught:
        client.collect("event_delivery", *DAY, DIMENSIONS)
    assert caught.value.code == "token_provider_failed"
    assert isinstance(caught.value.__cause__, HostError)


@pytest.mark.parametrize("concurrency", [0, -1, 1.5, True, "8"])
@BOTH
def test_a_concurrency_that_can_not_be(
    service: Service, collect: Collecting, concurrency: int
) -> None:
    with pytest.raises(tallyfold.ConfigError) as caught:
        collect(service, concurrency=concurrency)
    assert (caught.value.code, caught.value.argument) == ("invalid_argument", "concurrency")


@pytest.mark.parametrize(
    ("options", "argument"),
    [
        ({"window": "7m"}, "window"),
        ({"finest": "0s"}, "finest"),
        ({"part": (2, 2)}, "part"),
        ({"part": (-1, 2)}, "part"),
        ({"settle": -1}, "settle"),
        ({"settle": float("nan")}, "settle"),
        ({"group_by": ["reason"]}, "group_by"),
    ],
)
def test_other_arguments_are_refused_by_name(
    service: Service, options: dict[str, Any], argument: str
) -> None:
    with pytest.raises(tallyfold.ConfigError) as caught:
        collect_day(service, **options)
    assert caught.value.argument == argument
    assert service.asked == []


def interrupted(act: Callable[[], object], when: Callable[[], bool]) -> float:
    """Presses Ctrl-C as soon as something is true; gives the seconds that the end took."""
    pressed = 0.0

    def press(main: int) -> None:
        nonlocal pressed
        while not when():
            time.sleep(0.001)
        pressed = time.monotonic()
        # To the thread that waits: it is where a terminal's would arrive.
        signal.pthread_kill(main, signal.SIGINT)

    thread = threading.Thread(target=press, args=[threading.get_ident()])
    thread.start()
    try:
        with pytest.raises(KeyboardInterrupt) as caught:
            act()
    finally:
        thread.join()
    error: Any = caught.value
    assert error.gaps, "the exception says what is missing"
    return time.monotonic() - pressed


def test_ctrl_c_ends_waits(service: Service) -> None:
    service.sandbox.inject("status", endpoint="event_delivery", status=503, retry_after="50")
    with service.client(max_retries=3) as client:
        seconds = interrupted(
            lambda: client.collect("event_delivery", *DAY, DIMENSIONS),
            lambda: len(service.asked) > 0,
        )
        assert seconds < 5
        assert collecting_threads() == []


def test_ctrl_c_cuts_transfers() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        accepted: list[socket.socket] = []

        def accept() -> None:
            accepted.extend(silent.accept()[0] for _ in range(4))

        acceptor = threading.Thread(target=accept)
        acceptor.start()
        with tallyfold.Client(
            cluster_endpoint=f"http://127.0.0.1:{silent.getsockname()[1]}",
            access_token=lambda _: ("a-token", 60),
            timeout=None,
        ) as client:
            seconds = interrupted(
                lambda: client.collect("event_delivery", *DAY, DIMENSIONS, concurrency=4),
                lambda: len(accepted) == 4,
            )
        assert seconds < 5
        acceptor.join()
        for connection in accepted:
            connection.close()


def test_ctrl_c_ends_the_wait_for_a_token(service: Service) -> None:
    release = threading.Event()
    blocked = threading.Event()

    def provide(_: str) -> tuple[str, int]:
        blocked.set()
        release.wait(60)
        return "a-token", 60

    def when() -> bool:
        if not blocked.is_set():
            return False
        # A function can't be stopped, so it is let go after the interrupt.
        threading.Timer(0.5, release.set).start()
        return True

    options: dict[str, Any] = {"access_token": provide, "client_id": None, "client_secret": None}
    with service.client(**options) as client:
        interrupted(lambda: client.collect("event_delivery", *DAY, DIMENSIONS), when)
    assert service.asked == []


@pytest.mark.parametrize("phase", ["token", "wait", "transfer", "save"])
def test_cancelling_a_task(service: Service, phase: str) -> None:
    reached: list[str] = []

    class Slow:
        def load(self, _: str) -> None:
            return None

        async def save(self, name: str, _: bytes) -> None:
            reached.append(name)
            if phase == "save" and len(reached) == 1:
                await asyncio.sleep(60)

    if phase == "token":
        service.sandbox.inject("delay", endpoint="control_token", milliseconds=20_000)
    elif phase == "wait":
        service.sandbox.inject("status", endpoint="event_delivery", status=503, retry_after="50")
    elif phase == "transfer":
        service.sandbox.inject("delay", endpoint="event_delivery", milliseconds=20_000)

    async def main() -> None:
        async with service.async_client(max_retries=3) as client:
            task = asyncio.create_task(
                client.collect("event_delivery", *DAY, DIMENSIONS, checkpoint=Slow(), concurrency=2)
            )
            while not (reached if phase == "save" else service.most_under_way):  # noqa: ASYNC110
                await asyncio.sleep(0.001)
            task.cancel()
            with pytest.raises(asyncio.CancelledError) as caught:
                await task
            error: Any = caught.value
            assert error.gaps
            assert await other_tasks() == []
            if phase != "wait":
                # Nothing is stuck: the same client goes on.
                table = await client.collect("event_delivery", *HOUR, DIMENSIONS)
                assert len(table.windows) == 4

    begin = time.monotonic()
    asyncio.run(main())
    assert time.monotonic() - begin < 10


def test_a_cancel_scope_of_anyio_stores_what_was_read(service: Service) -> None:
    class Shelf:
        def __init__(self) -> None:
            self.segments: dict[str, bytes] = {}

        def load(self, name: str) -> bytes | None:
            return self.segments.get(name)

        async def save(self, name: str, data: bytes) -> None:
            # Meanwhile, other windows are read, and the scope cancels the task in each turn.
            for _ in range(20):
                await asyncio.sleep(0)
            self.segments[name] = data

    async def main() -> None:
        shelf = Shelf()
        async with service.async_client() as client:
            with anyio.CancelScope() as scope:

                def stop(progress: tallyfold.Progress) -> None:
                    if progress.done > 20:
                        scope.cancel()

                with pytest.raises(asyncio.CancelledError) as caught:
                    await client.collect(
                        "event_delivery",
                        *DAY,
                        DIMENSIONS,
                        checkpoint=shelf,
                        on_progress=stop,
                    )
                error: Any = caught.value
                assert asyncio.all_tasks() == {asyncio.current_task()}
                raise error
            read = len(error.partial.windows)
            assert read > 20
            service.asked.clear()
            await client.collect("event_delivery", *DAY, DIMENSIONS, checkpoint=shelf)
            assert len(service.asked) == 96 - read

    asyncio.run(main())


def test_a_cancellation_after_an_error_is_a_cancellation(service: Service) -> None:
    ending = asyncio.Event()

    class Stubborn(Service):
        async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
            answer = await super().handle_async_request(request)
            if json.loads(request.content).get("start", DAY[0]) != DAY[0]:
                try:
                    await ending.wait()
                finally:
                    ending.set()
                    for _ in range(20):
                        await asyncio.sleep(0)
            return answer

    def fail(_: tallyfold.Progress) -> None:
        raise LookupError

    async def main() -> None:
        async with Stubborn(service.sandbox).async_client() as client:
            collecting = client.collect(
                "event_delivery", *DAY, DIMENSIONS, on_progress=fail, concurrency=2
            )
            task = asyncio.create_task(collecting)
            await ending.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError) as caught:
                await task
            error: Any = caught.value
            assert isinstance(error.__cause__, LookupError)
            assert error.gaps
            assert await other_tasks() == []

    asyncio.run(main())


def test_a_transport_that_never_waits_leaves_others_their_turns() -> None:
    class AtOnce(Service):
        async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
            await request.aread()
            return self.handle_request(request)

    service = AtOnce(busy_day())

    async def main() -> None:
        turns: list[int] = []

        async def other() -> None:
            while True:
                turns.append(len(service.asked))
                await asyncio.sleep(0)

        task = asyncio.create_task(other())
        await acollect_day(service, concurrency=1)
        task.cancel()
        between = [later - sooner for sooner, later in itertools.pairwise(turns)]
        assert max(between) == 16

    asyncio.run(main())


def test_whoever_cancels_a_worker_before_it_begins_ends_it(service: Service) -> None:
    async def main() -> None:
        task = asyncio.create_task(acollect_day(service, concurrency=2))
        while not (workers := asyncio.all_tasks() - {task, asyncio.current_task()}):  # noqa: ASYNC110
            await asyncio.sleep(0)
        for worker in workers:
            assert worker is not None
            worker.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(task, 10)
        assert service.asked == []

    asyncio.run(main())


def test_closing_the_client_ends_it(service: Service) -> None:
    service.sandbox.inject("status", endpoint="event_delivery", status=503, retry_after="50")
    client = service.client(max_retries=3)
    closer = threading.Timer(0.2, client.close)
    closer.start()
    begin = time.monotonic()
    with pytest.raises(RuntimeError, match="this Client is closed"):
        client.collect("event_delivery", *DAY, DIMENSIONS)
    assert time.monotonic() - begin < 5
    closer.join()


@pytest.mark.parametrize("tasks", [False, True])
def test_a_month_with_faults(tasks: bool) -> None:  # noqa: FBT001 - a case
    sandbox = tallyfold.Sandbox(seed=3)
    start, end = "2026-01-01T00:00:00Z", "2026-01-31T00:00:00Z"
    want = truth(sandbox, start, end)
    sandbox.inject("status", endpoint="event_delivery", status=503, every=41)
    sandbox.inject("truncate", endpoint="event_delivery", bytes=100, every=37)
    attempts: list[tallyfold.Attempt] = []
    options: dict[str, Any] = {"max_retries": 6, "longest_retry_wait": 0.001}
    options["on_attempt"] = attempts.append

    async def in_tasks() -> tallyfold.CountTable:
        async with Service(sandbox).async_client(**options) as client:
            return await client.collect("event_delivery", start, end, DIMENSIONS)

    if tasks:
        table = asyncio.run(in_tasks())
    else:
        with Service(sandbox).client(**options) as client:
            table = client.collect("event_delivery", start, end, DIMENSIONS)
    assert list(table) == want
    assert len(table.windows) == 2880
    failed = [attempt for attempt in attempts if attempt.code is not None]
    assert len(failed) >= 2880 // 20
    assert sandbox.stats["event_delivery"] == 2880 + 1 + len(failed)


def test_memory_does_not_grow_with_calls() -> None:
    def grown(windows: str) -> int:
        service = Service(tallyfold.Sandbox())
        with service.client() as client:
            client.collect("event_delivery", *HOUR, DIMENSIONS)
            tracemalloc.start()
            table = client.collect("event_delivery", *DAY, DIMENSIONS, window=windows)
            service.asked.clear()
            gc.collect()
            kept, _ = tracemalloc.get_traced_memory()
            tracemalloc.stop()
        assert len(table) == 0
        return kept

    # Fifteen times as many calls, and what Python holds stays the same.
    assert grown("2m") - grown("30m") < 50_000


def test_a_probe_comes_first_if_it_is_wanted() -> None:
    for closed in (False, True):
        sandbox = tallyfold.Sandbox(closed_windows=closed)
        record(sandbox, "success", "email", at="2026-01-01T00:15:00Z", count=3)
        service = Service(sandbox)
        with service.client() as client:
            edges = "2026-01-01T00:00:00Z", "2026-01-01T00:15:00Z", "2026-01-01T00:30:00Z"
            found = client.probe_additivity("event_delivery", *edges, DIMENSIONS)
            assert found.verdict == ("double_counted" if closed else "additive")
            assert found.difference.total_delta.success == (3 if closed else 0)
            assert found.whole.totals.success == 3
            service.asked.clear()
            if closed:
                with pytest.raises(tallyfold.ResponseError) as caught:
                    client.collect("event_delivery", *HOUR, DIMENSIONS, probe=True)
                assert caught.value.code == "windows_not_additive"
            else:
                table = client.collect("event_delivery", *HOUR, DIMENSIONS, probe=True)
                assert table.totals.success == 3
                assert len(service.asked) == 5


def test_a_probe_of_tasks() -> None:
    async def main() -> str:
        async with Service(busy_day()).async_client() as client:
            edges = HOUR[0], "2026-01-01T00:30:00Z", HOUR[1]
            return (await client.probe_additivity("event_delivery", *edges, DIMENSIONS)).verdict

    assert asyncio.run(main()) == "additive"


def test_a_failed_probe_is_told(service: Service) -> None:
    service.troubles = {"2026-01-01T00:30:00Z": answer(403)}
    edges = HOUR[0], "2026-01-01T00:30:00Z", HOUR[1]
    with service.client() as client, pytest.raises(tallyfold.ServiceError) as caught:
        client.probe_additivity("event_delivery", *edges, DIMENSIONS)
    assert caught.value.code == "forbidden"


def test_parts_are_merged_in_any_order(service: Service) -> None:
    parts = [collect_day(service, part=(index, 3)) for index in range(3)]
    assert len(service.asked) == 96
    whole = collect_day(service)
    for order in ([0, 1, 2], [2, 0, 1], [1, 2, 0]):
        tables = (pickle.loads(pickle.dumps(parts[index])) for index in order)
        assert tallyfold.CountTable.merge_all(tables).to_json() == whole.to_json()
