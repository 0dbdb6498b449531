"""Compressed responses: at most one coding, whole, and never more work than time allows."""

import asyncio
import gzip
import time
import zlib
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx2
import pytest
from support import ADDRESS, END, START, body, watched_turns
from test_surplus import serving

import tallyfold

TEXT = body([({"integration": "a"}, 7, 0, 0)])
PACKED = gzip.compress(TEXT)


def response(content: bytes, *codings: str) -> bytes:
    head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
    head += b"".join(b"content-encoding: %b\r\n" % coding.encode() for coding in codings)
    return head + b"content-length: %d\r\n\r\n%b" % (len(content), content)


OPTIONS: Any = {"access_token": lambda _: ("a-token", 60), "max_retries": 0}


def in_threads(address: str, **options: Any) -> int:
    with tallyfold.Client(cluster_endpoint=address, **OPTIONS, **options) as client:
        return client.event_delivery(START, END, ["integration"]).totals.success


def in_tasks(address: str, **options: Any) -> int:
    async def main() -> int:
        turns = []
        try:
            async with (
                watched_turns() as turns,
                tallyfold.AsyncClient(cluster_endpoint=address, **OPTIONS, **options) as client,
            ):
                table = await client.event_delivery(START, END, ["integration"])
        finally:
            # No piece holds the loop for long.
            assert max(turns, default=0.0) < 0.1
        return table.totals.success

    return asyncio.run(main())


HOSTS = pytest.mark.parametrize("ask", [in_threads, in_tasks])


@HOSTS
@pytest.mark.parametrize("coding", ["gzip", "x-gzip", "GZip"])
@pytest.mark.parametrize("size", [1, 20, 3000])
def test_gzip_is_read(ask: Any, coding: str, size: int) -> None:
    text = body([({"integration": f"number {number}"}, 1, 0, 0) for number in range(size)])
    with serving([response(gzip.compress(text), coding)]) as server:
        assert ask(f"http://127.0.0.1:{server.port}") == size


@HOSTS
def test_gzip_is_asked_for_and_nothing_else(ask: Any) -> None:
    asked: list[str] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        asked.extend(request.headers.get_list("accept-encoding"))
        return httpx2.Response(200, content=TEXT)

    assert ask(ADDRESS, transport=httpx2.MockTransport(answer)) == 7
    assert asked == ["gzip"]


@HOSTS
@pytest.mark.parametrize(
    ("content", "codings"),
    [
        (gzip.compress(PACKED), ["gzip, gzip"]),
        (gzip.compress(PACKED), ["gzip", "gzip"]),
        (zlib.compress(TEXT), ["deflate"]),
        (TEXT, ["br"]),
        (TEXT, ["zstd"]),
        (TEXT, ["unheard-of"]),
    ],
)
def test_another_coding_is_refused(ask: Any, content: bytes, codings: list[str]) -> None:
    with (
        serving([response(content, *codings)]) as server,
        pytest.raises(tallyfold.ResponseError) as caught,
    ):
        ask(f"http://127.0.0.1:{server.port}")
    assert (caught.value.code, caught.value.status) == ("wrong_content_encoding", 200)


@HOSTS
@pytest.mark.parametrize(
    "content",
    [
        PACKED + b"\n",
        PACKED + b"garbage",
        PACKED + PACKED,
        PACKED + gzip.compress(b" "),
        PACKED + gzip.compress(b""),
        PACKED[:-8],
        PACKED[:-1],
        PACKED[:-8] + b"\0" * 8,
        PACKED[:20],
        b"",
        TEXT,
    ],
    ids=[
        "a line",
        "garbage",
        "a member",
        "a member of white space",
        "an empty member",
        "no trailer",
        "half a trailer",
        "a wrong sum",
        "cut",
        "nothing",
        "plain",
    ],
)
def test_anything_but_one_whole_member_is_a_broken_exchange(ask: Any, content: bytes) -> None:
    with (
        serving([response(content, "gzip")]) as server,
        pytest.raises(tallyfold.ServiceError, match="DecodingError") as caught,
    ):
        ask(f"http://127.0.0.1:{server.port}")
    assert caught.value.code == "network_failed"


def bomb(megabytes: int) -> bytes:
    """Many bytes of white space in few; nobody comes to their end."""
    packing = zlib.compressobj(9, zlib.DEFLATED, -15)
    # After a full flush, a block can be repeated.
    block = packing.compress(b" " * 2**20) + packing.flush(zlib.Z_FULL_FLUSH)
    return PACKED[:10] + block * megabytes


BOMB = bomb(2048)


@HOSTS
def test_a_bomb_ends_at_the_limit_of_a_body(ask: Any) -> None:
    begin = time.monotonic()
    with (
        serving([response(BOMB, "gzip")]) as server,
        pytest.raises(tallyfold.ResponseError) as caught,
    ):
        ask(f"http://127.0.0.1:{server.port}", limits=tallyfold.Limits(body_bytes=1 << 20))
    assert caught.value.code == "body_limit"
    assert time.monotonic() - begin < 5


@HOSTS
def test_a_bomb_ends_in_time(ask: Any) -> None:
    begin = time.monotonic()
    with (
        serving([response(BOMB, "gzip")]) as server,
        pytest.raises(tallyfold.ServiceError) as caught,
    ):
        ask(f"http://127.0.0.1:{server.port}", timeout=0.2)
    assert caught.value.code == "timed_out"
    assert time.monotonic() - begin < 5


@HOSTS
def test_what_was_packed_twice_takes_no_time(ask: Any) -> None:
    twice = gzip.compress(BOMB)
    begin = time.monotonic()
    with (
        serving([response(twice, "gzip, gzip")]) as server,
        pytest.raises(tallyfold.ResponseError) as caught,
    ):
        ask(f"http://127.0.0.1:{server.port}", timeout=20)
    assert caught.value.code == "wrong_content_encoding"
    assert time.monotonic() - begin < 10


class Bytes(httpx2.SyncByteStream, httpx2.AsyncByteStream):
    """The body of a transport that is not ours, byte by byte."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def __iter__(self) -> Iterator[bytes]:
        for at in range(len(self._content)):
            yield self._content[at : at + 1]

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self:
            yield piece


@HOSTS
@pytest.mark.parametrize("is_stream", [True, False])
def test_a_transport_of_the_caller_is_decoded_too(ask: Any, *, is_stream: bool) -> None:
    large = body([({"integration": f"wärehouse {at}"}, at, 0, 0) for at in range(900)])
    packed = gzip.compress(large)

    def answer(_: httpx2.Request) -> httpx2.Response:
        headers = {"content-encoding": "gzip"}
        if is_stream:
            return httpx2.Response(200, headers=headers, stream=Bytes(packed))
        return httpx2.Response(200, headers=headers, content=packed)

    assert ask(ADDRESS, transport=httpx2.MockTransport(answer)) == sum(range(900))
