"""Requests, responses and recorded events that the tests share."""

import asyncio
import contextlib
import json
import re
import sys
import time
from collections.abc import AsyncIterator, Iterable, Iterator
from importlib.resources import files
from types import FrameType
from typing import Any

import tallyfold

START, MID, END = "2026-01-01T00:00:00Z", "2026-01-01T00:05:00Z", "2026-01-01T00:15:00Z"
ADDRESS = "https://sandbox.example"
# The build of the npm package writes it; a wheel that was built without has none.
HAS_WIDGET = (files("tallyfold") / "_notebook" / "widget.js").is_file()


def record(
    sandbox: tallyfold.Sandbox,
    outcome: str,
    integration: str,
    *,
    reason: str = "",
    count: int = 1,
    at: str = "2026-01-01T00:05:00Z",
) -> None:
    """Records events of one name and one write key."""
    assert outcome in {"success", "errors", "filtered"}
    sandbox.record(
        at,
        outcome,  # type: ignore[arg-type]
        event_name="Order Completed",
        write_key="web",
        integration=integration,
        reason=reason,
        count=count,
    )


def connect(sandbox: tallyfold.Sandbox, address: str = ADDRESS) -> tallyfold.Client:
    """Makes a client of both APIs, in process unless there is an address; it retries nothing."""
    return tallyfold.Client(
        cluster_endpoint=address,
        base_url=address,
        auth_url=address,
        transport=sandbox.transport() if address == ADDRESS else None,
        max_retries=0,
        **sandbox.credentials,
    )


@contextlib.contextmanager
def interrupting(function: str, event: str, position: int = 0) -> Iterator[None]:
    """Raises `KeyboardInterrupt` once, at that call of a function of the package or its return."""
    left = position

    def trace(frame: FrameType, happened: str, _: object) -> Any:
        nonlocal left
        code = frame.f_code
        if "tallyfold" not in code.co_filename and code.co_filename != "<string>":
            return None
        if not f".{code.co_qualname}".endswith(f".{function}"):
            return None
        if happened == event:
            left -= 1
            if left == -1:
                sys.settrace(None)
                raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(before)


@contextlib.contextmanager
def interrupting_at(position: int) -> Iterator[None]:
    """Raises `KeyboardInterrupt` once, at that call or return in the code that uses files."""
    left = position
    places = re.compile(r"/tallyfold/_(files/|export/(outbox|ledger)\.py)|/contextlib\.py$")

    def trace(frame: FrameType, event: str, _: object) -> None:
        nonlocal left
        if event == "c_call" or not places.search(frame.f_code.co_filename):
            return
        left -= 1
        if left == -1:
            sys.setprofile(None)
            raise KeyboardInterrupt

    before = sys.getprofile()
    sys.setprofile(trace)
    try:
        yield
    finally:
        sys.setprofile(before)


Entry = tuple[dict[str, str], int, int, int]


def body(entries: Iterable[Entry], *, reported: tuple[int, int, int] | None = None) -> bytes:
    """Writes an event metrics result (service reference 2.2), by default with right totals."""
    entries = list(entries)
    sums = tuple(sum(counts) for counts in zip(*(entry[1:] for entry in entries), strict=True))
    delivered, errors, filtered = reported or sums or (0, 0, 0)
    counts = [
        {
            "success": str(success),
            "errors": str(failed),
            "filtered": str(dropped),
            "dimensions": dimensions,
        }
        for dimensions, success, failed, dropped in entries
    ]
    result = {
        "start": START,
        "end": END,
        "totalDelivered": str(delivered),
        "totalErrors": str(errors),
        "totalFiltered": str(filtered),
        "counts": counts,
    }
    return json.dumps(result, ensure_ascii=False).encode()


LARGE = body(
    (
        {"integration": f"wärehouse {number} 😀", "reason": 'a "quoted" \\ reason\n'},
        number,
        number * 2,
        2**40 + number,
    )
    for number in range(20)
)
"""A result of more than 2 kB, with escapes and with characters of two and four bytes."""


@contextlib.asynccontextmanager
async def watched_turns() -> AsyncIterator[list[float]]:
    """Notes for how many seconds each turn of the event loop computes meanwhile.

    The time that other processes take on a busy machine does not count.
    """
    turns = []

    async def watch() -> None:
        while True:
            begin = time.thread_time()
            await asyncio.sleep(0.001)
            turns.append(time.thread_time() - begin)

    watching = asyncio.create_task(watch())
    try:
        yield turns
    finally:
        watching.cancel()
