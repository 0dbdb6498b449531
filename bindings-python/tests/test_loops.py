"""One `AsyncClient` in several event loops: in turns, and not at the same time."""

import asyncio
import gc
import threading
import time
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
import trio
from support import ADDRESS, END, START

import tallyfold

pytestmark = pytest.mark.usefixtures("each_loop")


@pytest.fixture(autouse=True)
def nothing_left_open() -> Iterator[None]:
    """Lets the collector find what was left open, which warns."""
    yield
    gc.collect()


async def ask(client: tallyfold.AsyncClient) -> int:
    return (await client.event_delivery(START, END, ["integration"])).totals.success


def test_trio_is_refused_at_once() -> None:
    options: Any = {"cluster_endpoint": ADDRESS, "access_token": lambda _: ("a-token", 3600)}

    async def make() -> None:
        tallyfold.AsyncClient(**options)

    made_elsewhere = tallyfold.AsyncClient(**options)

    async def use() -> None:
        await ask(made_elsewhere)

    for main in (make, use):
        with pytest.raises(tallyfold.ConfigError, match="this is trio, and an AsyncClient works"):
            trio.run(main)


def test_loops_take_turns_over_http(sandbox: tallyfold.Sandbox) -> None:
    with tallyfold.serve(sandbox) as server:
        client = tallyfold.AsyncClient(cluster_endpoint=server.url, **sandbox.credentials)
        # The first loop's connections ended with it: a second loop can't wait for their bytes.
        for _ in range(3):
            assert asyncio.run(ask(client)) == 12
        asyncio.run(client.close())
    assert sandbox.stats["control_token"] == 1


def test_a_loop_keeps_its_connections(sandbox: tallyfold.Sandbox) -> None:
    async def main() -> None:
        async with tallyfold.AsyncClient(
            cluster_endpoint=server.url, **sandbox.credentials
        ) as client:
            for _ in range(3):
                await ask(client)
            assert len(server._server._connections) == 1  # noqa: SLF001

    with tallyfold.serve(sandbox) as server:
        asyncio.run(main())


def test_a_client_may_be_closed_twice_at_once(sandbox: tallyfold.Sandbox) -> None:
    async def main() -> None:
        client = tallyfold.AsyncClient(cluster_endpoint=server.url, **sandbox.credentials)
        await ask(client)
        await asyncio.gather(client.close(), client.close())
        await client.close()

    with tallyfold.serve(sandbox) as server:
        asyncio.run(main())


def test_two_loops_at_once_are_refused() -> None:
    entered, done = threading.Event(), threading.Event()

    async def answer(_: httpx2.Request) -> httpx2.Response:
        entered.set()
        while not done.is_set():  # noqa: ASYNC110 - set from another thread
            await asyncio.sleep(0.01)
        return httpx2.Response(404)

    client = tallyfold.AsyncClient(
        cluster_endpoint=ADDRESS,
        access_token=lambda _: ("a-token", 3600),
        transport=httpx2.MockTransport(answer),
    )

    def first() -> None:
        with pytest.raises(tallyfold.ServiceError):
            asyncio.run(ask(client))

    thread = threading.Thread(target=first)
    thread.start()
    entered.wait()
    try:
        with pytest.raises(RuntimeError, match="in use in another event loop"):
            asyncio.run(asyncio.wait_for(ask(client), 5))
    finally:
        done.set()
        thread.join()
    # The other loop is done, and this one may.
    with pytest.raises(tallyfold.ServiceError):
        asyncio.run(ask(client))


def test_a_loop_that_was_left_in_the_middle_does_not_count() -> None:
    async def answer(_: httpx2.Request) -> httpx2.Response:
        if loop.is_running():
            loop.stop()
            await asyncio.Future()
        return httpx2.Response(404)

    client = tallyfold.AsyncClient(
        cluster_endpoint=ADDRESS,
        access_token=lambda _: ("a-token", 3600),
        transport=httpx2.MockTransport(answer),
    )
    loop = asyncio.new_event_loop()
    left = loop.create_task(ask(client))
    loop.run_forever()
    loop.close()
    begin = time.monotonic()
    with pytest.raises(tallyfold.ServiceError):
        asyncio.run(ask(client))
    assert time.monotonic() - begin < 5
    assert not left.done()
    # What asyncio would say of a task that never ends is no news here.
    left._log_destroy_pending = False  # type: ignore[attr-defined]  # noqa: SLF001


def test_calls_that_a_closed_loop_has_left_keep_no_token(sandbox: tallyfold.Sandbox) -> None:
    inner = sandbox.async_transport()

    async def answer(request: httpx2.Request) -> httpx2.Response:
        if loop.is_running():
            loop.stop()
            await asyncio.Future()
        return await inner.handle_async_request(request)

    client = tallyfold.AsyncClient(
        cluster_endpoint=ADDRESS,
        transport=httpx2.MockTransport(answer),
        timeout=10,
        client_id=sandbox.credentials["client_id"],
        client_secret=sandbox.credentials["client_secret"],
        control_audience=sandbox.credentials["control_audience"],
    )
    loop = asyncio.new_event_loop()
    # One of them fetches the token, and the others wait for it.
    left = [loop.create_task(ask(client)) for _ in range(3)]
    loop.run_forever()
    loop.close()
    begin = time.monotonic()
    for _ in range(2):
        assert asyncio.run(ask(client)) > 0
    assert time.monotonic() - begin < 5
    for task in left:
        assert not task.done()
        # Without this, asyncio warns that the task never ends.
        task._log_destroy_pending = False  # type: ignore[attr-defined]  # noqa: SLF001
