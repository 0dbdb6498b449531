"""Collects whose windows the workers of an executor read: exact, with one token, at one pace."""

import asyncio
import contextlib
import dataclasses
import json
import multiprocessing
import os
import pickle
import signal
import ssl
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any, Self

import pytest
from service import DAY, HOUR, busy_day

import tallyfold
from tallyfold._arguments import CollectArguments
from tallyfold._ranges.parts import ONLY_HERE

DIMENSIONS: list[tallyfold.DimensionName] = ["integration"]


class Watched(tallyfold.Sandbox):
    """A sandbox that sees which windows are requested, and can meet each request."""

    def __new__(cls, **options: Any) -> Self:
        return super().__new__(cls, **options)

    def __init__(self, **_: Any) -> None:
        self.asked: list[str] = []
        self.meet: Callable[[str], tallyfold.SandboxResponse | None] = lambda _: None

    def handle(self, method: str, target: str, *rest: Any) -> tallyfold.SandboxResponse:
        if "event_delivery" in target:
            start = json.loads(rest[1])["start"]
            self.asked.append(start)
            if (response := self.meet(start)) is not None:
                return response
        return super().handle(method, target, *rest)


def refusal(status: int) -> tallyfold.SandboxResponse:
    return tallyfold.SandboxResponse(status, [("content-type", "text/plain")], b"no", 0, None)


@pytest.fixture
def watched() -> Watched:
    return Watched(seed=7)


@pytest.fixture
def client(watched: Watched) -> Iterator[tallyfold.Client]:
    with (
        tallyfold.serve(watched) as server,
        tallyfold.Client(
            cluster_endpoint=server.url, max_retries=0, **watched.credentials
        ) as client,
    ):
        yield client


@contextlib.contextmanager
def processes(number: int = 2) -> Iterator[ProcessPoolExecutor]:
    # A process that was forked while threads run may inherit a lock that stays locked.
    context = multiprocessing.get_context("forkserver")
    with ProcessPoolExecutor(number, mp_context=context) as pool:
        yield pool


class Direct(Executor):
    """Runs what is submitted at once, after a change of what is given or returned."""

    def __init__(
        self,
        given: Callable[[Any], Any] = lambda assignment: assignment,
        returned: Callable[[Any], Any] = lambda outcome: outcome,
    ) -> None:
        self._given = given
        self._returned = returned
        self.assigned: list[Any] = []

    def submit(self, function: Any, /, *arguments: Any, **_: Any) -> "Future[Any]":
        (assignment,) = arguments
        self.assigned.append(assignment)
        future: Future[Any] = Future()
        try:
            future.set_result(self._returned(function(self._given(assignment))))
        except Exception as error:  # noqa: BLE001 - the future has it
            future.set_exception(error)
        return future


def collect(client: tallyfold.Client, **options: Any) -> tallyfold.CountTable:
    start, end = options.pop("range", DAY)
    return client.collect("event_delivery", start, end, DIMENSIONS, **options)


RAGGED = "2026-01-01T00:07:30Z", "2026-01-01T22:52:00.5Z"


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"window": "5m", "range": RAGGED, "group_by": []},
        {"keep": "1h", "range": RAGGED},
        {"keep": "total", "concurrency": 3},
        {"part": (1, 3)},
        {"probe": True},
        {"settle": 1e12},
    ],
    ids=str,
)
def test_the_result_is_that_of_one_process(
    client: tallyfold.Client, watched: Watched, options: dict[str, Any]
) -> None:
    alone = collect(client, **options)
    windows, watched.asked = watched.asked, []
    with processes() as pool:
        table = collect(client, executor=pool, **options)
    assert table == alone
    assert table.to_json() == alone.to_json()
    assert table.reported == alone.reported
    assert table.provisional == alone.provisional
    assert sorted(watched.asked) == sorted(windows)


def test_workers_get_all_options_but_those_of_the_whole_collect(client: tallyfold.Client) -> None:
    direct = Direct()
    of_workers: dict[str, Any] = {
        "group_by": [],
        "window": "30m",
        "finest": "5m",
        "settle": 60.0,
        "keep": "total",
        "memory_limit": 10_000_000,
        "patience": 1.0,
    }
    collect(client, executor=direct, part=(0, 2), drop_old=True, probe=True, **of_workers)
    for assignment in direct.assigned:
        assert assignment.options.pop("concurrency") >= 1
        assert assignment.options == of_workers
    assert CollectArguments.__annotations__.keys() >= ONLY_HERE


def test_async_clients_use_executors_too(watched: Watched) -> None:
    async def main(address: str) -> list[tallyfold.CountTable]:
        async with tallyfold.AsyncClient(cluster_endpoint=address, **watched.credentials) as client:
            query = "event_delivery", *DAY, DIMENSIONS
            with processes() as pool:
                table = await client.collect(*query, executor=pool)  # type: ignore[arg-type]
            return [table, await client.collect(*query)]  # type: ignore[arg-type]

    with tallyfold.serve(watched) as server:
        table, alone = asyncio.run(main(server.url))
    assert table.to_json() == alone.to_json()
    assert watched.stats["control_token"] == 1


def test_a_hundred_workers_use_one_token(client: tallyfold.Client, watched: Watched) -> None:
    seen: list[tallyfold.Progress] = []
    with ThreadPoolExecutor(100) as pool:
        table = collect(
            client, executor=pool, concurrency=100, window="1m", on_progress=seen.append
        )
    assert len(seen) >= 100
    assert (seen[-1].planned, seen[-1].done, seen[-1].under_way) == (1440, 1440, 0)
    assert watched.stats["control_token"] == 1
    assert len(watched.asked) == len(set(watched.asked)) == len(table.windows) == 1440


@pytest.mark.parametrize("workers", [None, 2, 3])
def test_concurrency_limits_the_requests_of_all_workers(
    client: tallyfold.Client, watched: Watched, workers: int | None
) -> None:
    lock, full, too_many = threading.Lock(), threading.Barrier(5), threading.Event()
    under_way, most, requests = 0, 0, 0

    def meet(_: str) -> None:
        nonlocal under_way, most, requests
        with lock:
            under_way += 1
            requests += 1
            most = max(most, under_way)
            is_one_of_the_first = requests <= 5
            if under_way > 5:
                too_many.set()
        if is_one_of_the_first:
            full.wait(timeout=60)
            # If more than five may be under way, one more comes meanwhile.
            too_many.wait(0.5)
        with lock:
            under_way -= 1

    watched.meet = meet
    with ThreadPoolExecutor(20) as pool:
        collect(client, executor=pool, workers=workers, concurrency=5)
    assert most == 5


def test_a_dead_worker_costs_its_parts(
    client: tallyfold.Client, watched: Watched, tmp_path: Path
) -> None:
    alone = collect(client)
    watched.asked = []
    with processes() as pool:
        killed: list[int] = []

        def kill(_: tallyfold.Progress) -> None:
            if not killed:
                killed.append(min(pool._processes))  # noqa: SLF001 - no other way
                os.kill(killed[0], signal.SIGKILL)

        with pytest.raises(BrokenProcessPool) as caught:
            collect(client, executor=pool, checkpoint=tmp_path, on_progress=kill)
    assert "The executor has lost the part [2026-01-01T" in caught.value.__notes__[0]
    error: Any = caught.value
    known = {window.start_text for window in error.partial.windows}
    assert 12 <= len(known) < 96
    assert error.partial.gaps(*DAY) == error.gaps

    watched.asked = []
    with processes() as pool:
        table = collect(client, executor=pool, checkpoint=tmp_path)
    # Not their number: a request of the killed worker may be answered only now.
    assert set(watched.asked) == {window.start_text for window in alone.windows} - known
    assert table.to_json() == alone.to_json()
    # And one process alone resumes from the same checkpoint.
    watched.asked = []
    assert collect(client, checkpoint=tmp_path) == alone
    assert watched.asked == []


def test_an_interrupt_keeps_what_was_read(
    client: tallyfold.Client, watched: Watched, tmp_path: Path
) -> None:
    def interrupt(progress: tallyfold.Progress) -> None:
        if progress.done >= 30:
            raise KeyboardInterrupt

    with ThreadPoolExecutor(2) as pool, pytest.raises(KeyboardInterrupt) as caught:
        collect(client, executor=pool, checkpoint=tmp_path, on_progress=interrupt)
    error: Any = caught.value
    known = {window.start_text for window in error.partial.windows}
    assert len(known) >= 30
    watched.asked = []
    with ThreadPoolExecutor(2) as pool:
        table = collect(client, executor=pool, checkpoint=tmp_path)
    assert known.isdisjoint(watched.asked)
    assert table == collect(client)


def test_a_revoked_token_is_replaced_once(client: tallyfold.Client, watched: Watched) -> None:
    revoked = False

    def revoke(_: tallyfold.Progress) -> None:
        nonlocal revoked
        if not revoked:
            watched.revoke_tokens()
            revoked = True

    with processes() as pool:
        table = collect(client, executor=pool, on_progress=revoke)
    assert watched.stats["control_token"] == 2
    assert table == collect(client)
    # Refused were the requests under way, those of a part that began before the first refusal came
    # back, and one of this process.
    assert 1 <= len(watched.asked) - 2 * 96 <= 8 + 4 + 1


def test_a_token_that_expires_is_renewed_for_later_parts(
    client: tallyfold.Client, watched: Watched, clock: Callable[[int], None]
) -> None:
    def meet(_: str) -> None:
        if len(watched.asked) == 48:
            clock(25 * 3600)

    watched.meet = meet
    with ThreadPoolExecutor(2) as pool:
        table = collect(client, executor=pool)
    assert len(table.windows) == 96
    assert watched.stats["control_token"] == 2


def test_tokens_that_are_always_refused_end_it(client: tallyfold.Client, watched: Watched) -> None:
    def spoil(assignment: Any) -> Any:
        return dataclasses.replace(assignment, token=("wrong", 3600))

    executor = Direct(spoil)
    with pytest.raises(tallyfold.AuthError, match="do the workers reach the same") as caught:
        collect(client, executor=executor)
    assert caught.value.code == "token_rejected"
    # The one window that was read in this process.
    assert caught.value.partial is not None
    assert len(caught.value.partial.windows) == 1
    assert len(executor.assigned) <= 16

    watched.inject("revoke_token", endpoint="event_delivery", every=1)
    with pytest.raises(tallyfold.AuthError) as caught:
        collect(client, executor=Direct())
    assert caught.value.code == "token_rejected"
    assert watched.stats["control_token"] <= 6


def test_the_secret_stays_and_tokens_are_not_shown(
    client: tallyfold.Client, watched: Watched
) -> None:
    executor = Direct()
    collect(client, executor=executor, range=HOUR)
    for assignment in executor.assigned:
        token, _ = assignment.token
        data = pickle.dumps(assignment)
        assert token.encode() in data
        assert watched.credentials["client_secret"].encode() not in data
        assert token not in repr(assignment)
        assert token not in str(vars(type(assignment)))
        assert "sandbox" not in repr(assignment.settings)
    with pytest.raises(TypeError, match="holds a secret"):
        pickle.dumps(client)


def test_a_tokenless_client_hands_out_no_token(watched: Watched) -> None:
    watched.meet = lambda _: refusal(403)
    executor = Direct()
    with (
        tallyfold.serve(watched) as server,
        tallyfold.Client(cluster_endpoint=server.url, tokenless=True) as client,
        pytest.raises(tallyfold.ServiceError),
    ):
        collect(client, executor=executor)
    assert [assignment.token for assignment in executor.assigned] == [None] * len(executor.assigned)
    assert watched.stats["control_token"] == 0


def test_settings_of_the_client_go_with_each_part(watched: Watched) -> None:
    headers = {"x-gateway-key": "a gateway's key"}
    limits = tallyfold.Limits(groups=5)
    executor = Direct(lambda assignment: pickle.loads(pickle.dumps(assignment)))
    with (
        tallyfold.serve(watched) as server,
        tallyfold.Client(
            cluster_endpoint=server.url, headers=headers, limits=limits, **watched.credentials
        ) as client,
        pytest.raises(tallyfold.ResponseError) as caught,
    ):
        collect(client, executor=executor)
    assert caught.value.code == "group_limit"
    assert "gateway" not in repr(executor.assigned) + repr(executor.assigned[0].settings)


def test_windows_that_fail_are_named(client: tallyfold.Client, watched: Watched) -> None:
    bad = {"2026-01-01T03:00:00Z", "2026-01-01T17:30:00Z"}
    watched.meet = lambda start: refusal(404) if start in bad else None
    with pytest.raises(tallyfold.ServiceError) as caught:
        collect(client)
    alone = caught.value
    with processes() as pool, pytest.raises(tallyfold.ServiceError) as caught:
        collect(client, executor=pool)
    assert caught.value.partial == alone.partial
    assert caught.value.gaps == alone.gaps
    assert [window for window, _ in caught.value.failures] == [
        window for window, _ in alone.failures
    ]
    assert caught.value.code == alone.code
    assert "(this is the part [2026-01-01T0" in str(caught.value)
    assert ", and 1 more)" in str(caught.value)


def test_counts_come_back_once_and_in_few_bytes(client: tallyfold.Client, watched: Watched) -> None:
    watched.meet = lambda start: refusal(404) if start.endswith("10:15:00Z") else None
    sizes: list[int] = []

    def returned(outcome: Any) -> Any:
        sizes.append(len(pickle.dumps(outcome)))
        return outcome

    with pytest.raises(tallyfold.ServiceError) as caught:
        collect(client, executor=Direct(returned=returned), concurrency=1)
    table = caught.value.partial
    assert table is not None
    assert len(table.windows) == 95
    assert len(sizes) == 4
    assert sum(sizes) < len(table.to_json()) / 5


def test_a_refusal_ends_all_parts(client: tallyfold.Client, watched: Watched) -> None:
    watched.meet = lambda _: refusal(403)
    with processes() as pool, pytest.raises(tallyfold.ServiceError) as caught:
        collect(client, executor=pool)
    assert caught.value.code == "forbidden"
    assert caught.value.partial is None
    assert [gap.start_text for gap in caught.value.gaps] == [DAY[0]]
    assert len(watched.asked) <= 16


@pytest.mark.parametrize(
    ("returned", "error"),
    [
        (lambda _: None, "want the result of what was submitted, not another NoneType"),
        (lambda outcome: dataclasses.replace(outcome, task=outcome.task + 1), "not another"),
        (lambda outcome: dataclasses.replace(outcome, table=outcome.table[:-9]), "invalid_table"),
    ],
)
def test_results_that_are_lost_or_damaged(
    client: tallyfold.Client, returned: Callable[[Any], Any], error: str
) -> None:
    with pytest.raises(tallyfold.TallyfoldError, match=error) as caught:
        collect(client, executor=Direct(returned=returned))
    assert caught.value.partial is None


def test_a_result_counts_only_for_its_part(client: tallyfold.Client) -> None:
    first: list[Any] = []

    def returned(outcome: Any) -> Any:
        first.append(outcome.table)
        return dataclasses.replace(outcome, table=first[0])

    with pytest.raises(tallyfold.ConfigError, match="want a table of the assigned time") as caught:
        collect(client, executor=Direct(returned=returned), concurrency=1)
    assert caught.value.code == "incompatible_tables"
    assert caught.value.partial is not None
    assert len(caught.value.partial.windows) == 24


def test_an_executor_that_was_shut_down_is_an_error(client: tallyfold.Client) -> None:
    with ThreadPoolExecutor(1) as pool:
        pass
    with pytest.raises(RuntimeError, match="shutdown") as caught:
        collect(client, executor=pool)
    assert "The executor has lost the part [2026-01-01T00:00:00Z" in caught.value.__notes__[0]


def test_what_a_worker_raises_is_raised(client: tallyfold.Client) -> None:
    def fail(_: Any) -> Any:
        raise MemoryError("a worker's")

    with pytest.raises(MemoryError, match="a worker's") as caught:
        collect(client, executor=Direct(fail))
    assert "Collect again to read only what is missing" in caught.value.__notes__[0]


def test_a_part_that_never_comes_back_ends_with_the_deadline(client: tallyfold.Client) -> None:
    class Silent(Direct):
        def submit(self, function: Any, /, *arguments: Any, **_: Any) -> "Future[Any]":
            return Future() if self.assigned else super().submit(function, *arguments)

    # On a busy machine, the first deadline may pass before anything was read.
    for deadline in (0.5, 5.0, 50.0):
        with pytest.raises(tallyfold.ServiceError) as caught:
            collect(client, executor=Silent(), deadline=deadline)
        if caught.value.partial is not None:
            break
    assert caught.value.code == "deadline_exceeded"
    assert caught.value.partial is not None


def test_attempts_are_reported_here(watched: Watched) -> None:
    attempts: list[tallyfold.Attempt] = []
    with (
        tallyfold.serve(watched) as server,
        tallyfold.Client(
            cluster_endpoint=server.url, on_attempt=attempts.append, **watched.credentials
        ) as client,
        processes() as pool,
    ):
        collect(client, executor=pool)
    targets = [attempt.target for attempt in attempts]
    assert targets.count("token") == 1
    assert targets.count("event_delivery") == 96


def test_what_can_not_be_is_refused_before_anything_is_sent(
    client: tallyfold.Client, watched: Watched
) -> None:
    pool: Any = Direct()
    cases: list[tuple[dict[str, Any], str]] = [
        ({"executor": "processes"}, "executor"),
        ({"executor": pool, "workers": 0}, "workers"),
        ({"executor": pool, "workers": True}, "workers"),
        ({"workers": 2}, "workers"),
    ]
    for options, argument in cases:
        with pytest.raises(tallyfold.ConfigError) as caught:
            collect(client, **options)
        assert caught.value.argument == argument
    sandbox = busy_day()
    others: list[dict[str, Any]] = [
        {"transport": sandbox.transport()},
        {"ca": ssl.create_default_context()},
    ]
    for arguments in others:
        with tallyfold.Client(
            cluster_endpoint="https://sandbox.example", **arguments, **sandbox.credentials
        ) as other:
            with pytest.raises(tallyfold.ConfigError) as caught:
                collect(other, executor=pool)
            assert caught.value.argument == "executor"
    assert watched.stats["control_token"] == 0
    assert pool.assigned == []
