"""The faults that every language is put to, over loopback (tests/faults/README.md)."""

import asyncio
import json
import logging
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2
import pytest
from canaries import search, search_error, search_object
from fault_server import FaultServer, Json

import tallyfold

# A busy machine takes several times as long as others.
pytestmark = pytest.mark.timeout(900)

FAULTS = Path(__file__).parents[2] / "tests" / "faults" / "faults.json"
FILE: Json = json.loads(FAULTS.read_text(encoding="utf-8"))
ALL: list[Json] = FILE["runs"]

# Most of the time is spent waiting for something that does not come.
AT_ONCE = 16

Outcome = tallyfold.CountTable | tallyfold.TallyfoldError | Any


@pytest.fixture(autouse=True)
def world(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets the wall clock stand still, and TLS, which nothing here uses, be set up once."""
    unix_ms = tallyfold.Window(FILE["now"], FILE["query"]["end"]).start.timestamp() * 1000
    read = tallyfold.Now.read
    monkeypatch.setattr(tallyfold.Now, "read", lambda: read()._replace(unix_ms=int(unix_ms)))
    tls = httpx2.create_ssl_context(trust_env=False)
    monkeypatch.setattr(httpx2, "create_ssl_context", lambda **_: tls)


@pytest.fixture(autouse=True)
def said(caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]) -> Any:
    """Looks through all that was logged and printed."""
    caplog.set_level(logging.DEBUG)
    yield
    search(caplog.text, *capfd.readouterr())


def test_every_fault_ends_as_it_is_to() -> None:
    with ThreadPoolExecutor(AT_ONCE) as threads:
        wrong = list(threads.map(lambda run: wrong_of(run, check_run), ALL))
    conclude(
        [
            wrong_of(run, check_run) if error is not None and is_hasty(run) else error
            for run, error in zip(ALL, wrong, strict=True)
        ]
    )


def test_every_fault_ends_as_it_is_to_async() -> None:
    async def main() -> list[Exception | None]:
        turns = asyncio.Semaphore(AT_ONCE)

        async def check(run: Json) -> Exception | None:
            async with turns:
                return await awrong_of(run)

        wrong = await asyncio.gather(*map(check, ALL))
        return [
            await awrong_of(run) if error is not None and is_hasty(run) else error
            for run, error in zip(ALL, wrong, strict=True)
        ]

    conclude(asyncio.run(main()))


def is_hasty(run: Json) -> bool:
    """Whether a good exchange may take too long on a busy machine, unless the run is alone."""
    return bool(run["options"]["timeout_ms"] < 10_000)


def conclude(wrong: list[Exception | None]) -> None:
    errors = [error for error in wrong if error is not None]
    if errors:
        raise ExceptionGroup("not as they are to be", errors)
    assert len(wrong) == FILE["count"]
    assert len({run["fault"] for run in ALL}) == FILE["faults"]


def wrong_of(run: Json, check: Callable[[Json], None]) -> Exception | None:
    try:
        check(run)
    except Exception as error:  # noqa: BLE001 - all are shown, together
        return noted(error, run)
    return None


async def awrong_of(run: Json) -> Exception | None:
    try:
        await acheck_run(run)
    except Exception as error:  # noqa: BLE001 - all are shown, together
        return noted(error, run)
    return None


def noted(error: Exception, run: Json) -> Exception:
    error.add_note(f"{run['fault']!r} at {run['endpoint']}")
    return error


def check_run(run: Json) -> None:
    begin = time.monotonic()
    server = FaultServer(FILE, run)
    try:
        with tallyfold.Client(**options(run, server)) as client:
            for expected in run["outcomes"]:
                check_outcome(expected, outcome_of(client, run["call"]))
            search_object(client)
    finally:
        server.end()
    check_wait(run, begin)


async def acheck_run(run: Json) -> None:
    begin = time.monotonic()
    server = FaultServer(FILE, run)
    try:
        async with tallyfold.AsyncClient(**options(run, server)) as client:
            for expected in run["outcomes"]:
                check_outcome(expected, await aoutcome_of(client, run["call"]))
            search_object(client)
    finally:
        await asyncio.to_thread(server.end)
    check_wait(run, begin)


def options(run: Json, server: FaultServer) -> Json:
    given = run["options"]
    return {
        "cluster_endpoint": server.address,
        "base_url": server.address,
        "auth_url": server.address,
        "timeout": given["timeout_ms"] / 1000,
        "max_retries": given["max_retries"],
        "longest_retry_wait": given["longest_retry_wait_ms"] / 1000,
        "tolerate": given.get("tolerate", ()),
        "on_attempt": search_object,
        **FILE["client"],
    }


def arguments(call: str) -> Json:
    return {} if call == "audit_logs" else FILE["query"]


def outcome_of(client: tallyfold.Client, call: str) -> Outcome:
    try:
        return getattr(client, call)(**arguments(call))
    except tallyfold.TallyfoldError as error:
        search_error(error)
        return error


async def aoutcome_of(client: tallyfold.AsyncClient, call: str) -> Outcome:
    try:
        return await getattr(client, call)(**arguments(call))
    except tallyfold.TallyfoldError as error:
        search_error(error)
        return error


def check_outcome(expected: str | Json, outcome: Outcome) -> None:
    wanted: Json = FILE["outcomes"][expected] if isinstance(expected, str) else expected
    found: Json
    match outcome:
        case tallyfold.TallyfoldError():
            fields = ("code", "kind", "status", "retry_after")
            found = {"error": {name: getattr(outcome, name) for name in fields}}
        case tallyfold.CountTable():
            verdict = outcome.reconciliation.verdict
            found = {"table": json.loads(outcome.to_json()), "verdict": verdict}
        case _:
            found = {"json": outcome}
    assert found == wanted


def check_wait(run: Json, begin: float) -> None:
    assert time.monotonic() - begin >= run["waits_ms"] / 1000
