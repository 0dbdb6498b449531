"""A service whose answers the tests of long ranges choose window by window."""

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import httpx2
from support import ADDRESS, record

import tallyfold

DAY = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"
HOUR = "2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z"

Trouble = Callable[[], httpx2.Response]


class Service(httpx2.BaseTransport, httpx2.AsyncBaseTransport):
    """A sandbox, asked through a transport that remembers windows and makes trouble."""

    def __init__(self, sandbox: tallyfold.Sandbox) -> None:
        self.sandbox = sandbox
        self.asked: list[str] = []
        """The start of each request's window, in the order of the requests."""
        self.troubles: dict[str, Trouble] = {}
        """What the request of the window that starts then meets in place of an answer."""
        self.under_way = 0
        self.most_under_way = 0
        self._lock = threading.Lock()
        self._inner = sandbox.transport()
        self._async_inner = sandbox.async_transport()

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        trouble = self._note(request)
        try:
            return self._inner.handle_request(request) if trouble is None else trouble()
        finally:
            self._forget()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        trouble = self._note(request)
        try:
            if trouble is not None:
                return trouble()
            return await self._async_inner.handle_async_request(request)
        finally:
            self._forget()

    def _note(self, request: httpx2.Request) -> Trouble | None:
        asked = json.loads(request.content)
        with self._lock:
            self.under_way += 1
            self.most_under_way = max(self.most_under_way, self.under_way)
            if "start" not in asked:
                return None
            self.asked.append(asked["start"])
            return self.troubles.get(asked["start"])

    def _forget(self) -> None:
        with self._lock:
            self.under_way -= 1

    def client(self, **options: Any) -> tallyfold.Client:
        return tallyfold.Client(transport=self, **self._options(options))

    def async_client(self, **options: Any) -> tallyfold.AsyncClient:
        return tallyfold.AsyncClient(transport=self, **self._options(options))

    def _options(self, options: dict[str, Any]) -> dict[str, Any]:
        usual = {"cluster_endpoint": ADDRESS, "max_retries": 0, **self.sandbox.credentials}
        return usual | options


def busy_day() -> tallyfold.Sandbox:
    """A service with events in every quarter of an hour of a day."""
    sandbox = tallyfold.Sandbox()
    for quarter in range(96):
        at = f"2026-01-01T{quarter // 4:02}:{quarter % 4 * 15 + 7:02}:00Z"
        record(sandbox, "success", f"integration {quarter % 3}", count=quarter + 1, at=at)
    return sandbox


def answer(status: int) -> Trouble:
    return lambda: httpx2.Response(status, headers={"content-type": "text/plain"}, content=b"no")


def fail(error: Exception) -> Trouble:
    def trouble() -> httpx2.Response:
        raise error

    return trouble


class _Late(httpx2.SyncByteStream, httpx2.AsyncByteStream):
    def __iter__(self) -> Iterator[bytes]:
        raise httpx2.ReadTimeout("late")

    def __aiter__(self) -> AsyncIterator[bytes]:
        raise httpx2.ReadTimeout("late")


def late() -> httpx2.Response:
    """A response that begins, and does not end in time."""
    return httpx2.Response(200, headers={"content-type": "application/json"}, stream=_Late())


def truth(sandbox: tallyfold.Sandbox, start: str, end: str) -> list[tallyfold.Row]:
    """What the service says of the whole range in one response."""
    with Service(sandbox).client() as client:
        return list(client.event_delivery(start, end, ["integration"]))


def collecting_threads() -> list[str]:
    """The names of the threads that a collect has left behind."""
    names = (thread.name for thread in threading.enumerate())
    return [name for name in names if name.startswith("tallyfold-collect")]


async def other_tasks() -> list[asyncio.Task[Any]]:
    """The tasks that a collect has left behind."""
    return [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]


def starts(hour: str) -> Iterator[str]:
    """The starts of an hour's quarters."""
    return (f"2026-01-01T{hour}:{minute}:00Z" for minute in ("00", "15", "30", "45"))
