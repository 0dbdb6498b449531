"""Response bytes to groups in Python: the fold, and what people would write instead, in one run.

Takes the file of a body that `tallyfold-bench body plain 100000` wrote.
"""

import io
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import duckdb
import orjson
import pandas
import polars
import tallyfold

ROUNDS = 5
DIMENSIONS = ["event_name", "write_key", "integration", "reason"]
KEYS = ["write_key", "integration"]
COUNTS = ["success", "errors", "filtered"]


def with_tallyfold(body: bytes) -> int:
    aggregator = tallyfold.Aggregator(DIMENSIONS, group_by=KEYS)
    for start in range(0, len(body), 65536):
        aggregator.push(body[start : start + 65536])
    return len(aggregator.finish())


def with_polars(body: bytes) -> int:
    entries = polars.read_json(io.BytesIO(body)).explode("counts").select(polars.col("counts").struct.unnest())
    sums = [polars.col(name).cast(polars.UInt64).sum() for name in COUNTS]
    return entries.unnest("dimensions").group_by(KEYS).agg(sums).height


def with_pandas(body: bytes) -> int:
    frame = pandas.json_normalize(orjson.loads(body)["counts"])
    frame[COUNTS] = frame[COUNTS].astype("uint64")
    return len(frame.groupby([f"dimensions.{name}" for name in KEYS])[COUNTS].sum())


def with_duckdb(body: bytes) -> int:
    path = Path(sys.argv[1])
    assert path.stat().st_size == len(body)
    sums = ", ".join(f"sum(entry.{name}::UBIGINT)" for name in COUNTS)
    query = (
        f"SELECT entry.dimensions.write_key, entry.dimensions.integration, {sums} FROM "
        f"(SELECT unnest(counts) AS entry FROM read_json('{path}', maximum_object_size=1000000000)) GROUP BY ALL"
    )
    return len(duckdb.sql(query).fetchall())


def with_orjson_alone(body: bytes) -> int:
    return orjson.loads(body) and 0


def main() -> None:
    body = Path(sys.argv[1]).read_bytes()
    # Each with how many times faster than it the fold is meant to be.
    peers: dict[Callable[[bytes], int], int] = {
        with_polars: 20,
        with_pandas: 40,
        with_duckdb: 40,
        with_orjson_alone: 25,
    }
    times: dict[Callable[[bytes], int], list[float]] = {contender: [] for contender in (with_tallyfold, *peers)}
    for _ in range(ROUNDS):
        for contender, rounds in times.items():
            start = time.perf_counter()
            groups = contender(body)
            rounds.append(time.perf_counter() - start)
            assert groups in (0, 1200), f"{contender.__name__} found {groups} groups"
    ours = statistics.median(times[with_tallyfold])
    print(f"Python, {len(body) / 1e6:.0f} MB to 1,200 groups: {len(body) / ours / 1e9:.2f} GB/s")
    for peer, target in peers.items():
        ratio = statistics.median(times[peer]) / ours
        print(f"  {ratio:6.1f}x {peer.__name__.removeprefix('with_'):<14} (target {target})")


if __name__ == "__main__":
    main()
