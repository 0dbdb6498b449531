"""Callers at the same time, and one token among them."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx2
import pytest
from support import ADDRESS, END, START, connect

import tallyfold

CALLERS = 100
A_DAY_AND_AN_HOUR = 25 * 3600


def ask(client: tallyfold.Client) -> int:
    return client.event_delivery(START, END, ["integration"]).totals.success


def all_at_once(client: tallyfold.Client) -> list[int]:
    """Lets a hundred threads ask when all of them are ready."""
    ready = threading.Barrier(CALLERS)

    def one(_: int) -> int:
        ready.wait()
        return ask(client)

    with ThreadPoolExecutor(CALLERS) as threads:
        return list(threads.map(one, range(CALLERS)))


@pytest.mark.parametrize("network", ["in process", "over http"])
def test_threads_with_an_expired_token_make_one_request(
    sandbox: tallyfold.Sandbox, clock: Callable[[int], None], network: str
) -> None:
    with tallyfold.serve(sandbox) as server:
        address = ADDRESS if network == "in process" else server.url
        with connect(sandbox, address) as client:
            ask(client)
            clock(A_DAY_AND_AN_HOUR)
            sandbox.inject("delay", endpoint="control_token", milliseconds=50)
            assert all_at_once(client) == [12] * CALLERS
    assert sandbox.stats["control_token"] == 2
    assert sandbox.stats["event_delivery"] == 1 + CALLERS


def test_threads_with_a_refused_token_make_one_request(sandbox: tallyfold.Sandbox) -> None:
    with connect(sandbox) as client:
        ask(client)
        sandbox.revoke_tokens()
        sandbox.inject("delay", endpoint="control_token", milliseconds=50)
        assert all_at_once(client) == [12] * CALLERS
    assert sandbox.stats["control_token"] == 2


def test_tasks_with_an_expired_token_make_one_request(
    sandbox: tallyfold.Sandbox, clock: Callable[[int], None]
) -> None:
    async def main(address: str) -> list[int]:
        async with aconnect(sandbox, address) as client:
            await aask(client)
            clock(A_DAY_AND_AN_HOUR)
            sandbox.inject("delay", endpoint="control_token", milliseconds=50)
            return await asyncio.gather(*(aask(client) for _ in range(CALLERS)))

    with tallyfold.serve(sandbox) as server:
        assert asyncio.run(main(server.url)) == [12] * CALLERS
    assert sandbox.stats["control_token"] == 2
    assert sandbox.stats["event_delivery"] == 1 + CALLERS


def test_an_interrupted_thread_hands_over(sandbox: tallyfold.Sandbox) -> None:
    inner, fetching, waiting = sandbox.transport(), threading.Event(), threading.Event()

    class Interrupted(httpx2.BaseTransport):
        def handle_request(self, request: httpx2.Request) -> httpx2.Response:
            if not fetching.is_set():
                fetching.set()
                waiting.wait()
                raise KeyboardInterrupt
            return inner.handle_request(request)

    client = tallyfold.Client(
        cluster_endpoint=ADDRESS, transport=Interrupted(), **sandbox.credentials
    )
    with ThreadPoolExecutor(2) as threads:
        leader = threads.submit(ask, client)
        fetching.wait()
        follower = threads.submit(ask, client)
        # It waits in its client, where it holds the condition's lock only to look.
        while not client._token_moved._waiters:  # type: ignore[attr-defined]  # noqa: SLF001
            threading.Event().wait(0.001)
        waiting.set()
        with pytest.raises(KeyboardInterrupt):
            leader.result()
        assert follower.result() == 12
    assert sandbox.stats["control_token"] == 1


def test_closing_a_follow_ends_its_wait_for_the_token_of_another_call() -> None:
    fetching, release = threading.Event(), threading.Event()

    def provide(_: str) -> tuple[str, int]:
        fetching.set()
        release.wait(60)
        raise LookupError

    with (
        ThreadPoolExecutor(2) as threads,
        tallyfold.Client(cluster_endpoint=ADDRESS, access_token=provide, max_retries=0) as client,
    ):
        leader = threads.submit(ask, client)
        fetching.wait()
        revisions = client.follow("event_delivery", START, ["reason"], window="15m")
        follower = threads.submit(list, revisions)
        while not client._token_moved._waiters:  # type: ignore[attr-defined]  # noqa: SLF001
            threading.Event().wait(0.001)
        try:
            revisions.close()
            assert follower.result(10) == []
        finally:
            release.set()
        with pytest.raises(tallyfold.AuthError):
            leader.result()


def test_a_cancelled_task_hands_over(sandbox: tallyfold.Sandbox) -> None:
    inner = sandbox.async_transport()

    class Hanging(httpx2.AsyncBaseTransport):
        def __init__(self) -> None:
            self.fetching = asyncio.Event()

        async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
            if not self.fetching.is_set():
                self.fetching.set()
                await asyncio.Future()
            return await inner.handle_async_request(request)

    async def main() -> list[int | BaseException]:
        transport = Hanging()
        async with aconnect(sandbox, ADDRESS, transport) as client:
            leader = asyncio.create_task(aask(client))
            await transport.fetching.wait()
            followers = [asyncio.create_task(aask(client)) for _ in range(10)]
            await asyncio.sleep(0)
            leader.cancel()
            # One that only waits may be cancelled as well, to nobody's loss.
            followers[0].cancel()
            return await asyncio.gather(leader, *followers, return_exceptions=True)

    cancelled, also_cancelled, *rest = asyncio.run(main())
    assert isinstance(cancelled, asyncio.CancelledError)
    assert isinstance(also_cancelled, asyncio.CancelledError)
    assert rest == [12] * 9
    assert sandbox.stats["control_token"] == 1


def test_a_failed_fetch_fails_whoever_waits_and_nobody_after(sandbox: tallyfold.Sandbox) -> None:
    with connect(sandbox) as client:
        sandbox.inject("delay", endpoint="control_token", milliseconds=100)
        sandbox.inject("status", endpoint="control_token", status=500)
        ready = threading.Barrier(10)

        def one(_: int) -> int | str:
            ready.wait()
            try:
                return ask(client)
            except tallyfold.TallyfoldError as error:
                return error.code

        with ThreadPoolExecutor(10) as threads:
            outcomes = list(threads.map(one, range(10)))
        # Who came too late to wait for the failed fetch has fetched anew.
        assert "server_error" in outcomes
        assert set(outcomes) <= {"server_error", 12}
        assert ask(client) == 12


def aconnect(
    sandbox: tallyfold.Sandbox, address: str, transport: httpx2.AsyncBaseTransport | None = None
) -> tallyfold.AsyncClient:
    if transport is None and address == ADDRESS:
        transport = sandbox.async_transport()
    return tallyfold.AsyncClient(
        cluster_endpoint=address,
        base_url=address,
        auth_url=address,
        transport=transport,
        max_retries=0,
        **sandbox.credentials,
    )


async def aask(client: tallyfold.AsyncClient) -> int:
    return (await client.event_delivery(START, END, ["integration"])).totals.success


class TestAsyncClient:
    """What is the same as with the synchronous client."""

    @pytest.mark.parametrize("network", ["in process", "over http"])
    def test_all_calls(
        self, sandbox: tallyfold.Sandbox, table: tallyfold.CountTable, network: str
    ) -> None:
        async def main(address: str) -> None:
            async with aconnect(sandbox, address) as client:
                dimensions: list[tallyfold.DimensionName] = ["integration", "reason"]
                assert await client.event_delivery(START, END, dimensions) == table
                ingestion = await client.event_ingestion(START, END, ["integration"])
                assert ingestion.metric == "event_ingestion"
                assert (await client.audit_logs(page=2, per_page=5))["page"] == 2
            with pytest.raises(RuntimeError, match="this AsyncClient is closed"):
                await client.audit_logs()

        with tallyfold.serve(sandbox) as server:
            asyncio.run(main(ADDRESS if network == "in process" else server.url))

    @pytest.mark.parametrize("awaitable", [False, True])
    def test_access_tokens(self, *, awaitable: bool) -> None:
        async def later() -> tuple[str, int]:
            await asyncio.sleep(0)
            return "a-token", 3600

        asked: list[str] = []

        def token(api: tallyfold.ApiName) -> tuple[str, int] | Coroutine[Any, Any, tuple[str, int]]:
            asked.append(api)
            return later() if awaitable else ("a-token", 3600)

        seen: list[str] = []

        def answer(request: httpx2.Request) -> httpx2.Response:
            seen.append(request.headers["authorization"])
            return httpx2.Response(404)

        async def main() -> None:
            client = tallyfold.AsyncClient(
                cluster_endpoint=ADDRESS, access_token=token, transport=httpx2.MockTransport(answer)
            )
            for _ in range(2):
                with pytest.raises(tallyfold.ServiceError):
                    await aask(client)

        asyncio.run(main())
        assert asked == ["control"]
        assert seen == ["Bearer a-token"] * 2

    def test_what_an_access_token_raises_is_the_cause(self) -> None:
        async def token(api: tallyfold.ApiName) -> tuple[str, int]:
            await asyncio.sleep(0)
            raise KeyError(api)

        async def main() -> None:
            async with tallyfold.AsyncClient(
                cluster_endpoint=ADDRESS, access_token=token
            ) as client:
                await aask(client)

        with pytest.raises(tallyfold.AuthError) as caught:
            asyncio.run(main())
        assert caught.value.code == "token_provider_failed"
        assert isinstance(caught.value.__cause__, KeyError)

    @pytest.mark.parametrize("network", ["in process", "over http"])
    def test_a_late_answer(self, sandbox: tallyfold.Sandbox, network: str) -> None:
        sandbox.inject("delay", every=1, milliseconds=2_000)

        async def main(address: str) -> None:
            inside = address == ADDRESS
            async with tallyfold.AsyncClient(
                cluster_endpoint=address,
                transport=sandbox.async_transport() if inside else None,
                timeout=0.1,
                max_retries=0,
                **sandbox.credentials,
            ) as client:
                await aask(client)

        with tallyfold.serve(sandbox) as server, pytest.raises(tallyfold.ServiceError) as caught:
            asyncio.run(main(ADDRESS if network == "in process" else server.url))
        assert caught.value.code == "timed_out"

    def test_a_broken_connection(self, sandbox: tallyfold.Sandbox) -> None:
        sandbox.inject("truncate", endpoint="event_delivery", bytes=200)

        async def main(address: str) -> None:
            async with aconnect(sandbox, address) as client:
                await aask(client)

        with tallyfold.serve(sandbox) as server, pytest.raises(tallyfold.ServiceError) as caught:
            asyncio.run(main(server.url))
        assert caught.value.code == "network_failed"


class Revoker:
    """Revokes all tokens thrice: amid many calls, when the next token has come, and later again."""

    def __init__(self, sandbox: tallyfold.Sandbox) -> None:
        self.sandbox = sandbox
        self.good = 0
        self.revocations = 0
        self._lock = threading.Lock()

    def __call__(self, attempt: tallyfold.Attempt) -> None:
        if attempt.code is not None:
            return
        with self._lock:
            is_token = attempt.target == "token"
            self.good += not is_token
            if (
                (self.revocations == 0 and self.good >= 300)
                or (self.revocations == 1 and is_token)
                or (self.revocations == 2 and self.good >= 700)
            ):
                self.revocations += 1
                self.sandbox.revoke_tokens()


@pytest.mark.parametrize("network", ["in process", "over http"])
def test_no_thread_fails_because_tokens_are_revoked(network: str) -> None:
    sandbox = tallyfold.Sandbox(token_lifetime=60)
    revoker = Revoker(sandbox)
    with tallyfold.serve(sandbox) as server:
        inside = network == "in process"
        with tallyfold.Client(
            cluster_endpoint=ADDRESS if inside else server.url,
            transport=sandbox.transport() if inside else None,
            on_attempt=revoker,
            max_retries=0,
            timeout=200,
            **sandbox.credentials,
        ) as client:
            ready = threading.Barrier(200)

            def five(_: int) -> list[int]:
                ready.wait()
                return [ask(client) for _ in range(5)]

            with ThreadPoolExecutor(200) as threads:
                assert list(threads.map(five, range(200))) == [[0] * 5] * 200
    assert revoker.revocations == 3


@pytest.mark.parametrize("network", ["in process", "over http"])
def test_no_task_fails_because_tokens_are_revoked(network: str) -> None:
    sandbox = tallyfold.Sandbox(token_lifetime=60)
    revoker = Revoker(sandbox)

    async def main(address: str) -> list[list[int]]:
        async with tallyfold.AsyncClient(
            cluster_endpoint=address,
            transport=sandbox.async_transport() if address == ADDRESS else None,
            on_attempt=revoker,
            max_retries=0,
            timeout=200,
            **sandbox.credentials,
        ) as client:

            async def three() -> list[int]:
                return [await aask(client) for _ in range(3)]

            return await asyncio.gather(*(three() for _ in range(500)))

    with tallyfold.serve(sandbox) as server:
        address = ADDRESS if network == "in process" else server.url
        assert asyncio.run(main(address)) == [[0] * 3] * 500
    assert revoker.revocations == 3
