"""A process that was forked: it has copies of all, and shares the connections."""

import asyncio
import os
import signal
import threading
import time
from collections.abc import Callable

import httpx2
import pytest
from support import END, START, connect

import tallyfold

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks here"),
    pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning"),
]


def in_a_child(act: Callable[[], object]) -> str:
    """Gives what an action says in a forked process, or raises there."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            said = str(act())
        except BaseException as error:  # noqa: BLE001 - nothing may get out of the child
            said = f"{type(error).__name__}: {error}"
        os.write(writing, said.encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as answer:
        said = answer.read()
    os.waitpid(child, 0)
    return said


def test_a_child_takes_no_answer_of_its_parent(sandbox: tallyfold.Sandbox) -> None:
    def delivery() -> int:
        return client.event_delivery(START, END, ["reason"]).totals.success

    with tallyfold.serve(sandbox) as server, connect(sandbox, server.url) as client:
        assert delivery() == 12
        said = in_a_child(delivery)
        assert said == "RuntimeError: this Client was made before a fork: make one in each process"
        # What the child closes stays open here.
        assert in_a_child(client.close) == "None"
        assert delivery() == 12


def test_what_a_child_closes_goes_on_in_its_parent(sandbox: tallyfold.Sandbox) -> None:
    sandbox.inject("delay", endpoint="event_delivery", milliseconds=600, every=1)
    until = time.monotonic() + 60
    got: list[object] = []

    def delivery() -> None:
        try:
            got.append(client.event_delivery(START, END, ["reason"]).totals.success)
        except BaseException as error:  # noqa: BLE001 - the test looks at it
            got.append(error)

    with tallyfold.serve(sandbox) as server, connect(sandbox, server.url) as client:
        revisions = client.follow("event_delivery", START, ["reason"], window="15m")
        follow = threading.Thread(target=lambda: got.append(next(revisions).table.totals.success))
        for number, wait in enumerate((threading.Thread(target=delivery), follow)):
            wait.start()
            while sandbox.stats["event_delivery"] == number:
                assert time.monotonic() < until
                time.sleep(0.01)
            # By now the parent is reading from its connection.
            time.sleep(0.1)
            close = client.close if wait is not follow else revisions.close
            assert in_a_child(lambda close=close: (signal.alarm(60), close())[1]) == "None"  # type: ignore[misc]
            wait.join()
    assert got == [12, 12]


def test_a_child_leaves_the_transport_open() -> None:
    class Closable(httpx2.MockTransport):
        def close(self) -> None:
            closed_by.append(os.getpid())

    closed_by: list[int] = []
    client = tallyfold.Client(
        cluster_endpoint="https://sandbox.example",
        access_token=lambda _: ("a-token", 60),
        transport=Closable(lambda _: httpx2.Response(404)),
    )
    # It may hold a lock that nobody in the child will ever release.
    assert in_a_child(lambda: (client.close(), closed_by)) == "(None, [])"  # type: ignore[func-returns-value]
    client.close()
    assert closed_by == [os.getpid()]


def test_a_child_makes_its_own(sandbox: tallyfold.Sandbox) -> None:
    def delivery() -> int:
        with connect(sandbox, server.url) as own:
            return own.event_delivery(START, END, ["reason"]).totals.success

    with tallyfold.serve(sandbox) as server:
        assert in_a_child(delivery) == "12"


def test_a_child_of_a_fetching_parent_does_not_wait(sandbox: tallyfold.Sandbox) -> None:
    inner, fetching, forked = sandbox.transport(), threading.Event(), threading.Event()

    def answer(request: httpx2.Request) -> httpx2.Response:
        fetching.set()
        forked.wait()
        return inner.handle_request(request)

    client = tallyfold.Client(
        cluster_endpoint="https://sandbox.example",
        transport=httpx2.MockTransport(answer),
        **sandbox.credentials,
    )
    arguments = (START, END, ["reason"])
    thread = threading.Thread(target=client.event_delivery, args=arguments)
    thread.start()
    fetching.wait()

    def delivery() -> object:
        # A child that waits is ended, and says nothing.
        signal.alarm(60)
        return client.event_delivery(START, END, ["reason"])

    said = in_a_child(delivery)
    forked.set()
    thread.join()
    assert said.startswith("RuntimeError")


def test_an_async_client_in_a_child(sandbox: tallyfold.Sandbox) -> None:
    client = tallyfold.AsyncClient(
        cluster_endpoint="https://sandbox.example",
        transport=sandbox.async_transport(),
        **sandbox.credentials,
    )

    def delivery() -> object:
        return asyncio.run(client.event_delivery(START, END, ["reason"]))

    delivery()
    assert in_a_child(delivery).startswith("RuntimeError: this AsyncClient was made before a fork")
    assert in_a_child(lambda: asyncio.run(client.close())) == "None"
    delivery()
