"""`access_token` functions that hang, fail, or call the client that they serve."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import httpx2
import pytest
from support import ADDRESS, END, START, body

import tallyfold

TABLE = body([({"integration": "a"}, 1, 0, 0)])
ANSWER = httpx2.MockTransport(
    lambda _: httpx2.Response(200, headers={"content-type": "application/json"}, content=TABLE)
)


def asking(access_token: tallyfold.AccessToken, timeout: float | None = 30.0) -> tallyfold.Client:
    return tallyfold.Client(
        cluster_endpoint=ADDRESS, access_token=access_token, transport=ANSWER, timeout=timeout
    )


def asking_in_tasks(
    access_token: tallyfold.AsyncAccessToken, timeout: float | None = 30.0
) -> tallyfold.AsyncClient:
    return tallyfold.AsyncClient(
        cluster_endpoint=ADDRESS, access_token=access_token, transport=ANSWER, timeout=timeout
    )


def ask(client: tallyfold.Client) -> int:
    return client.event_delivery(START, END, ["integration"]).totals.success


async def aask(client: tallyfold.AsyncClient) -> int:
    return (await client.event_delivery(START, END, ["integration"])).totals.success


def ended(act: Callable[[], object]) -> BaseException | None:
    """Gives what an action raises, and fails where it takes for ever."""
    raised: list[BaseException] = []

    def run() -> None:
        try:
            act()
        except BaseException as error:  # noqa: BLE001 - it is given to the test
            raised.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(60)
    assert not thread.is_alive()
    return raised[0] if raised else None


def check_re_entrance(error: BaseException | None) -> None:
    assert isinstance(error, tallyfold.AuthError)
    assert error.code == "token_provider_failed"
    cause = error.__cause__
    assert isinstance(cause, tallyfold.ConfigError)
    assert (cause.code, cause.argument) == ("out_of_order", "access_token")


def test_it_can_not_call_the_client_that_it_serves() -> None:
    def token(_: str) -> tuple[str, int]:
        ask(client)
        return "a-token", 60

    client = asking(token, timeout=None)
    check_re_entrance(ended(lambda: ask(client)))


@pytest.mark.parametrize("in_a_task", [False, True])
def test_nor_can_a_coroutine(*, in_a_task: bool) -> None:
    async def token(_: str) -> tuple[str, int]:
        await (asyncio.create_task(aask(client)) if in_a_task else aask(client))
        return "a-token", 60

    client = asking_in_tasks(token, timeout=None)
    check_re_entrance(ended(lambda: asyncio.run(aask(client))))


def test_a_task_that_it_started_may_call_when_it_is_over() -> None:
    started: list[asyncio.Task[int]] = []

    async def later() -> int:
        await asyncio.sleep(0.05)
        return await aask(client)

    async def token(_: str) -> tuple[str, int]:
        started.append(asyncio.create_task(later()))
        return "a-token", 60

    async def main() -> int:
        return await aask(client) + await started[0]

    client = asking_in_tasks(token)
    assert asyncio.run(main()) == 2


def test_it_may_call_another_client() -> None:
    other = asking(lambda _: ("another-token", 60))
    client = asking(lambda _: (f"token-{ask(other)}", 60))
    assert ask(client) == 1


def test_who_waits_for_one_that_hangs_waits_for_a_time() -> None:
    asked, over = threading.Event(), threading.Event()

    def token(_: str) -> tuple[str, int]:
        asked.set()
        over.wait()
        return "a-token", 60

    client = asking(token, timeout=0.2)
    leader = threading.Thread(target=ask, args=(client,))
    leader.start()
    asked.wait()
    try:
        error = ended(lambda: ask(client))
    finally:
        over.set()
        leader.join()
    assert isinstance(error, tallyfold.ServiceError)
    assert error.code == "timed_out"
    assert str(error).startswith("timed_out: ")
    assert ask(client) == 1


def test_a_coroutine_that_hangs_is_ended() -> None:
    async def token(_: str) -> tuple[str, int]:
        await asyncio.Future()
        return "a-token", 60

    async def main() -> list[BaseException | int]:
        calls = (aask(client) for _ in range(3))
        return await asyncio.gather(*calls, return_exceptions=True)

    client = asking_in_tasks(token, timeout=0.2)
    outcomes = asyncio.run(asyncio.wait_for(main(), 60))
    for error in outcomes:
        assert isinstance(error, tallyfold.TallyfoldError)
        assert error.code in {"token_provider_failed", "timed_out"}
    assert isinstance(outcomes[0], tallyfold.AuthError)
    assert isinstance(outcomes[0].__cause__, TimeoutError)


def test_a_waiting_task_waits_for_a_time() -> None:
    async def main() -> None:
        waiting, over = asyncio.Event(), asyncio.Event()

        async def token(_: str) -> tuple[str, int]:
            waiting.set()
            try:
                await over.wait()
            except asyncio.CancelledError:
                # One that will not be ended.
                await over.wait()
            return "a-token", 60

        client = asking_in_tasks(token, timeout=0.2)
        leader = asyncio.create_task(aask(client))
        await waiting.wait()
        with pytest.raises(tallyfold.ServiceError) as caught:
            await asyncio.wait_for(aask(client), 60)
        assert caught.value.code == "timed_out"
        over.set()
        await asyncio.gather(leader, return_exceptions=True)

    asyncio.run(main())


OWN_ERROR = tallyfold.ServiceError("network_failed: elsewhere", code="network_failed")


def test_an_error_of_ours_is_its_failure_as_any_other() -> None:
    def token(_: str) -> tuple[str, int]:
        raise OWN_ERROR

    async def coroutine(_: str) -> tuple[str, int]:
        raise OWN_ERROR

    acts: list[Callable[[], int]] = [
        lambda: ask(asking(token)),
        lambda: asyncio.run(aask(asking_in_tasks(coroutine))),
    ]
    for act in acts:
        with pytest.raises(tallyfold.AuthError) as caught:
            act()
        assert caught.value.code == "token_provider_failed"
        assert caught.value.__cause__ is OWN_ERROR


@pytest.mark.parametrize(
    ("answer", "got"),
    [
        ("a-token", "str"),
        (None, "NoneType"),
        ({"access_token": "a"}, "dict"),
        (("a-token",), "another pair"),
        ((b"a-token", 60), "another pair"),
    ],
)
@pytest.mark.parametrize("in_tasks", [False, True])
def test_another_shape_is_named(answer: Any, got: str, *, in_tasks: bool) -> None:
    def call() -> None:
        if in_tasks:
            asyncio.run(aask(asking_in_tasks(lambda _: answer)))
        else:
            ask(asking(lambda _: answer))

    with pytest.raises(tallyfold.AuthError, match=rf"access_token: want a pair .*, not {got}"):
        call()


def test_a_coroutine_in_a_plain_client_is_named() -> None:
    async def token(_: str) -> tuple[str, int]:
        return "a-token", 60

    with pytest.raises(tallyfold.AuthError, match=r"access_token: want .*, not coroutine"):
        ask(asking(lambda api: token(api)))  # type: ignore[arg-type, return-value]


def test_an_older_token_serves_while_it_fails(clock: Callable[[int], None]) -> None:
    asked: list[str] = []

    def token(api: str) -> tuple[str, int]:
        asked.append(api)
        if len(asked) > 1:
            raise OWN_ERROR
        return "a-token", 3600

    client = asking(token)
    assert ask(client) == 1
    clock(3590)
    assert ask(client) == 1
    assert len(asked) == 2
