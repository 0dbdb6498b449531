"""A state file, which only one process at a time writes."""

import asyncio
import contextlib
import errno
import os
import pathlib
import stat
from collections.abc import Callable, Iterator
from typing import TypeVar

from tallyfold._errors import ConfigError, invalid
from tallyfold._files.file import found_at, given_path, replacing
from tallyfold._files.lock import Lock, Turn

__all__ = ["StateFile", "aside", "outlast"]

T = TypeVar("T")


class StateFile:
    """A file that is written only if nobody else has written it since it was read.

    A lock keeps others out while the file is being written. It is the same lock as for checkpoints,
    in the directory `NAME.lease`. The packages of all languages and the command take it.
    """

    __slots__ = ("_lock", "_path", "_seen", "_writing")

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Touches no file yet."""
        self._path = given_path("path", path, "want the path of a file")
        self._lock: Lock | None = None
        self._seen = _mark(self._path)
        # What is being written. An interrupted `replace` leaves it.
        self._writing: bytes | None = None

    def read(self) -> bytes | None:
        """Reads the file, if it is there."""
        self._seen = _mark(self._path)
        return None if self._seen is None else self._path.read_bytes()

    @contextlib.contextmanager
    def named(self) -> Iterator[None]:
        """Adds the name of the file to the error for an invalid document."""
        try:
            yield
        except ConfigError as error:
            if error.code != "invalid_checkpoint":
                raise
            text = str(error).removeprefix(f"{error.code}: ")
            message = f"{error.code}: {self._path}: {text}"
            raise ConfigError(message, code=error.code, argument=error.argument) from None

    def hold(self, turn: Turn) -> None:
        """Keeps others out until the end of the turn, even other objects of this process.

        Raises:
            BlockingIOError: if others are writing the file, or have written it since it was read.
        """
        self._lock = None
        real = pathlib.Path(os.path.realpath(self._path))
        with self._alone():
            self._lock = _locked(real.with_name(f"{real.name}.lease"), turn)
        self._check()

    def replace(self, data: bytes) -> None:
        """Replaces the content, while this is held. If that fails, the old content stays."""
        if self._lock is not None:
            with self._alone():
                self._lock.check()
            self._check()
        self._writing = data
        with replacing(self._path, private=True) as file:
            file.write(data)
        self._seen = _mark(self._path)
        self._writing = None

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """Replaces the name of the lock by the name of the file in a refusal."""
        try:
            yield
        except BlockingIOError as error:
            raise self._refusal("another process is writing this file") from error

    def _check(self) -> None:
        # If the file is gone, nobody else has continued from it.
        if _mark(self._path) in (None, self._seen):
            return
        # An interrupt may come after this has replaced the file and before `_seen` is set.
        if self._writing is None or self._path.read_bytes() != self._writing:
            raise self._refusal("this was written or replaced since it was read: open it anew")

    def _refusal(self, message: str) -> BlockingIOError:
        return BlockingIOError(errno.EAGAIN, message, str(self._path))


async def outlast(work: asyncio.Future[T]) -> asyncio.CancelledError | None:
    """Waits for the end of `work`, even if the task is cancelled again and again.

    Returns the last cancellation.
    """
    cancelled = None
    while not work.done():
        try:
            await asyncio.wait([work])
        except asyncio.CancelledError as error:
            cancelled = error
    return cancelled


async def aside(store: Callable[[], T]) -> T:
    """Calls `store` in a thread. A task that is cancelled first waits for the end of `store`."""
    storing = asyncio.get_running_loop().run_in_executor(None, store)
    cancelled = await outlast(storing)
    if cancelled is not None:
        raise cancelled from storing.exception()
    return storing.result()


def _locked(directory: pathlib.Path, turn: Turn) -> Lock:
    tries = 100
    while True:
        directory.mkdir(mode=0o700, exist_ok=True)
        try:
            return Lock(directory, turn, is_temporary=True)
        except FileNotFoundError:
            # Others remove the directory when they release their lock, if it is empty then.
            tries -= 1
            if tries < 0:
                raise


def _mark(path: pathlib.Path) -> tuple[int, int, int] | None:
    """Identifies the content of the file; `None` if the file does not exist.

    Refuses anything else, such as a pipe or a device, which may have no end.
    """
    found = found_at(path)
    if found is not None and not stat.S_ISREG(found.st_mode):
        message = f"{path} is not a regular file, so it can't be replaced"
        raise invalid(ConfigError, "path", message)
    return None if found is None else (found.st_ino, found.st_mtime_ns, found.st_size)
