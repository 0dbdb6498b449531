"""The lease of a directory: performs the steps of `core/src/keeper/lease.rs` on this system."""

import contextlib
import errno
import hashlib
import os
import pathlib
import secrets
import socket
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from tallyfold._files.file import create, found_at
from tallyfold._tallyfold import Lease

__all__ = ["Lock", "Turn", "Turns"]

SIGN_OF_LIFE = Lease.SIGN_OF_LIFE
"""Seconds between two writes of the lock's file."""


T = TypeVar("T")


class Turn:
    """A job that needs locks."""

    def __init__(self) -> None:
        """Begins nothing yet."""
        self.is_under_way: bool | None = None
        """Whether the job is running; `None` before it begins. It is set without a call, because an
        interrupt may come at any call."""
        self._thread = threading.get_ident()

    def run(self, job: Callable[["Turn"], T]) -> T:
        """Runs the job, and then releases its locks, whatever ends the job."""
        try:
            self.is_under_way = True
            return job(self)
        finally:
            self.is_under_way = False
            self.end()

    async def async_run(self, job: Callable[["Turn"], Awaitable[T]]) -> T:
        """Does the same as `run` with a coroutine function."""
        try:
            self.is_under_way = True
            return await job(self)
        finally:
            self.is_under_way = False
            self.end()

    def end(self) -> None:
        """Releases the job's locks, even if an interrupt came before their usual release."""
        for lock in list(_HELD):
            if lock.turn is self:
                with contextlib.suppress(OSError):
                    lock.release()

    def has_ended(self) -> bool:
        """Whether the job has ended, or was interrupted before it began."""
        # Only the thread of a job knows that the job won't begin any more.
        is_interrupted = self.is_under_way is None and self._thread == threading.get_ident()
        return is_interrupted or self.is_under_way is False


class Turns:
    """Lets only one job of this process at a time use something. No job waits for another."""

    def __init__(self) -> None:
        """Begins nothing yet."""
        self._mutex = threading.Lock()
        self._turn: Turn | None = None

    def begin(self, turn: Turn) -> bool:
        """Begins the turn of a job, unless another turn is under way. Returns whether it began."""
        with self._mutex:
            if self._turn is not None and self._turn.is_under_way:
                return False
            self._turn = turn
            return True


class Lock:
    """A directory that no other job uses while this is held.

    An interrupt such as Ctrl-C may come at any call, also before a lock is released. So whatever
    takes a lock first releases the locks of jobs that have ended.
    """

    def __init__(self, directory: pathlib.Path, turn: Turn, *, is_temporary: bool = False) -> None:
        """Takes the lock, and removes the files that killed jobs have left.

        Args:
            directory: the directory.
            turn: the job that needs the lock.
            is_temporary: whether to remove the directory with the lock, if it is empty then.

        Raises:
            BlockingIOError: if another job has it.
        """
        self.turn = turn
        self._directory = directory
        self._is_temporary = is_temporary
        self._process = os.getpid()
        # Not an `Event`, because an interrupt may leave the lock inside of an `Event` locked.
        self._held = threading.Lock()
        self._held.acquire()
        for lock in list(_HELD):
            if lock.turn is not turn and lock.turn.has_ended():
                lock.turn.end()
        lease = Lease(_host(), self._process, _stat_of("self"), secrets.randbits(64))
        self._lease = lease
        _HELD.add(self)
        try:
            _take(lease, directory)
        except BaseException:
            self.release()
            raise
        self._path = directory / lease.name
        self._identity = _identity(self._path)
        threading.Thread(
            target=self._show_life, name="tallyfold checkpoint lock", daemon=True
        ).start()

    def check(self) -> None:
        """Raises if the lock's file was removed or replaced."""
        if self._identity is None or _identity(self._path) != self._identity:
            raise _in_use(self._directory, Lease.LOST)

    def release(self) -> None:
        """Releases the lock. A forked process leaves the file, which is the parent's, alone."""
        if os.getpid() == self._process:
            # An interrupted release is repeated.
            with contextlib.suppress(RuntimeError):
                self._held.release()
            (self._directory / self._lease.name).unlink(missing_ok=True)
            if self._is_temporary:
                # This fails if the directory contains the locks of others.
                with contextlib.suppress(OSError):
                    self._directory.rmdir()
        _HELD.discard(self)

    def _show_life(self) -> None:
        while not self._held.acquire(timeout=SIGN_OF_LIFE):
            if self.turn.is_under_way is False:
                # An interrupt came before the release.
                self.turn.end()
                return
            # Writes, because only that sets the time by the clock of the file's own machine.
            with contextlib.suppress(OSError), self._path.open("r+b") as file:
                file.write(Lease.TEXT.encode())


_HELD: set[Lock] = set()
"""The locks of this process's jobs."""


def _take(lease: Lease, directory: pathlib.Path) -> None:
    while True:
        step, argument = lease.step()
        path = directory / argument
        if step == "create":
            create(path, Lease.TEXT.encode())
            lease.done()
        elif step == "list":
            names = [os.fsencode(file.name) for file in directory.iterdir()]
            lease.listed([name.decode("utf-8", "replace") for name in names])
        elif step == "modified":
            found = found_at(path, follow=False)
            lease.modified(None if found is None else found.st_mtime_ns // 1_000_000)
        elif step == "process":
            lease.process(_exists(int(argument)), _stat_of(argument))
        elif step == "remove":
            path.unlink(missing_ok=True)
            lease.done()
        elif step == "wait":
            time.sleep(int(argument) / 1000)
            lease.done()
        elif step == "refused":
            raise _in_use(directory, argument)
        else:
            return


def _in_use(directory: pathlib.Path, message: str) -> BlockingIOError:
    return BlockingIOError(errno.EAGAIN, message, str(directory))


def _identity(path: pathlib.Path) -> tuple[int, int] | None:
    """Identifies the file, so that another file with the same name is noticed."""
    found = found_at(path, follow=False)
    return None if found is None else (found.st_dev, found.st_ino)


def _host() -> str:
    """Identifies the processes that can see each other, as `Holder::host` of the core describes."""
    known = [socket.gethostname()]
    with contextlib.suppress(OSError):
        known.append(pathlib.Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip())
        known.append(str(pathlib.Path("/proc/self/ns/pid").readlink()))
    return hashlib.sha256("\n".join(known).encode()).hexdigest()[:16]


def _stat_of(process: str) -> str | None:
    try:
        return pathlib.Path(f"/proc/{process}/stat").read_text("utf-8", "replace")
    except OSError:
        return None


def _exists(process: int) -> bool | None:
    """Whether there is a process with that ID; `None` if this can't be found out."""
    if sys.platform == "win32":
        import ctypes

        kernel = ctypes.windll.kernel32
        handle = kernel.OpenProcess(0x1000, 0, process)  # PROCESS_QUERY_LIMITED_INFORMATION
        if handle == 0:
            return bool(kernel.GetLastError() == 5)  # ERROR_ACCESS_DENIED
        code = ctypes.c_ulong()
        kernel.GetExitCodeProcess(handle, ctypes.byref(code))
        kernel.CloseHandle(handle)
        return code.value == 259  # STILL_ACTIVE
    try:
        os.kill(process, 0)
    except PermissionError:
        return True
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        return None
    return True
