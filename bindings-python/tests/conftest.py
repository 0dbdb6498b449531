"""The service and the table that most tests speak of."""

from collections.abc import Callable, Iterator

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
