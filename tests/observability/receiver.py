"""Receivers on loopback that remember each sample, and that fail in ways a test chooses."""

import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self

from readers import Reader, Sample, Samples

#: Answers the message of that size, after taking it with the function, or not.
Fate = Callable[["Exchange"], None]


class Exchange:
    """A message that has come, and how to answer it."""

    def __init__(self, receiver: "Receiver", handler: BaseHTTPRequestHandler, body: bytes) -> None:
        self._receiver = receiver
        self._handler = handler
        self.body = body

    def take(self) -> None:
        """Remembers its samples."""
        self._receiver.taken.take(self.body)

    def answer(self, status: int, **headers: str) -> None:
        """Sends a response without a body."""
        self._handler.send_response(status)
        # Remote-write 2.0 wants to know that a sample was written.
        written = {"x-prometheus-remote-write-samples-written": "1"} if status < 300 else {}
        for name, value in {"content-length": "0", **written, **headers}.items():
            self._handler.send_header(name.replace("_", "-"), value)
        self._handler.end_headers()

    def reset(self) -> None:
        """Breaks the connection without an answer."""
        connection = self._handler.connection
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.shutdown(socket.SHUT_RDWR)
        self._handler.close_connection = True


class Taken:
    """What has been taken: each sample, its value, and how many times it came."""

    def __init__(self, read: Reader) -> None:
        self.values: Samples = {}
        self.times: Counter[Sample] = Counter()
        self.wrong: list[object] = []
        """What must not be: samples that came again with another value, and what can't be read."""
        self._read = read
        self._lock = threading.Lock()

    def take(self, message: bytes) -> None:
        """Takes a whole message."""
        try:
            samples = self._read([message])
        except Exception as error:
            self.wrong.append(error)
            raise
        with self._lock:
            for sample, value in samples.items():
                self.times[sample] += 1
                if self.values.setdefault(sample, value) != value:
                    self.wrong.append((sample, value))


class Receiver:
    """An HTTP server that takes messages."""

    def __init__(self, read: Reader, fate: Fate | None = None) -> None:
        self.taken = Taken(read)
        self.arrivals: list[float] = []
        self.fate = fate or accept
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                size = int(self.headers["content-length"])
                body = self.rfile.read(size)
                if len(body) < size:
                    # The other side was killed while it sent this.
                    self.close_connection = True
                    return
                receiver.arrivals.append(time.monotonic())
                receiver.fate(Exchange(receiver, self, body))

            def log_message(self, *_: object) -> None:
                pass

            def handle(self) -> None:
                # The other side may be killed.
                try:
                    super().handle()
                except OSError:
                    pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1/metrics"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def accept(exchange: Exchange) -> None:
    """Takes a message."""
    exchange.take()
    exchange.answer(200)


class Datagrams:
    """A receiver of datagrams."""

    def __init__(self, read: Reader) -> None:
        self.taken = Taken(read)
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
        self._socket.bind(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._listen)

    @property
    def url(self) -> str:
        return f"udp://127.0.0.1:{self._socket.getsockname()[1]}"

    def _listen(self) -> None:
        while message := self._socket.recv(65536):
            self.taken.take(message)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        # An empty datagram comes after all others.
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as last:
            last.sendto(b"", self._socket.getsockname())
        self._thread.join(20)
        self._socket.close()
