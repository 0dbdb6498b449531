"""Deadlines where single waits are short and many."""

import gzip
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

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
