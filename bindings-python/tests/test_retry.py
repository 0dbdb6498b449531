"""What is tried again, how a host waits for it, and what it can see of it."""

import asyncio
import signal
import threading
import time
from collections.abc import Callable

import httpx2
import pytest
from support import ADDRESS, END, START

import tallyfold
from tallyfold import Attempt

START_AND_END = tallyfold.Window(START, END)


def connect(sandbox: tallyfold.Sandbox, **options: object) -> tallyfold.Client:
    return tallyfold.Client(
        cluster_endpoint=ADDRESS,
        base_url=ADDRESS,
        auth_url=ADDRESS,
        transport=sandbox.transport(),
        **sandbox.credentials,
        **options,  # type: ignore[arg-type]
    )


def aconnect(sandbox: tallyfold.Sandbox, **options: object) -> tallyfold.AsyncClient:
    return tallyfold.AsyncClient(
        cluster_endpoint=ADDRESS,
        transport=sandbox.async_transport(),
        **sandbox.credentials,
        **options,  # type: ignore[arg-type]
    )


def ask(client: tallyfold.Client) -> int:
    return client.event_delivery(START, END, ["integration"]).totals.success


async def aask(client: tallyfold.AsyncClient) -> int:
    return (await client.event_delivery(START, END, ["integration"])).totals.success


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
def test_a_passing_status_is_tried_again(sandbox: tallyfold.Sandbox, status: int) -> None:
    for endpoint in ("control_token", "event_delivery"):
        sandbox.inject("status", endpoint=endpoint, status=status)
    begin = time.monotonic()
    with connect(sandbox) as client:
        assert ask(client) == 12
    # A quarter of a second for the first retry of the call, half a one for its second.
    assert time.monotonic() - begin >= 0.75
    assert (sandbox.stats["control_token"], sandbox.stats["event_delivery"]) == (2, 2)


def test_a_connection_that_breaks_is_tried_again(sandbox: tallyfold.Sandbox) -> None:
    sandbox.inject("truncate", endpoint="event_delivery", bytes=200)
    attempts: list[Attempt] = []
    with (
        tallyfold.serve(sandbox) as server,
        tallyfold.Client(
            cluster_endpoint=server.url,
            on_attempt=attempts.append,
            longest_retry_wait=0.01,
            **sandbox.credentials,
        ) as client,
    ):
        assert ask(client) == 12
    codes = [(attempt.target, attempt.status, attempt.code) for attempt in attempts]
    assert codes == [
        ("token", 200, None),
        ("event_delivery", 200, "network_failed"),
        ("event_delivery", 200, None),
    ]


def test_retry_after_is_waited_for_by_all_calls(
    sandbox: tallyfold.Sandbox, clock: Callable[[int], None]
) -> None:
    with connect(sandbox, max_retries=0) as client:
        sandbox.inject("status", endpoint="event_delivery", status=429, retry_after="30")
        with pytest.raises(tallyfold.ServiceError) as caught:
            ask(client)
        assert (caught.value.code, caught.value.retry_after) == ("rate_limited", 30)

        begin = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            interrupted(lambda: ask(client))
        assert time.monotonic() - begin < 10
        assert sandbox.stats["event_delivery"] == 1
        clock(30)
        assert ask(client) == 12


def interrupted(act: Callable[[], object]) -> None:
    """Presses Ctrl-C a little later."""
    # To the thread that waits: it is where a terminal's would arrive.
    timer = threading.Timer(0.2, signal.pthread_kill, [threading.get_ident(), signal.SIGINT])
    timer.start()
    try:
        act()
    finally:
        timer.join()


def test_a_wait_that_is_too_long_is_an_error(sandbox: tallyfold.Sandbox) -> None:
    attempts: list[Attempt] = []
    sandbox.inject("status", endpoint="event_delivery", status=503, retry_after="3600")
    with connect(sandbox, on_attempt=attempts.append) as client:
        with pytest.raises(tallyfold.ServiceError) as caught:
            ask(client)
        error = caught.value
        assert (error.code, error.status, error.retry_after) == ("retry_later", 503, 3600)
        said = '{"error":"injected_fault","message":"a fault of the test"}'
        assert str(error) == f"retry_later: retry later, 3600 seconds (status 503: {said})"
        assert attempts[-1] == Attempt("event_delivery", START_AND_END, 1, 503, "retry_later", None)
        assert ask(client) == 12


def test_attempts_are_told_of_as_they_end(sandbox: tallyfold.Sandbox) -> None:
    sandbox.inject("status", endpoint="event_delivery", status=500)
    sandbox.inject("revoke_token", endpoint="event_delivery")
    sandbox.inject("status", endpoint="audit_logs", status=403)
    expected = [
        Attempt("token", START_AND_END, 1, 200, None, None),
        Attempt("event_delivery", START_AND_END, 1, 500, "server_error", 0.01),
        Attempt("event_delivery", START_AND_END, 2, 401, "token_rejected", 0.0),
        Attempt("token", START_AND_END, 2, 200, None, None),
        Attempt("event_delivery", START_AND_END, 3, 200, None, None),
    ]
    attempts: list[Attempt] = []
    with connect(sandbox, on_attempt=attempts.append, longest_retry_wait=0.02) as client:
        ask(client)
        assert 0.01 <= (attempts[1].wait or 0) <= 0.02
        assert [(a.target, a.window, a.number, a.status, a.code) for a in attempts] == [
            (a.target, a.window, a.number, a.status, a.code) for a in expected
        ]
        assert [a.wait is None for a in attempts] == [a.wait is None for a in expected]
        with pytest.raises(tallyfold.ServiceError):
            client.audit_logs()
    assert attempts[-1] == Attempt("audit_logs", None, 1, 403, "forbidden", None)
    with pytest.raises(AttributeError):
        attempts[0].number = 7  # type: ignore[misc]


def test_what_on_attempt_raises_is_raised_as_it_is(sandbox: tallyfold.Sandbox) -> None:
    def refuse(attempt: Attempt) -> None:
        raise LookupError(attempt.target)

    with connect(sandbox, on_attempt=refuse) as client, pytest.raises(LookupError) as caught:
        ask(client)
    assert caught.value.args == ("token",)
    assert [entry.name for entry in caught.traceback][-1] == "refuse"

    async def main() -> None:
        async with aconnect(sandbox, on_attempt=refuse) as client:
            await aask(client)

    with pytest.raises(LookupError) as caught:
        asyncio.run(main())
    assert [entry.name for entry in caught.traceback][-1] == "refuse"


def test_closing_ends_a_wait(sandbox: tallyfold.Sandbox) -> None:
    client = connect(sandbox)
    sandbox.inject("status", endpoint="event_delivery", status=503, retry_after="60", every=1)

    def close() -> None:
        while sandbox.stats["event_delivery"] == 0:
            time.sleep(0.01)
        # By now it waits.
        time.sleep(0.1)
        client.close()

    threading.Thread(target=close, daemon=True).start()
    begin = time.monotonic()
    with pytest.raises(RuntimeError, match="this Client is closed"):
        ask(client)
    assert time.monotonic() - begin < 5
    assert sandbox.stats["event_delivery"] == 1


def test_cancelling_ends_a_wait(sandbox: tallyfold.Sandbox) -> None:
    async def main() -> None:
        async with aconnect(sandbox) as client:
            sandbox.inject("status", endpoint="control_token", status=503, retry_after="60")
            task = asyncio.create_task(aask(client))
            while sandbox.stats["control_token"] == 0:  # noqa: ASYNC110 - nobody tells
                await asyncio.sleep(0)
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(task, 0.2)

    begin = time.monotonic()
    asyncio.run(main())
    assert time.monotonic() - begin < 5
    assert sandbox.stats["control_token"] == 1


def test_tasks_try_again(sandbox: tallyfold.Sandbox) -> None:
    attempts: list[Attempt] = []

    async def main() -> list[int]:
        options = {"longest_retry_wait": 0.05, "on_attempt": attempts.append}
        async with aconnect(sandbox, **options) as client:
            sandbox.inject("status", endpoint="control_token", status=503)
            sandbox.inject("status", endpoint="event_delivery", status=504)
            return await asyncio.gather(*(aask(client) for _ in range(10)))

    assert asyncio.run(main()) == [12] * 10
    assert (sandbox.stats["control_token"], sandbox.stats["event_delivery"]) == (2, 11)
    assert sorted(attempt.status or 0 for attempt in attempts) == [200] * 11 + [503, 504]


def test_an_async_client_that_was_closed_while_it_waits(sandbox: tallyfold.Sandbox) -> None:
    async def main() -> None:
        client = aconnect(sandbox)
        sandbox.inject("status", endpoint="control_token", status=503)
        task = asyncio.create_task(aask(client))
        while sandbox.stats["control_token"] == 0:  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0)
        await client.close()
        with pytest.raises(RuntimeError, match="this AsyncClient is closed"):
            await task

    asyncio.run(main())
    assert sandbox.stats["control_token"] == 1


def test_the_budget_of_a_client() -> None:
    def answer(_: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(502, headers={"content-type": "text/html"}, content=b"<html>")

    attempts: list[Attempt] = []
    client = tallyfold.Client(
        cluster_endpoint=ADDRESS,
        access_token=lambda _: ("a-token", 3600),
        transport=httpx2.MockTransport(answer),
        longest_retry_wait=0,
        on_attempt=attempts.append,
    )
    errors: list[str] = []
    for _ in range(100):
        with pytest.raises(tallyfold.ServiceError) as caught:
            ask(client)
        assert (caught.value.code, caught.value.status) == ("server_error", 502)
        errors.append(str(caught.value))
    # Ten retries from the start, and nine more that a hundred calls have earned.
    assert len(attempts) - 100 in {18, 19}
    assert sum("the retry budget is used up" in error for error in errors) > 90


@pytest.mark.parametrize(
    ("options", "argument"),
    [
        ({"max_retries": -1}, "max_retries"),
        ({"max_retries": 2**32}, "max_retries"),
        ({"longest_retry_wait": -0.001}, "longest_retry_wait"),
        ({"longest_retry_wait": float("nan")}, "longest_retry_wait"),
        ({"longest_retry_wait": float("inf")}, "longest_retry_wait"),
        ({"longest_retry_wait": 10**400}, "longest_retry_wait"),
        ({"longest_retry_wait": 2147483.648}, "longest_retry_wait"),
    ],
)
def test_options_are_refused_by_name(
    sandbox: tallyfold.Sandbox, options: dict[str, object], argument: str
) -> None:
    with pytest.raises(tallyfold.ConfigError) as caught:
        connect(sandbox, **options)
    assert (caught.value.code, caught.value.argument) == ("invalid_argument", argument)
    connect(sandbox, longest_retry_wait=2147483.647, max_retries=2**32 - 1).close()


def test_a_machine_says_for_how_long() -> None:
    machine = tallyfold.Machine(cluster_endpoint=ADDRESS, host_tokens=True)
    call = machine.event_delivery(START, END, ["reason"])
    call.step(tallyfold.Now(0, 0))
    call.token("a-token", 60)
    call.step(tallyfold.Now(0, 0))
    assert call.attempt() is None
    assert call.head(503, [("Retry-After", "7")]) is False
    attempt = call.attempt()
    assert attempt is not None
    assert 7 <= (attempt.wait or 0) <= 7.25
    assert call.attempt() is None
    step = call.step(tallyfold.Now(0, 0))
    assert isinstance(step, tallyfold.Wait)
    assert step.ms == round((attempt.wait or 0) * 1000)
    assert repr(step) == f"Wait(ms={step.ms})"
    # Another call of the machine waits for what the service has asked for, and no longer.
    other = machine.event_delivery(START, END, ["reason"]).step(tallyfold.Now(1000, 0))
    assert repr(other) == "Wait(ms=6000)"
