"""The vectors of long ranges (tests/vectors/README.md), through both clients."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest

import tallyfold

FILE = Path(__file__).parents[2] / "tests" / "vectors" / "collects.json"

Case = dict[str, Any]


class Script(httpx2.BaseTransport, httpx2.AsyncBaseTransport):
    """Answers each window as a case says."""

    def __init__(self, case: Case) -> None:
        self._answers = {tuple(answer["window"]): answer for answer in case["answers"]}
        self.asked: list[list[str]] = []

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        asked = json.loads(request.content)
        self.asked.append([asked["start"], asked["end"]])
        answer = self._answers[asked["start"], asked["end"]]
        match answer.get("fail"):
            case "network":
                raise httpx2.ConnectError("")
            case "timeout":
                raise httpx2.ReadTimeout("")
        response = answer["respond"]
        headers = [tuple(header) for header in response["headers"]]
        return httpx2.Response(response["status"], headers=headers, content=response["body"])

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        return self.handle_request(request)


class Shelf:
    """A checkpoint in memory."""

    def __init__(self, case: Case) -> None:
        self.segments: dict[str, str | bytes] = {}
        for number, segment in enumerate(case["segments"]):
            self.segments[tallyfold.segment_name(number)] = segment

    def load(self, name: str) -> str | bytes | None:
        return self.segments.get(name)

    def save(self, name: str, data: bytes) -> None:
        self.segments[name] = data


class AsyncShelf:
    """The same as coroutine functions."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf

    async def load(self, name: str) -> str | bytes | None:
        return self._shelf.load(name)

    async def save(self, name: str, data: bytes) -> None:
        self._shelf.save(name, data)


def options_of(script: Script) -> dict[str, Any]:
    token = {"access_token": lambda _: ("a-token", 3600)}
    return {
        "cluster_endpoint": "https://cluster.example",
        "transport": script,
        "max_retries": 0,
        **token,
    }


def in_threads(script: Script, shelf: Shelf, query: Case) -> tallyfold.CountTable:
    with tallyfold.Client(**options_of(script)) as client:
        return client.collect(**query, checkpoint=shelf, patience=0)


def in_tasks(script: Script, shelf: Shelf, query: Case) -> tallyfold.CountTable:
    async def collect() -> tallyfold.CountTable:
        async with tallyfold.AsyncClient(**options_of(script)) as client:
            return await client.collect(**query, checkpoint=AsyncShelf(shelf), patience=0)

    return asyncio.run(collect())


@pytest.mark.filterwarnings("ignore::tallyfold.ClockWarning")
@pytest.mark.parametrize("collect", [in_threads, in_tasks])
def test_collects(collect: Callable[[Script, Shelf, Case], tallyfold.CountTable]) -> None:
    file = json.loads(FILE.read_text(encoding="utf-8"))
    ran = 0
    for case in file["cases"]:
        try:
            check(case, collect)
        except BaseException as error:
            error.add_note(f"in the case {case['name']!r}")
            raise
        ran += 1
    assert ran == file["count"] >= 32


def check(case: Case, collect: Callable[[Script, Shelf, Case], tallyfold.CountTable]) -> None:
    query = case["query"] | {"concurrency": 1}
    if "part" in query:
        query["part"] = tuple(query["part"])
    if "have" in case:
        query["have"] = load(case["have"])
    script, shelf = Script(case), Shelf(case)
    if "error" in case:
        with pytest.raises(tallyfold.TallyfoldError) as caught:
            collect(script, shelf, query)
        check_error(case, caught.value)
    else:
        assert json.loads(collect(script, shelf, query).to_json()) == case["table"]
    assert script.asked == case.get("asked", [])
    if "stored" in case:
        number = json.loads(case["stored"])["segment"]
        stored = shelf.segments[tallyfold.segment_name(number)]
        assert stored == case["stored"].encode()


def check_error(case: Case, error: tallyfold.TallyfoldError) -> None:
    assert {name: getattr(error, name) for name in case["error"]} == case["error"]
    partial = None if error.partial is None else json.loads(error.partial.to_json())
    assert partial == case.get("partial")
    gaps = [[gap.start_text, gap.end_text] for gap in error.gaps]
    assert gaps == case.get("gaps", [])


def load(table: Case) -> tallyfold.CountTable:
    return tallyfold.CountTable.from_json(json.dumps(table))
