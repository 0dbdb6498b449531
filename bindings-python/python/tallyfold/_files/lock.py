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

from tallyfold._files.file import create, found_at
from tallyfold._tallyfold import Lease

__all__ = ["Lock", "Turn"]

SIGN_OF_LIFE = Lease.SIGN_OF_LIFE
"""Seconds between two writes of the lock's file."""


class Turn:
    """A job that needs locks."""

    def __init__(self) -> None:
        """Begins nothing yet."""
        self.thread = threading.get_ident()
        self.is_under_way = False
        """Whether the job is running. It is set without a call, because an interrupt may come at
        any call."""

    def end(self) -> None:
        """Releases the job's locks, even if an interrupt came before their usual release."""
        for lock in list(_HELD):
            if lock.turn is self:
                lock.release()


class Lock:
    """A directory that no other job uses while this is held.

    An interrupt such as Ctrl-C may come at any call, also before a lock is released. So a thread
    that takes a lock first releases the locks of its other jobs that are not under way.
    """

    def __init__(self, directory: pathlib.Path, turn: Turn | None = None) -> None:
        """Takes the lock, and removes the files that killed jobs have left.

        Raises:
            BlockingIOError: if another job has it.
        """
        self.turn = turn or Turn()
        self._directory = directory
        self._process = os.getpid()
        self._over = threading.Event()
        thread = threading.get_ident()
        for lock in list(_HELD):
            if lock.turn is not turn and lock.turn.thread == thread and not lock.turn.is_under_way:
                lock.release()
        lease = Lease(_host(), self._process, _stat_of("self"), secrets.randbits(64))
        self._lease = lease
        if turn is not None:
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
            self._over.set()
            (self._directory / self._lease.name).unlink(missing_ok=True)
        _HELD.discard(self)

    def _show_life(self) -> None:
        while not self._over.wait(SIGN_OF_LIFE):
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
