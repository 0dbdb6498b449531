"""Own certificates, proxies and the environment, with real servers on loopback."""

import asyncio
import ssl
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from relay import Relay, certificate, server_context
from support import END, START

import tallyfold

Ask = Callable[..., tallyfold.CountTable]


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return certificate(tmp_path_factory.mktemp("keys"))


@pytest.fixture
def plain(sandbox: tallyfold.Sandbox) -> Iterator[int]:
    """The port of the sandbox over plain HTTP."""
    with tallyfold.serve(sandbox) as server:
        yield int(server.url.rpartition(":")[2])


@pytest.fixture
def secure(plain: int, keys: tuple[Path, Path]) -> Iterator[Relay]:
    """The same over TLS, with a certificate that nobody trusts."""
    with Relay(plain, server_context(*keys)) as relay:
        yield relay


@pytest.fixture(params=["sync", "async"])
def ask(request: pytest.FixtureRequest, sandbox: tallyfold.Sandbox) -> Ask:
    """Reads one window with a client of these options."""

    def sync(**options: Any) -> tallyfold.CountTable:
        with tallyfold.Client(**usual, **options) as client:
            return client.event_delivery(START, END, ["integration"])

    async def reading(**options: Any) -> tallyfold.CountTable:
        async with tallyfold.AsyncClient(**usual, **options) as client:
            return await client.event_delivery(START, END, ["integration"])

    usual: dict[str, Any] = {"max_retries": 0, **sandbox.credentials}
    return sync if request.param == "sync" else lambda **given: asyncio.run(reading(**given))


def test_an_own_authority(ask: Ask, secure: Relay, keys: tuple[Path, Path]) -> None:
    address = f"https://localhost:{secure.port}"
    with pytest.raises(tallyfold.ServiceError) as unknown:
        ask(cluster_endpoint=address)
    assert unknown.value.code == "network_failed"
    path = keys[0]
    context = ssl.create_default_context(cafile=str(path))
    for ca in (path, str(path), path.read_text(), path.read_bytes(), context):
        assert ask(cluster_endpoint=address, ca=ca).totals.success == 12


def test_an_authority_with_comments_in_any_encoding(
    ask: Ask, secure: Relay, keys: tuple[Path, Path], tmp_path: Path
) -> None:
    address = f"https://localhost:{secure.port}"
    pem = keys[0].read_bytes()
    file = tmp_path / "ca.pem"
    for comment in (b"# Autorit\xe9\n", "# Autorité\n".encode(), b"\xef\xbb\xbf"):
        file.write_bytes(comment + pem)
        for ca in (file, comment + pem, (comment + pem).decode("utf-8", "replace")):
            assert ask(cluster_endpoint=address, ca=ca).totals.success == 12


@pytest.mark.parametrize(
    ("ca", "says"),
    [
        ("/no/such/file.pem", "No such file or directory: '/no/such/file.pem'"),
        (b"nothing", "want certificates in PEM"),
        (b"", "want certificates in PEM"),
        (b"0\x82\x03\xe4", "want certificates in PEM"),
        ("-----BEGIN CERTIFICATE-----\nAA\n", "want certificates in PEM"),
        (5, "not int"),
    ],
)
def test_a_wrong_authority_is_refused(ask: Ask, ca: Any, says: str) -> None:
    with pytest.raises(tallyfold.ConfigError, match=f"invalid_argument: ca: .*{says}") as refused:
        ask(cluster_endpoint="https://cluster.example", ca=ca)
    assert refused.value.argument == "ca"


@pytest.mark.parametrize("proxy_has_tls", [False, True])
def test_a_proxy_carries_requests_and_token_requests(
    ask: Ask, secure: Relay, keys: tuple[Path, Path], *, proxy_has_tls: bool
) -> None:
    tls = server_context(*keys) if proxy_has_tls else None
    with Relay(secure.port, tls, is_proxy=True, password="me:pass word") as relay:
        scheme = "https" if proxy_has_tls else "http"
        at = f"127.0.0.1:{relay.port}"
        options = {"cluster_endpoint": "https://cluster.example", "ca": keys[0]}
        table = ask(**options, proxy=f"{scheme}://me:pass%20word@{at}")
        assert table.totals.success == 12
        # One connection has carried both requests.
        assert relay.heads == ["CONNECT cluster.example:443 HTTP/1.1"]
        wrong = f"{scheme}://me:hunter2@{at}"
        with pytest.raises(tallyfold.ServiceError) as refused:
            ask(**options, proxy=wrong)
        shown = "".join(traceback.format_exception(refused.value))
        assert "hunter2" not in shown


@pytest.mark.parametrize(
    ("address", "says"),
    [
        ("127.0.0.1:1", "the proxy refused the connection.* \\(PROXY_ECONNREFUSED, "),
        ("no-such-proxy.invalid:3128", "the proxy's name was not found.* \\(PROXY_E"),
    ],
)
def test_a_proxy_that_is_down_is_not_taken_for_the_server(
    ask: Ask, address: str, says: str
) -> None:
    with pytest.raises(tallyfold.ServiceError, match=says) as caught:
        ask(cluster_endpoint="https://192.0.2.1:4443", proxy=f"http://me:hunter2@{address}")
    assert caught.value.code == "network_failed"
    assert "hunter2" not in str(caught.value)


def test_a_proxy_of_the_environment_counts_only_when_it_is_to(
    ask: Ask, secure: Relay, keys: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    with Relay(secure.port, is_proxy=True) as relay:
        monkeypatch.setenv("https_proxy", f"127.0.0.1:{relay.port}")
        monkeypatch.setenv("SSL_CERT_FILE", str(keys[0]))
        options = {"cluster_endpoint": "https://cluster.example"}
        with pytest.raises(tallyfold.ServiceError):
            ask(**options)
        assert relay.heads == []
        assert ask(**options, trust_env=True).totals.success == 12
        assert relay.heads == ["CONNECT cluster.example:443 HTTP/1.1"]
        monkeypatch.setenv("no_proxy", "cluster.example")
        with pytest.raises(tallyfold.ServiceError):
            ask(**options, trust_env=True)
        assert len(relay.heads) == 1


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]"])
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_nothing_for_this_machine_goes_through_a_proxy(
    ask: Ask,
    plain: int,
    secure: Relay,
    keys: tuple[Path, Path],
    monkeypatch: pytest.MonkeyPatch,
    *,
    scheme: str,
    host: str,
) -> None:
    if scheme == "https" and host.startswith("["):
        pytest.skip("the certificate is for other names")
    port = plain if scheme == "http" else secure.port
    options = {"cluster_endpoint": f"{scheme}://{host}:{port}", "ca": keys[0]}
    with Relay(port, is_proxy=True) as relay:
        proxy = f"http://127.0.0.1:{relay.port}"
        given = ask(**options, proxy=proxy, dangerously_allow_http=True)
        monkeypatch.setenv("all_proxy", proxy)
        monkeypatch.setenv("no_proxy", "")
        found = ask(**options, trust_env=True, dangerously_allow_http=True)
        assert given.totals.success == found.totals.success == 12
        assert relay.heads == []


def test_plain_http_to_this_machine_goes_past_a_proxy(ask: Ask, plain: int) -> None:
    with Relay(plain, is_proxy=True) as relay:
        proxy = f"http://127.0.0.1:{relay.port}"
        assert ask(cluster_endpoint=f"http://127.0.0.1:{plain}", proxy=proxy).totals.success == 12
        assert relay.heads == []
        address = "http://cluster.example"
        table = ask(cluster_endpoint=address, proxy=proxy, dangerously_allow_http=True)
        assert table.totals.success == 12
        assert [head.split()[1] for head in relay.heads] == [f"{address}/v1.1/oauth/token"]


@pytest.mark.parametrize(
    "proxy",
    ["proxy.example:3128", "socks5://hunter2@x", "http://", "http://x:hunter2@y:port", 5],
)
def test_a_wrong_proxy_is_refused_without_being_quoted(
    ask: Ask, proxy: Any, table: tallyfold.CountTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(tallyfold.ConfigError, match="want the address of a proxy") as refused:
        ask(cluster_endpoint="https://cluster.example", proxy=proxy)
    assert refused.value.argument == "proxy"
    assert "hunter2" not in shown_of(refused.value)
    with pytest.raises(tallyfold.ConfigError, match="want the address of a proxy") as refused:
        tallyfold.push(table, "influx", "https://influx.example/write", proxy=proxy)
    assert "hunter2" not in shown_of(refused.value)
    monkeypatch.setenv("all_proxy", "socks5://hunter2@x")
    with pytest.raises(tallyfold.ConfigError, match="ALL_PROXY: want the address") as refused:
        ask(cluster_endpoint="https://cluster.example", trust_env=True)
    assert refused.value.argument == "trust_env"
    assert "hunter2" not in shown_of(refused.value)


def shown_of(error: BaseException) -> str:
    """All that a traceback shows, with the locals of the package's frames, also of its contexts."""
    shown = "".join(traceback.format_exception(error))
    link: BaseException | None = error
    while link is not None:
        for frame, _ in traceback.walk_tb(link.__traceback__):
            if frame.f_globals["__name__"].startswith(("tallyfold.", "urllib.")):
                shown += repr(frame.f_locals)
        link = link.__cause__ or link.__context__
    return shown


@pytest.mark.parametrize("name", ["ca", "proxy", "trust_env"])
def test_a_transport_of_the_caller_has_its_own_network(
    sandbox: tallyfold.Sandbox, name: str
) -> None:
    given: Any = {"ca": "x", "proxy": "http://x", "trust_env": True}[name]
    with pytest.raises(tallyfold.ConfigError, match="give it to your transport") as refused:
        tallyfold.Client(
            cluster_endpoint="https://cluster.example",
            transport=sandbox.transport(),
            **{name: given},
            **sandbox.credentials,
        )
    assert refused.value.argument == name


def test_headers_go_with_every_request(sandbox: tallyfold.Sandbox) -> None:
    seen: list[httpx2.Headers] = []
    inner = sandbox.transport()

    def note(request: httpx2.Request) -> httpx2.Response:
        seen.append(request.headers)
        return inner.handle_request(request)

    def client(**options: Any) -> tallyfold.Client:
        return tallyfold.Client(
            cluster_endpoint="https://cluster.example",
            transport=httpx2.MockTransport(note),
            **options,
            **sandbox.credentials,
        )

    with client(headers={"X-Api-Key": "hunter2"}) as one:
        one.event_delivery(START, END, ["integration"])
        assert "hunter2" not in repr(one)
    with client(headers={"User-Agent": "mine"}) as other:
        other.event_delivery(START, END, ["integration"])
    agent = f"tallyfold/{tallyfold.__version__} python"
    assert [(of.get("x-api-key"), of.get_list("user-agent")) for of in seen] == [
        ("hunter2", [agent]),
        ("hunter2", [agent]),
        (None, ["mine"]),
        (None, ["mine"]),
    ]
    for headers in ({"Authorization": "hunter2"}, {"x": "hunter2\n"}, {"x": 5}, "hunter2"):
        with pytest.raises(tallyfold.ConfigError, match="headers: ") as refused:
            client(headers=headers)
        assert refused.value.argument == "headers"
        assert "hunter2" not in str(refused.value)
