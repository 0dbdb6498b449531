"""Calls that end at their deadline, whatever they are waiting for."""

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from service import HOUR, busy_day
from support import END, START

import tallyfold
from tallyfold._files import file


@pytest.fixture
def url(sandbox: tallyfold.Sandbox) -> Iterator[str]:
    with tallyfold.serve(sandbox) as server:
        yield server.url


@pytest.fixture(params=["sync", "async"])
def ask(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """Calls a method of a client of these options."""

    def sync(options: dict[str, Any], method: str, *given: Any, **named: Any) -> Any:
        with tallyfold.Client(**options) as client:
            return getattr(client, method)(*given, **named)

    async def reading(options: dict[str, Any], method: str, *given: Any, **named: Any) -> Any:
        async with tallyfold.AsyncClient(**options) as client:
            return await getattr(client, method)(*given, **named)

    return sync if request.param == "sync" else lambda *a, **k: asyncio.run(reading(*a, **k))


def expect_the_end(act: Callable[[], object], seconds: float) -> tallyfold.TallyfoldError:
    began = time.monotonic()
    with pytest.raises(tallyfold.ServiceError) as ended:
        act()
    assert seconds * 0.99 <= time.monotonic() - began < seconds + 5
    assert ended.value.code == "deadline_exceeded"
    assert "the call took longer than its deadline" in str(ended.value)
    return ended.value


@pytest.mark.parametrize(
    ("kind", "fault"),
    [
        ("status", {"status": 503, "retry_after": "30", "every": 1}),
        ("delay", {"milliseconds": 30_000, "every": 1}),
        ("delay", {"milliseconds": 30_000, "every": 1, "endpoint": "event_delivery"}),
    ],
)
def test_a_call(
    ask: Callable[..., Any],
    sandbox: tallyfold.Sandbox,
    url: str,
    kind: Any,
    fault: dict[str, Any],
) -> None:
    sandbox.inject(kind, **fault)
    options = {"cluster_endpoint": url, **sandbox.credentials}
    query = "event_delivery", START, END, ["integration"]
    expect_the_end(lambda: ask(options, *query, deadline=0.3), 0.3)
    logs = {**options, "base_url": url, "auth_url": url}
    if "endpoint" not in fault:
        expect_the_end(lambda: ask(logs, "audit_logs", deadline=0.1), 0.1)


def test_a_collect_keeps_what_was_read(
    ask: Callable[..., Any], tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A busy disk may take seconds for it.
    monkeypatch.setattr(file, "_sync", lambda opened: opened.flush())
    monkeypatch.setattr(file, "_sync_names", lambda _: None)
    sandbox = busy_day()
    options = {"max_retries": 0, **sandbox.credentials}
    with tallyfold.serve(sandbox) as server:
        options["cluster_endpoint"] = server.url
        seen: list[int] = []

        def stop_the_service(progress: tallyfold.Progress) -> None:
            seen.append(progress.done)
            if progress.done == 2:
                sandbox.inject("status", status=503, every=1, endpoint="event_delivery")

        query = "collect", "event_delivery", *HOUR, ["integration"]
        named = {"concurrency": 1, "checkpoint": tmp_path, "deadline": 2.0}
        error = expect_the_end(
            lambda: ask(options, *query, **named, on_progress=stop_the_service), 2.0
        )
        assert error.partial is not None
        assert len(error.partial.windows) >= 2
        assert len(error.gaps) == 1
    again = busy_day()
    with tallyfold.serve(again, int(server.url.rpartition(":")[2])):
        table = ask(options, *query, checkpoint=tmp_path)
    assert len(table.windows) == 4
    assert again.stats["event_delivery"] == 4 - len(error.partial.windows)


def test_a_wait_for_the_token_of_another_call(url: str) -> None:
    entered, leave = threading.Event(), threading.Event()

    def source(_: str) -> tuple[str, int]:
        entered.set()
        leave.wait(30)
        return "token", 60

    with tallyfold.Client(cluster_endpoint=url, access_token=source, max_retries=0) as client:

        def first() -> None:
            with pytest.raises(tallyfold.AuthError):
                client.event_delivery(START, END, ["integration"])

        thread = threading.Thread(target=first)
        thread.start()
        assert entered.wait(30)
        expect_the_end(
            lambda: client.event_delivery(START, END, ["integration"], deadline=0.3), 0.3
        )
        leave.set()
        thread.join()


def test_a_source_of_tokens_that_takes_too_long(url: str) -> None:
    async def source(_: str) -> tuple[str, int]:
        await asyncio.sleep(30)
        return "token", 60

    async def ask() -> None:
        async with tallyfold.AsyncClient(cluster_endpoint=url, access_token=source) as client:
            other = asyncio.create_task(
                client.event_delivery(START, END, ["integration"], deadline=0.5)
            )
            await asyncio.sleep(0)
            calls = [client.event_delivery(START, END, ["integration"], deadline=0.3), other]
            for result in await asyncio.gather(*calls, return_exceptions=True):
                assert isinstance(result, tallyfold.ServiceError)
                assert result.code == "deadline_exceeded"

    asyncio.run(ask())
