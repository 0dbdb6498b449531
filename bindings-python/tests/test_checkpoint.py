"""Checkpoints: jobs that are killed and go on, and stores that are torn, foreign or broken."""

import asyncio
import errno
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, ClassVar

import httpx2
import pytest
from service import DAY, HOUR, Service, busy_day, collecting_threads, truth

import tallyfold

DIMENSIONS: list[tallyfold.DimensionName] = ["integration"]

JOB = """
import sys, tallyfold
url, checkpoint, secret = sys.argv[1:]
with tallyfold.Client(
    cluster_endpoint=url, client_id="sandbox-client", client_secret=secret,
    control_audience="sandbox-control",
) as client:
    client.collect(
        "event_delivery", "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z", ["integration"],
        window="5m", concurrency=4, checkpoint=checkpoint,
        on_progress=lambda now: print(now.window.start_text, flush=True),
    )
"""


class Counting(tallyfold.Sandbox):
    """A sandbox that remembers which windows were asked for."""

    asked: ClassVar[list[str]] = []

    def handle(self, method: str, target: str, *rest: Any) -> tallyfold.SandboxResponse:
        if "event_delivery" in target:
            self.asked.append(json.loads(rest[1])["start"])
        return super().handle(method, target, *rest)


def stored_windows(directory: Path) -> set[str]:
    files = directory.glob("segment-*.json")
    tables = (json.loads(file.read_bytes())["table"] for file in files)
    return {window["start"] for table in tables for window in table["windows"]}


def test_a_killed_job_goes_on_where_it_ended(tmp_path: Path) -> None:
    service = Counting(seed=5)
    # So slow that a job can be killed in the middle.
    service.inject("delay", endpoint="event_delivery", milliseconds=2, every=1)
    number = random.Random(7)
    checkpoint = tmp_path / "new" / "checkpoint"
    kills = 0
    with tallyfold.serve(service) as server:
        arguments = [server.url, str(checkpoint), service.credentials["client_secret"]]
        before: set[str] = set()
        for lines in (number.randrange(5, 60) for _ in range(6)):
            service.asked.clear()
            job = subprocess.Popen([sys.executable, "-c", JOB, *arguments], stdout=subprocess.PIPE)
            assert job.stdout
            for _ in range(lines):
                job.stdout.readline()
            job.send_signal(signal.SIGKILL)
            kills += job.wait() == -signal.SIGKILL
            told = set(job.stdout.read().decode().split())
            job.stdout.close()
            # What the job has asked for last is noted, too.
            until = time.monotonic() + 60
            while server._server._connections:  # noqa: SLF001
                assert time.monotonic() < until
                time.sleep(0.001)
            after = stored_windows(checkpoint)
            # Whatever was told of as read is stored, and is never asked for again.
            assert told <= after
            assert before.isdisjoint(service.asked)
            before = after
        (checkpoint / "segment-00000.json.1.tmp").write_bytes(b"{")

        service.asked.clear()
        with tallyfold.Client(cluster_endpoint=server.url, **service.credentials) as client:
            table = client.collect(
                "event_delivery", *DAY, DIMENSIONS, window="5m", checkpoint=checkpoint
            )
            assert before.isdisjoint(service.asked)
            assert len(service.asked) == 288 - len(before)
            whole = client.collect("event_delivery", *DAY, DIMENSIONS, window="5m")
    assert kills >= 4
    assert table.to_json() == whole.to_json()
    assert list(checkpoint.glob("*.tmp")) == []


def collect(service: Service, checkpoint: Any, **options: Any) -> tallyfold.CountTable:
    start, end = options.pop("range", HOUR)
    with service.client() as client:
        return client.collect(
            "event_delivery", start, end, DIMENSIONS, checkpoint=checkpoint, **options
        )


def acollect(service: Service, checkpoint: Any, **options: Any) -> tallyfold.CountTable:
    start, end = options.pop("range", HOUR)

    async def main() -> tallyfold.CountTable:
        async with service.async_client() as client:
            return await client.collect(
                "event_delivery", start, end, DIMENSIONS, checkpoint=checkpoint, **options
            )

    return asyncio.run(main())


BOTH = pytest.mark.parametrize("run", [collect, acollect])


@BOTH
def test_what_is_stored_is_not_read_again(tmp_path: Path, run: Any) -> None:
    service = Service(busy_day())
    table = run(service, tmp_path)
    assert len(service.asked) == 4
    again = run(service, str(tmp_path))
    assert len(service.asked) == 4
    assert again.to_json() == table.to_json()
    assert [path.name for path in tmp_path.iterdir()] == ["segment-00000.json"]


@BOTH
def test_a_torn_checkpoint_is_refused(tmp_path: Path, run: Any) -> None:
    service = Service(busy_day())
    run(service, tmp_path)
    file = tmp_path / "segment-00000.json"
    whole = file.read_bytes()
    service.asked.clear()
    for length in (0, 1, 100, len(whole) // 2, len(whole) - 1):
        file.write_bytes(whole[:length])
        with pytest.raises(tallyfold.ConfigError) as caught:
            run(service, tmp_path)
        assert caught.value.code == "invalid_checkpoint"
        assert caught.value.path is not None
    assert service.asked == []


@BOTH
def test_a_foreign_checkpoint_is_refused(tmp_path: Path, run: Any) -> None:
    service = Service(busy_day())
    run(service, tmp_path)
    service.asked.clear()
    for options in ({"keep": "1h"}, {"window": "5m"}, {"part": (0, 2)}):
        with pytest.raises(
            tallyfold.ConfigError, match="isn't a checkpoint of this query"
        ) as caught:
            run(service, tmp_path, **options)
        assert caught.value.code == "invalid_checkpoint"
        # Which file it is, and what can be done.
        assert str(tmp_path / "segment-00000.json") in str(caught.value)
        assert "use another checkpoint, or remove this segment" in str(caught.value)
    assert service.asked == []


@BOTH
def test_a_directory_that_can_not_be_is_an_error_at_once(tmp_path: Path, run: Any) -> None:
    service = Service(busy_day())
    file = tmp_path / "file"
    file.write_text("no directory")
    for path in (file, file / "below"):
        with pytest.raises(OSError, match="file"):
            run(service, path)
    assert service.sandbox.stats["control_token"] == 0


@BOTH
def test_a_disk_that_is_full_loses_nothing(
    tmp_path: Path, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = Service(busy_day())
    sync = os.fsync
    room = 3

    def fsync(file: int) -> None:
        nonlocal room
        room -= 1
        if room < 0:
            raise OSError(errno.ENOSPC, "no space")
        sync(file)

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(OSError, match="no space") as caught:
        run(service, tmp_path, range=DAY, concurrency=1)
    error: Any = caught.value
    assert len(error.partial.windows) >= 2
    assert error.partial.gaps(*DAY) == error.gaps
    assert collecting_threads() == []
    assert list(tmp_path.glob("*.tmp")) == []
    monkeypatch.undo()
    # The segment that was stored before the disk was full is whole.
    table = run(service, tmp_path, range=DAY)
    assert list(table) == truth(service.sandbox, *DAY)


@BOTH
def test_one_collect_at_a_time(tmp_path: Path, run: Any) -> None:
    service = Service(busy_day())

    def intrude(_: tallyfold.Progress) -> None:
        with pytest.raises(BlockingIOError, match="another collect is using this checkpoint"):
            collect(Service(busy_day()), tmp_path)

    run(service, tmp_path, on_progress=intrude)
    assert len(service.asked) == 4
    # And after an end of any kind the directory is free.
    other = tmp_path / "other"
    with pytest.raises(ZeroDivisionError):
        run(service, other, on_progress=lambda _: 1 // 0)
    run(service, other)


def test_what_was_read_is_stored_when_something_else_ends_it(tmp_path: Path) -> None:
    service = Service(busy_day())

    def refuse(progress: tallyfold.Progress) -> None:
        if progress.done >= 20:
            raise KeyboardInterrupt

    for run in (collect, acollect):
        checkpoint = tmp_path / run.__name__
        service.asked.clear()
        with pytest.raises(KeyboardInterrupt) as caught:
            run(service, checkpoint, range=DAY, on_progress=refuse)
        error: Any = caught.value
        stored = stored_windows(checkpoint)
        assert stored == {window.start_text for window in error.partial.windows}
        assert len(stored) >= 20
        service.asked.clear()
        assert list(run(service, checkpoint, range=DAY)) == truth(service.sandbox, *DAY)
        assert stored.isdisjoint(service.asked[:-1])


class Shelf:
    """A store in memory that breaks when it is told to."""

    def __init__(self) -> None:
        self.segments: dict[str, bytes] = {}
        self.threads: set[threading.Thread] = set()
        self.saves = 0
        self.breaks_at: int | None = None

    def load(self, name: str) -> bytes | None:
        return self.segments.get(name)

    def save(self, name: str, data: bytes) -> None:
        self.threads.add(threading.current_thread())
        self.saves += 1
        if self.saves == self.breaks_at:
            raise LookupError(name)
        self.segments[name] = data


@BOTH
def test_a_store_of_the_caller(run: Any) -> None:
    service, shelf = Service(busy_day()), Shelf()
    shelf.breaks_at = 3
    with pytest.raises(LookupError) as caught:
        run(service, shelf, range=DAY, concurrency=1)
    assert caught.value.args == ("segment-00000.json",)
    # What could not be stored was offered once more.
    stored = len(json.loads(shelf.segments["segment-00000.json"])["table"]["windows"])
    assert stored in {3, 4}
    assert shelf.saves == stored + 1
    assert shelf.threads == {threading.main_thread()}
    service.asked.clear()
    assert list(run(service, shelf, range=DAY)) == truth(service.sandbox, *DAY)
    assert len(service.asked) == 96 - stored


def test_a_slow_store_slows_the_reading() -> None:
    service = Service(busy_day())

    class Slow:
        most_unsaved = 0

        def load(self, _: str) -> None:
            return None

        async def save(self, _: str, data: bytes) -> None:
            # Turns enough for all that may be read meanwhile.
            for _turn in range(100):
                await asyncio.sleep(0)
            stored = len(json.loads(data)["table"]["windows"])
            self.most_unsaved = max(self.most_unsaved, len(service.asked) - stored)

    shelf = Slow()
    acollect(service, shelf, range=DAY, concurrency=3)
    # Two that wait, and three that were under way when the second of them ended.
    assert shelf.most_unsaved == 5


def test_large_states_are_many_segments() -> None:
    service, shelf = Service(tallyfold.Sandbox(seed=1)), Shelf()
    names: list[tallyfold.DimensionName] = ["event_name", "write_key", "integration", "reason"]
    with service.client() as client:
        whole = client.collect("event_delivery", *DAY, names, checkpoint=shelf)
    assert sorted(shelf.segments) == [
        tallyfold.segment_name(number) for number in range(len(shelf.segments))
    ]
    assert len(shelf.segments) > 3
    assert max(map(len, shelf.segments.values())) < 400_000
    service.asked.clear()
    with service.client() as client:
        again = client.collect("event_delivery", *DAY, names, checkpoint=shelf)
    assert (again.to_json(), service.asked) == (whole.to_json(), [])


def test_nothing_secret_is_stored(tmp_path: Path) -> None:
    sandbox = tallyfold.Sandbox(seed=1, client_id="public-id", client_secret="canary-secret")
    tokens: list[str] = []

    class Eavesdropper(Service):
        def handle_request(self, request: httpx2.Request) -> httpx2.Response:
            tokens.append(request.headers.get("authorization", ""))
            return super().handle_request(request)

    with Eavesdropper(sandbox).client() as client:
        client.collect("event_delivery", *HOUR, DIMENSIONS, checkpoint=tmp_path)
    token = tokens[-1].removeprefix("Bearer ").encode()
    assert len(token) > 10
    files = list(tmp_path.iterdir())
    assert {path.name for path in files} == {"segment-00000.json"}
    for path in files:
        for secret in (b"canary", token, b"Bearer"):
            assert secret not in path.read_bytes()
