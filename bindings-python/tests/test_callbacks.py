"""Functions of the caller: `AsyncClient` awaits them, `Client` calls them and refuses to await."""

import asyncio
import functools
from collections.abc import Callable
from typing import Any

import pytest
from support import ADDRESS, END, START

import tallyfold


class StoppedError(Exception):
    """What a function of the caller raises."""


Seen = list[tuple[str, ...]]


def noting(seen: Seen, *, stops: bool = False) -> Callable[..., Any]:
    """A coroutine function that notes the types of its arguments once it was awaited."""

    async def note(*given: object) -> None:
        await asyncio.sleep(0)
        seen.append(tuple(type(each).__name__ for each in given))
        if stops:
            raise StoppedError

    return note


def connect(sandbox: tallyfold.Sandbox, **options: Any) -> tallyfold.AsyncClient:
    """A client that tries nothing again."""
    return tallyfold.AsyncClient(
        cluster_endpoint=ADDRESS,
        transport=sandbox.async_transport(),
        max_retries=0,
        **{**sandbox.credentials, **options},
    )


async def collect(client: tallyfold.AsyncClient, **options: Any) -> tallyfold.CountTable:
    """Two windows."""
    query = ("event_delivery", START, "2026-01-01T00:30:00Z", ["integration"])
    return await client.collect(*query, concurrency=1, patience=0, **options)  # type: ignore[arg-type]


def test_on_attempt_is_awaited(sandbox: tallyfold.Sandbox) -> None:
    seen: Seen = []

    async def run() -> None:
        async with connect(sandbox, on_attempt=noting(seen)) as client:
            await client.event_delivery(START, END, ["integration"])
            assert seen == [("Attempt",)] * 2
            sandbox.inject("status", endpoint="event_delivery", status=403)
            with pytest.raises(tallyfold.ServiceError):
                await client.event_delivery(START, END, ["integration"])
            assert seen == [("Attempt",)] * 3

    asyncio.run(run())


def test_what_on_attempt_raises_when_it_is_awaited_ends_the_call(
    sandbox: tallyfold.Sandbox,
) -> None:
    seen: Seen = []

    async def run() -> None:
        async with connect(sandbox, on_attempt=noting(seen, stops=True)) as client:
            with pytest.raises(StoppedError):
                await client.event_delivery(START, END, ["integration"])
            with pytest.raises(StoppedError):
                await collect(client)
            follow = client.follow("event_delivery", START, ["reason"], window="5m", patience=0)
            with pytest.raises(StoppedError):
                await anext(follow)

    asyncio.run(run())
    assert seen == [("Attempt",)] * 3


def test_on_progress_is_awaited_in_order(sandbox: tallyfold.Sandbox) -> None:
    seen: Seen = []

    async def run() -> None:
        async with connect(sandbox) as client:
            await collect(client, on_progress=noting(seen))
            assert seen == [("Progress",)] * 2
            with pytest.raises(StoppedError) as caught:
                await collect(client, on_progress=noting(seen, stops=True))
            assert caught.value.partial is not None  # type: ignore[attr-defined]

    asyncio.run(run())


def test_on_failure_is_awaited(sandbox: tallyfold.Sandbox) -> None:
    seen: Seen = []
    query = ("event_delivery", START, ["reason"])

    async def run() -> None:
        async with connect(sandbox) as client:
            for stops in (False, True):
                sandbox.inject("status", endpoint="event_delivery", status=403)
                follow = client.follow(
                    *query,  # type: ignore[arg-type]
                    window="5m",
                    reread=0.001,
                    patience=0,
                    on_failure=noting(seen, stops=stops),
                )
                if stops:
                    with pytest.raises(StoppedError):
                        await anext(follow)
                else:
                    await anext(follow)
                await follow.close()

    asyncio.run(run())
    assert seen == [("Window", "ServiceError")] * 2


class Awaiting:
    """Whose call is a coroutine."""

    async def __call__(self, *_: object) -> None:
        """Does nothing."""


COROUTINES = [noting([]), functools.partial(noting([]), 1), Awaiting()]


@pytest.mark.parametrize("function", COROUTINES)
def test_a_client_awaits_nothing(client: tallyfold.Client, function: Callable[..., Any]) -> None:
    query: Any = ("event_delivery", START, END, ["integration"])
    options: Any = {"cluster_endpoint": ADDRESS, "access_token": lambda _: ("a-token", 60)}
    acts: dict[str, Callable[[], object]] = {
        "on_attempt": lambda: tallyfold.Client(**{**options, "on_attempt": function}),
        "access_token": lambda: tallyfold.Client(**{**options, "access_token": function}),
        "on_progress": lambda: client.collect(*query, on_progress=function),
        "on_failure": lambda: client.follow(
            "event_delivery", START, ["reason"], window="5m", on_failure=function
        ),
    }
    for argument, act in acts.items():
        with pytest.raises(tallyfold.ConfigError, match=r"plain function.*AsyncClient") as caught:
            act()
        assert (caught.value.code, caught.value.argument) == ("invalid_argument", argument)
        assert isinstance(caught.value, TypeError)


def test_a_client_does_not_lose_a_coroutine(client: tallyfold.Client) -> None:
    coroutine = noting([])
    with pytest.raises(tallyfold.ConfigError, match="on_progress: want a plain function"):
        client.collect(
            "event_delivery", START, END, ["integration"], on_progress=lambda each: coroutine(each)
        )


def test_a_checkpoint_of_a_client_can_not_wait(client: tallyfold.Client) -> None:
    class Shelf:
        async def load(self, _: str) -> None: ...
        async def save(self, _: str, __: bytes) -> None: ...

    with pytest.raises(tallyfold.ConfigError, match=r"checkpoint: want .* plain functions"):
        client.collect("event_delivery", START, END, ["integration"], checkpoint=Shelf())  # type: ignore[arg-type]
