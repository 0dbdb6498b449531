"""The places where checkpoints are stored, for both keepers."""

import asyncio
import contextlib
import errno
import inspect
import os
import pathlib
import stat
import threading
from typing import ClassVar, Generic, Self, TypeVar

from tallyfold._errors import ConfigError, invalid, wrong_type
from tallyfold._extras import installed
from tallyfold._files.async_checkpoint import AsyncCheckpoint
from tallyfold._files.checkpoint import Checkpoint
from tallyfold._files.file import given_path, replace
from tallyfold._files.lock import Lock, Turn

__all__ = ["AsyncStore", "Path", "Store", "given_folder"]

Path = str | os.PathLike[str]
"""The path of a directory, or an address that fsspec knows, such as `s3://bucket/folder`."""

CheckpointT = TypeVar("CheckpointT", bound=Checkpoint | AsyncCheckpoint)


def given_folder(folder: Path) -> str:
    """Returns the caller's address, or path, which stays the same if the working folder changes."""
    if isinstance(folder, str) and "://" in folder:
        return folder
    wanted = "want the path or the address of a folder"
    return os.fspath(given_path("checkpoint", folder, wanted))


class _Opened(Generic[CheckpointT]):
    """An open checkpoint. A directory is created if it does not exist, and locked."""

    WANTED: ClassVar[str]

    def __init__(self, checkpoint: CheckpointT | Path | None, turn: Turn) -> None:
        self._opened = contextlib.ExitStack()
        self._to: CheckpointT | Directory | Address | None
        if isinstance(checkpoint, str) and "://" in checkpoint:
            self._to = Address(checkpoint)
        elif isinstance(checkpoint, (str, os.PathLike)):
            self._to = self._opened.enter_context(Directory(checkpoint, turn))
        elif checkpoint is None or self._can_be_used(checkpoint):
            self._to = checkpoint
        else:
            raise wrong_type("checkpoint", self.WANTED, checkpoint)

    def _can_be_used(self, checkpoint: CheckpointT) -> bool:
        functions = [getattr(checkpoint, name, None) for name in ("load", "save")]
        return all(map(callable, functions))

    def __bool__(self) -> bool:
        """Whether there is a checkpoint."""
        return self._to is not None

    def place(self, name: str) -> str:
        """Returns where a segment is stored, for error messages."""
        return str(self._to.path_of(name)) if isinstance(self._to, Directory | Address) else name

    def close(self) -> None:
        """Unlocks the directory."""
        self._opened.close()


class Store(_Opened[Checkpoint]):
    """A checkpoint of a `Client`."""

    WANTED = "want the path of a directory, or something with plain functions load and save"

    def _can_be_used(self, checkpoint: Checkpoint) -> bool:
        if not super()._can_be_used(checkpoint):
            return False
        return not any(map(inspect.iscoroutinefunction, (checkpoint.load, checkpoint.save)))

    def load(self, name: str) -> bytes | str | None:
        """Returns what is stored under the name; `None` if nothing is."""
        return None if self._to is None else self._to.load(name)

    def save(self, name: str, data: bytes) -> None:
        """Stores the data under the name."""
        if self._to is not None:
            self._to.save(name, data)


class AsyncStore(_Opened[AsyncCheckpoint]):
    """A checkpoint of an `AsyncClient`: a directory is read and written in a separate thread."""

    WANTED = "want the path of a directory, or something with functions load and save"

    async def load(self, name: str) -> bytes | str | None:
        """Returns what is stored under the name; `None` if nothing is."""
        if isinstance(self._to, Directory | Address):
            return await asyncio.to_thread(self._to.load, name)
        loaded = None if self._to is None else self._to.load(name)
        return await loaded if inspect.isawaitable(loaded) else loaded

    async def save(self, name: str, data: bytes) -> None:
        """Stores the data under the name."""
        if isinstance(self._to, Directory | Address):
            await asyncio.to_thread(self._to.save, name, data)
        elif self._to is not None:
            saved = self._to.save(name, data)
            if inspect.isawaitable(saved):
                await saved


class Directory:
    """A directory with a file for each segment, which one collect at a time may use."""

    def __init__(self, path: Path, turn: Turn) -> None:
        self._path, self._turn = given_path("checkpoint", path), turn
        self._path.mkdir(parents=True, exist_ok=True)
        # When a task is cancelled, its save continues in a thread, and the next save must wait.
        self._saving = threading.Lock()

    def __enter__(self) -> Self:
        """Locks the directory. If this process is killed, others can take the lock."""
        self._lock = Lock(self._path, self._turn)
        return self

    def __exit__(self, *_: object) -> None:
        """Unlocks the directory, after a save that is still running."""
        with self._saving:
            self._lock.release()

    def path_of(self, name: str) -> pathlib.Path:
        """Returns the path of a segment's file."""
        return self._path / name

    def load(self, name: str, /) -> bytes | None:
        """Reads a segment."""
        path = self.path_of(name)
        # Reads only regular files: a pipe may have no end, and a link may leave the directory.
        flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
        try:
            file = os.open(path, flags | getattr(os, "O_BINARY", 0))
        except FileNotFoundError:
            return None
        except OSError as error:
            if error.errno != errno.ELOOP:
                raise
            file = None
        if file is not None and stat.S_ISREG(os.fstat(file).st_mode):
            with os.fdopen(file, "rb") as opened:
                return opened.read()
        if file is not None:
            os.close(file)
        message = f"invalid_checkpoint: {path} isn't a regular file"
        raise ConfigError(message, code="invalid_checkpoint")

    def save(self, name: str, data: bytes, /) -> None:
        """Replaces a segment. After a crash, the file has either the old or the new one, whole."""
        with self._saving:
            self._lock.check()
            replace(self.path_of(name), data)


class Address:
    """A folder of an object store that fsspec reaches, with an object for each segment."""

    def __init__(self, address: str) -> None:
        """Sends nothing yet.

        Raises:
            ModuleNotFoundError: if fsspec, or the package that it needs for this store, is missing.
            ConfigError: for an address that fsspec does not know, or that is on this machine.
        """
        message = "a checkpoint at an address needs fsspec: pip install 'tallyfold[fsspec]'"
        (core,) = installed(message, "fsspec.core")
        try:
            self._files, self._path = core.url_to_fs(address.rstrip("/"))
        except ModuleNotFoundError:
            raise
        except (ImportError, ValueError) as error:
            message = "want an address that fsspec knows, such as s3://bucket/folder"
            raise invalid(ConfigError, "checkpoint", message) from error
        if "file" in self._files.protocol:
            message = "want a plain path for a directory of this machine, which is locked"
            raise invalid(ConfigError, "checkpoint", message)
        # When a task is cancelled, its save continues in a thread, and the next save must wait.
        self._saving = threading.Lock()

    def path_of(self, name: str) -> str:
        """Returns the path of a segment's object, without the server and user of the address."""
        return f"{self._path}/{name}"

    def load(self, name: str, /) -> bytes | None:
        """Reads a segment."""
        try:
            return bytes(self._files.cat_file(self.path_of(name)))
        except FileNotFoundError:
            return None

    def save(self, name: str, data: bytes, /) -> None:
        """Replaces a segment. Readers see either the whole old object or the whole new one."""
        with self._saving:
            self._files.pipe_file(self.path_of(name), data)
