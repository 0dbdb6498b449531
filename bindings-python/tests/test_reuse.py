"""Connections that are used again: closed by the server in between, or out of step."""

import asyncio
import contextlib
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

import pytest
from support import END, START
from test_surplus import OTHERS, OWN, response

import tallyfold

pytestmark = pytest.mark.usefixtures("each_loop")

Serve = Callable[[socket.socket, BinaryIO], None]
"""Serves one connection."""

Outcome = tuple[list[int], list[tallyfold.Attempt]]
"""The counts of the calls, and all requests."""


@contextlib.contextmanager
def serving(serve: Serve) -> Iterator[str]:
    """Serves each connection in a thread of its own."""
    listener = socket.create_server(("127.0.0.1", 0))
    opened: list[socket.socket] = []

    def run(connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as lines, contextlib.suppress(OSError):
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            serve(connection, lines)

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listener.accept()
                opened.append(connection)
                threading.Thread(target=run, args=(connection,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        for each in [listener, *opened]:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()


def read_request(lines: BinaryIO) -> bytes | None:
    """The body of a whole request, or none."""
    length, line = 0, lines.readline()
    if not line:
        return None
    while line := lines.readline().strip():
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            length = int(value)
    return lines.read(length)


def in_threads(address: str, calls: int, **options: Any) -> Outcome:
    attempts: list[tallyfold.Attempt] = []
    with tallyfold.Client(
        cluster_endpoint=address,
        access_token=lambda _: ("a-token", 60),
        on_attempt=attempts.append,
        **options,
    ) as client:
        tables = [client.event_delivery(START, END, ["integration"]) for _ in range(calls)]
    return [table.totals.success for table in tables], attempts


def in_tasks(address: str, calls: int, **options: Any) -> Outcome:
    attempts: list[tallyfold.Attempt] = []

    async def ask() -> list[int]:
        async with tallyfold.AsyncClient(
            cluster_endpoint=address,
            access_token=lambda _: ("a-token", 60),
            on_attempt=attempts.append,
            **options,
        ) as client:
            tables = [
                await client.event_delivery(START, END, ["integration"]) for _ in range(calls)
            ]
        return [table.totals.success for table in tables]

    return asyncio.run(ask()), attempts


HOSTS = pytest.mark.parametrize("ask", [in_threads, in_tasks])


def closing(*, by_reset: bool) -> Serve:
    """Answers once, and closes the connection when the next request is on its way."""

    def serve(connection: socket.socket, lines: BinaryIO) -> None:
        read_request(lines)
        connection.sendall(response(OWN))
        lines.readline()
        if by_reset:
            at_once = struct.pack("ii", 1, 0)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, at_once)
        else:
            read_request(lines)
            connection.shutdown(socket.SHUT_RDWR)

    return serve


@HOSTS
@pytest.mark.parametrize("by_reset", [False, True])
def test_a_connection_that_was_closed_in_between_is_no_failure(
    ask: Callable[..., Outcome], *, by_reset: bool
) -> None:
    with serving(closing(by_reset=by_reset)) as address:
        counts, attempts = ask(address, 30, max_retries=0)
    assert counts == [OWN] * 30
    # Every second request finds its connection closed, and is sent again at once.
    failed = [attempt for attempt in attempts if attempt.code is not None]
    assert {(attempt.code, attempt.wait) for attempt in failed} == {("network_failed", 0)}
    assert len(failed) >= 14


@HOSTS
def test_a_connection_that_is_closed_before_any_answer_is_a_failure(
    ask: Callable[..., Outcome],
) -> None:
    def serve(_: socket.socket, lines: BinaryIO) -> None:
        requests.append(read_request(lines))

    requests: list[bytes | None] = []
    with serving(serve) as address, pytest.raises(tallyfold.ServiceError) as caught:
        ask(address, 1, max_retries=0)
    assert caught.value.code == "network_failed"
    assert len(requests) == 1


@HOSTS
def test_an_answer_of_a_connection_that_is_out_of_step_is_read_again(
    ask: Callable[..., Outcome],
) -> None:
    def serve(connection: socket.socket, lines: BinaryIO) -> None:
        read_request(lines)
        connection.sendall(response(OWN))
        # What nobody has asked for comes once the next request is on its way, and then its answer.
        read_request(lines)
        connection.sendall(response(OTHERS) + response(OWN))
        lines.readline()

    with serving(serve) as address:
        counts, attempts = ask(address, 8, max_retries=0)
    assert counts == [OWN] * 8
    assert any(attempt.code == "network_failed" for attempt in attempts)


@HOSTS
@pytest.mark.parametrize("status", [403, 404])
def test_a_refusal_whose_body_hangs_is_that_refusal_at_the_deadline(
    ask: Callable[..., Outcome], status: int
) -> None:
    def serve(connection: socket.socket, lines: BinaryIO) -> None:
        read_request(lines)
        connection.sendall(b"HTTP/1.1 %d No\r\ncontent-length: 9\r\n\r\nno" % status)
        lines.readline()

    def late(address: str, deadline: float) -> None:
        if ask is in_threads:
            with tallyfold.Client(cluster_endpoint=address, **options) as client:
                client.event_delivery(START, END, ["integration"], deadline=deadline)

        async def main() -> None:
            async with tallyfold.AsyncClient(cluster_endpoint=address, **options) as client:
                await client.event_delivery(START, END, ["integration"], deadline=deadline)

        asyncio.run(main())

    options: Any = {"access_token": lambda _: ("a-token", 60)}
    # On a busy machine, the first deadline may pass before the head of the response has come.
    for deadline in (0.3, 0.9, 0.9):
        with serving(serve) as address, pytest.raises(tallyfold.ServiceError) as caught:
            late(address, deadline)
        if caught.value.status is not None:
            break
    assert caught.value.status == status


@HOSTS
def test_a_service_that_never_answers_is_asked_twice(ask: Callable[..., Outcome]) -> None:
    def serve(_: socket.socket, lines: BinaryIO) -> None:
        if read_request(lines) is not None:
            asked.release()
        lines.readline()

    asked = threading.Semaphore(0)
    with serving(serve) as address:
        with pytest.raises(tallyfold.ServiceError) as caught:
            ask(address, 1, timeout=0.3)
        assert [asked.acquire(timeout=60) for _ in range(2)] == [True, True]
    assert not asked.acquire(blocking=False)
    assert caught.value.code == "timed_out"
    assert "no response began in that time" in str(caught.value)
