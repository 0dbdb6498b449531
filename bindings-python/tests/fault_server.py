"""A server that does on the wire what a run of tests/faults says, one request after the other."""

import contextlib
import socket
import struct
import threading
import time
from collections.abc import Iterator
from typing import Any, BinaryIO, NamedTuple

Json = dict[str, Any]


class Asked(NamedTuple):
    """What is looked at of a request."""

    line: str
    authorization: str | None
    body: str


class FaultServer:
    """The server of one run, and another one that nothing may be sent to."""

    def __init__(self, file: Json, run: Json) -> None:
        self._file = file
        self._exchanges: list[Json] = run["exchanges"]
        self._wrong: BaseException | None = None
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._elsewhere = socket.create_server(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{port(self._listener)}"

    def end(self) -> None:
        """Raises what was wrong about the requests: not as told, too many, or too few."""
        with self._listener, self._elsewhere:
            # Whoever says nothing ends it.
            socket.create_connection(self._listener.getsockname()).close()
            self._thread.join()
            if self._wrong is not None:
                raise self._wrong
            self._elsewhere.setblocking(False)  # noqa: FBT003 - it takes no name
            with contextlib.suppress(BlockingIOError):
                self._elsewhere.accept()[0].close()
                raise AssertionError("somebody went elsewhere")

    def _serve(self) -> None:
        try:
            left = iter(self._exchanges)
            while self._serve_one(left):
                pass
            assert list(left) == [], "these requests were never sent"
        except BaseException as error:  # noqa: BLE001 - the thread of the test raises it
            self._wrong = error

    def _serve_one(self, left: Iterator[Json]) -> bool:
        connection, _ = self._listener.accept()
        with connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with connection.makefile("rb") as lines:
                asked = read_request(lines)
            if asked is None:
                return False
            exchange = next(left, None)
            assert exchange is not None, f"unexpected {asked.line}"
            self._check_request(exchange, asked)
            # A client that has heard enough may hang up.
            with contextlib.suppress(ConnectionError):
                self._answer(connection, exchange["answer"])
        return True

    def _check_request(self, exchange: Json, asked: Asked) -> None:
        bearer = exchange["bearer"] and f"Bearer {exchange['bearer']}"
        assert (asked.line, asked.authorization) == (exchange["request"], bearer)
        # The secret goes to token endpoints, and only there.
        secret = self._file["client"]["client_secret"]
        assert (secret in asked.body) == asked.line.endswith("/oauth/token")

    def _answer(self, connection: socket.socket, answer: str | list[list[Any]]) -> None:
        acts = self._file["answers"][answer] if isinstance(answer, str) else answer
        for act in acts:
            match act:
                case ["send", text]:
                    text = text.replace("ELSEWHERE_PORT", str(port(self._elsewhere)))
                    connection.sendall(text.encode())
                case ["send_hex", digits]:
                    connection.sendall(bytes.fromhex(digits))
                case ["drip", text, milliseconds]:
                    for byte in text.encode():
                        connection.sendall(bytes([byte]))
                        time.sleep(milliseconds / 1000)
                case ["pause", milliseconds]:
                    time.sleep(milliseconds / 1000)
                case ["stall"]:
                    connection.recv(1)
                case ["reset"]:
                    at_once = struct.pack("ii", 1, 0)
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, at_once)
                case _:
                    raise AssertionError(act)


def read_request(lines: BinaryIO) -> Asked | None:
    """A whole request, or none."""
    first = lines.readline().decode()
    if not first:
        return None
    headers = {}
    while line := lines.readline().decode().strip():
        name, _, value = line.partition(":")
        headers[name.lower()] = value.strip()
    body = lines.read(int(headers.get("content-length", 0))).decode()
    return Asked(first.rsplit(" ", 1)[0], headers.get("authorization"), body)


def port(listener: socket.socket) -> int:
    number: int = listener.getsockname()[1]
    return number
