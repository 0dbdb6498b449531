"""Pushes, to receivers on loopback that fail in every way."""

import asyncio
import contextlib
import http.server
import json
import pickle
import socket
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import httpx2
import pytest
from support import body

import tallyfold
from tallyfold._export.async_sender import AsyncSender
from tallyfold._export.sender import Sender

Answer = int | tuple[int, dict[str, str], bytes] | str
Pusher = Callable[..., tallyfold.PushReport]

SECRET = "Token a-secret-of-the-target"


class Receiver:
    """A server that answers what it is told, then takes everything."""

    def __init__(self) -> None:
        self.answers: list[Answer] = []
        self.seen: list[tuple[str, dict[str, str], bytes]] = []
        self.taken: list[bytes] = []
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                length = int(self.headers["content-length"])
                outer.take(self, self.rfile.read(length))

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002
                """Says nothing."""

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=[0.01])
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_port}/write?db=counts"

    def take(self, request: http.server.BaseHTTPRequestHandler, data: bytes) -> None:
        headers = {name.lower(): value for name, value in request.headers.items()}
        self.seen.append((request.path, headers, data))
        answer = self.answers.pop(0) if self.answers else 204
        if answer in ("broken", "taken and broken"):
            if answer == "taken and broken":
                self.taken.append(data)
            request.connection.shutdown(socket.SHUT_RDWR)
            request.close_connection = True
            return
        assert not isinstance(answer, str)
        status, more, text = (answer, {}, b"") if isinstance(answer, int) else answer
        if status < 300:
            self.taken.append(data)
        request.send_response(status)
        for name, value in more.items():
            request.send_header(name, value)
        if status != 204:
            request.send_header("content-length", str(len(text)))
        request.end_headers()
        request.wfile.write(text)

    def points(self) -> dict[str, str]:
        """The newest fields of each point of InfluxDB."""
        found = {}
        for line in b"".join(self.taken).decode().splitlines():
            series, fields, at = line.rsplit(" ", 2)
            found[f"{series} {at}"] = fields
        return found

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """Gives a server on loopback."""
    with contextlib.closing(Receiver()) as made:
        yield made


@pytest.fixture(params=["push", "async_push"])
def push(request: pytest.FixtureRequest) -> Pusher:
    """Gives both ways to push."""
    if request.param == "push":
        return tallyfold.push

    async def push(*args: Any, **kwargs: Any) -> tallyfold.PushReport:
        return await tallyfold.async_push(*args, **kwargs)

    return lambda *args, **kwargs: asyncio.run(push(*args, **kwargs))


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch, clock: Callable[[int], None]) -> list[float]:
    """Lets the clocks jump where a push would wait, and notes for how long."""
    waited: list[float] = []

    def jump(seconds: float) -> None:
        waited.append(seconds)
        clock(int(seconds) + 1)

    async def jump_in_loop(_: object, seconds: float) -> None:
        jump(seconds)

    monkeypatch.setattr(Sender, "pause", lambda _, seconds: jump(seconds))
    monkeypatch.setattr(AsyncSender, "pause", jump_in_loop)
    return waited


def counted(rows: int = 3, more: str = "") -> tallyfold.CountTable:
    aggregator = tallyfold.Aggregator(["integration"])
    names = (f"n{row:03}{more}" for row in range(rows))
    aggregator.push(body(({"integration": name}, row, 1, 2) for row, name in enumerate(names)))
    return aggregator.finish()


def lines(table: tallyfold.CountTable) -> dict[str, str]:
    whole = b"".join(tallyfold.export(table, "influx")).decode()
    return {
        f"{series} {at}": fields
        for series, fields, at in (line.rsplit(" ", 2) for line in whole.splitlines())
    }


def test_what_is_sent(push: Pusher, receiver: Receiver) -> None:
    table = counted()
    report = push(
        table, "influx", receiver.url, {"cluster": "eu-1"}, headers={"authorization": SECRET}
    )
    ((path, headers, data),) = receiver.seen
    assert path == "/write?db=counts"
    assert data == b"".join(tallyfold.export(table, "influx", {"cluster": "eu-1"}))
    assert headers["authorization"] == SECRET
    assert headers["user-agent"] == f"tallyfold/{tallyfold.__version__} python"
    assert headers["content-type"] == tallyfold.export(table, "influx").media_type
    wanted = tallyfold.PushReport(1, 3, len(data), 0, 0, [])
    assert report == wanted


YES: dict[Any, Answer] = {
    "influx": 204,
    "remote-write": 200,
    "otlp": (200, {"content-type": "application/x-protobuf"}, b""),
    "otlp-json": (200, {"content-type": "application/json"}, b"{}"),
    "datadog": (202, {"content-type": "application/json"}, b'{"errors":[]}'),
}
"""How each receiver says that it has taken a message."""


@pytest.mark.parametrize("name", YES)
def test_a_web_page_is_nobodys_yes(push: Pusher, receiver: Receiver, name: Any) -> None:
    page = b"<!doctype html><title>Sign in</title>"
    noted: list[int] = []
    for status in (200, 202):
        receiver.answers = [(status, {"content-type": "text/html"}, page)]
        with pytest.raises(tallyfold.ResponseError) as raised:
            push(counted(), name, receiver.url, on_finished=noted.append)
        assert (raised.value.code, raised.value.status) == ("html_response", status)
        assert raised.value.report is not None
        assert (raised.value.report.samples, raised.value.report.unsure) == (0, 0)
        # Nothing is dropped: a push that goes on from here sends everything.
        assert (noted or [0])[-1] == 0
    receiver.answers = [(203, {}, b"hello")]
    with pytest.raises(tallyfold.ServiceError, match="is this the address of the destination"):
        push(counted(), name, receiver.url)


def test_what_never_left_is_not_in_doubt(push: Pusher, receiver: Receiver) -> None:
    """The port speaks no TLS; or nobody takes the connection."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        hung = f"https://127.0.0.1:{silent.getsockname()[1]}/"
        for url in (receiver.url.replace("http://", "https://"), hung):
            noted: list[int] = []
            given: Any = {"patience": 0, "timeout": 0.3, "on_finished": noted.append}
            with pytest.raises(tallyfold.ServiceError) as raised:
                push(counted(), "otlp", url, **given)
            assert raised.value.report is not None
            assert raised.value.report.unsure == 0
            assert noted[-1] == 0
    receiver.answers = ["broken"]
    with pytest.raises(tallyfold.ServiceError) as raised:
        push(counted(), "otlp", receiver.url)
    assert raised.value.report is not None
    assert raised.value.report.unsure == 3


def test_a_message_that_a_server_failed_on_is_not_sent_twice(
    push: Pusher, receiver: Receiver
) -> None:
    noted: list[int] = []
    receiver.answers = [(500, {}, b"boom")]
    with pytest.raises(tallyfold.ServiceError, match="boom") as raised:
        push(counted(), "otlp-json", receiver.url, on_finished=noted.append)
    assert raised.value.report is not None
    assert (raised.value.report.unsure, noted[-1]) == (3, 3)


def test_a_receivers_words_are_in_the_error(push: Pusher, receiver: Receiver) -> None:
    receiver.answers = [(500, {}, b"too old sample\n")]
    with pytest.raises(tallyfold.ServiceError, match="too old sample") as raised:
        push(counted(), "remote-write", receiver.url)
    assert raised.value.report is not None
    assert raised.value.report.retries == 0
    receiver.answers = [(503, {}, b"the disk is full")] * 9
    with pytest.raises(tallyfold.ServiceError, match="the disk is full"):
        push(counted(), "influx", receiver.url, patience=1)


def test_a_password_in_the_address_is_masked(push: Pusher, receiver: Receiver) -> None:
    """However short it is, and also as the receiver has decoded it."""
    receiver.answers = [(400, {}, b"POST /write?p=a%20b%21: 'a b!' is wrong")]
    with pytest.raises(tallyfold.ServiceError, match=r"p=\*\*\*: '\*\*\*' is wrong"):
        push(counted(), "influx", f"{receiver.url}&p=a%20b%21")


@pytest.mark.parametrize("name", ["remote-write", "otlp", "otlp-json", "datadog"])
def test_other_formats(push: Pusher, receiver: Receiver, name: Any) -> None:
    receiver.answers = [YES[name]]
    report = push(counted(), name, receiver.url, headers={"user-agent": "ours"})
    (message,) = tallyfold.export(counted(), name)
    assert [data for *_, data in receiver.seen] == [message]
    assert receiver.seen[0][1]["user-agent"] == "ours"
    assert (report.messages, report.samples) == (1, 3)


def test_a_receiver_that_fails_and_comes_back(
    push: Pusher, receiver: Receiver, waits: list[float]
) -> None:
    table = counted(40)
    receiver.answers = [
        (429, {"retry-after": "7"}, b""),
        503,
        "broken",
        "taken and broken",
        204,
        500,
        413,
    ]
    report = push(table, "influx", receiver.url, max_bytes=1000)
    assert receiver.points() == lines(table)
    assert report.retries == 5
    assert report.samples == 40
    assert waits[0] >= 7


def test_messages_that_are_too_large_are_cut(push: Pusher, receiver: Receiver) -> None:
    table = counted(8)
    receiver.answers = [413, 413]
    report = push(table, "influx", receiver.url)
    assert [len(data.splitlines()) for *_, data in receiver.seen] == [8, 4, 2, 2, 2, 2]
    assert receiver.points() == lines(table)
    assert (report.messages, report.retries) == (4, 0)


def test_a_refusal_ends_a_push(push: Pusher, receiver: Receiver) -> None:
    receiver.answers = [204, (400, {}, f"bad line; you sent {SECRET}".encode())]
    done: list[int] = []
    with pytest.raises(tallyfold.ServiceError, match="bad line") as raised:
        push(
            counted(40),
            "influx",
            receiver.url,
            max_bytes=1000,
            headers={"authorization": SECRET},
            on_finished=done.append,
        )
    error = raised.value
    assert (error.code, error.status) == ("unexpected_status", 400)
    assert error.report is not None
    assert error.report.messages == 1
    assert done == [error.report.samples]
    shown = "".join(traceback.TracebackException.from_exception(error).format())
    assert SECRET not in shown
    assert pickle.loads(pickle.dumps(error)).report == error.report


def locals_of(error: BaseException) -> str:
    """All that a debugger would show of this package's frames."""
    shown = ""
    frame = error.__traceback__
    while frame is not None:
        if frame.tb_frame.f_globals["__name__"].startswith("tallyfold."):
            shown += repr(frame.tb_frame.f_locals)
        frame = frame.tb_next
    return shown


@pytest.mark.parametrize("answers", [[400], [403], [307]])
def test_no_frame_shows_the_headers(
    push: Pusher, receiver: Receiver, answers: list[Answer]
) -> None:
    receiver.answers = list(answers)
    with pytest.raises(tallyfold.ServiceError) as raised:
        push(counted(), "influx", receiver.url, headers={"authorization": SECRET})
    shown = locals_of(raised.value)
    assert "machine" in shown
    assert SECRET not in shown
    assert SECRET not in f"{raised.value!r} {raised.value}"
    with pytest.raises(tallyfold.ConfigError) as refused:
        push(counted(), "influx", "ftp://u:" + SECRET, headers={"authorization": SECRET})
    assert SECRET not in locals_of(refused.value)
    assert SECRET not in str(refused.value)


def test_nobody_listens(push: Pusher, waits: list[float]) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/write"
        with pytest.raises(tallyfold.ServiceError) as raised:
            push(counted(), "influx", url, patience=30)
    assert raised.value.code == "network_failed"
    assert isinstance(raised.value.__cause__, ConnectionRefusedError)
    assert raised.value.report is not None
    assert raised.value.report.messages == 0
    assert 1 < sum(waits) < 60


def test_a_receiver_that_is_too_slow(push: Pusher) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/write"
        with pytest.raises(tallyfold.ServiceError) as raised:
            push(counted(), "influx", url, patience=0, timeout=0.1)
    assert raised.value.code == "timed_out"


def test_a_receiver_that_reads_too_slowly(push: Pusher) -> None:
    done = threading.Event()

    def read(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        # Each wait of a write is short, but all of them together take much longer than the timeout.
        with connection, contextlib.suppress(OSError):
            while not done.wait(0.05) and connection.recv(65_536, socket.MSG_WAITALL):
                pass

    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        reader = threading.Thread(target=read, args=[listener])
        reader.start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/write"
        table = counted(22_000, "x" * 1000)
        begin = time.monotonic()
        with pytest.raises(tallyfold.ServiceError) as raised:
            push(table, "influx", url, patience=0, timeout=2, max_bytes=30_000_000)
        assert time.monotonic() - begin < 10
        done.set()
        reader.join()
    assert raised.value.code == "timed_out"


def test_what_is_in_doubt(push: Pusher, receiver: Receiver) -> None:
    answers: list[Answer] = ["taken and broken", YES["otlp"]]
    receiver.answers = list(answers)
    with pytest.raises(tallyfold.ServiceError) as raised:
        push(counted(), "otlp", receiver.url)
    assert raised.value.report is not None
    assert raised.value.report.unsure == 3
    assert len(receiver.taken) == 1
    receiver.answers = list(answers)
    report = push(counted(), "otlp", receiver.url, guarantee="at_least_once")
    assert (report.retries, report.unsure) == (1, 0)
    with pytest.raises(tallyfold.ConfigError, match="guarantee"):
        push(counted(), "influx", receiver.url, guarantee="at_least_once")


def test_what_is_rejected_is_reported(push: Pusher, receiver: Receiver) -> None:
    said = {"partialSuccess": {"rejectedDataPoints": "2", "errorMessage": "too old"}}
    receiver.answers = [(200, {"content-type": "application/json"}, json.dumps(said).encode())]
    report = push(counted(), "otlp-json", receiver.url)
    assert report.rejected == [tallyfold.Rejected(2, "too old")]
    assert len(receiver.seen) == 1


class Killed(BaseException):
    """Ends the process, as far as a push knows."""


def test_a_push_that_was_killed_goes_on(push: Pusher, receiver: Receiver) -> None:
    table = counted(60)
    stored = 0
    runs = 0
    while True:
        given = 0

        def note(samples: int) -> None:
            nonlocal stored, given
            given += 1
            if given == 2:
                raise Killed
            stored = samples

        try:
            push(
                table,
                "influx",
                receiver.url,
                max_bytes=1000,
                finished=stored,
                on_finished=note,
            )
            break
        except Killed:
            runs += 1
    assert runs > 2
    assert stored == 60
    assert receiver.points() == lines(table)
    before = len(receiver.seen)
    assert push(table, "influx", receiver.url, finished=60).messages == 0
    assert len(receiver.seen) == before


@pytest.mark.parametrize("name", ["otlp-json", "influx"])
def test_what_was_refused_is_not_finished(push: Pusher, receiver: Receiver, name: Any) -> None:
    """Also where each sample counts as finished before it is sent."""
    noted = [0]
    given: Any = {"max_bytes": 3000, "on_finished": noted.append}
    receiver.answers = [YES[name], 400]
    with pytest.raises(tallyfold.ServiceError) as raised:
        push(counted(40), name, receiver.url, **given)
    assert raised.value.report is not None
    assert 0 < noted[-1] == raised.value.report.samples < 40
    receiver.answers = [YES[name]] * 20
    push(counted(40), name, receiver.url, finished=noted[-1], **given)
    assert noted[-1] == 40
    found = "".join(data.decode() for data in receiver.taken)
    assert all(found.count(f"n{row:03}") == found.count("n000") > 0 for row in range(40))


def test_coroutine_functions_are_awaited_by_async_push_only(receiver: Receiver) -> None:
    noted: list[int] = []

    async def note(samples: int) -> None:
        await asyncio.sleep(0)
        noted.append(samples)

    asyncio.run(tallyfold.async_push(counted(), "influx", receiver.url, on_finished=note))
    assert noted == [3]
    with pytest.raises(tallyfold.ConfigError, match=r"on_finished: .*plain function"):
        tallyfold.push(counted(), "influx", receiver.url, on_finished=note)


def test_datagrams(push: Pusher) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver:
        receiver.bind(("127.0.0.1", 0))
        receiver.settimeout(5)
        url = f"udp://127.0.0.1:{receiver.getsockname()[1]}"
        report = push(counted(30), "dogstatsd", url, max_bytes=1000)
        messages = [receiver.recv(65536) for _ in range(report.messages)]
    assert messages == list(tallyfold.export(counted(30), "dogstatsd", max_bytes=1000))
    assert len(messages) > 1
    assert report.samples == 30


def test_a_datagram_that_the_system_refuses_was_not_sent(push: Pusher) -> None:
    # The broadcast address needs an option of the socket, which no sender sets. Without a network,
    # there is no way to it.
    with pytest.raises(
        tallyfold.ServiceError, match=r"does not permit it|no way to the server"
    ) as caught:
        push(counted(), "dogstatsd", "udp://255.255.255.255:9", patience=0)
    assert caught.value.report is not None
    assert caught.value.report.unsure == 0


def test_a_transport_of_the_caller_stays_open(receiver: Receiver) -> None:
    class Noted(httpx2.HTTPTransport):
        closed = 0

        def close(self) -> None:
            self.closed += 1
            super().close()

    transport = Noted()
    for _ in range(2):
        tallyfold.push(counted(), "influx", receiver.url, transport=transport)
    assert transport.closed == 0
    assert len(receiver.taken) == 2
    with pytest.raises(tallyfold.ConfigError, match="proxy: give it to your transport"):
        tallyfold.push(
            counted(), "influx", receiver.url, transport=transport, proxy="http://p.example:1"
        )
    transport.close()


def test_a_mistake_in_a_transport_is_raised_at_once(push: Pusher, receiver: Receiver) -> None:
    def handle(_: httpx2.Request) -> httpx2.Response:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        push(counted(), "influx", receiver.url, transport=httpx2.MockTransport(handle))


def test_a_cancelled_push_ends() -> None:
    async def cancel() -> None:
        with socket.create_server(("127.0.0.1", 0)) as silent:
            url = f"http://127.0.0.1:{silent.getsockname()[1]}/write"
            pushing = asyncio.create_task(tallyfold.async_push(counted(), "influx", url))
            await asyncio.sleep(0.05)
            pushing.cancel()
            with pytest.raises(asyncio.CancelledError):
                await pushing

    asyncio.run(cancel())


def test_notes_are_warnings_of_the_caller(push: Pusher, receiver: Receiver) -> None:
    aggregator = tallyfold.Aggregator(["integration"])
    aggregator.push(body([({"integration": "a"}, 2**53 + 1, 0, 0)]))
    with pytest.warns(tallyfold.InexactCountWarning) as caught:
        push(aggregator.finish(), "remote-write", receiver.url)
    assert caught[0].filename == __file__


def test_headers_over_plain_http_stay_on_this_machine(push: Pusher) -> None:
    with pytest.raises(tallyfold.ConfigError, match="insecure_base_address: url"):
        push(counted(), "influx", "http://far.example/write", headers={"authorization": SECRET})


def test_files_are_not_pushed(push: Pusher, receiver: Receiver) -> None:
    for name in ("csv", "openmetrics"):
        with pytest.raises(tallyfold.ConfigError, match="format: "):
            push(counted(), name, receiver.url)
    with pytest.raises(tallyfold.ConfigError, match=r"patienc: .*did you mean patience"):
        push(counted(), "influx", receiver.url, patienc=5)
    assert receiver.seen == []
