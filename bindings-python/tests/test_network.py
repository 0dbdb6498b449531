"""What an error says of the way to the service, what it is caused by, and what a refusal quotes."""

import asyncio
import base64
import html
import json
import socket
import ssl
import struct
import subprocess
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, quote_plus

import httpx2
import pytest
from canaries import search_error
from support import ADDRESS, END, START

import tallyfold

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.usefixtures("each_loop")

TOKEN, SECRET = "canary-access-token", "canary-secret"
Serve = Callable[[socket.socket], None]


@contextmanager
def loopback(serve: Serve, tls: ssl.SSLContext | None = None) -> Iterator[tuple[str, list[int]]]:
    """Serves connections by hand. Gives the address, and a list that grows with each of them."""
    connections: list[int] = []
    listener = socket.create_server(("127.0.0.1", 0))

    def accept() -> None:
        while True:
            connection, _ = listener.accept()
            connections.append(1)
            with connection:
                try:
                    if tls is None and not read_request(connection):
                        return
                    if tls is None:
                        serve(connection)
                    else:
                        tls.wrap_socket(connection, server_side=True)
                except OSError:
                    continue

    thread = threading.Thread(target=accept)
    thread.start()
    scheme = "http" if tls is None else "https"
    try:
        yield f"{scheme}://127.0.0.1:{listener.getsockname()[1]}", connections
    finally:
        # The last connection says nothing, and so ends the thread.
        tls = None
        with socket.create_connection(listener.getsockname()):
            pass
        thread.join()
        listener.close()


def read_request(connection: socket.socket) -> bytes:
    """Reads a whole request, so that a reset comes behind it."""
    request = b""
    while piece := connection.recv(65536):
        request += piece
        if request.endswith(b"}") or request.startswith(b"CONNECT"):
            break
    return request


def outcome(address: str, *, in_tasks: bool, transport: Any = None, **options: Any) -> Any:
    """What a call of a client without retries raises, unless options say otherwise."""
    options = {
        "cluster_endpoint": address,
        "access_token": lambda _: (TOKEN, 3600),
        "transport": transport,
        "max_retries": 0,
        "timeout": 20,
    } | options

    async def ask() -> None:
        async with tallyfold.AsyncClient(**options) as client:
            await client.event_delivery(START, END, ["reason"])

    def call() -> None:
        if in_tasks:
            asyncio.run(ask())
            return
        with tallyfold.Client(**options) as client:
            client.event_delivery(START, END, ["reason"])

    with pytest.raises(Exception) as caught:  # noqa: PT011 - the test looks at it
        call()
    if isinstance(caught.value, tallyfold.TallyfoldError):
        search_error(caught.value)
    return caught.value


BOTH = pytest.mark.parametrize("in_tasks", [False, True])


@BOTH
def test_a_name_that_is_not_found(*, in_tasks: bool) -> None:
    error = outcome("https://nowhere.invalid", in_tasks=in_tasks)
    assert error.code == "network_failed"
    assert "the server's name was not found" in str(error)
    assert "nowhere.invalid" in str(error)
    assert isinstance(error.__cause__, socket.gaierror)


@BOTH
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_closed_port(host: str, *, in_tasks: bool) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    error = outcome(f"http://{host}:{port}", in_tasks=in_tasks)
    assert error.code == "network_failed"
    assert "refused the connection" in str(error)
    assert f"{host}:{port}" in str(error)
    assert isinstance(error.__cause__, ConnectionRefusedError)


def reset(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


@BOTH
@pytest.mark.parametrize("serve", [reset, lambda _: None])
def test_a_connection_that_ends_too_early(serve: Serve, *, in_tasks: bool) -> None:
    with loopback(serve) as (address, _):
        error = outcome(address, in_tasks=in_tasks)
    assert error.code == "network_failed"
    assert "before the response was complete" in str(error)
    if serve is reset:
        assert isinstance(error.__cause__, ConnectionResetError)


@pytest.fixture(scope="module")
def self_signed(tmp_path_factory: pytest.TempPathFactory) -> ssl.SSLContext:
    """Gives a server's side of TLS, with a certificate that nobody has signed."""
    folder: Path = tmp_path_factory.mktemp("tls")
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    names = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    paths = ["-keyout", str(key), "-out", str(certificate)]
    subprocess.run([*command, *names, *paths], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context


@BOTH
def test_a_certificate_is_refused_with_the_reason_and_once(
    self_signed: ssl.SSLContext, *, in_tasks: bool
) -> None:
    with loopback(reset, self_signed) as (address, connections):
        error = outcome(address, in_tasks=in_tasks, max_retries=3)
        assert len(connections) == 1
    assert error.code == "network_failed"
    assert "the server's certificate is refused: it is self-signed" in str(error)
    assert isinstance(error.__cause__, ssl.SSLCertVerificationError)


def test_a_certificate_ends_a_collect_at_once(self_signed: ssl.SSLContext) -> None:
    with loopback(reset, self_signed) as (address, connections):
        client = tallyfold.Client(
            cluster_endpoint=address, access_token=lambda _: (TOKEN, 3600), max_retries=3
        )
        with client, pytest.raises(tallyfold.ServiceError) as caught:
            client.collect(
                "event_delivery", START, "2026-01-02T00:00:00Z", ["reason"], concurrency=1
            )
        assert len(connections) == 1
    assert isinstance(caught.value.__cause__, ssl.SSLCertVerificationError)
    assert "1 of 96 windows failed; first: [2026-01-01T00:00:00Z, " in str(caught.value)
    assert "; none was read" in str(caught.value)


@BOTH
def test_a_proxy_that_refuses(*, in_tasks: bool) -> None:
    def refuse(connection: socket.socket) -> None:
        connection.sendall(
            b"HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n"
        )

    with loopback(refuse) as (proxy, _):
        kind = httpx2.AsyncHTTPTransport if in_tasks else httpx2.HTTPTransport
        error = outcome("https://cluster.example", in_tasks=in_tasks, transport=kind(proxy=proxy))
    assert error.code == "network_failed"
    assert "the proxy failed, or refused" in str(error)


@BOTH
@pytest.mark.parametrize("kind", [TypeError, AttributeError, ValueError, KeyError])
def test_a_mistake_in_a_transport_is_raised_as_it_is_and_at_once(
    kind: type[Exception], *, in_tasks: bool
) -> None:
    asked = []
    mistake = kind("it is this")

    def answer(request: httpx2.Request) -> httpx2.Response:
        asked.append(request.url)
        mistake.__context__ = httpx2.ConnectError("a failure that was being handled")
        raise mistake

    transport = httpx2.MockTransport(answer)
    options = {"client_id": "id", "client_secret": SECRET, "control_audience": "control"}
    error = outcome(
        ADDRESS, in_tasks=in_tasks, transport=transport, max_retries=3, access_token=None, **options
    )
    assert error is mistake
    assert len(asked) == 1
    frames = [frame.f_code for frame, _ in traceback.walk_tb(error.__traceback__)]
    assert frames[-1].co_name == "answer"
    # No frame of the client is left below it that has a request in its locals.
    inner = [code.co_name for code in frames]
    assert not {"_exchange", "_receive"} & set(inner)


@BOTH
@pytest.mark.parametrize("kind", [TypeError, AttributeError])
def test_a_mistake_in_the_own_transport_is_raised_as_it_is_and_at_once(
    monkeypatch: pytest.MonkeyPatch, kind: type[Exception], *, in_tasks: bool
) -> None:
    mistake, asked = kind("it is this"), []

    def core_request(*_: object) -> None:
        asked.append(1)
        raise mistake

    module = "loop_transport" if in_tasks else "transport"
    monkeypatch.setattr(f"tallyfold._http.{module}.core_request", core_request)
    assert outcome(ADDRESS, in_tasks=in_tasks, max_retries=3) is mistake
    assert len(asked) == 1


@BOTH
def test_a_name_that_no_address_can_have_is_one_of_the_network(*, in_tasks: bool) -> None:
    error = outcome(f"https://{'a' * 64}.example", in_tasks=in_tasks)
    assert error.code == "network_failed"


@BOTH
def test_an_error_of_the_system_in_a_transport_is_one_of_the_network(*, in_tasks: bool) -> None:
    def answer(request: httpx2.Request) -> httpx2.Response:
        raise ConnectionResetError(104, f"{request.headers.raw!r} {TOKEN}")

    error = outcome(ADDRESS, in_tasks=in_tasks, transport=httpx2.MockTransport(answer))
    assert error.code == "network_failed"
    assert isinstance(error.__cause__, ConnectionResetError)


@pytest.mark.parametrize(
    ("kind", "wrong"),
    [
        (tallyfold.Client, 5),
        (tallyfold.Client, httpx2.Client()),
        (tallyfold.Client, httpx2.AsyncHTTPTransport()),
        (tallyfold.Client, httpx2.HTTPTransport),
        (tallyfold.AsyncClient, 5),
        (tallyfold.AsyncClient, httpx2.AsyncClient()),
        (tallyfold.AsyncClient, httpx2.HTTPTransport()),
    ],
)
def test_a_wrong_transport_is_refused(kind: Any, wrong: object) -> None:
    with pytest.raises(tallyfold.ConfigError) as caught:
        kind(cluster_endpoint=ADDRESS, access_token=lambda _: (TOKEN, 60), transport=wrong)
    assert isinstance(caught.value, TypeError)
    assert (caught.value.code, caught.value.argument) == ("invalid_argument", "transport")
    assert "want an httpx2." in str(caught.value)
    assert type(wrong).__name__ in str(caught.value)


def refusing(rest: bytes, head: bytes = b"400 Bad Request") -> Serve:
    return lambda connection: connection.sendall(b"HTTP/1.1 " + head + b"\r\n" + rest)


@BOTH
def test_a_refusal_quotes_its_body(*, in_tasks: bool) -> None:
    said = f"window longer than 24h, {TOKEN}".encode()
    sized = b"content-length: %d\r\n\r\n%s" % (len(said), said)
    with loopback(refusing(sized)) as (address, _):
        error = outcome(address, in_tasks=in_tasks)
    assert (error.code, error.status) == ("unexpected_status", 400)
    assert error.excerpt == "window longer than 24h, ***"
    assert "400: window longer than 24h" in str(error)


@BOTH
@pytest.mark.parametrize("stalls", [False, True])
def test_a_refusal_does_not_wait_for_its_body(*, stalls: bool, in_tasks: bool) -> None:
    over = threading.Event()

    def serve(connection: socket.socket) -> None:
        refusing(b"content-length: 1000\r\n\r\nwindow longer")(connection)
        if stalls:
            over.wait(20)

    begin = time.monotonic()
    with loopback(serve) as (address, _):
        error = outcome(address, in_tasks=in_tasks)
        over.set()
    assert time.monotonic() - begin < 10
    assert (error.code, error.status, error.excerpt) == ("unexpected_status", 400, "window longer")
    assert error.__cause__ is None


@BOTH
def test_an_endless_body_of_a_refusal_is_read_to_a_bound(*, in_tasks: bool) -> None:
    sent = []

    def serve(connection: socket.socket) -> None:
        refusing(b"\r\n")(connection)
        while True:
            connection.sendall(b"no " * 1000)
            sent.append(3000)

    with loopback(serve) as (address, _):
        error = outcome(address, in_tasks=in_tasks)
    assert error.excerpt is not None
    assert len(error.excerpt) == 201
    assert sum(sent) < 50_000_000


@BOTH
def test_a_token_endpoint_is_never_quoted(*, in_tasks: bool) -> None:
    with loopback(refusing(b"content-length: 8\r\n\r\ngo away!")) as (address, _):
        error = outcome(
            address,
            in_tasks=in_tasks,
            access_token=None,
            client_id="id",
            client_secret="a secret",
            control_audience="control",
        )
    assert (error.code, error.excerpt) == ("token_refused", None)
    assert "go away" not in str(error)


KEY = 'gateway "key"/1<2>'


@pytest.mark.parametrize(
    "written",
    [
        KEY,
        json.dumps(KEY),
        json.dumps(KEY).replace("/", "\\/").replace("<", "\\u003c"),
        quote(KEY, safe=""),
        quote_plus(KEY),
        html.escape(KEY),
        base64.b64encode(f"id:{KEY}".encode()).decode(),
        base64.urlsafe_b64encode(TOKEN.encode()).decode(),
    ],
)
def test_a_secret_is_masked_however_the_service_writes_it(written: str) -> None:
    client = tallyfold.Client(
        cluster_endpoint="https://cluster.example",
        access_token=lambda _: (TOKEN, 3600),
        headers={"x-gateway-key": KEY},
        transport=httpx2.MockTransport(lambda _: httpx2.Response(400, text=f"no: {written}")),
    )
    with client, pytest.raises(tallyfold.ServiceError) as caught:
        client.event_delivery(START, END, ["reason"])
    excerpt = caught.value.excerpt or ""
    assert excerpt.startswith("no: ")
    assert "***" in excerpt
    # A few characters of base64 also hold bits of what stands before and after the secret.
    assert len(excerpt) <= len("no: ***") + 8
