"""Arguments that can't be used are refused by name, at once and in words of ours."""

import asyncio
import copy
import inspect
import pickle
import typing
import weakref
from collections.abc import Callable
from datetime import date, datetime, timedelta, timezone

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
    assert own != 7
    assert {own: 1}[tallyfold.Limits(groups=7)] == 1
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(own, protocol)) == own
    assert copy.copy(own) == copy.deepcopy(own) == own


def test_annotations_can_be_read() -> None:
    for name in tallyfold.__all__:
        for _, function in inspect.getmembers(getattr(tallyfold, name), inspect.isfunction):
            if function.__module__.startswith("tallyfold"):
                typing.get_type_hints(function)
