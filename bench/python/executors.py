"""Measures how much faster several processes read a month over loopback than one process, and what limits them.

A server in a process of its own answers each window with 1,200 groups, from bytes that were made before. This program prints to standard
error the processor seconds of the caller, its workers and the server.
"""

import itertools
import json
import os
import socketserver
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from typing import NamedTuple

import tallyfold
from measuring import at_least, tell

RANGE = "2026-01-01T00:00:00Z", "2026-01-31T00:00:00Z"
WINDOWS = 2880
GROUPS = 1200
DIMENSIONS: list[tallyfold.DimensionName] = ["event_name", "integration", "reason"]
ROUNDS = 5


class Handler(socketserver.StreamRequestHandler):
    """Answers token requests as the sandbox does, and each window with the same counts."""

    sandbox = tallyfold.Sandbox()
    counts = b""
    disable_nagle_algorithm = True

    def handle(self) -> None:
        while line := self.rfile.readline():
            method, target, _ = line.decode().split()
            headers = []
            while (line := self.rfile.readline().rstrip()) != b"":
                name, _, value = line.decode().partition(": ")
                headers.append((name.lower(), value))
            body = self.rfile.read(int(dict(headers)["content-length"]))
            if "event_delivery" in target:
                asked = json.loads(body)
                window = f'{{"start": "{asked["start"]}", "end": "{asked["end"]}", '.encode()
                answer = window + self.counts
            else:
                answer = self.sandbox.handle(method, target, headers, body).body
            head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(answer)}\r\n\r\n"
            self.wfile.write(head.encode() + answer)


class Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    request_queue_size = 128


def counts() -> bytes:
    """A response without its opening brace and its window."""
    values = itertools.product(range(30), range(20), ["", "consent"])
    entries = [
        {
            "success": str(number * 7919 % 100_000),
            "errors": str(number % 13),
            "filtered": "0",
            "dimensions": {"event_name": f"Event Name {event}", "integration": f"integration-{integration}", "reason": reason},
        }
        for number, (event, integration, reason) in enumerate(values)
    ]
    assert len(entries) == GROUPS
    totals = {
        name: str(sum(int(entry[count]) for entry in entries))  # type: ignore[call-overload]
        for name, count in [("totalDelivered", "success"), ("totalErrors", "errors"), ("totalFiltered", "filtered")]
    }
    return json.dumps({**totals, "counts": entries}, separators=(",", ":")).encode()[1:]


def serve() -> None:
    Handler.counts = counts()
    with Server(("127.0.0.1", 0), Handler) as server:
        print(server.server_address[1], flush=True)
        server.serve_forever()


@contextmanager
def served() -> Iterator[tuple[str, int]]:
    with subprocess.Popen([sys.executable, __file__, "serve"], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout
        try:
            yield f"http://127.0.0.1:{server.stdout.readline().strip()}", server.pid
        finally:
            server.terminate()


class Spent(NamedTuple):
    wall: float
    caller: float
    workers: float
    server: float


def cpu_of(process: int) -> float:
    """The processor seconds of another process."""
    with open(f"/proc/{process}/stat") as file:
        fields = file.read().rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def collect(url: str, pool: ProcessPoolExecutor | None) -> tallyfold.CountTable:
    credentials = tallyfold.Sandbox().credentials
    with tallyfold.Client(cluster_endpoint=url, **credentials) as client:
        return client.collect("event_delivery", *RANGE, DIMENSIONS, executor=pool)


def measure(url: str, server: int, processes: int) -> tuple[Spent, tallyfold.CountTable]:
    pool = ProcessPoolExecutor(processes) if processes > 1 else None
    try:
        if pool is not None:
            # Starts the processes before the measurement.
            list(pool.map(time.sleep, [0.1] * processes))
        pids = [] if pool is None else list(pool._processes)
        before = time.perf_counter(), time.process_time(), sum(map(cpu_of, pids)), cpu_of(server)
        table = collect(url, pool)
        after = time.perf_counter(), time.process_time(), sum(map(cpu_of, pids)), cpu_of(server)
    finally:
        if pool is not None:
            pool.shutdown()
    return Spent(*(end - begin for begin, end in zip(before, after, strict=True))), table


def main() -> None:
    with served() as (url, server):
        results: dict[int, list[Spent]] = {1: [], 2: [], 4: []}
        first = None
        for _ in range(ROUNDS):
            for processes, spent in results.items():
                measured, table = measure(url, server, processes)
                spent.append(measured)
                assert len(table.windows) == WINDOWS
                assert len(table) == GROUPS
                first = first or table
                assert table == first
        medians = {processes: Spent(*map(statistics.median, zip(*spent, strict=True))) for processes, spent in results.items()}
    for processes in (2, 4):
        seconds = medians[processes].wall, medians[1].wall
        ratio, target = seconds[1] / seconds[0], at_least(1.6) if processes == 4 else None
        tell(f"{WINDOWS} windows by {GROUPS} groups, {processes} processes", "one process", seconds, "seconds", ratio, target)
    print("processes  seconds  processor seconds of the caller, its workers, and the server", file=sys.stderr)
    for processes, median in medians.items():
        print(f"{processes:9}  {median.wall:7.2f}  {median.caller:.2f}  {median.workers:.2f}  {median.server:.2f}", file=sys.stderr)


if __name__ == "__main__":
    serve() if sys.argv[1:] == ["serve"] else main()
