"""The service and the table that most tests speak of."""

import asyncio
import importlib.util
from collections.abc import Callable, Coroutine, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
import surroundings
from support import END, START, connect, record

import tallyfold

surroundings.prepare()


@pytest.fixture
def sandbox() -> tallyfold.Sandbox:
    """Gives a service with a few recorded events."""
    sandbox = tallyfold.Sandbox()
    for integration, success, errors in [("email", 5, 2), ("push", 0, 4), ("warehouse", 7, 0)]:
        for outcome, count in [("success", success), ("errors", errors)]:
            record(sandbox, outcome, integration, count=count)
    record(sandbox, "filtered", "email", reason="playbook <b>", count=3)
    return sandbox


@pytest.fixture
def client(sandbox: tallyfold.Sandbox) -> Iterator[tallyfold.Client]:
    """Gives a client of that service, without a network."""
    with connect(sandbox) as client:
        yield client


@pytest.fixture
def table(client: tallyfold.Client) -> tallyfold.CountTable:
    """Gives the counts of those events by two dimensions."""
    return client.event_delivery(START, END, ["integration", "reason"])


def run_in_uvloop(main: Coroutine[Any, Any, Any], *, debug: bool | None = None) -> Any:
    """`asyncio.run`, in a loop of uvloop."""
    import uvloop

    with asyncio.Runner(debug=debug, loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(main)


# It does not exist for Windows.
LOOPS = ["asyncio", *(["uvloop"] if importlib.util.find_spec("uvloop") else [])]


@pytest.fixture(params=LOOPS)
def each_loop(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets `asyncio.run` of a test use asyncio's own loop, and then that of uvloop."""
    if request.param == "uvloop":
        monkeypatch.setattr(asyncio, "run", run_in_uvloop)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Gives a function that lets both clocks jump ahead by so many seconds."""
    ahead = 0
    read = tallyfold.Now.read

    def now() -> tallyfold.Now:
        real = read()
        return tallyfold.Now(real.monotonic_ms + ahead * 1000, real.unix_ms + ahead * 1000)

    def advance(seconds: int) -> None:
        nonlocal ahead
        ahead += seconds

    monkeypatch.setattr(tallyfold.Now, "read", now)
    return advance


@pytest.fixture
def hour(monkeypatch: pytest.MonkeyPatch) -> datetime:
    """Lets the wall clock stand still in the middle of an hour, and gives the start of the hour."""
    read = tallyfold.Now.read
    start = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
    unix_ms = round(start.timestamp() * 1000) + 30 * 60_000
    monkeypatch.setattr(tallyfold.Now, "read", lambda: read()._replace(unix_ms=unix_ms))
    return start
