"""The sandbox as a value, over HTTP and from the command line."""

import http.client
import inspect
import json
import re
import signal
import socket
import struct
import subprocess
import sys
import time
import urllib.parse
from typing import Any

import httpx2
import pytest
from support import ADDRESS, END, START, connect

import tallyfold

DELIVERY = "/v1.1/analytics/event_delivery"
DAY = tallyfold.Now(0, 1_767_225_600_000)


def test_an_answer_by_hand(sandbox: tallyfold.Sandbox) -> None:
    secret = sandbox.credentials
    body = {
        "client_id": secret["client_id"],
        "client_secret": secret["client_secret"],
        "audience": secret["control_audience"],
    }
    json_type = ("content-type", "application/json")
    answer = sandbox.handle(
        "POST", "/v1.1/oauth/token", [json_type], json.dumps(body).encode(), DAY
    )
    assert (answer.status, answer.delay_ms, answer.cut_at) == (200, 0, None)
    assert json_type in answer.headers
    token = json.loads(answer.body)["access_token"]
    assert repr(answer) == f"<SandboxResponse 200, {len(answer.body)} bytes>"

    query = {"start": START, "end": END, "dimensions": ["integration"]}
    headers = [json_type, ("authorization", f"Bearer {token}")]
    late = tallyfold.Now(DAY.monotonic_ms, DAY.unix_ms + 86_400_000)
    for now, status in [(DAY, 200), (late, 401)]:
        answer = sandbox.handle("POST", DELIVERY, headers, json.dumps(query).encode(), now)
        assert answer.status == status
    assert sandbox.stats["event_delivery"] == 2


def test_seeds() -> None:
    def counts(seed: int | None) -> tallyfold.CountTable:
        with connect(tallyfold.Sandbox(seed=seed)) as client:
            return client.event_delivery(
                "2026-03-02T10:00:00Z", "2026-03-02T10:15:00Z", ["write_key", "event_name"]
            )

    assert counts(1) == counts(1)
    assert counts(1) != counts(2)
    assert counts(1).totals.success > 0
    assert len(counts(None)) == 0


def test_own_credentials() -> None:
    sandbox = tallyfold.Sandbox(
        client_id="id",
        client_secret="secret",
        control_audience="one",
        orchestration_audience="two",
        token_lifetime=60,
    )
    assert list(sandbox.credentials.values()) == ["id", "secret", "one", "two"]
    with connect(sandbox) as client:
        assert client.audit_logs(per_page=1)["perPage"] == 1
    with pytest.raises(tallyfold.ConfigError) as caught:
        tallyfold.Sandbox(token_lifetime=0)
    assert caught.value.argument == "token_lifetime"


def test_wrong_totals_are_seen(sandbox: tallyfold.Sandbox, client: tallyfold.Client) -> None:
    sandbox.inject("wrong_total", endpoint="event_delivery", amount=7)
    table = client.event_delivery(START, END, ["integration"])
    assert table.reconciliation == tallyfold.Reconciliation("unbalanced", 7, 0, 0)


@pytest.mark.parametrize(
    ("fault", "argument"),
    [
        ({"kind": "explosion"}, "kind"),
        ({"kind": "status"}, "status"),
        ({"kind": "status", "status": 99}, "status"),
        ({"kind": "status", "status": 503, "retry_after": "\n"}, "retry_after"),
        ({"kind": "status", "status": 503, "body": "{}"}, "body"),
        ({"kind": "delay", "milliseconds": 1, "every": 0}, "every"),
        ({"kind": "delay", "milliseconds": 3_600_001}, "milliseconds"),
        ({"kind": "truncate"}, "bytes"),
        ({"kind": "content_type", "content_type": "\n"}, "content_type"),
        ({"kind": "wrong_total", "amount": 0}, "amount"),
        ({"kind": "wrong_total", "amount": 1, "endpoint": "audit_logs"}, "endpoint"),
    ],
)
def test_faults_that_can_not_be(
    sandbox: tallyfold.Sandbox, fault: dict[str, object], argument: str
) -> None:
    with pytest.raises(tallyfold.ConfigError) as caught:
        sandbox.inject(**fault)  # type: ignore[arg-type]
    assert (caught.value.code, caught.value.argument) == ("invalid_argument", argument)


@pytest.mark.parametrize(("field", "value"), [("outcome", "lost"), ("timestamp", "today")])
def test_events_that_can_not_be(sandbox: tallyfold.Sandbox, field: str, value: str) -> None:
    event = {"event_name": "a", "write_key": "b", "integration": "c"}
    event |= {"timestamp": START, "outcome": "success", field: value}
    with pytest.raises(tallyfold.ConfigError) as caught:
        sandbox.record(**event)  # type: ignore[arg-type]
    assert caught.value.argument == field


def test_its_transport_ends_in_it_whatever_the_address(sandbox: tallyfold.Sandbox) -> None:
    with httpx2.Client(transport=sandbox.transport()) as http:
        assert http.get("https://anything.example/nowhere").status_code == 404
        assert http.get(ADDRESS + DELIVERY).status_code == 405
        assert http.post(ADDRESS + DELIVERY).status_code == 401


class TestServer:
    """`serve`, seen from a plain HTTP client."""

    def test_connections_are_kept(self, sandbox: tallyfold.Sandbox) -> None:
        with tallyfold.serve(sandbox) as server:
            connection = http.client.HTTPConnection(urllib.parse.urlsplit(server.url).netloc)
            sockets = set()
            for _ in range(3):
                connection.request("POST", DELIVERY, body=b"{}")
                answer = connection.getresponse()
                assert (answer.status, answer.version) == (401, 11)
                assert len(answer.read()) == int(answer.headers["content-length"])
                sockets.add(connection.sock)
            assert len(sockets) == 1
            assert len(server._server._connections) == 1  # noqa: SLF001
            connection.close()
            # Its thread sees that soon, and forgets it.
            begin = time.monotonic()
            while server._server._connections:  # noqa: SLF001
                assert time.monotonic() - begin < 60
                time.sleep(0.001)

    def test_a_page_may_ask(self, sandbox: tallyfold.Sandbox) -> None:
        with tallyfold.serve(sandbox) as server, httpx2.Client(base_url=server.url) as http:
            asked = {
                "origin": "https://dashboard.example",
                "access-control-request-method": "POST",
                "access-control-request-headers": "authorization,content-type",
            }
            preflight = http.options(DELIVERY, headers=asked)
            assert preflight.status_code == 204
            assert preflight.headers["access-control-allow-origin"] == "*"
            allowed = preflight.headers["access-control-allow-headers"]
            assert set(allowed.split(", ")) == {"authorization", "content-type"}
            assert "POST" in preflight.headers["access-control-allow-methods"]
            answer = http.post(DELIVERY, headers={"origin": asked["origin"]})
            assert answer.headers["access-control-allow-origin"] == "*"

    def test_a_cut_body_has_its_whole_length_declared(self, sandbox: tallyfold.Sandbox) -> None:
        sandbox.inject("truncate", endpoint="event_delivery", bytes=10)
        with tallyfold.serve(sandbox) as server:
            connection = http.client.HTTPConnection(urllib.parse.urlsplit(server.url).netloc)
            connection.request("POST", DELIVERY, body=b"{}")
            answer = connection.getresponse()
            assert int(answer.headers["content-length"]) > 10
            with pytest.raises(http.client.IncompleteRead) as caught:
                answer.read()
            assert len(caught.value.partial) == 10
            connection.close()

    def test_it_stops(self, sandbox: tallyfold.Sandbox) -> None:
        server = tallyfold.serve(sandbox)
        port = urllib.parse.urlsplit(server.url).port
        with socket.create_connection(("127.0.0.1", port or 0)):
            server.close()
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port or 0))
        # The port is free again at once.
        with tallyfold.serve(sandbox, port=port or 0) as again:
            assert again.url == server.url

    def test_it_ends_connections_that_are_kept(self, sandbox: tallyfold.Sandbox) -> None:
        with tallyfold.serve(sandbox) as server:
            netloc = urllib.parse.urlsplit(server.url).netloc
            connection = http.client.HTTPConnection(netloc, timeout=60)
            connection.request("POST", DELIVERY, body=b"{}")
            connection.getresponse().read()
        assert connection.sock is not None
        assert connection.sock.recv(1) == b""
        connection.close()

    @pytest.mark.parametrize(
        ("header", "status"),
        [
            ("Content-Length: \xb2", 400),
            ("Content-Length: -1", 400),
            ("Content-Length: 1e3", 400),
            ("Content-Length: 99999999999999", 413),
            ("Content-Length: 1000001", 413),
            ("Content-Length: " + "9" * 5000, 413),
            ("Transfer-Encoding: chunked", 411),
        ],
    )
    def test_bodies_without_an_end(
        self, sandbox: tallyfold.Sandbox, header: str, status: int
    ) -> None:
        request = f"POST {DELIVERY} HTTP/1.1\r\nHost: localhost\r\n{header}\r\n\r\n"
        with tallyfold.serve(sandbox) as server:
            port = urllib.parse.urlsplit(server.url).port or 0
            with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
                connection.sendall(request.encode("latin-1"))
                answer = b"".join(iter(lambda: connection.recv(4096), b""))
        assert answer.startswith(f"HTTP/1.1 {status} ".encode())
        assert b"\r\nConnection: close\r\n" in answer

    def test_a_client_that_goes_away_is_no_news(
        self, sandbox: tallyfold.Sandbox, capfd: pytest.CaptureFixture[str]
    ) -> None:
        sandbox.inject("delay", milliseconds=50)
        reset_at_once = struct.pack("ii", 1, 0)
        with tallyfold.serve(sandbox) as server:
            port = urllib.parse.urlsplit(server.url).port or 0
            with socket.create_connection(("127.0.0.1", port)) as connection:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset_at_once)
                connection.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
                # The answer is asked for, and not waited for.
                time.sleep(0.02)
            time.sleep(0.2)
        assert capfd.readouterr().err == ""

    def test_it_listens_on_this_machine_only(self, sandbox: tallyfold.Sandbox) -> None:
        with tallyfold.serve(sandbox) as server:
            assert re.fullmatch(r"http://127\.0\.0\.1:\d+", server.url)


class TestCommand:
    """`python -m tallyfold sandbox`."""

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "tallyfold", *arguments]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
    def test_it_serves_until_it_is_stopped(self, number: signal.Signals) -> None:
        with self.start("sandbox", "--port", "0", "--seed", "7") as process:
            assert process.stdout is not None
            printed = "".join(process.stdout.readline() for _ in range(6))
            found = re.search(r"http://127\.0\.0\.1:\d+", printed)
            assert found is not None, printed
            names = tallyfold.Sandbox().credentials
            fields = dict(line.split() for line in printed.splitlines()[1:5])
            assert fields == names
            with tallyfold.Client(cluster_endpoint=found[0], **names) as client:
                window = ("2026-03-02T10:00:00Z", "2026-03-02T10:15:00Z")
                over_http = client.event_delivery(*window, ["integration"])
            process.send_signal(number)
            rest, errors = process.communicate(timeout=60)
        assert (process.returncode, rest, errors) == (0, "", "")
        with connect(tallyfold.Sandbox(seed=7)) as client:
            assert client.event_delivery(*window, ["integration"]) == over_http

    def test_it_listens_and_fails_as_it_is_told(self) -> None:
        fault = (
            '{"kind": "status", "status": 503, "retry_after": "0", "endpoint": "event_delivery"}'
        )
        faults = ["--fault", fault, "--fault", '{"kind": "revoke_token"}']
        with self.start("sandbox", "--host", "0.0.0.0", *faults) as process:
            assert process.stdout is not None
            printed = "".join(process.stdout.readline() for _ in range(6))
            found = re.search(r"http://127\.0\.0\.1:\d+", printed)
            assert found is not None, printed
            attempts: list[tallyfold.Attempt] = []
            with tallyfold.Client(
                cluster_endpoint=found[0].replace("127.0.0.1", "127.0.0.2"),
                dangerously_allow_http=True,
                on_attempt=attempts.append,
                **tallyfold.Sandbox().credentials,
            ) as client:
                client.event_delivery(START, END, ["integration"])
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=60)
        assert [attempt.status for attempt in attempts] == [200, 503, 401, 200, 200]

    @pytest.mark.parametrize(
        "fault", ["{", "[]", '{"kind": "status"}', '{"kind": "delay", "x": 1}']
    )
    def test_a_wrong_fault(self, fault: str) -> None:
        with self.start("sandbox", "--fault", fault) as process:
            _, errors = process.communicate(timeout=60)
        assert process.returncode == 2
        assert f"--fault {fault}: " in errors

    def test_a_port_that_is_taken(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = str(listener.getsockname()[1])
            with self.start("sandbox", "--port", port) as process:
                _, errors = process.communicate(timeout=60)
        assert process.returncode == 1
        assert errors.startswith(f"can't serve on 127.0.0.1, port {port}: ")
        assert "Traceback" not in errors

    @pytest.mark.parametrize(
        ("arguments", "code"),
        [(["--version"], 0), (["--help"], 0), ([], 2)],
    )
    def test_other_arguments(self, arguments: list[str], code: int) -> None:
        with self.start(*arguments) as process:
            printed, _ = process.communicate(timeout=60)
        assert process.returncode == code
        if arguments == ["--version"]:
            assert printed == f"tallyfold {tallyfold.__version__}\n"

    @pytest.mark.parametrize(
        ("option", "value"),
        [("--port", "x"), ("--port", "99999"), ("--seed", "-1"), ("--seed", str(2**64))],
    )
    def test_numbers_that_can_not_be(self, option: str, value: str) -> None:
        with self.start("sandbox", f"{option}={value}") as process:
            _, errors = process.communicate(timeout=60)
        assert process.returncode == 2
        assert f"argument {option}: want a number from 0 to " in errors


@pytest.mark.parametrize("host", [None, 5, b"127.0.0.1", "", "a\0b", "\ud800"])
def test_a_host_that_can_not_be_is_named(sandbox: tallyfold.Sandbox, host: Any) -> None:
    with pytest.raises(tallyfold.ConfigError) as caught:
        tallyfold.serve(sandbox, host=host)
    assert (caught.value.code, caught.value.argument) == ("invalid_argument", "host")


@pytest.mark.parametrize(("port", "says"), [(65_536, "65535"), (-1, "65535"), ("80", "not str")])
def test_a_port_that_can_not_be_is_named(sandbox: tallyfold.Sandbox, port: Any, says: str) -> None:
    with pytest.raises(tallyfold.ConfigError) as caught:
        tallyfold.serve(sandbox, port)
    assert (caught.value.code, caught.value.argument) == ("invalid_argument", "port")
    assert str(caught.value).endswith(says)


@pytest.mark.parametrize(
    ("name", "options"), [("record", "EventArguments"), ("inject", "FaultArguments")]
)
def test_methods_show_their_arguments(name: str, options: str) -> None:
    signature = inspect.signature(getattr(tallyfold.Sandbox, name))
    kinds = [parameter.kind for parameter in signature.parameters.values()]
    assert inspect.Parameter.VAR_POSITIONAL not in kinds
    assert options in str(signature)
