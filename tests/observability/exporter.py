"""exporter.py PORT LEDGER BEGAN SPEED WINDOWS: follows a service, and serves running totals for scrapes.

It goes on from the ledger on disk: a process that is killed at any moment is replaced by the next one.
"""

import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import week
from pusher import Pusher, counts_of, exported

SEED = 5
LABELS = {"cluster": 'eu "1"'}


class Page:
    """The text that is served."""

    text = b""


def serve(port: int, page: Page) -> None:
    """Serves the page in a thread."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("content-type", "application/openmetrics-text; version=1.0.0; charset=utf-8")
            self.end_headers()
            self.wfile.write(page.text)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()


def main(port: int, ledger: str, began: float, speed: float, windows: int) -> None:
    """Serves until it is killed."""
    page = Page()
    with Pusher() as pusher:

        def add(counts: dict[str, Any] | None, state: str = "") -> str | None:
            answer = pusher.order(
                order="add",
                ledger=ledger,
                export=exported("openmetrics", LABELS),
                counts=counts,
                state=state,
            )
            page.text = answer["text"].encode()
            return answer["state"]  # type: ignore[no-any-return]

        state = add(None)
        serve(port, page)
        service = week.Service(week.events(SEED, windows))
        clock = week.FastClock(began, speed)
        for revision, after in week.follow(service, windows=windows, state=state, clock=clock):
            add(counts_of([revision.table], settled=revision.settled), after)
        threading.Event().wait()


if __name__ == "__main__":
    port, ledger, began, speed, windows = sys.argv[1:]
    main(int(port), ledger, float(began), float(speed), int(windows))
