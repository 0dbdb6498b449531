"""The synchronous client, over real sockets where the network is the point."""

import copy
import pickle
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone

import httpx2
import pandas as pd
import pytest
from support import ADDRESS, END, START, connect

import tallyfold

JSON = {"content-type": "application/json"}
TOKEN = b'{"access_token": "a-token", "expires_in": 86400, "token_type": "Bearer"}'


@contextmanager
def loopback(serve: Callable[[socket.socket], None]) -> Iterator[str]:
    """Serves one connection by hand and gives the address."""
    listener = socket.create_server(("127.0.0.1", 0))

    def accept() -> None:
        connection, _ = listener.accept()
        with connection, listener:
            try:
                connection.recv(65536)
                serve(connection)
            except OSError:
                return

    thread = threading.Thread(target=accept)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        thread.join()


def asking(
    transport: httpx2.BaseTransport | None, address: str = ADDRESS, timeout: float | None = 30.0
) -> tallyfold.Client:
    """Makes a client that is given its tokens, and tries nothing again."""
    return tallyfold.Client(
        cluster_endpoint=address,
        access_token=lambda _: ("a-token", 3600),
        transport=transport,
        timeout=timeout,
        max_retries=0,
    )


def test_all_calls_over_http(sandbox: tallyfold.Sandbox, table: tallyfold.CountTable) -> None:
    with tallyfold.serve(sandbox) as server, connect(sandbox, server.url) as client:
        for _ in range(3):
            assert client.event_delivery(START, END, ["integration", "reason"]) == table
        ingestion = client.event_ingestion(START, END, ["integration"])
        assert ingestion.metric == "event_ingestion"
        assert ingestion.totals == table.totals
        logs = client.audit_logs(page=2, per_page=5)
        assert (logs["page"], len(logs["auditLogs"])) == (2, 5)
    stats = sandbox.stats
    # The fixture's own client has asked for one of the two control tokens and one delivery.
    assert (stats["control_token"], stats["orchestration_token"]) == (2, 1)
    assert stats["event_delivery"] == 4


def test_group_by(client: tallyfold.Client, table: tallyfold.CountTable) -> None:
    kept = client.event_delivery(START, END, ["integration", "reason"], group_by=["reason"])
    assert kept == table.group_by("reason")


def test_any_way_to_name_an_instant(client: tallyfold.Client, table: tallyfold.CountTable) -> None:
    dimensions: list[tallyfold.DimensionName] = ["integration", "reason"]
    elsewhere = datetime(2026, 1, 1, 5, 30, tzinfo=timezone(timedelta(hours=5, minutes=30)))
    assert client.event_delivery(elsewhere, END, dimensions) == table
    stamp = pd.Timestamp("2025-12-31T19:00", tz="America/New_York")
    assert client.event_delivery(stamp, stamp + pd.Timedelta("15min"), dimensions) == table


@pytest.mark.parametrize(
    ("start", "end", "code", "argument"),
    [
        (datetime(2026, 1, 1), END, "invalid_timestamp", "start"),  # noqa: DTZ001
        (START, datetime(2026, 1, 2), "invalid_timestamp", "end"),  # noqa: DTZ001
        (START, "2026-01-01T00:15:00", "invalid_timestamp", "end"),
        (END, START, "invalid_window", "start"),
    ],
)
def test_instants_that_are_none(
    client: tallyfold.Client,
    sandbox: tallyfold.Sandbox,
    start: datetime | str,
    end: datetime | str,
    code: str,
    argument: str,
) -> None:
    with pytest.raises(tallyfold.ConfigError) as caught:
        client.event_delivery(start, end, ["reason"])
    assert (caught.value.code, caught.value.argument) == (code, argument)
    assert sum(sandbox.stats.values()) == 0


@pytest.mark.parametrize(
    ("options", "code", "argument"),
    [
        ({}, "missing_argument", "cluster_endpoint"),
        ({"cluster_endpoint": "http://a.example"}, "insecure_base_address", "cluster_endpoint"),
        ({"cluster_endpoint": "a.example"}, "invalid_base_address", "cluster_endpoint"),
        ({"cluster_endpoint": ADDRESS, "timeout": 0}, "invalid_argument", "timeout"),
        ({"cluster_endpoint": ADDRESS, "timeout": float("nan")}, "invalid_argument", "timeout"),
        ({"cluster_endpoint": ADDRESS, "tolerate": ["all"]}, "invalid_argument", "tolerate"),
        (
            {"cluster_endpoint": ADDRESS, "default_token_lifetime": 0},
            "invalid_argument",
            "default_token_lifetime",
        ),
        ({"cluster_endpoint": ADDRESS, "client_secret": "s"}, "invalid_argument", "access_token"),
    ],
)
def test_options_are_refused_by_name(options: dict[str, object], code: str, argument: str) -> None:
    provider = {"access_token": lambda _: ("a-token", 3600)}
    with pytest.raises(tallyfold.ConfigError) as caught:
        tallyfold.Client(**provider, **options)  # type: ignore[arg-type]
    assert (caught.value.code, caught.value.argument) == (code, argument)


def test_plain_http_elsewhere_only_when_told() -> None:
    answer = httpx2.MockTransport(lambda _: httpx2.Response(404, headers=JSON))

    client = tallyfold.Client(
        cluster_endpoint="http://cluster.example",
        access_token=lambda _: ("a-token", 3600),
        transport=answer,
        dangerously_allow_http=True,
    )
    with pytest.raises(tallyfold.ServiceError):
        client.event_delivery(START, END, ["reason"])


def test_requests_are_those_of_the_core_and_nothing_else() -> None:
    seen: list[tuple[str, list[tuple[str, str]], bytes]] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        seen.append((str(request.url), request.headers.multi_items(), request.content))
        # A cookie that a jar would send back with the next request.
        return httpx2.Response(200, headers=JSON | {"set-cookie": "a=b"}, content=TOKEN)

    credentials = tallyfold.Sandbox().credentials
    client = tallyfold.Client(
        cluster_endpoint=ADDRESS, transport=httpx2.MockTransport(answer), **credentials
    )
    with pytest.raises(tallyfold.ResponseError):
        client.event_delivery(START, END, ["reason"])
    token, delivery = seen
    assert token[0] == f"{ADDRESS}/v1.1/oauth/token"
    assert [name for name, _ in token[1]] == [
        "host",
        "content-type",
        "accept-encoding",
        "user-agent",
        "content-length",
    ]
    assert dict(delivery[1]) == {
        "host": "sandbox.example",
        "authorization": "Bearer a-token",
        "content-type": "application/json",
        "accept-encoding": "gzip",
        "user-agent": f"tallyfold/{tallyfold.__version__} python",
        "content-length": str(len(delivery[2])),
    }


def test_redirects_are_refused() -> None:
    asked: list[str] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        asked.append(request.url.host)
        return httpx2.Response(307, headers={"location": "https://elsewhere.example/"})

    with pytest.raises(tallyfold.ServiceError) as caught:
        asking(httpx2.MockTransport(answer)).event_delivery(START, END, ["reason"])
    assert (caught.value.code, caught.value.status) == ("redirected", 307)
    assert asked == ["sandbox.example"]


def test_a_broken_connection_is_no_table(sandbox: tallyfold.Sandbox) -> None:
    with tallyfold.serve(sandbox) as server, connect(sandbox, server.url) as client:
        sandbox.inject("truncate", endpoint="event_delivery", bytes=200)
        with pytest.raises(tallyfold.ServiceError) as caught:
            client.event_delivery(START, END, ["integration"])
        assert caught.value.code == "network_failed"
        assert client.event_delivery(START, END, ["integration"]).totals.success == 12


def test_nobody_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(tallyfold.ServiceError) as caught:
        asking(None, f"http://127.0.0.1:{port}").event_delivery(START, END, ["reason"])
    assert caught.value.code == "network_failed"
    assert "ECONNREFUSED" in str(caught.value)


def test_any_exception_of_the_network_is_a_broken_exchange() -> None:
    def answer(request: httpx2.Request) -> httpx2.Response:
        raise httpx2.ReadError(f"could not send {request.headers!r}")

    with pytest.raises(tallyfold.ServiceError) as caught:
        asking(httpx2.MockTransport(answer)).event_delivery(START, END, ["reason"])
    assert caught.value.code == "network_failed"
    assert "ReadError" in str(caught.value)
    assert (caught.value.__cause__, caught.value.__context__) == (None, None)


@pytest.mark.parametrize("transport", ["in process", "over http"])
def test_a_late_answer(sandbox: tallyfold.Sandbox, transport: str) -> None:
    sandbox.inject("delay", every=1, milliseconds=30_000)
    with tallyfold.serve(sandbox) as server:
        inside = transport == "in process"
        client = tallyfold.Client(
            cluster_endpoint=server.url,
            transport=sandbox.transport() if inside else None,
            timeout=0.1,
            max_retries=0,
            **sandbox.credentials,
        )
        begin = time.monotonic()
        with client, pytest.raises(tallyfold.ServiceError) as caught:
            client.event_delivery(START, END, ["reason"])
    assert caught.value.code == "timed_out"
    assert time.monotonic() - begin < 15


@pytest.mark.parametrize("part", ["head", "body"])
def test_a_slow_drip_ends_in_time(part: str) -> None:
    head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 999999\r\n"

    def drip(connection: socket.socket) -> None:
        connection.sendall(head if part == "head" else head + b"\r\n{")
        while True:
            connection.sendall(b"x" if part == "head" else b" ")
            time.sleep(0.02)

    begin = time.monotonic()
    with loopback(drip) as address, asking(None, address, timeout=0.3) as client:
        with pytest.raises(tallyfold.ServiceError) as caught:
            client.event_delivery(START, END, ["reason"])
        # The drip has no end.
        assert time.monotonic() - begin < 15
    assert caught.value.code == "timed_out"


def test_a_transport_without_timeouts_is_held_to_the_deadline() -> None:
    class Endless(httpx2.SyncByteStream):
        def __iter__(self) -> Iterator[bytes]:
            while True:
                time.sleep(0.01)
                yield b" "

    answer = httpx2.MockTransport(lambda _: httpx2.Response(200, headers=JSON, stream=Endless()))

    with pytest.raises(tallyfold.ServiceError) as caught:
        asking(answer, timeout=0.1).event_delivery(START, END, ["reason"])
    assert caught.value.code == "timed_out"


def test_a_compressed_body_is_read(sandbox: tallyfold.Sandbox, table: tallyfold.CountTable) -> None:
    import gzip

    inner = sandbox.transport()

    def answer(request: httpx2.Request) -> httpx2.Response:
        response = inner.handle_request(request)
        packed = gzip.compress(response.read())
        headers = JSON | {"content-encoding": "gzip"}
        return httpx2.Response(response.status_code, headers=headers, content=packed)

    client = tallyfold.Client(
        cluster_endpoint=ADDRESS, transport=httpx2.MockTransport(answer), **sandbox.credentials
    )
    assert client.event_delivery(START, END, ["integration", "reason"]) == table


def test_the_environment_has_no_say(
    sandbox: tallyfold.Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.setenv("SSL_CERT_FILE", "/nowhere")
    with tallyfold.serve(sandbox) as server, connect(sandbox, server.url) as client:
        assert client.event_delivery(START, END, ["reason"]).totals.success == 12


def test_a_closed_client(sandbox: tallyfold.Sandbox) -> None:
    with connect(sandbox) as client:
        pass
    with pytest.raises(RuntimeError, match="this Client is closed"):
        client.event_delivery(START, END, ["reason"])


def test_a_client_can_not_be_pickled_or_copied(client: tallyfold.Client) -> None:
    for attempt in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="can't be pickled or copied"):
            attempt(client)


class TestAccessToken:
    """Tokens that the host has from elsewhere."""

    def test_one_for_each_api(self, sandbox: tallyfold.Sandbox) -> None:
        asked: list[str] = []
        with connect(sandbox) as other:
            other.audit_logs()

            def token(api: tallyfold.ApiName) -> tuple[str, int]:
                asked.append(api)
                path = "/oauth/token" if api == "orchestration" else "/v1.1/oauth/token"
                with httpx2.Client(transport=sandbox.transport()) as http:
                    request = dict(sandbox.credentials)
                    request["audience"] = request.pop(f"{api}_audience")
                    request = {k: v for k, v in request.items() if not k.endswith("_audience")}
                    if api == "orchestration":
                        request["grant_type"] = "client_credentials"
                    answer = http.post(ADDRESS + path, json=request).json()
                return answer["access_token"], answer["expires_in"]

            client = tallyfold.Client(
                cluster_endpoint=ADDRESS,
                base_url=ADDRESS,
                access_token=token,
                transport=sandbox.transport(),
            )
            for _ in range(2):
                assert client.event_delivery(START, END, ["reason"]).totals.success == 12
                assert client.audit_logs()["page"] == 1
        assert asked == ["control", "orchestration"]

    def test_what_it_raises_is_the_cause(self) -> None:
        def token(api: tallyfold.ApiName) -> tuple[str, int]:
            raise KeyError(api)

        client = tallyfold.Client(cluster_endpoint=ADDRESS, access_token=token)
        with client, pytest.raises(tallyfold.AuthError) as caught:
            client.event_delivery(START, END, ["reason"])
        assert caught.value.code == "token_provider_failed"
        assert isinstance(caught.value.__cause__, KeyError)

    @pytest.mark.parametrize(
        ("answer", "code"),
        [
            (("a-token", 0), "invalid_token_lifetime"),
            (("a-token", -1), "invalid_token_lifetime"),
            (("a-token", 1.5), "invalid_token_lifetime"),
            (("a-token", float("nan")), "invalid_token_lifetime"),
            (("a-token", True), "invalid_token_lifetime"),
            (("a-token", timedelta(hours=1)), "invalid_token_lifetime"),
            (("a token\r\n", 3600), "invalid_token_response"),
            (("", 3600), "invalid_token_response"),
            ((b"a-token", 3600), "token_provider_failed"),
            ("a-token", "token_provider_failed"),
            (None, "token_provider_failed"),
        ],
    )
    def test_answers_that_are_no_token(self, answer: object, code: str) -> None:
        client = tallyfold.Client(
            cluster_endpoint=ADDRESS,
            access_token=lambda _: answer,  # type: ignore[arg-type, return-value]
        )
        with client, pytest.raises(tallyfold.AuthError) as caught:
            client.event_delivery(START, END, ["reason"])
        assert caught.value.code == code

    def test_a_lifetime_may_be_unknown(self) -> None:
        asked: list[str] = []

        def token(api: tallyfold.ApiName) -> tuple[str, None]:
            asked.append(api)
            return "a-token", None

        answer = httpx2.MockTransport(lambda _: httpx2.Response(500, headers=JSON))

        client = tallyfold.Client(
            cluster_endpoint=ADDRESS, access_token=token, transport=answer, max_retries=0
        )
        for _ in range(2):
            with pytest.raises(tallyfold.ServiceError):
                client.event_delivery(START, END, ["reason"])
        assert asked == ["control"]
