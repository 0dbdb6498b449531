"""exporter.py PORT LEDGER BEGAN SPEED WINDOWS: follows a service, and serves running totals for scrapes.

It goes on from the ledger on disk: a process that is killed at any moment is replaced by the next one.
"""

import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import tallyfold
import week

SEED = 5
LABELS = {"cluster": 'eu "1"'}


def serve(port: int, ledger: tallyfold.Ledger) -> None:
    """Serves the totals of each moment, in threads."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("content-type", ledger.media_type)
            self.end_headers()
            self.wfile.write(ledger.openmetrics(LABELS).encode())

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()


def main(port: int, path: str, began: float, speed: float, windows: int) -> None:
    """Serves until it is killed."""
    ledger = tallyfold.Ledger(path)
    serve(port, ledger)
    # So that scrapes see what was on the disk, before anything is added.
    time.sleep(0.25)
    service = week.Service(week.events(SEED, windows))
    clock = week.FastClock(began, speed)
    for revision, state in week.follow(service, windows=windows, state=ledger.state, clock=clock):
        ledger.add(revision, state)
    threading.Event().wait()


if __name__ == "__main__":
    port, path, began, speed, windows = sys.argv[1:]
    main(int(port), path, float(began), float(speed), int(windows))
