"""What the tests share: the pushing process, and a simulated week."""

from collections.abc import Iterator

import pytest
import week
from pusher import Pusher


@pytest.fixture
def pusher() -> Iterator[Pusher]:
    """Gives a process that exports and pushes."""
    with Pusher() as pusher:
        yield pusher


@pytest.fixture(scope="session")
def drawn() -> list[week.Event]:
    """Gives what happens in the week."""
    return week.events(seed=7)
