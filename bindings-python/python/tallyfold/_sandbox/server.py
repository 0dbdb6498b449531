"""Serves the sandbox over HTTP, by default only on this machine."""

import contextlib
import socket
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self

from tallyfold._errors import ConfigError, check_number, invalid, wrong_type
from tallyfold._sandbox.sandbox import Sandbox

__all__ = ["SandboxServer", "serve"]

PORTS = range(65_536)
"""The ports of a machine; 0 stands for any free port."""

LONGEST_BODY = 1_000_000
"""The maximum number of bytes in a request's body; real requests have a few hundred."""


def serve(sandbox: Sandbox, port: int = 0, host: str = "127.0.0.1") -> "SandboxServer":
    """Serves a sandbox on this machine until the result is closed.

    Any page in a browser may call the server (CORS), as the demo dashboards do.

    Args:
        sandbox: the sandbox to serve.
        port: the port to listen on; 0 selects a free port.
        host: the address to listen on. With `"0.0.0.0"`, other machines and containers can use the
            server, too; their clients need `dangerously_allow_http`.

    Raises:
        OSError: if the port is in use.
        ConfigError: for arguments that can't be used.

    >>> with tallyfold.serve(sandbox) as server:
    ...     httpx2.get(server.url + "/api/v1/audit-logs").status_code
    401
    """
    return SandboxServer(sandbox, port, host)


class SandboxServer:
    """A running server of a sandbox. Close it, or use it in a `with` statement.

    >>> server = tallyfold.serve(sandbox)
    >>> server.url.startswith("http://127.0.0.1:")
    True
    >>> server.close()
    """

    def __init__(self, sandbox: Sandbox, port: int, host: str = "127.0.0.1") -> None:
        """Listens, and answers in threads of its own."""
        if not isinstance(sandbox, Sandbox):
            raise wrong_type("sandbox", "want a Sandbox", sandbox)
        wanted = "want an int from 0 to 65535"
        check_number("port", wanted, port)
        if port not in PORTS:
            raise invalid(ConfigError, "port", wanted)
        if not isinstance(host, str):
            raise wrong_type("host", "want a name or an address", host)
        # With an empty host, the server would accept requests from all machines.
        if not host or not host.isprintable():
            raise invalid(ConfigError, "host", 'want a name or an address, such as "127.0.0.1"')
        handler = type("Handler", (_Handler,), {"sandbox": sandbox})
        self._server = _Server((host, port), handler)
        self._host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True
        )
        self._thread.start()

    @property
    def url(self) -> str:
        """The address to use as `cluster_endpoint`, `base_url` and `auth_url`."""
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"http://{host}:{self._server.server_port}"

    def close(self) -> None:
        """Stops listening and closes every connection, even while an answer is being written."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def __enter__(self) -> Self:
        """Returns the server itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Closes the server."""
        self.close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], handler: type["_Handler"]) -> None:
        self._connections: set[socket.socket] = set()
        if ":" in address[0]:
            self.address_family = socket.AF_INET6
        super().__init__(address, handler)

    def get_request(self) -> tuple[socket.socket, object]:
        """Accepts a connection, and remembers it, so that it can be closed."""
        connection, address = super().get_request()
        self._connections.add(connection)
        return connection, address

    def shutdown_request(self, request: socket.socket | tuple[bytes, socket.socket]) -> None:
        """Closes a connection."""
        if isinstance(request, socket.socket):
            self._connections.discard(request)
        super().shutdown_request(request)

    def server_close(self) -> None:
        """Stops listening, and closes connections that are kept alive."""
        super().server_close()
        for connection in list(self._connections):
            # Its thread may have closed it by now.
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def handle_error(
        self, request: socket.socket | tuple[bytes, socket.socket], client_address: object
    ) -> None:
        """Reports what went wrong, unless the client has just closed its connection."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    sandbox: Sandbox
    protocol_version = "HTTP/1.1"
    # Sends head and body in one packet, and small packets without delay.
    wbufsize = -1
    disable_nagle_algorithm = True

    def do_OPTIONS(self) -> None:
        """Answers the CORS preflight request that a browser sends first."""
        self.send_response_only(204)
        self._send_cors()
        self.send_header("Access-Control-Allow-Methods", "GET, POST")
        self.send_header("Access-Control-Allow-Headers", "authorization, content-type")
        self.send_header("Access-Control-Allow-Private-Network", "true")
        self.send_header("Access-Control-Max-Age", "600")
        self.end_headers()

    def do_GET(self) -> None:
        """Lets the sandbox answer."""
        self._answer()

    def do_POST(self) -> None:
        """Lets the sandbox answer."""
        self._answer()

    def _answer(self) -> None:
        length = self.headers.get("Content-Length", "0")
        if "Transfer-Encoding" in self.headers:
            self._refuse(411)
        elif not (length.isascii() and length.isdigit()):
            self._refuse(400)
        elif len(length) > len(str(LONGEST_BODY)) or int(length) > LONGEST_BODY:
            self._refuse(413)
        else:
            self._let_the_sandbox_answer(self.rfile.read(int(length)))

    def _refuse(self, status: int) -> None:
        """Answers and closes, so that the body is not read as the next request."""
        self.close_connection = True
        self.send_response_only(status)
        self.send_header("Content-Length", "0")
        self.send_header("Connection", "close")
        self._send_cors()
        self.end_headers()

    def _let_the_sandbox_answer(self, body: bytes) -> None:
        headers = list(self.headers.items())
        answer = self.sandbox.handle(self.command, self.path, headers, body)
        time.sleep(answer.delay_ms / 1000)
        self.send_response_only(answer.status)
        for name, value in answer.headers:
            if name.lower() != "content-length":
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(answer.body)))
        self._send_cors()
        self.end_headers()
        self.wfile.write(answer.body[: answer.cut_at])
        if answer.cut_at is not None:
            self.close_connection = True

    def _send_cors(self) -> None:
        self.send_header("Access-Control-Allow-Origin", "*")
        self.send_header("Access-Control-Expose-Headers", "date, retry-after")

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base's name
        """Writes no log of requests."""
