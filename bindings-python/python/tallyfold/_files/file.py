"""Creates and replaces files atomically."""

import contextlib
import os
import pathlib
import secrets
import stat
import sys
import time
from collections.abc import Iterator
from typing import BinaryIO

from tallyfold._errors import ConfigError, invalid, wrong_type

__all__ = ["create", "found_at", "given_path", "replace", "replacing"]

RETRY_WAITS = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28)
"""Seconds between tries to replace a file on Windows, where another program may have it open."""


def given_path(argument: str, path: object, wanted: str = "want a path") -> pathlib.Path:
    """Returns the caller's path, which stays the same if the working folder changes.

    Refuses a path that no file can have.
    """
    if not isinstance(path, (str, os.PathLike)):
        raise wrong_type(argument, wanted, path)
    try:
        text = os.fspath(path)
    except TypeError:
        raise wrong_type(argument, wanted, path) from None
    if not isinstance(text, str):
        raise wrong_type(argument, f"{wanted} of str", path)
    if text == "":
        raise invalid(ConfigError, argument, "this is empty; is an environment variable unset?")
    try:
        is_possible = b"\0" not in os.fsencode(text)
    except UnicodeEncodeError:
        is_possible = False
    if not is_possible:
        message = "a path can't contain NUL or half of a surrogate pair"
        raise invalid(ConfigError, argument, message)
    return pathlib.Path(text).absolute()


def found_at(path: pathlib.Path, *, follow: bool = True) -> os.stat_result | None:
    """Returns the status of what is at the path; `None` if nothing is there."""
    try:
        return path.stat(follow_symlinks=follow)
    except FileNotFoundError:
        return None


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str], *, private: bool = False) -> Iterator[BinaryIO]:
    """Opens a new file, which replaces the file at the path if nothing fails in the block.

    Readers see either the old file or the whole new one. The new file gets the permissions of the
    old one and, for root, its owner. `private` is for states that only one process uses: if there
    is no old file, only the owner can access the new one, and there is never more than one
    temporary file, `NAME.new`. If the path is a link, its target is replaced. Anything but a file,
    such as a pipe or `/dev/stdout`, can't be replaced, so this writes to it directly.
    """
    to = pathlib.Path(os.path.realpath(path))
    old = found_at(to)
    if old is not None and not (stat.S_ISREG(old.st_mode) or stat.S_ISDIR(old.st_mode)):
        with pathlib.Path(path).open("wb") as file:
            yield file
        return
    name = f"{to.name}.new" if private else f".tallyfold-{secrets.token_hex(8)}.tmp"
    new = to.with_name(name)
    opener = _for_owner if private else None
    with _taking_place(new, to):
        if private:
            # Only this process replaces the file, so a leftover is from a process that was killed.
            new.unlink(missing_ok=True)
        with open(new, "xb", opener=opener) as file:
            if old is not None and stat.S_ISREG(old.st_mode):
                # Only root can give a file to another user.
                with contextlib.suppress(OSError, AttributeError):
                    os.fchown(file.fileno(), old.st_uid, old.st_gid)
                mode = stat.S_IMODE(old.st_mode)
                # Windows has this function only in Python 3.13 and later.
                if hasattr(os, "fchmod"):
                    os.fchmod(file.fileno(), mode)
                else:
                    new.chmod(mode)
            yield file
            _sync(file)


def _for_owner(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def replace(path: pathlib.Path, data: bytes) -> None:
    """Replaces a file by one that only its owner can read. A link itself is replaced.

    The temporary file is `NAME.RANDOM.tmp`.
    """
    new = path.with_name(f"{path.name}.{secrets.token_hex(8)}.tmp")
    with _taking_place(new, path):
        create(new, data, synced=True)


def create(path: pathlib.Path, data: bytes, *, synced: bool = False) -> None:
    """Creates a file that only its owner can access. It must not exist, not even as a link."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    flags |= getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    descriptor = os.open(path, flags, 0o600)
    try:
        with _named(path), os.fdopen(descriptor, "wb") as file:
            file.write(data)
            if synced:
                _sync(file)
    except BaseException:
        _remove(path)
        raise


@contextlib.contextmanager
def _taking_place(new: pathlib.Path, to: pathlib.Path) -> Iterator[None]:
    """Renames `new` to `to` after the block. If anything fails, removes `new`."""
    try:
        with _named(to, new):
            yield
        _rename(new, to)
    except BaseException:
        _remove(new)
        raise
    _sync_names(to.parent)


@contextlib.contextmanager
def _named(path: pathlib.Path, new: pathlib.Path | None = None) -> Iterator[None]:
    """Adds the name of the file to errors.

    An error of writing, such as for a full disk, contains no name. Other errors may contain the
    name of the temporary file `new`, which the caller doesn't know.
    """
    try:
        yield
    except OSError as error:
        if error.errno is not None and error.filename in (None, str(new)):
            error.filename = str(path)
        raise


def _remove(path: pathlib.Path) -> None:
    """Removes a file after a failure. The failure is raised, even if the file can't be removed."""
    with contextlib.suppress(OSError):
        path.unlink(missing_ok=True)


def _rename(new: pathlib.Path, to: pathlib.Path) -> None:
    for wait in RETRY_WAITS:
        try:
            new.replace(to)
        except PermissionError:
            if sys.platform != "win32":
                raise
            time.sleep(wait)
        else:
            return
    new.replace(to)


def _sync(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())


def _sync_names(path: pathlib.Path) -> None:
    """Syncs a directory, so that the names in it survive a power failure."""
    # On Windows a directory can't be opened, so it can't be synced there.
    with contextlib.suppress(OSError):
        directory = os.open(path, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)
