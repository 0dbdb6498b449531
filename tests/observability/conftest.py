"""What the tests share: a simulated week, and a connection."""

from collections.abc import Iterator

import httpx2
import pytest
import surroundings
import week

surroundings.prepare()


@pytest.fixture(scope="module")
def transport() -> Iterator[httpx2.HTTPTransport]:
    """Gives what pushes, over connections that stay open."""
    with httpx2.HTTPTransport(trust_env=False) as transport:
        yield transport


@pytest.fixture(scope="session")
def drawn() -> list[week.Event]:
    """Gives what happens in the week."""
    return week.events(seed=7)
