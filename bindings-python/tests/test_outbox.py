"""Revisions that are sent once each, over restarts."""

import asyncio
import itertools
import os
import pathlib
import threading
import time
from collections.abc import Callable
from typing import Any

import httpx2
import pytest
from support import connect, interrupting, interrupting_at, record
from test_push import locals_of

import tallyfold

QUERY: tuple[Any, ...] = ("event_delivery", "2026-01-01T00:00:00Z", ["integration"])
LAST = "2026-01-01T02:00:00Z"
URL = "http://127.0.0.1:9/write"

Send = Callable[..., tallyfold.PushReport | None]


class Killed(BaseException):
    """Ends the process, as far as an outbox knows."""


class Receiver(httpx2.BaseTransport, httpx2.AsyncBaseTransport):
    """Notes what it took, and kills the sender before or after every third message."""

    def __init__(self) -> None:
        self.points: dict[str, str] = {}
        self.seen = 0

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        self.seen += 1
        if self.seen % 6 == 3:
            raise Killed
        for line in request.content.decode().splitlines():
            series, fields, at = line.rsplit(" ", 2)
            assert self.points.setdefault(f"{series} {at}", fields) == fields
        if self.seen % 6 == 0:
            raise Killed
        return httpx2.Response(204)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        return self.handle_request(request)

    def sum(self) -> int:
        return sum(
            int(field.partition("=")[2].removesuffix("i"))
            for fields in self.points.values()
            for field in fields.split(",")
        )


@pytest.fixture(params=["push", "async_push"])
def send(request: pytest.FixtureRequest) -> Send:
    """Gives both ways to push."""
    if request.param == "push":
        return lambda outbox, *args, **options: outbox.push(*args, **options)
    return lambda outbox, *args, **options: asyncio.run(outbox.async_push(*args, **options))


def test_each_revision_arrives_once(send: Send, tmp_path: pathlib.Path) -> None:
    sandbox = tallyfold.Sandbox()
    for number in range(8):
        for row in range(30):
            at = f"2026-01-01T{number // 4:02}:{number % 4 * 15 + 5:02}:00Z"
            record(sandbox, "success", f"n{row:02}", count=number + 1, at=at)
    path, receiver = tmp_path / "outbox.json", Receiver()
    runs = 0
    with connect(sandbox) as client:
        while True:
            runs += 1
            # A new process: nothing but the file is left.
            outbox = tallyfold.Outbox(path, "influx")
            options: Any = {"transport": receiver, "max_bytes": 1000}
            try:
                send(outbox, URL, **options)
                with client.follow(*QUERY, window="15m", end=LAST, state=outbox.state) as revisions:
                    for revision in revisions:
                        outbox.put(revision, revisions.state())
                        assert outbox.is_pending
                        assert send(outbox, URL, **options) is not None
                break
            except Killed:
                assert tallyfold.Outbox(path, "influx").is_pending
        whole = client.event_delivery(QUERY[1], LAST, QUERY[2])
    assert runs > 5
    assert receiver.sum() == whole.totals.success == 30 * 36
    assert repr(outbox) == "<Outbox of influx: empty>"


def test_what_was_under_way_when_a_process_ended_is_in_doubt(
    send: Send, client: tallyfold.Client, tmp_path: pathlib.Path
) -> None:
    path, bodies = tmp_path / "outbox.json", []

    class Dying(httpx2.BaseTransport, httpx2.AsyncBaseTransport):
        def handle_request(self, request: httpx2.Request) -> httpx2.Response:
            bodies.append(request.content)
            if len(bodies) == 1:
                raise Killed
            return httpx2.Response(200)

        async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
            return self.handle_request(request)

    transport = Dying()
    outbox = tallyfold.Outbox(path, "otlp-json")
    with client.follow(*QUERY, window="15m", end=LAST) as revisions:
        outbox.put(next(revisions), revisions.state())
    with pytest.raises(Killed):
        send(outbox, URL, transport=transport)
    # A new process: nothing but the file is left, and what was being written when it was killed.
    (tmp_path / "outbox.json.new").write_text("torn")
    again = tallyfold.Outbox(path, "otlp-json")
    report = send(again, URL, transport=transport)
    assert report is not None
    assert (report.unsure, report.messages, len(bodies)) == (3, 0, 1)
    assert not again.is_pending
    assert send(again, URL, transport=transport) is None
    assert [file.name for file in tmp_path.iterdir()] == ["outbox.json"]
    if os.name == "posix":
        assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("turns", range(7))
def test_samples_in_doubt_are_reported_though_the_next_push_is_cancelled(
    client: tallyfold.Client, tmp_path: pathlib.Path, turns: int
) -> None:
    path, sent = tmp_path / "outbox.json", asyncio.Event()

    async def hang(_: httpx2.Request) -> httpx2.Response:
        sent.set()
        return await asyncio.Future()

    taken = httpx2.MockTransport(lambda _: httpx2.Response(200))
    outbox = tallyfold.Outbox(path, "otlp-json")
    with client.follow(*QUERY, window="15m", end=LAST) as revisions:
        outbox.put(next(revisions), revisions.state())

    async def push_thrice() -> tuple[int, tallyfold.PushReport | None]:
        first = asyncio.ensure_future(outbox.async_push(URL, transport=httpx2.MockTransport(hang)))
        await sent.wait()
        first.cancel()
        await asyncio.wait([first])
        second = asyncio.ensure_future(
            tallyfold.Outbox(path, "otlp-json").async_push(URL, transport=taken)
        )
        for _ in range(turns):
            await asyncio.sleep(0)
        second.cancel()
        await asyncio.wait([second])
        returned = None if second.cancelled() else second.result()
        third = await tallyfold.Outbox(path, "otlp-json").async_push(URL, transport=taken)
        return 0 if returned is None else returned.unsure, third

    before, report = asyncio.run(push_thrice())
    assert before + (report.unsure if report is not None else 0) == 3
    assert tallyfold.Outbox(path, "otlp-json").push(URL, transport=taken) is None


def test_samples_in_doubt_are_reported_after_a_drop(
    send: Send, client: tallyfold.Client, tmp_path: pathlib.Path
) -> None:
    path = tmp_path / "outbox.json"

    def die(_: httpx2.Request) -> httpx2.Response:
        raise Killed

    outbox = tallyfold.Outbox(path, "otlp-json")
    with client.follow(*QUERY, window="15m", end=LAST) as revisions:
        outbox.put(next(revisions), revisions.state())
    with pytest.raises(Killed):
        send(outbox, URL, transport=httpx2.MockTransport(die))
    tallyfold.Outbox(path, "otlp-json").drop()
    again = tallyfold.Outbox(path, "otlp-json")
    report = send(again, URL, transport=httpx2.MockTransport(die))
    assert report is not None
    assert (report.samples, report.unsure) == (0, 3)
    assert send(again, URL, transport=httpx2.MockTransport(die)) is None


def test_a_damaged_file_is_named(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "outbox.json"
    for damaged in (b"", b'{"format": "tallyfold-out', b"{}"):
        path.write_bytes(damaged)
        with pytest.raises(tallyfold.ConfigError) as raised:
            tallyfold.Outbox(path, "influx")
        assert raised.value.code == "invalid_checkpoint"
        assert str(raised.value).startswith(f"invalid_checkpoint: {path}: ")


def test_one_revision_at_a_time(client: tallyfold.Client, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "outbox.json"
    outbox = tallyfold.Outbox(path, "influx")
    with client.follow(*QUERY, window="15m", end=LAST) as revisions:
        outbox.put(next(revisions), revisions.state())
        with pytest.raises(tallyfold.ConfigError, match="out_of_order"):
            outbox.put(next(revisions), revisions.state())
    with pytest.raises(tallyfold.ConfigError, match=r"format: .*influx"):
        tallyfold.Outbox(path, "otlp")
    outbox.drop()
    assert not tallyfold.Outbox(path, "otlp").is_pending
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(tallyfold.ConfigError, match="invalid_checkpoint"):
        tallyfold.Outbox(path, "influx")


@pytest.fixture
def two(client: tallyfold.Client) -> list[tuple[tallyfold.Revision, str]]:
    """Gives two revisions, each with the state of its follow after it."""
    with client.follow(*QUERY, window="15m", end=LAST) as revisions:
        return [(revision, revisions.state()) for revision in itertools.islice(revisions, 2)]


def test_one_thing_at_a_time(send: Send, two: Any, tmp_path: pathlib.Path) -> None:
    outbox = tallyfold.Outbox(tmp_path / "outbox.json", "influx")
    refused: list[object] = []
    seen: list[bytes] = []

    def refusal(act: Callable[[], object]) -> None:
        try:
            refused.append(act())
        except tallyfold.ConfigError as error:
            refused.append(error.code)

    def handle(request: httpx2.Request) -> httpx2.Response:
        seen.append(request.content)
        if len(seen) == 1:
            for act in (
                lambda: outbox.put(*two[1]),
                outbox.drop,
                lambda: outbox.push(URL, transport=receiver),
                lambda: asyncio.run(outbox.async_push(URL, transport=receiver)),
            ):
                thread = threading.Thread(target=refusal, args=[act])
                thread.start()
                thread.join()
        return httpx2.Response(204)

    receiver = httpx2.MockTransport(handle)
    outbox.put(*two[0])
    assert send(outbox, URL, transport=receiver) is not None
    assert refused == ["out_of_order"] * 4
    assert len(seen) == 1
    outbox.put(*two[1])
    assert (outbox.is_pending, outbox.state) == (True, two[1][1])


def test_of_two_tasks_one_sends(two: Any, tmp_path: pathlib.Path) -> None:
    outbox = tallyfold.Outbox(tmp_path / "outbox.json", "influx")
    outbox.put(*two[0])
    receiver = Receiver()

    async def main() -> list[Any]:
        pushes = [outbox.async_push(URL, transport=receiver) for _ in range(2)]
        return await asyncio.gather(*pushes, return_exceptions=True)

    report, refused = asyncio.run(main())
    assert report.messages == receiver.seen == 1
    assert refused.code == "out_of_order"


@pytest.mark.skipif(os.name != "posix", reason="speaks of pipes")
@pytest.mark.parametrize("kind", ["pipe", "folder", "/dev/zero", "/dev/full"])
def test_only_a_regular_file_holds_a_state(kind: str, tmp_path: pathlib.Path) -> None:
    path = tmp_path / kind
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    for make in (tallyfold.Ledger, lambda path: tallyfold.Outbox(path, "influx")):
        with pytest.raises(tallyfold.ConfigError, match="is not a regular file") as refused:
            make(path)
        assert (refused.value.code, refused.value.argument) == ("invalid_argument", "path")


def test_a_cancelled_push_ends_after_its_file(
    two: Any, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "outbox.json"
    outbox = tallyfold.Outbox(path, "influx")
    outbox.put(*two[0])
    before = path.read_bytes()
    may_store = threading.Event()
    monkeypatch.setattr(os, "fsync", lambda _: may_store.wait(60))

    async def main() -> None:
        receiver = Receiver()
        task = asyncio.create_task(outbox.async_push(URL, transport=receiver, max_bytes=1))
        async with asyncio.timeout(60):
            while not receiver.seen:  # noqa: ASYNC110 - nothing tells
                await asyncio.sleep(0)
        for cancels in range(40):
            await asyncio.sleep(0)
            if receiver.seen and cancels > 20:
                task.cancel()
        is_over = task.done()
        with pytest.raises(tallyfold.ConfigError) as refused:
            outbox.put(*two[1])
        assert not is_over
        assert path.read_bytes() == before
        may_store.set()
        assert "under way" in str(refused.value)
        with pytest.raises(asyncio.CancelledError):
            await task
        assert receiver.seen == 1
        assert path.read_bytes() != before
        assert await outbox.async_push(URL, transport=httpx2.MockTransport(taken)) is not None

    def taken(_: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(204)

    asyncio.run(main())
    outbox.put(*two[1])
    assert (outbox.is_pending, outbox.state) == (True, two[1][1])


SECRET = "Token a-secret-of-the-target"


# The collector closes a file that an interrupt has left open.
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize("work", ["put", "push", "drop"])
def test_an_interrupt_at_any_moment_keeps_nobody_out(
    work: str, two: Any, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # None of the hundreds of files has to survive a power failure.
    monkeypatch.setattr(os, "fsync", lambda _: None)
    (revision, state), later = two
    for position in itertools.count():
        path, points = tmp_path / f"{position}.json", set[str]()

        def handle(request: httpx2.Request, points: set[str] = points) -> httpx2.Response:
            points.update(request.content.decode().splitlines())
            return httpx2.Response(204)

        receiver = httpx2.MockTransport(handle)
        outbox = tallyfold.Outbox(path, "influx")
        if work != "put":
            outbox.put(revision, state)
        try:
            with interrupting_at(position):
                if work == "put":
                    outbox.put(revision, state)
                elif work == "push":
                    outbox.push(URL, transport=receiver)
                else:
                    outbox.drop()
        except KeyboardInterrupt:
            # The frames of the interrupted call still exist here.
            outbox.push(URL, transport=receiver)
            again = tallyfold.Outbox(path, "influx")
            again.push(URL, transport=receiver)
            if again.state is None:
                again.put(revision, state)
                again.push(URL, transport=receiver)
            again.put(*later)
            assert again.push(URL, transport=receiver) is not None
            assert work == "drop" or len(points) == 3
            assert list(tmp_path.iterdir()) == [path]
            path.unlink()
        else:
            assert position > 100
            return


def test_an_interrupt_in_another_thread_keeps_nobody_out(two: Any, tmp_path: pathlib.Path) -> None:
    path, held = tmp_path / "outbox.json", list[BaseException]()
    outbox = tallyfold.Outbox(path, "influx")

    def put() -> None:
        try:
            with interrupting("Lock.release", "call"):
                outbox.put(*two[0])
        except KeyboardInterrupt as error:
            held.append(error)

    thread = threading.Thread(target=put)
    thread.start()
    thread.join()
    assert len(held) == 1
    asyncio.run(outbox.async_push(URL, transport=Receiver()))
    tallyfold.Outbox(path, "influx").put(*two[1])


def test_a_lock_that_an_interrupt_has_left_is_removed(
    two: Any, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tallyfold._files.lock.SIGN_OF_LIFE", 0.02)
    outbox = tallyfold.Outbox(tmp_path / "outbox.json", "influx")
    with interrupting("Lock.release", "call"), pytest.raises(KeyboardInterrupt):
        outbox.put(*two[0])
    until = time.monotonic() + 60
    while (tmp_path / "outbox.json.lease").exists():
        assert time.monotonic() < until
        time.sleep(0.001)


def test_no_frame_shows_the_headers(send: Send, two: Any, tmp_path: pathlib.Path) -> None:
    outbox = tallyfold.Outbox(tmp_path / "outbox.json", "influx")
    outbox.put(*two[0])
    inside: list[BaseException] = []

    def handle(_: httpx2.Request) -> httpx2.Response:
        try:
            outbox.push("http://u:" + SECRET, headers={"authorization": SECRET})
        except tallyfold.ConfigError as error:
            inside.append(error)
        return httpx2.Response(400)

    options: Any = {
        "headers": {"authorization": SECRET},
        "transport": httpx2.MockTransport(handle),
    }
    with pytest.raises(tallyfold.ServiceError) as raised:
        send(outbox, URL, **options)
    with pytest.raises(tallyfold.ConfigError) as refused:
        send(outbox, "ftp://u:" + SECRET, **options)
    for error in (raised.value, refused.value, *inside):
        shown = locals_of(error)
        assert "<Outbox of influx" in shown
        assert SECRET not in shown


def test_wrong_arguments(table: tallyfold.CountTable, two: Any, tmp_path: pathlib.Path) -> None:
    outbox: Any = tallyfold.Outbox(tmp_path / "outbox.json", "influx")
    with pytest.raises(tallyfold.ConfigError, match="revision: want a Revision"):
        outbox.put(table, "state")
    for state, message in [("", "want the state"), (two[0][1][:-1], "damaged or changed")]:
        with pytest.raises(tallyfold.ConfigError, match=f"state: .*{message}"):
            outbox.put(two[0][0], state)
    made: Any = tallyfold.Outbox
    with pytest.raises(tallyfold.ConfigError, match="format: want"):
        made(tmp_path / "outbox.json", "prometheus")
    with pytest.raises(tallyfold.ConfigError, match="path: this is empty"):
        made("", "influx")
    assert list(tmp_path.iterdir()) == []


def test_two_processes_never_send_the_same(
    send: Send, client: tallyfold.Client, tmp_path: pathlib.Path
) -> None:
    path, receiver = tmp_path / "outbox.json", Receiver()
    outbox = tallyfold.Outbox(path, "influx")
    with client.follow(*QUERY, window="15m", end=LAST) as revisions:
        outbox.put(next(revisions), revisions.state())
    other = tallyfold.Outbox(path, "influx")
    assert send(outbox, URL, transport=receiver) is not None
    arrived = receiver.sum()
    assert arrived > 0
    with pytest.raises(BlockingIOError, match="since it was read"):
        send(other, URL, transport=receiver)
    assert receiver.sum() == arrived
    assert [file.name for file in tmp_path.iterdir()] == ["outbox.json"]


@pytest.mark.parametrize("way", ["replace", "remove"])
def test_nothing_is_stored_without_the_lock(
    way: str, send: Send, client: tallyfold.Client, tmp_path: pathlib.Path
) -> None:
    path, lost = tmp_path / "outbox.json", []

    def lose(_: httpx2.Request) -> httpx2.Response:
        (lock,) = (tmp_path / "outbox.json.lease").glob("lock-*")
        if way == "replace":
            (tmp_path / "other").touch()
            (tmp_path / "other").replace(lock)
        else:
            lock.unlink()
        lost.append(path.read_bytes())
        return httpx2.Response(204)

    outbox = tallyfold.Outbox(path, "influx")
    with client.follow(*QUERY, window="15m", end=LAST) as revisions:
        outbox.put(next(revisions), revisions.state())
    with pytest.raises(BlockingIOError, match="another process is writing this file"):
        send(outbox, URL, transport=httpx2.MockTransport(lose))
    assert [path.read_bytes()] == lost
    assert outbox.is_pending
    # The lock can be taken again, and the push sends the same points.
    assert send(outbox, URL, transport=Receiver()) is not None


def test_an_older_file_is_noticed_where_the_receiver_refuses_another_value(
    send: Send, tmp_path: pathlib.Path
) -> None:
    path, points = tmp_path / "outbox.json", dict[str, str]()

    def handle(request: httpx2.Request) -> httpx2.Response:
        for line in request.content.decode().splitlines():
            series, fields, at = line.rsplit(" ", 2)
            if points.setdefault(f"{series} {at}", fields) != fields:
                return httpx2.Response(400)
        return httpx2.Response(204)

    sandbox = tallyfold.Sandbox()
    options: Any = {
        "window": "15m",
        "end": "2026-01-01T00:15:00Z",
        "settle": 315_360_000,
        "reread": 0.001,
    }

    def live(count: int) -> None:
        """Lives as a process that reads the window once more, after more events."""
        record(sandbox, "success", "a", count=count)
        outbox = tallyfold.Outbox(path, "influx")
        with (
            connect(sandbox) as client,
            client.follow(*QUERY, **options, state=outbox.state) as revisions,
        ):
            outbox.put(next(revisions), revisions.state())
        send(outbox, URL, transport=httpx2.MockTransport(handle))

    live(1)
    older = path.read_bytes()
    live(2)
    path.write_bytes(older)
    with pytest.raises(tallyfold.ServiceError) as error:
        live(4)
    assert (error.value.code, error.value.status) == ("unexpected_status", 400)
    assert tallyfold.Outbox(path, "influx").is_pending
    assert [fields.split(",")[0] for fields in points.values()] == ["success=1i", "success=2i"]
