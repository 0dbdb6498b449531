"""Deadlines where single waits are short and many."""

import asyncio
import gzip
import socket
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import Any

import httpx2
import pytest
from support import ADDRESS, END, START, body

import tallyfold

JSON = {"content-type": "application/json"}


def ask(client: tallyfold.Client) -> int:
    return client.event_delivery(START, END, ["integration"]).totals.success


@contextmanager
def nobody_at(address: tuple[str, int]) -> Iterator[int]:
    """Gives the port of one that takes no connection and refuses none: its queue is full."""
    with ExitStack() as held:
        listener = held.enter_context(socket.socket())
        listener.bind(address)
        listener.listen(0)
        for _ in range(4):
            waiting = held.enter_context(socket.socket())
            waiting.settimeout(0)
            waiting.connect_ex(listener.getsockname())
        yield listener.getsockname()[1]


def resolve_to(addresses: list[tuple[str, int]], monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets the name `localhost` have these addresses."""
    usual = socket.getaddrinfo

    def found(host: str, port: int, *rest: int, **named: int) -> object:
        if host != "localhost":
            return usual(host, port, *rest, **named)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", address) for address in addresses]

    monkeypatch.setattr(socket, "getaddrinfo", found)


def test_all_addresses_of_a_name_share_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    with nobody_at(("127.0.0.1", 0)) as port:
        # Ten seconds, if each had the whole time.
        resolve_to([("127.0.0.1", port)] * 20, monkeypatch)
        client = tallyfold.Client(
            cluster_endpoint=f"http://localhost:{port}",
            access_token=lambda _: ("a-token", 60),
            timeout=0.5,
            max_retries=0,
        )
        begin = time.monotonic()
        with client, pytest.raises(tallyfold.ServiceError) as caught:
            ask(client)
    assert caught.value.code == "timed_out"
    assert time.monotonic() - begin < 5


@pytest.mark.skipif(sys.platform != "linux", reason="127.0.0.2 is this machine's on Linux only")
@pytest.mark.parametrize("first", ["does not answer", "refuses"])
def test_a_bad_address_leaves_time_for_the_next(
    sandbox: tallyfold.Sandbox, monkeypatch: pytest.MonkeyPatch, first: str
) -> None:
    with ExitStack() as held:
        server = held.enter_context(tallyfold.serve(sandbox))
        port = httpx2.URL(server.url).port or 0
        if first == "does not answer":
            held.enter_context(nobody_at(("127.0.0.2", port)))
        resolve_to([("127.0.0.2", port), ("127.0.0.1", port)], monkeypatch)
        client = tallyfold.Client(
            cluster_endpoint=f"http://localhost:{port}", timeout=1, **sandbox.credentials
        )
        assert ask(held.enter_context(client)) == 12


MANY = 104


class Crowded(tallyfold.Sandbox):
    """A service that answers only once this many queries have come at the same time."""

    def __init__(self, **_: Any) -> None:
        self._crowd = threading.Barrier(MANY)

    def handle(self, method: str, target: str, *rest: Any) -> tallyfold.SandboxResponse:
        if "/analytics/" in target:
            self._crowd.wait(60)
        return super().handle(method, target, *rest)


@pytest.mark.parametrize("in_tasks", [False, True])
def test_each_request_has_a_connection(*, in_tasks: bool) -> None:
    sandbox = Crowded(seed=1)
    hours = "2026-01-01T00:00:00Z", "2026-01-01T08:40:00Z"
    many: Any = {"window": "5m", "concurrency": MANY}

    async def collect(**options: Any) -> tallyfold.CountTable:
        async with tallyfold.AsyncClient(**options) as client:
            return await client.collect("event_delivery", *hours, ["integration"], **many)

    with tallyfold.serve(sandbox) as server:
        options: Any = {"cluster_endpoint": server.url, "max_retries": 0, **sandbox.credentials}
        if in_tasks:
            table = asyncio.run(collect(**options))
        else:
            with tallyfold.Client(**options) as client:
                table = client.collect("event_delivery", *hours, ["integration"], **many)
    assert len(table.windows) == MANY


@pytest.mark.parametrize("phase", ["connect", "tls"])
def test_close_ends_the_beginning_of_a_connection(phase: str) -> None:
    with ExitStack() as held:
        accepted = threading.Event()
        if phase == "connect":
            address = f"http://127.0.0.1:{held.enter_context(nobody_at(('127.0.0.1', 0)))}"
            tried = socket.socket.connect_ex

            def connect_ex(connection: socket.socket, to: Any) -> int:
                number = tried(connection, to)
                accepted.set()
                return number

            patch = held.enter_context(pytest.MonkeyPatch.context())
            patch.setattr(socket.socket, "connect_ex", connect_ex)
        else:
            listener = held.enter_context(socket.create_server(("127.0.0.1", 0)))
            address = f"https://127.0.0.1:{listener.getsockname()[1]}"

            def accept() -> None:
                connection = held.enter_context(listener.accept()[0])
                # The beginning of a handshake, which is never answered.
                connection.recv(1)
                accepted.set()

            acceptor = threading.Thread(target=accept)
            acceptor.start()
            held.callback(acceptor.join)
        client = tallyfold.Client(
            cluster_endpoint=address,
            access_token=lambda _: ("a-token", 60),
            timeout=60,
            max_retries=0,
        )
        with ThreadPoolExecutor(1) as threads:
            asking = threads.submit(ask, client)
            assert accepted.wait(30)
            begin = time.monotonic()
            client.close()
            with pytest.raises(RuntimeError, match="this Client is closed"):
                asking.result()
        assert time.monotonic() - begin < 10


def test_a_name_without_an_address() -> None:
    client = tallyfold.Client(
        cluster_endpoint="https://nowhere.invalid", access_token=lambda _: ("a-token", 60)
    )
    with client, pytest.raises(tallyfold.ServiceError) as caught:
        ask(client)
    assert caught.value.code == "network_failed"
    assert "ENOTFOUND" in str(caught.value)


def test_compressed_bytes_that_make_no_chunk_for_long_end_in_time() -> None:
    class Drip(httpx2.SyncByteStream):
        def __iter__(self) -> Iterator[bytes]:
            packed = gzip.compress(body([({"integration": "a"}, 1, 0, 0)]))
            for at in range(len(packed)):
                time.sleep(0.1)
                yield packed[at : at + 1]

    packed = JSON | {"content-encoding": "gzip"}
    transport = httpx2.MockTransport(lambda _: httpx2.Response(200, headers=packed, stream=Drip()))
    client = tallyfold.Client(
        cluster_endpoint=ADDRESS,
        access_token=lambda _: ("a-token", 60),
        transport=transport,
        timeout=0.2,
        max_retries=0,
    )
    begin = time.monotonic()
    with pytest.raises(tallyfold.ServiceError) as caught:
        ask(client)
    assert caught.value.code == "timed_out"
    # All of them take more than ten seconds.
    assert time.monotonic() - begin < 5
