"""The file of a state, which one process at a time writes."""

import asyncio
import contextlib
import errno
import os
import pathlib
import stat
from collections.abc import Callable, Iterator
from typing import TypeVar

from tallyfold._errors import ConfigError
from tallyfold._files.file import given_path, replacing
from tallyfold._files.lock import Lock

__all__ = ["StateFile", "aside"]

T = TypeVar("T")


class StateFile:
    """A file that is written only if nobody else has written it since it was read.

    While it is written, others are kept out by the lock of checkpoints, in the directory
    `NAME.lease`, which all languages and the command take.
    """

    __slots__ = ("_lock", "_path", "_seen")

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Touches no file yet."""
        self._path = given_path("path", path, "want the path of a file")
        self._lock: Lock | None = None
        self._seen = _mark(self._path)

    def read(self) -> bytes | None:
        """Reads the file, if it is there."""
        self._seen = _mark(self._path)
        return None if self._seen is None else self._path.read_bytes()

    @contextlib.contextmanager
    def named(self) -> Iterator[None]:
        """Names the file in the error for its document."""
        try:
            yield
        except ConfigError as error:
            if error.code != "invalid_checkpoint":
                raise
            text = str(error).removeprefix(f"{error.code}: ")
            message = f"{error.code}: {self._path}: {text}"
            raise ConfigError(message, code=error.code, argument=error.argument) from None

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Keeps others out until the end of the block, also other objects of this process.

        Raises:
            BlockingIOError: if others are writing the file, or have written it.
        """
        if self._lock is not None or not _is_kept(self._path):
            yield
            return
        real = pathlib.Path(os.path.realpath(self._path))
        directory = real.with_name(f"{real.name}.lease")
        with self._alone():
            lock = _locked(directory)
        try:
            self._lock = lock
            self._check()
            yield
        finally:
            self._lock = None
            _release(lock, directory)

    def replace(self, data: bytes) -> None:
        """Replaces the content. If it fails, the old one stays."""
        with self.held():
            if self._lock is not None:
                with self._alone():
                    self._lock.check()
                self._check()
            with replacing(self._path, private=True) as file:
                file.write(data)
            self._seen = _mark(self._path)

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """Names the file, and not the lock, in what is refused."""
        try:
            yield
        except BlockingIOError as error:
            raise self._refusal("another process is writing this file") from error

    def _check(self) -> None:
        # Nobody else has counted on from a file that is gone.
        if _mark(self._path) not in (None, self._seen):
            raise self._refusal("this was written or replaced since it was read: open it anew")

    def _refusal(self, message: str) -> BlockingIOError:
        return BlockingIOError(errno.EAGAIN, message, str(self._path))


async def aside(store: Callable[[], T]) -> T:
    """Stores in a thread. A task that is cancelled waits for its end."""
    storing = asyncio.get_running_loop().run_in_executor(None, store)
    cancelled = None
    while not storing.done():
        try:
            await asyncio.wait([storing])
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled from storing.exception()
    return storing.result()


def _locked(directory: pathlib.Path) -> Lock:
    tries = 100
    while True:
        directory.mkdir(mode=0o700, exist_ok=True)
        try:
            return Lock(directory)
        except FileNotFoundError:
            # Whoever lets go removes the directory, which is empty then.
            tries -= 1
            if tries < 0:
                raise


def _release(lock: Lock, directory: pathlib.Path) -> None:
    with contextlib.suppress(OSError):
        lock.release()
    # The locks of others may be in it.
    with contextlib.suppress(OSError):
        directory.rmdir()


def _is_kept(path: pathlib.Path) -> bool:
    """Whether the path is a file, or free; nobody reads back what a pipe has taken."""
    try:
        return stat.S_ISREG(path.stat().st_mode)
    except FileNotFoundError:
        return True


def _mark(path: pathlib.Path) -> tuple[int, int, int] | None:
    """Tells the file from any that replaces it."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size
