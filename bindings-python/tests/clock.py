"""A time that tests move, in place of the host's clocks."""

import asyncio
import threading
from typing import TYPE_CHECKING

import pytest

import tallyfold
from tallyfold._calls import async_driver
from tallyfold._http.stop import Stop

if TYPE_CHECKING:
    from collections.abc import Callable


class Clock:
    """Both clocks, which only waiting moves, in any thread."""

    def __init__(self, start_ms: int) -> None:
        self.ms = 0
        """Milliseconds since the start."""
        self.events: list[tuple[int, Callable[[], None]]] = []
        """What happens, and when."""
        self._start_ms = start_ms
        self._lock = threading.Lock()

    def now(self) -> tallyfold.Now:
        return tallyfold.Now(self.ms, self._start_ms + self.ms)

    def wait(self, seconds: float) -> None:
        with self._lock:
            self.ms += round(seconds * 1000)
            while self.events and self.events[0][0] <= self.ms:
                self.events.pop(0)[1]()

    def drive(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Lets clients and iterators go by this time."""

        async def pause(_: object, seconds: float) -> None:
            self.wait(seconds)
            await asyncio.sleep(0)

        monkeypatch.setattr(tallyfold.Now, "read", self.now)
        monkeypatch.setattr(Stop, "wait", lambda _, seconds: self.wait(seconds))
        monkeypatch.setattr(async_driver.AsyncReader, "pause", pause)
        monkeypatch.setattr(async_driver.AsyncDriver, "_pause", pause)
