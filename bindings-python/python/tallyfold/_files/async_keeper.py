"""Loads and stores the checkpoint of a collect."""

from typing import Self

from tallyfold._files.async_checkpoint import AsyncCheckpoint
from tallyfold._files.lock import Turn
from tallyfold._files.stores import AsyncStore, Path
from tallyfold._tallyfold import Collect

__all__ = ["AsyncKeeper"]


class AsyncKeeper:
    """Loads the stored segments of a collect, and stores what has been read."""

    def __init__(self, machine: Collect, checkpoint: AsyncCheckpoint | Path | None) -> None:
        """Opens the checkpoint. Creates a directory if it does not exist, and locks it."""
        self.turn = Turn()
        self._machine = machine
        self._store = AsyncStore(checkpoint, self.turn)
        self._pending: tuple[str, bytes] | None = None

    async def load(self) -> None:
        """Loads all stored segments."""
        while (segment := await self._store.load(self._machine.wanted())) is not None:
            self._machine.load(self._store.place(self._machine.wanted()), segment)

    async def save(self) -> None:
        """Stores what has been read since the last time, and what could not be stored before."""
        while self._store and (segment := self._due()) is not None:
            await self._store.save(*segment)
            self._pending = None

    def _due(self) -> tuple[str, bytes] | None:
        if self._pending is None:
            self._pending = self._machine.unsaved()
        return self._pending

    def __enter__(self) -> Self:
        """Returns the keeper itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Unlocks the directory."""
        self._store.close()
