"""Files that are written whole or not at all."""

import contextlib
import os
import pathlib
import secrets
import stat
from collections.abc import Iterator
from typing import BinaryIO

__all__ = ["replacing", "sync_names"]


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Opens a new file, which takes the place of the one at the path if nothing fails meanwhile.

    Readers see the old file or the whole new one. A new file has the permissions of the old one. A
    link stays, and the file that it leads to is replaced. What is no file, such as a pipe or
    `/dev/stdout`, can't be replaced: it is written as it is.
    """
    to = pathlib.Path(os.path.realpath(path))
    try:
        old = to.stat()
    except FileNotFoundError:
        old = None
    if old is not None and not (stat.S_ISREG(old.st_mode) or stat.S_ISDIR(old.st_mode)):
        with pathlib.Path(path).open("wb") as file:
            yield file
        return
    new = to.with_name(f".tallyfold-{secrets.token_hex(8)}.tmp")
    try:
        with new.open("xb") as file:
            if old is not None and stat.S_ISREG(old.st_mode):
                new.chmod(stat.S_IMODE(old.st_mode))
            yield file
            file.flush()
            os.fsync(file.fileno())
        new.replace(to)
    except BaseException:
        new.unlink(missing_ok=True)
        raise
    sync_names(to.parent)


def sync_names(path: pathlib.Path) -> None:
    """Makes the names in a directory survive a loss of power."""
    # On Windows a directory can't be opened, so it can't be synced there.
    with contextlib.suppress(OSError):
        directory = os.open(path, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)
