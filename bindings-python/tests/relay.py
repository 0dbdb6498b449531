"""A TLS end and a proxy on loopback, in front of a plain server."""

import base64
import contextlib
import socket
import ssl
import subprocess
import threading
from pathlib import Path
from typing import Self

PATH_ALONE = b" http://cluster.example/", b" /"
"""What a proxy is asked for, and the server behind it."""


def certificate(directory: Path) -> tuple[Path, Path]:
    """Makes a certificate that nobody trusts, for `cluster.example` and this machine."""
    certificate, key = directory / "ca.pem", directory / "key.pem"
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2"
    names = "subjectAltName=DNS:cluster.example,DNS:localhost,IP:127.0.0.1"
    files = ["-keyout", str(key), "-out", str(certificate)]
    subprocess.run(
        [*command.split(), "-subj", "/CN=tests", "-addext", names, *files],
        check=True,
        capture_output=True,
    )
    return certificate, key


class Relay:
    """Passes bytes on to a server: as its TLS end, as a proxy, or both."""

    def __init__(
        self,
        port: int,
        tls: ssl.SSLContext | None = None,
        *,
        is_proxy: bool = False,
        password: str | None = None,
    ) -> None:
        self.heads: list[str] = []
        """The first line of each request to the proxy."""
        self._target = port
        self._tls = tls
        self._is_proxy = is_proxy
        self._password = password
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._listen, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()

    def _listen(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=[connection], daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError):
            if self._tls is not None:
                connection = self._tls.wrap_socket(connection, server_side=True)
            first = b""
            if self._is_proxy:
                head = b""
                while b"\r\n\r\n" not in head:
                    if not (piece := connection.recv(65536)):
                        return
                    head += piece
                line, *headers = head.decode().split("\r\n")
                self.heads.append(line)
                if not self._lets_in(headers):
                    connection.sendall(b"HTTP/1.1 407 No\r\nContent-Length: 0\r\n\r\n")
                    connection.close()
                    return
                if line.startswith("CONNECT"):
                    connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
                else:
                    first = head
            target = socket.create_connection(("127.0.0.1", self._target))
            target.sendall(first.replace(*PATH_ALONE))
            threading.Thread(target=pipe, args=[connection, target], daemon=True).start()
            pipe(target, connection)

    def _lets_in(self, headers: list[str]) -> bool:
        if self._password is None:
            return True
        secret = base64.b64encode(self._password.encode()).decode()
        return f"proxy-authorization: basic {secret}".lower() in {one.lower() for one in headers}


def pipe(source: socket.socket, sink: socket.socket) -> None:
    """Passes bytes on until one side hangs up."""
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            sink.sendall(data.replace(*PATH_ALONE))
    for end in (source, sink):
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
        end.close()


def server_context(certificate: Path, key: Path) -> ssl.SSLContext:
    """The context of a server with that certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context
