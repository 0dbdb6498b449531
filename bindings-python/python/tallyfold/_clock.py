"""The host's two clocks, which the core gets as an argument."""

import time
from typing import NamedTuple, Self

__all__ = ["Now"]


class Now(NamedTuple):
    """What the host's two clocks say at one moment.

    The core reads no clock: time is an argument. Of the two clocks, the one that has moved further
    counts, because a monotonic clock may stop while the computer sleeps, and a wall clock may be
    set back.

    >>> tallyfold.Now(monotonic_ms=0, unix_ms=1767225600000).unix_ms
    1767225600000
    """

    monotonic_ms: int
    """Milliseconds since any fixed moment, never running backwards."""
    unix_ms: int
    """Milliseconds since 1970-01-01T00:00:00Z by the wall clock."""

    @classmethod
    def read(cls) -> Self:
        """Reads both clocks.

        >>> tallyfold.Now.read().unix_ms > 1767225600000
        True
        """
        return cls(time.monotonic_ns() // 1_000_000, time.time_ns() // 1_000_000)
