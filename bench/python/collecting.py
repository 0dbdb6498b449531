"""Measures what a collect costs outside HTTP, over loopback, compared with the same requests alone.

The sandbox runs in a process of its own. The peer sends the same requests with the same HTTP stack
and the same concurrency, and discards the bodies.
"""

import asyncio
import statistics
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from queue import Empty, SimpleQueue

import tallyfold
from measuring import Contender, Target, at_most, take_turns, tell
from tallyfold._http.loop_transport import LoopTransport
from tallyfold._http.network import Network
from tallyfold._http.stop import Stop
from tallyfold._http.transport import DeadlineTransport, deadline, http_request

CONCURRENCY = 8
ROUNDS = 15
RANGE = "2026-01-05T00:00:00Z", "2026-01-08T00:00:00Z"
SOME: list[tallyfold.DimensionName] = ["integration", "reason"]
ALL: list[tallyfold.DimensionName] = ["event_name", "write_key", "integration", "reason"]
TIMEOUT = 30.0


def main() -> None:
    with served() as options:
        for dimensions, target in ((SOME, at_most(0.15)), (ALL, None)):
            requests = requests_of(options, dimensions)
            work = f"collect of {len(requests)} windows by {len(dimensions)} dimensions"
            in_threads(work, target, options, requests, dimensions)
            in_tasks(work, target, options, requests, dimensions)


@contextmanager
def served() -> Iterator[dict[str, str]]:
    command = [sys.executable, "-m", "tallyfold", "sandbox", "--seed", "7"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout
        url = server.stdout.readline().split()[-1]
        lines = (server.stdout.readline().split() for _ in range(4))
        credentials = dict(line for line in lines)
        try:
            yield {"cluster_endpoint": url, **credentials}
        finally:
            server.terminate()


def requests_of(options: dict[str, str], dimensions: list[tallyfold.DimensionName]) -> list[tallyfold.Request]:
    """The requests of a collect, each with a token."""
    token = token_of(options)
    machine = tallyfold.Machine(cluster_endpoint=options["cluster_endpoint"], host_tokens=True)
    now = tallyfold.Now.read()
    requests = []
    for window in tallyfold.Plan(*RANGE, "15m"):
        call = machine.event_delivery(window.start_text, window.end_text, dimensions)
        if isinstance(step := call.step(now), tallyfold.ProvideToken):
            call.token(token, 3600)
            step = call.step(now)
        assert isinstance(step, tallyfold.Send)
        requests.append(step.request)
    return requests


def token_of(options: dict[str, str]) -> str:
    """A token, as the client itself would get one."""
    machine = tallyfold.Machine(**options)  # type: ignore[arg-type]
    call = machine.event_delivery(*RANGE, SOME)
    now = tallyfold.Now.read()
    step = call.step(now)
    transport = DeadlineTransport(Network())
    assert isinstance(step, tallyfold.Send)
    response = transport.handle_request(http_request(step.request, TIMEOUT))
    call.head(response.status_code, response.headers.multi_items())
    call.chunk(b"".join(response.iter_bytes()))
    call.end()
    transport.close()
    step = call.step(now)
    assert isinstance(step, tallyfold.Send)
    return dict(step.request.headers)["authorization"].removeprefix("Bearer ")


def in_threads(
    work: str,
    target: Target,
    options: dict[str, str],
    requests: list[tallyfold.Request],
    dimensions: list[tallyfold.DimensionName],
) -> None:
    transport = DeadlineTransport(Network())
    stop = Stop()

    def send_all() -> None:
        waiting: SimpleQueue[tallyfold.Request] = SimpleQueue()
        for request in requests:
            waiting.put(request)
        threads = [threading.Thread(target=send, args=[waiting]) for _ in range(CONCURRENCY)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def send(waiting: SimpleQueue[tallyfold.Request]) -> None:
        while True:
            try:
                request = waiting.get_nowait()
            except Empty:
                return
            with deadline(TIMEOUT, stop):
                response = transport.handle_request(http_request(request, TIMEOUT))
                assert response.status_code == 200
                for _ in response.iter_bytes():
                    pass
                response.close()

    with tallyfold.Client(**options, timeout=TIMEOUT) as client:  # type: ignore[arg-type]
        ours = partial(client.collect, "event_delivery", *RANGE, dimensions, concurrency=CONCURRENCY)
        assert len(ours().windows) == len(requests)
        measure(f"{work}, {CONCURRENCY} threads", target, ours, send_all)
    transport.close()


def in_tasks(
    work: str,
    target: Target,
    options: dict[str, str],
    requests: list[tallyfold.Request],
    dimensions: list[tallyfold.DimensionName],
) -> None:
    with asyncio.Runner() as runner:
        transport = LoopTransport(Network())

        async def send_all() -> None:
            waiting = iter(requests)
            await asyncio.gather(*(send(waiting) for _ in range(CONCURRENCY)))

        async def send(waiting: Iterator[tallyfold.Request]) -> None:
            for request in waiting:
                async with asyncio.timeout(TIMEOUT):
                    response = await transport.handle_async_request(http_request(request, TIMEOUT))
                    assert response.status_code == 200
                    async for _ in response.aiter_bytes():
                        pass
                    await response.aclose()

        client = tallyfold.AsyncClient(**options, timeout=TIMEOUT)  # type: ignore[arg-type]

        async def collect() -> None:
            table = await client.collect("event_delivery", *RANGE, dimensions, concurrency=CONCURRENCY)
            assert len(table.windows) == len(requests)

        ours, theirs = (lambda: runner.run(collect())), (lambda: runner.run(send_all()))
        measure(f"{work}, {CONCURRENCY} tasks", target, ours, theirs)
        runner.run(client.close())


def measure(work: str, target: Target, ours: Contender, theirs: Contender) -> None:
    our_times, their_times = take_turns(ROUNDS, 1, [ours, theirs])
    outside = [(own - http) / own for own, http in zip(our_times, their_times, strict=True)]
    medians = statistics.median(our_times), statistics.median(their_times)
    tell(work, "of its time outside HTTP", medians, "seconds", statistics.median(outside), target)


if __name__ == "__main__":
    main()
