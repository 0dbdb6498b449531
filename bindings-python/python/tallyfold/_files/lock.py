"""The lease of a checkpoint's directory, by the rules of `core/src/keeper/lease.rs`.

Node has the same rules in `files/lock.ts`.
"""

import contextlib
import errno
import hashlib
import os
import pathlib
import random
import re
import secrets
import socket
import sys
import threading
import time

from tallyfold._files.file import create

__all__ = ["Lock"]

TRIES = 4
"""How often a job tries again, because two that begin at once may both give up."""

SIGN_OF_LIFE = 15.0
"""Seconds between the moments when a job touches its file, for those who can't see its process."""

LONGEST_SILENCE = 60.0
"""Seconds without such a sign after which a job of another machine is taken for ended."""

_NAME = re.compile(r"lock-(?P<host>[0-9a-f]{16})-(?P<pid>[0-9]+)-(?P<start>[0-9]+)-[0-9a-f]+")


class Lock:
    """A directory that no other job uses while this is held."""

    def __init__(self, directory: pathlib.Path) -> None:
        """Takes the lock.

        Raises:
            BlockingIOError: if another job has it.
        """
        self._directory = directory
        self._process = os.getpid()
        self._over = threading.Event()
        self._path = self._taken()
        threading.Thread(
            target=self._show_life, name="tallyfold checkpoint lock", daemon=True
        ).start()

    def check(self) -> None:
        """Raises if somebody has removed the lock's file."""
        if not self._path.exists():
            raise _in_use(self._directory, "")

    def release(self) -> None:
        """Lets others in. In a forked process it does nothing: the lock is the parent's."""
        if os.getpid() == self._process:
            self._over.set()
            self._path.unlink(missing_ok=True)

    def _taken(self) -> pathlib.Path:
        for tried in range(1, TRIES + 1):
            name = f"lock-{_host()}-{os.getpid()}-{_start_of('self') or 0}-{secrets.token_hex(8)}"
            own = self._directory / name
            try:
                create(own, _TEXT)
                holders = self._holders(own)
                if not holders:
                    return own
            except BaseException:
                own.unlink(missing_ok=True)
                raise
            own.unlink(missing_ok=True)
            if tried < TRIES:
                time.sleep(random.uniform(0.005, 0.02))  # noqa: S311 - no secret
        raise _in_use(self._directory, f", as {holders[0]} in it says")

    def _holders(self, own: pathlib.Path) -> list[str]:
        """The files of others that may still run. Those of the others are removed."""
        now = own.stat().st_mtime
        found = []
        for path in self._directory.iterdir():
            if path == own or (parts := _NAME.fullmatch(path.name)) is None:
                continue
            with contextlib.suppress(FileNotFoundError):
                if parts["host"] != _host():
                    is_over = now - path.lstat().st_mtime > LONGEST_SILENCE
                else:
                    is_over = _has_ended(int(parts["pid"]), parts["start"])
                if is_over:
                    path.unlink()
                else:
                    found.append(path.name)
        return found

    def _show_life(self) -> None:
        while not self._over.wait(SIGN_OF_LIFE):
            # By writing, because only that takes the time from the file's own machine.
            with contextlib.suppress(OSError), self._path.open("r+b") as file:
                file.write(_TEXT)


def _in_use(directory: pathlib.Path, hint: str) -> BlockingIOError:
    message = f"another collect is using this checkpoint{hint}"
    return BlockingIOError(errno.EAGAIN, message, str(directory))


_TEXT = b"A job is using this checkpoint.\n"


def _host() -> str:
    """Those who share it see each other's processes."""
    known = [socket.gethostname()]
    with contextlib.suppress(OSError):
        known.append(pathlib.Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip())
        known.append(str(pathlib.Path("/proc/self/ns/pid").readlink()))
    return hashlib.sha256("\n".join(known).encode()).hexdigest()[:16]


def _start_of(process: int | str) -> str | None:
    """When a process has begun, where the system says so; `""` for one that is dead already."""
    try:
        status = pathlib.Path(f"/proc/{process}/stat").read_text("utf-8", "replace")
    except OSError:
        return None
    # The name before it is in brackets, and may hold anything.
    fields = status.rpartition(")")[2].split()
    return "" if fields[0] in "ZX" else fields[19]


def _has_ended(process: int, start: str) -> bool:
    """Whether there is no such process any more."""
    if not _exists(process):
        return True
    now = _start_of(process)
    # Its number may have been given to another one.
    return now is not None and now != start


def _exists(process: int) -> bool:
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
    return True
