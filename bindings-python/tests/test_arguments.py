"""Arguments that can't be used are refused by name, at once and in words of ours."""

import asyncio
import copy
import inspect
import math
import pickle
import typing
import weakref
from collections.abc import Callable
from datetime import date, datetime, timedelta, timezone, tzinfo
from typing import Any

import httpx2
import pandas as pd
import pytest
from support import ADDRESS, END, START

import tallyfold

LONE = "\ud800"
CLIENTS = [tallyfold.Client, tallyfold.AsyncClient]
EAST, WEST = timezone(timedelta(hours=1)), timezone(timedelta(hours=-1))


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize(
    "timeout", [0, -1, float("nan"), float("inf"), 1e300, 86_401, 10**400, "5", True, [1]]
)
def test_timeouts_that_can_not_be(client: type[tallyfold.Client], timeout: float) -> None:
    with pytest.raises(tallyfold.ConfigError) as caught:
        client(cluster_endpoint=ADDRESS, access_token=lambda _: ("a", 1), timeout=timeout)
    assert (caught.value.code, caught.value.argument) == ("invalid_argument", "timeout")
    assert str(caught.value).startswith("invalid_argument: timeout: ")


@pytest.mark.parametrize("timeout", [None, 1, 0.5, 86_400])
def test_timeouts_that_can_be(sandbox: tallyfold.Sandbox, timeout: float | None) -> None:
    with tallyfold.serve(sandbox) as server:
        options = {"cluster_endpoint": server.url, "timeout": timeout, **sandbox.credentials}

        async def tasks() -> None:
            async with tallyfold.AsyncClient(**options) as client:  # type: ignore[arg-type]
                await client.event_delivery(START, END, ["reason"])

        with tallyfold.Client(**options) as client:  # type: ignore[arg-type]
            client.event_delivery(START, END, ["reason"])
        asyncio.run(tasks())


@pytest.mark.parametrize(
    "instant",
    [
        pd.NaT,
        date(2026, 1, 1),
        datetime.min.replace(tzinfo=EAST),
        datetime.max.replace(tzinfo=WEST),
        LONE,
    ],
)
def test_times_that_are_no_instant(client: tallyfold.Client, instant: datetime) -> None:
    windows: dict[str, tuple[datetime | str, datetime | str]]
    windows = {"start": (instant, END), "end": (START, instant)}
    for argument, window in windows.items():
        with pytest.raises(tallyfold.ConfigError) as caught:
            client.event_delivery(*window, ["reason"])
        assert (caught.value.code, caught.value.argument) == ("invalid_timestamp", argument)
        with pytest.raises(tallyfold.ConfigError) as caught:
            tallyfold.Aggregator(["reason"], window=window)
        assert (caught.value.code, caught.value.argument) == ("invalid_timestamp", argument)


class Broken(tzinfo):
    """A zone that fails."""

    def utcoffset(self, _: datetime | None) -> timedelta:
        raise LookupError("no zone")

    tzname = dst = utcoffset  # type: ignore[assignment]


def test_a_time_says_why_it_is_no_instant(client: tallyfold.Client) -> None:
    with pytest.raises(tallyfold.ConfigError, match="NaT isn't a timestamp"):
        client.event_delivery(pd.NaT, END, ["reason"])  # type: ignore[arg-type]
    with pytest.raises(tallyfold.ConfigError, match="zone has failed to give an offset") as caught:
        client.event_delivery(datetime(2026, 1, 1, tzinfo=Broken()), END, ["reason"])
    assert isinstance(caught.value.__cause__, LookupError)


def test_no_message_names_milliseconds() -> None:
    with pytest.raises(tallyfold.ConfigError, match="longest_retry_wait: want at most 24 days"):
        make(tallyfold.Machine, longest_retry_wait=math.inf)


def test_a_date_is_told_what_is_wanted(client: tallyfold.Client) -> None:
    with pytest.raises(tallyfold.ConfigError, match="want a datetime"):
        client.event_delivery(date(2026, 1, 1), END, ["reason"])  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="want a datetime or a str, not int"):
        client.event_delivery(5, END, ["reason"])  # type: ignore[arg-type]


def test_texts_with_lone_surrogates(client: tallyfold.Client, table: tallyfold.CountTable) -> None:
    def check(argument: str, act: Callable[[], object]) -> None:
        with pytest.raises(tallyfold.ConfigError) as caught:
            act()
        assert (caught.value.code, caught.value.argument) == ("invalid_argument", argument)

    wrong: typing.Any = [LONE]
    check("dimensions", lambda: client.event_delivery(START, END, wrong))
    check("dimensions", lambda: tallyfold.Aggregator(wrong))
    check("group_by", lambda: client.event_ingestion(START, END, ["reason"], wrong))
    check("names", lambda: table.group_by(*wrong))
    check("integration", lambda: table.filter(integration=LONE))
    check("base_url", lambda: tallyfold.Client(base_url=LONE))
    check("client_id", lambda: tallyfold.Client(cluster_endpoint=ADDRESS, client_id=LONE))
    check("client_secret", lambda: tallyfold.Sandbox(client_secret=LONE))


def make(what: Callable[..., object], **options: object) -> object:
    """Calls with options that no type checker would let pass."""
    return what(**options)


@pytest.mark.parametrize(
    ("act", "argument", "meant"),
    [
        (
            lambda client, _: client.collect("event_delivery", START, END, [], windov="5m"),
            "windov",
            "window",
        ),
        (
            lambda client, _: client.collect("event_delivery", START, END, [], check="a"),
            "check",
            None,
        ),
        (
            lambda client, _: client.collect("event_delivery", START, END, [], checkpont="a"),
            "checkpont",
            "checkpoint",
        ),
        (
            lambda client, _: client.follow("event_delivery", START, [], settle_ms=5),
            "settle_ms",
            "settle",
        ),
        (lambda *_: make(tallyfold.Client, clientId="a"), "clientId", "client_id"),
        (lambda *_: make(tallyfold.AsyncClient, transports=1), "transports", "transport"),
        (lambda _, table: table.top(1, bye="errors"), "bye", "by"),
        (lambda *_: make(tallyfold.Limits, group=1), "group", "groups"),
        (lambda *_: make(tallyfold.Sandbox, sead=1), "sead", "seed"),
    ],
)
def test_a_slip_is_told_what_was_meant(
    client: tallyfold.Client,
    table: tallyfold.CountTable,
    act: Callable[..., object],
    argument: str,
    meant: str | None,
) -> None:
    with pytest.raises(tallyfold.ConfigError) as caught:
        act(client, table)
    assert (caught.value.code, caught.value.argument) == ("unknown_argument", argument)
    assert isinstance(caught.value, TypeError)
    told = str(caught.value).startswith(f"unknown_argument: {argument}: there is no such argument")
    assert told
    assert str(caught.value).endswith(f"; did you mean {meant}?" if meant else "argument")
    other = pickle.loads(pickle.dumps(caught.value))
    assert (type(other), str(other)) == (type(caught.value), str(caught.value))


@pytest.mark.parametrize(
    ("act", "argument", "message"),
    [
        (
            lambda client: client.event_delivery(START, END, [1]),
            "dimensions",
            "want a sequence of str, but this contains int",
        ),
        (
            lambda client: client.collect("event_delivery", START, END, ["reason"], part=(True, 2)),
            "part",
            "want a pair of ints, but this contains bool",
        ),
        (
            lambda _: make(tallyfold.Machine, headers={1: "a"}),
            "headers",
            "want a dict of str to str, but this contains int",
        ),
        (lambda client: client.audit_logs(page=1.5), "page", "want an int, not float"),
        (lambda client: client.audit_logs(page=True), "page", "want an int, not bool"),
        (
            lambda client: client.event_delivery(START, END, "reason"),
            "dimensions",
            "want a sequence of str, not str",
        ),
        (
            lambda client: client.collect("event_delivery", START, END, ["reason"], probe=1),
            "probe",
            "want True or False, not int",
        ),
        (
            lambda client: client.collect("event_delivery", START, END, ["reason"], part=[1, "2"]),
            "part",
            "want a pair of ints, but this contains str",
        ),
        (
            lambda client: client.collect("event_delivery", START, END, ["reason"], have=5),
            "have",
            "want a CountTable, not int",
        ),
        (
            lambda _: make(tallyfold.Machine, limits={"depth": 1}),
            "limits",
            "want Limits, not dict",
        ),
        (
            lambda _: make(tallyfold.Machine, longest_retry_wait="a"),
            "longest_retry_wait",
            "not str",
        ),
        (lambda client: client.token(1), "api", "want control or orchestration, not int"),
        (lambda _: make(tallyfold.Client.from_env, env="a"), "env", "want a mapping, not str"),
    ],
)
def test_a_value_of_another_type_is_named(
    client: tallyfold.Client, act: Callable[..., object], argument: str, message: str
) -> None:
    with pytest.raises(tallyfold.ConfigError) as caught:
        act(client)
    assert (caught.value.code, caught.value.argument) == ("invalid_argument", argument)
    assert isinstance(caught.value, TypeError)
    assert str(caught.value).endswith(message)


TOKENS = {"cluster_endpoint": ADDRESS, "access_token": lambda _: ("a-token", 3600)}


class Place:
    """A path of a kind that `os.PathLike` allows."""

    def __init__(self, path: Any) -> None:
        self._path = path

    def __fspath__(self) -> Any:
        return self._path


@pytest.mark.parametrize("name", ["a\0b", LONE, "", Place(""), Place(b"a"), Place(5)])
@pytest.mark.parametrize(
    ("act", "argument"),
    [
        (
            lambda client, _, name: client.collect(
                "event_delivery", START, END, ["reason"], checkpoint=name
            ),
            "checkpoint",
        ),
        (lambda _, table, name: tallyfold.export(table, "csv").write_to(name), "target"),
        (lambda *given: tallyfold.Ledger(given[-1]), "path"),
        (lambda *given: tallyfold.Outbox(given[-1], "influx"), "path"),
        (lambda *given: make(tallyfold.Client, **TOKENS, ca=given[-1]), "ca"),
    ],
)
def test_a_path_that_no_file_can_have_is_named(
    client: tallyfold.Client,
    table: tallyfold.CountTable,
    act: Callable[..., object],
    argument: str,
    name: str,
) -> None:
    with pytest.raises(tallyfold.ConfigError) as caught:
        act(client, table, name)
    assert (caught.value.code, caught.value.argument) == ("invalid_argument", argument)


@pytest.mark.parametrize("trust_env", ["false", 0, 1, []])
@pytest.mark.parametrize("given", ["transport", "nothing"])
def test_a_flag_of_a_push_and_of_notifications_is_a_bool(
    table: tallyfold.CountTable, trust_env: Any, given: str
) -> None:
    options: Any = {"trust_env": trust_env, "patience": 0}
    if given == "transport":
        options["transport"] = httpx2.MockTransport(lambda _: httpx2.Response(204))
    check = tallyfold.Rules.standard().check()
    url = "https://h.example/write"
    for send in (
        lambda: tallyfold.push(table, "influx", url, **options),
        lambda: asyncio.run(tallyfold.async_push(table, "influx", url, **options)),
        lambda: tallyfold.notify(check, [], **options),
        lambda: asyncio.run(tallyfold.async_notify(check, [], **options)),
    ):
        with pytest.raises(tallyfold.ConfigError) as caught:
            send()
        assert (caught.value.code, caught.value.argument) == ("invalid_argument", "trust_env")


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("trust_env", ["false", 0, 1, []])
def test_a_flag_of_a_client_is_a_bool(client: type[tallyfold.Client], trust_env: Any) -> None:
    with pytest.raises(tallyfold.ConfigError) as caught:
        client(**TOKENS, trust_env=trust_env)  # type: ignore[arg-type]
    assert (caught.value.code, caught.value.argument) == ("invalid_argument", "trust_env")
    assert isinstance(caught.value, TypeError)


@pytest.mark.parametrize("timeout", [0, float("nan"), float("inf"), 2**70])
def test_a_timeout_of_a_push_that_can_not_be(table: tallyfold.CountTable, timeout: float) -> None:
    with pytest.raises(tallyfold.ConfigError) as caught:
        tallyfold.push(table, "influx", "http://127.0.0.1:9/", timeout=timeout, patience=0)
    assert caught.value.argument == "timeout"


def test_arguments_by_position_are_those_that_come_first(table: tallyfold.CountTable) -> None:
    assert tallyfold.Plan(START, end=END, window="5m") == tallyfold.Plan(START, END, "5m")
    with pytest.raises(TypeError, match="at most 2 positional arguments, not 3"):
        table.top(1, "errors", 3)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="n is given by position and by name"):
        table.top(1, n=1)  # type: ignore[misc]
    with pytest.raises(TypeError) as caught:
        table.top()  # type: ignore[call-arg]
    assert isinstance(caught.value, tallyfold.ConfigError)
    assert (caught.value.code, caught.value.argument) == ("missing_argument", "n")


def test_a_client_knows_by_itself_where_its_tokens_come_from() -> None:
    with pytest.raises(TypeError, match="host_tokens"):
        make(tallyfold.Client, base_url=ADDRESS, host_tokens=True)


def test_a_machine_tells_its_timeout() -> None:
    assert tallyfold.Machine(base_url=ADDRESS, host_tokens=True).timeout == 30
    assert tallyfold.Machine(base_url=ADDRESS, host_tokens=True, timeout=0.5).timeout == 0.5
    assert tallyfold.Machine(base_url=ADDRESS, host_tokens=True, timeout=None).timeout is None


def test_documents_that_are_no_text() -> None:
    with pytest.raises(TypeError, match="want str or bytes, not int"):
        tallyfold.CountTable.from_json(5)  # type: ignore[arg-type]
    with pytest.raises(tallyfold.ResponseError) as caught:
        tallyfold.CountTable.from_json(f'["{LONE}"]')
    assert (caught.value.code, caught.value.offset) == ("invalid_table", 2)


@pytest.mark.parametrize("number", ["1" * 5000, "1e999", "-1e999"])
def test_numbers_that_python_can_not_hold(number: str) -> None:
    def answer(_: httpx2.Request) -> httpx2.Response:
        content = f'{{"total": {number}}}'.encode()
        return httpx2.Response(200, headers={"content-type": "application/json"}, content=content)

    options = {"base_url": ADDRESS, "access_token": lambda _: ("a-token", 60)}
    options["transport"] = httpx2.MockTransport(answer)
    client = tallyfold.Client(**options)  # type: ignore[arg-type]
    with pytest.raises(tallyfold.ResponseError) as caught:
        client.audit_logs()
    assert caught.value.code == "invalid_json"
    assert "1111" not in str(caught.value)
    with pytest.raises(tallyfold.ResponseError):
        asyncio.run(tallyfold.AsyncClient(**options).audit_logs())  # type: ignore[arg-type]


@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_that_was_not_made_can_be_shown(client: type[tallyfold.Client]) -> None:
    half = client.__new__(client)
    assert repr(half) == f"<{client.__name__} of nothing>"


@pytest.mark.parametrize("client", CLIENTS)
def test_clients_can_be_referred_to_weakly(client: type[tallyfold.Client]) -> None:
    made = client(cluster_endpoint=ADDRESS, access_token=lambda _: ("a-token", 60))
    assert weakref.ref(made)() is made


def test_limits_are_values() -> None:
    own = tallyfold.Limits(groups=7)
    assert own == tallyfold.Limits(groups=7)
    assert own != tallyfold.Limits()
    assert own != 7  # type: ignore[comparison-overlap]
    assert {own: 1}[tallyfold.Limits(groups=7)] == 1
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(own, protocol)) == own
    assert copy.copy(own) == copy.deepcopy(own) == own


def test_annotations_can_be_read() -> None:
    for name in tallyfold.__all__:
        for _, function in inspect.getmembers(getattr(tallyfold, name), inspect.isfunction):
            if function.__module__.startswith("tallyfold"):
                typing.get_type_hints(function)


def test_a_naive_datetime_is_named(client: tallyfold.Client) -> None:
    naive = datetime(2026, 1, 1)  # noqa: DTZ001
    with pytest.raises(tallyfold.ConfigError, match="a naive datetime isn't a timestamp") as caught:
        client.event_delivery(naive, END, ["reason"])
    assert (caught.value.code, caught.value.argument) == ("invalid_timestamp", "start")


@pytest.mark.parametrize("name", ["client_id", "client_secret", "control_audience"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_line_break_behind_a_credential_is_named(
    sandbox: tallyfold.Sandbox, name: str, end: str
) -> None:
    credentials: Any = {**sandbox.credentials}
    credentials[name] += end
    with pytest.raises(tallyfold.ConfigError, match="this ends with a line break") as caught:
        tallyfold.Client(cluster_endpoint="https://cluster.example", **credentials)
    assert (caught.value.code, caught.value.argument) == ("invalid_argument", name)


@pytest.mark.parametrize("name", ["client_id", "client_secret"])
@pytest.mark.parametrize(
    ("text", "message"),
    [
        (" canary", "begins or ends with white space"),
        ("canary\t", "begins or ends with white space"),
        (" ", "begins or ends with white space"),
        ("can\tary", "contains a control character"),
    ],
)
def test_white_space_around_a_credential_and_control_characters_are_named(
    monkeypatch: pytest.MonkeyPatch,
    sandbox: tallyfold.Sandbox,
    name: str,
    text: str,
    message: str,
) -> None:
    credentials: Any = {**sandbox.credentials, name: text}
    with pytest.raises(tallyfold.ConfigError, match=message) as caught:
        tallyfold.Client(cluster_endpoint="https://cluster.example", **credentials)
    assert (caught.value.code, caught.value.argument) == ("invalid_argument", name)
    assert "canary" not in str(caught.value)
    for key, value in credentials.items():
        monkeypatch.setenv(f"TALLYFOLD_{key.upper()}", value)
    monkeypatch.setenv("TALLYFOLD_CLUSTER_ENDPOINT", "https://cluster.example")
    with pytest.raises(tallyfold.ConfigError, match=message) as caught:
        tallyfold.Client.from_env()
    assert caught.value.argument == name


@pytest.mark.parametrize("address", ["https://cluster.example\n", " https://cluster.example"])
def test_white_space_around_an_address_is_named(sandbox: tallyfold.Sandbox, address: str) -> None:
    with pytest.raises(tallyfold.ConfigError, match="begins or ends with white space") as caught:
        tallyfold.Client(cluster_endpoint=address, **sandbox.credentials)
    assert caught.value.argument == "cluster_endpoint"


@pytest.mark.parametrize("wrong", [b"", b"integration", bytearray(), memoryview(b"")])
def test_bytes_are_no_texts(
    client: tallyfold.Client, table: tallyfold.CountTable, wrong: typing.Any
) -> None:
    kind = type(wrong).__name__
    for argument, act in (
        ("integration", lambda: table.filter(integration=wrong)),
        ("group_by", lambda: tallyfold.Aggregator(["reason"], group_by=wrong)),
        ("group_by", lambda: client.event_ingestion(START, END, ["reason"], wrong)),
        ("dimensions", lambda: client.event_ingestion(START, END, wrong)),
    ):
        with pytest.raises(tallyfold.ConfigError, match=f"not {kind}") as caught:
            act()
        assert caught.value.argument == argument
        assert isinstance(caught.value, TypeError)


def test_names_in_a_list_are_a_config_error(table: tallyfold.CountTable) -> None:
    with pytest.raises(tallyfold.ConfigError, match="want names one by one") as caught:
        table.group_by(["integration"])  # type: ignore[arg-type]
    assert isinstance(caught.value, TypeError)
