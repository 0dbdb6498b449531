"""Bytes that come after a response: no later call may take them for its own answer."""

import asyncio
import contextlib
import json
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx2
import pytest
from fault_server import read_request
from support import END, START, body

import tallyfold

pytestmark = pytest.mark.usefixtures("each_loop")

OWN, OTHERS = 7, 666
"""The counts of a right answer, and of one that nobody has asked for."""


def response(count: int, *, chunked: bool = False, entries: int = 1) -> bytes:
    """A response with so many events."""
    rest = [({"integration": f"none of {number}"}, 0, 0, 0) for number in range(1, entries)]
    text = body([({"integration": "a"}, count, 0, 0), *rest])
    head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
    if chunked:
        return head + b"transfer-encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (len(text), text)
    return head + b"content-length: %d\r\n\r\n%b" % (len(text), text)


class Server:
    """Answers each request with the same bytes, and keeps its connections open."""

    def __init__(self, sends: list[bytes], tls: ssl.SSLContext | None = None) -> None:
        self._sends = sends
        self._tls = tls
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.connections: list[socket.socket] = []
        self.has_sent = threading.Event()
        """Whether all was sent to the first request, or its connection was closed."""
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                self.connections.append(connection)
                threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError):
            if self._tls is not None:
                connection = self._tls.wrap_socket(connection, server_side=True)
                self.connections.append(connection)
            lines = connection.makefile("rb")
            while read_request(lines) is not None:
                try:
                    for number, data in enumerate(self._sends):
                        if number > 0:
                            time.sleep(0.05)
                        connection.sendall(data)
                finally:
                    self.has_sent.set()

    @property
    def address(self) -> str:
        scheme = "http" if self._tls is None else "https"
        return f"{scheme}://127.0.0.1:{self.port}"

    def close(self) -> None:
        for opened in [self._listener, *self.connections]:
            with contextlib.suppress(OSError):
                opened.shutdown(socket.SHUT_RDWR)
            opened.close()


@contextlib.contextmanager
def serving(sends: list[bytes], tls: ssl.SSLContext | None = None) -> Iterator[Server]:
    server = Server(sends, tls)
    try:
        yield server
    finally:
        server.close()


def in_threads(server: Server) -> list[int]:
    """Two calls after one another over the synchronous client's own transport."""
    with tallyfold.Client(
        cluster_endpoint=server.address, access_token=lambda _: ("a-token", 60), max_retries=0
    ) as client:
        first = client.event_delivery(START, END, ["integration"]).totals.success
        assert server.has_sent.wait(60)
        second = client.event_ingestion(START, END, ["integration"]).totals.success
    return [first, second]


def in_tasks(server: Server) -> list[int]:
    """Two calls after one another over the asynchronous client's own transport."""

    async def ask() -> list[int]:
        async with tallyfold.AsyncClient(
            cluster_endpoint=server.address, access_token=lambda _: ("a-token", 60), max_retries=0
        ) as client:
            first = (await client.event_delivery(START, END, ["integration"])).totals.success
            assert await asyncio.to_thread(server.has_sent.wait, 60)
            # So long may the loop take to read what has come.
            await asyncio.sleep(0.15)
            second = (await client.event_ingestion(START, END, ["integration"])).totals.success
        return [first, second]

    return asyncio.run(ask())


HOSTS = pytest.mark.parametrize("ask", [in_threads, in_tasks])

SURPLUS = {
    "one segment": [response(OWN) + response(OTHERS)],
    "one segment, in chunks": [response(OWN, chunked=True) + response(OTHERS, chunked=True)],
    "half of it later": [response(OWN) + response(OTHERS)[:40], response(OTHERS)[40:]],
    "all of it later": [response(OWN), response(OTHERS)],
    "larger than one read": [response(OWN) + response(OTHERS, entries=3000)],
    "behind a large one": [response(OWN, entries=3000) + response(OTHERS)],
    "an early part": [response(OWN) + b"HTTP/1.1 100 Continue\r\n\r\n" + response(OTHERS)],
    "white space": [response(OWN) + b"\r\n"],
    "one byte": [response(OWN) + b"\n"],
}


@HOSTS
@pytest.mark.parametrize("sends", SURPLUS.values(), ids=SURPLUS)
def test_no_call_takes_what_is_left_over(
    sends: list[bytes], ask: Callable[[Server], list[int]]
) -> None:
    with serving(sends) as server:
        assert ask(server) == [OWN, OWN]
        # A connection with bytes left over is not used again.
        assert len(server.connections) == 2


@HOSTS
@pytest.mark.parametrize("chunked", [False, True])
def test_a_connection_without_surplus_is_kept(
    ask: Callable[[Server], list[int]], *, chunked: bool
) -> None:
    with serving([response(OWN, chunked=chunked)]) as server:
        assert ask(server) == [OWN, OWN]
        assert len(server.connections) == 1


@HOSTS
@pytest.mark.parametrize("surplus", ["one record", "two records", "none"])
def test_surplus_inside_of_tls(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    ask: Callable[[Server], list[int]],
    surplus: str,
) -> None:
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
    command += ["-nodes", "-keyout", str(key), "-out", str(certificate), "-days", "2"]
    command += ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except FileNotFoundError:
        pytest.skip("no openssl here to make a certificate")
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate, key)
    trusting = ssl.create_default_context(cafile=str(certificate))
    monkeypatch.setattr(httpx2, "create_ssl_context", lambda **_: trusting)
    # A record of TLS holds 16 kB at most, so the long answer comes in several.
    others = response(OTHERS, entries=1 if surplus == "one record" else 1000)
    with serving([response(OWN) + (b"" if surplus == "none" else others)], tls) as server:
        assert ask(server) == [OWN, OWN]
        # Each connection is in the list twice: with TLS and without.
        assert len(server.connections) == (2 if surplus == "none" else 4)


def test_the_sandbox_server_takes_no_body_for_a_request(sandbox: tallyfold.Sandbox) -> None:
    with (
        tallyfold.serve(sandbox) as server,
        socket.create_connection(("127.0.0.1", httpx2.URL(server.url).port or 0)) as connection,
    ):
        # A GET whose body it does not want: those bytes are no second request.
        smuggled = b"GET /smuggled HTTP/1.1\r\nhost: a\r\n\r\n"
        head = b"GET /api/v1/audit-logs HTTP/1.1\r\nhost: a\r\ncontent-length: %d\r\n\r\n"
        connection.sendall(head % len(smuggled) + smuggled)
        connection.settimeout(60)
        got = connection.recv(65536)
        connection.settimeout(0.3)
        with contextlib.suppress(TimeoutError):
            while data := connection.recv(65536):
                got += data
        assert got.count(b"HTTP/1.1 ") == 1
        assert json.loads(got.split(b"\r\n\r\n", 1)[1])["error"] == "unauthorized"
