"""Where a collect's checkpoint is stored: a directory, or an object of the caller's."""

import asyncio
import contextlib
import inspect
import os
import pathlib
import threading
from collections.abc import Awaitable, Callable, Iterator
from types import TracebackType
from typing import Generic, Protocol, Self, TypeVar

from tallyfold._tallyfold import Collect, segment_name

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

__all__ = ["AsyncCheckpoint", "AsyncKeeper", "Checkpoint", "Keeper", "Path"]

Path = str | os.PathLike[str]
"""The path of a directory."""


class Checkpoint(Protocol):
    """Stores the segments of a collect's checkpoint under their names, wherever that is.

    Each is a small JSON document without any secret. One collect at a time may use a checkpoint.

    >>> class Shelf:
    ...     def __init__(self):
    ...         self.segments = {}
    ...     def load(self, name):
    ...         return self.segments.get(name)
    ...     def save(self, name, data):
    ...         self.segments[name] = data
    >>> shelf = Shelf()
    >>> table = client.collect(
    ...     "event_delivery", "2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z", ["integration"],
    ...     checkpoint=shelf,
    ... )
    >>> list(shelf.segments)
    ['segment-00000.json']
    """

    def load(self, name: str, /) -> bytes | str | None:
        """Gives what was saved last under the name; `None` if nothing was."""

    def save(self, name: str, data: bytes, /) -> object:
        """Stores the data in place of what was there: as a whole, or not at all."""


class AsyncCheckpoint(Protocol):
    """`Checkpoint` for `AsyncClient`: its functions may be coroutine functions.

    >>> class Shelf:
    ...     segments = {}
    ...     async def load(self, name):
    ...         return self.segments.get(name)
    ...     async def save(self, name, data):
    ...         self.segments[name] = data
    """

    def load(self, name: str, /) -> bytes | str | Awaitable[bytes | str | None] | None:
        """Gives what was saved last under the name; `None` if nothing was."""

    def save(self, name: str, data: bytes, /) -> object:
        """Stores the data in place of what was there: as a whole, or not at all."""


StoreT = TypeVar("StoreT", bound=Checkpoint | AsyncCheckpoint)


class _Opened(Generic[StoreT]):
    """A collect's checkpoint while it is in use, and what of it has not been stored yet."""

    def __init__(
        self,
        machine: Collect,
        checkpoint: StoreT | Path | None,
        store_in: Callable[["_Directory"], StoreT],
    ) -> None:
        self._machine = machine
        self._opened = contextlib.ExitStack()
        self._store: StoreT | None
        if isinstance(checkpoint, (str, os.PathLike)):
            self._store = store_in(self._opened.enter_context(_Directory(checkpoint)))
        else:
            self._store = checkpoint
        self._pending: tuple[str, bytes] | None = None

    def _due(self) -> tuple[str, bytes] | None:
        if self._pending is None:
            self._pending = self._machine.unsaved()
        return self._pending

    def __enter__(self) -> Self:
        """Gives the keeper itself."""
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Lets others use the directory."""
        self._opened.close()


class Keeper(_Opened[Checkpoint]):
    """Loads what is stored of a collect, and stores what has been read."""

    def __init__(self, machine: Collect, checkpoint: Checkpoint | Path | None) -> None:
        """Opens a directory, which is made if it is not there, and keeps others out of it."""
        super().__init__(machine, checkpoint, lambda directory: directory)

    def load(self) -> None:
        """Takes up all segments that are stored."""
        if self._store is None:
            return
        for name in _names():
            segment = self._store.load(name)
            if segment is None:
                return
            self._machine.load(name, segment)

    def save(self) -> None:
        """Stores what has been read since the last time, and what could not be stored then."""
        while self._store is not None and (segment := self._due()) is not None:
            self._store.save(*segment)
            self._pending = None


class AsyncKeeper(_Opened[AsyncCheckpoint]):
    """`Keeper` for asyncio: a directory is written in a thread of its own."""

    def __init__(self, machine: Collect, checkpoint: AsyncCheckpoint | Path | None) -> None:
        """Opens a directory, which is made if it is not there, and keeps others out of it."""
        super().__init__(machine, checkpoint, _InThread)

    async def load(self) -> None:
        """Takes up all segments that are stored."""
        if self._store is None:
            return
        for name in _names():
            loaded = self._store.load(name)
            segment = await loaded if inspect.isawaitable(loaded) else loaded
            if segment is None:
                return
            self._machine.load(name, segment)

    async def save(self) -> None:
        """Stores what has been read since the last time, and what could not be stored then."""
        while self._store is not None and (segment := self._due()) is not None:
            saved = self._store.save(*segment)
            if inspect.isawaitable(saved):
                await saved
            self._pending = None


def _names() -> Iterator[str]:
    number = 0
    while True:
        yield segment_name(number)
        number += 1


class _Directory:
    """A directory with a file for each segment, which one collect at a time may use."""

    def __init__(self, path: Path) -> None:
        self._path = pathlib.Path(path)
        self._path.mkdir(parents=True, exist_ok=True)
        # A save whose task was cancelled still runs when the last one comes.
        self._saving = threading.Lock()

    def __enter__(self) -> Self:
        """Keeps other processes out until this one ends, however it ends."""
        # Also where locks are not known: a directory that can't be written to is found out now.
        self._lock = (self._path / "lock").open("ab")
        try:
            _lock(self._lock.fileno(), self._path)
            for left_over in self._path.glob("segment-*.tmp"):
                left_over.unlink(missing_ok=True)
        except BaseException:
            self._lock.close()
            raise
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Lets others in, after a save that still runs."""
        with self._saving:
            self._lock.close()

    def load(self, name: str, /) -> bytes | None:
        """Reads a segment."""
        try:
            return (self._path / name).read_bytes()
        except FileNotFoundError:
            return None

    def save(self, name: str, data: bytes, /) -> None:
        """Writes a segment: whatever happens meanwhile, the old one or the new one is there."""
        # Not another process's, where there are no locks.
        new = self._path / f"{name}.{os.getpid()}.tmp"
        with self._saving:
            try:
                with new.open("wb") as file:
                    file.write(data)
                    file.flush()
                    os.fsync(file.fileno())
                new.replace(self._path / name)
            except BaseException:
                new.unlink(missing_ok=True)
                raise
            self._sync_names()

    def _sync_names(self) -> None:
        # Where a directory can't be opened or synced, as on Windows, its names are on their own.
        with contextlib.suppress(OSError):
            directory = os.open(self._path, os.O_RDONLY)
            try:
                os.fsync(directory)
            finally:
                os.close(directory)


def _lock(file: int, path: pathlib.Path) -> None:
    if fcntl is None:
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        message = "another collect is using this checkpoint"
        raise BlockingIOError(error.errno, message, str(path)) from None
    except OSError:
        # Some network file systems have no locks.
        return


class _InThread:
    """A directory's functions as coroutine functions."""

    def __init__(self, directory: _Directory) -> None:
        self._directory = directory

    async def load(self, name: str, /) -> bytes | None:
        return await asyncio.to_thread(self._directory.load, name)

    async def save(self, name: str, data: bytes, /) -> None:
        await asyncio.to_thread(self._directory.save, name, data)
