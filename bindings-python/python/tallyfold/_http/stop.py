"""Ends the pauses and socket transfers that other threads wait for."""

import contextlib
import os
import socket
import threading
import weakref
from collections.abc import Iterator

__all__ = ["Stop"]


class Stop:
    """A flag that is set once, and then ends the waits and transfers that use it.

    It is also set when its parent is set: a client's flag, when the client is closed.
    """

    def __init__(self, above: "Stop | None" = None) -> None:
        """Is not set yet."""
        self._process = os.getpid()
        self._event = threading.Event()
        # Reentrant: while a thread holds the lock, the garbage collector may end an abandoned
        # transfer in the same thread.
        self._lock = threading.RLock()
        self._sockets: set[socket.socket] = set()
        self._below: weakref.WeakSet[Stop] = weakref.WeakSet()
        if above is not None:
            above.take(self)

    def take(self, below: "Stop") -> None:
        """Adds a flag that is set together with this one."""
        with self._lock:
            self._below.add(below)
            if self._event.is_set():
                below.set()

    def set(self) -> None:
        """Sets the flag, which ends all waits and transfers, also later ones.

        In a process that was forked later, this does nothing: the connections are the parent's, and
        a thread that does not exist there may hold the lock.
        """
        if os.getpid() != self._process:
            return
        with self._lock:
            self._event.set()
            for connection in self._sockets:
                _cut(connection)
            for below in list(self._below):
                below.set()

    def is_set(self) -> bool:
        """Whether it was set."""
        return self._event.is_set()

    def wait(self, seconds: float) -> None:
        """Waits for a number of seconds, or until the flag is set."""
        self._event.wait(seconds)

    @contextlib.contextmanager
    def cutting(self, connection: object) -> Iterator[None]:
        """Lets `set` end the transfer in the block, which uses a connection."""
        if not isinstance(connection, socket.socket):
            yield
            return
        with self._lock:
            if self._event.is_set():
                _cut(connection)
            self._sockets.add(connection)
        try:
            yield
        finally:
            with self._lock:
                self._sockets.discard(connection)


def _cut(connection: socket.socket) -> None:
    # The socket may have been closed by now. This calls `shutdown` of the plain socket, because
    # `shutdown` of a TLS socket would change the object that another thread is reading from.
    with contextlib.suppress(OSError):
        socket.socket.shutdown(connection, socket.SHUT_RDWR)
