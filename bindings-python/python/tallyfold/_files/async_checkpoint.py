"""The interface of a checkpoint object that a caller provides."""

from collections.abc import Awaitable
from typing import Protocol

__all__ = ["AsyncCheckpoint"]


class AsyncCheckpoint(Protocol):
    """Stores the segments of a collect's checkpoint by name, wherever you want.

    Each segment is a small JSON document without secrets. One collect at a time may use a
    checkpoint.
    Its functions may be coroutine functions.

    >>> class Shelf:
    ...     def __init__(self):
    ...         self.segments = {}
    ...     async def load(self, name):
    ...         return self.segments.get(name)
    ...     async def save(self, name, data):
    ...         self.segments[name] = data
    >>> shelf = Shelf()
    >>> table = await async_client.collect(
    ...     "event_delivery", "2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z", ["integration"],
    ...     checkpoint=shelf,
    ... )
    >>> list(shelf.segments)
    ['segment-00000.json']
    """

    def load(self, name: str, /) -> bytes | str | Awaitable[bytes | str | None] | None:
        """Returns what was last saved under the name; `None` if nothing was."""

    def save(self, name: str, data: bytes, /) -> object:
        """Atomically replaces what is stored under the name with the data."""
