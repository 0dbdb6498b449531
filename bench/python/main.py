"""The fold in Python, and what people would write instead, in one run.

Takes the directory of the bodies that `tallyfold-bench bodies` wrote. `make bench` runs it.
"""

import statistics
import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import orjson
import peers
import polars
from folding import DIMENSIONS, fold, groups_of
from measuring import at_least, at_most, compare, take_turns, tell
from tallyfold import DimensionName

KEYS: list[DimensionName] = ["write_key", "integration"]
MEMORY_KEPT: list[list[DimensionName]] = [["event_name", "integration"], ["event_name", "write_key", "integration"]]


def bytes_to_groups(path: Path) -> None:
    body = path.read_bytes()
    ours = groups_of(fold(body, KEYS))
    assert len(ours) == 1200
    assert peers.groups_of(peers.with_polars(body).rows()) == ours
    assert peers.groups_of(peers.with_polars(body, peers.SCHEMA).rows()) == ours
    assert peers.groups_of(peers.with_pandas(body).reset_index().itertuples(index=False, name=None)) == ours
    assert peers.groups_of(peers.with_duckdb(path)) == ours
    contenders = {
        "polars": (lambda: peers.with_polars(body), at_least(20)),
        "polars, told the schema": (lambda: peers.with_polars(body, peers.SCHEMA), None),
        "orjson and pandas": (lambda: peers.with_pandas(body), at_least(40)),
        "duckdb": (lambda: peers.with_duckdb(path), at_least(40)),
        "orjson.loads alone": (lambda: orjson.loads(body), at_least(25)),
    }
    compare("100,000 entries to 1,200 groups", lambda: fold(body, KEYS), contenders, rounds=7, body_bytes=len(body))


def many_groups(body: bytes) -> None:
    keys: list[DimensionName] = ["event_name", "write_key"]
    assert len(fold(body, keys)) == 6000
    contenders = {"orjson.loads alone": (lambda: orjson.loads(body), at_least(10))}
    compare("2 MB to 6,000 groups", lambda: fold(body, keys), contenders, rounds=11, repeats=5, body_bytes=len(body))


def small_body(body: bytes) -> None:
    assert {key: tuple(sums) for key, sums in peers.with_json(body).items()} == groups_of(fold(body, KEYS))
    works = {
        "1 kB": (lambda: fold(body, KEYS), at_least(1)),
        "1 kB, every row read": (lambda: groups_of(fold(body, KEYS)), None),
    }
    for work, (ours, target) in works.items():
        contenders = {"json.loads and a loop": (lambda: peers.with_json(body), target)}
        compare(work, ours, contenders, rounds=11, repeats=2000, body_bytes=len(body))


def regrouping(body: bytes) -> None:
    table = fold(body, DIMENSIONS)
    categorical = [polars.col(name).cast(polars.Categorical) for name in DIMENSIONS]
    frame = polars.DataFrame(table).with_columns(categorical).rechunk()
    works: dict[str, list[DimensionName]] = {"one dimension": ["integration"], "two dimensions": KEYS}
    for dimensions, keys in works.items():
        assert peers.groups_of(peers.regroup(frame, keys).rows()) == groups_of(table.group_by(*keys))
        contenders = {"polars, categoricals": (partial(peers.regroup, frame, keys), at_least(2))}
        compare(f"1,000,000 rows regrouped by {dimensions}", partial(table.group_by, *keys), contenders, rounds=21)


def growth(work: str, keep: Sequence[DimensionName], some: bytes, more: bytes, most: float) -> None:
    times, tenfold = take_turns(11, 1, [lambda: fold(some, keep), lambda: fold(more, keep)])
    ratio = statistics.median(large / small for small, large in zip(times, tenfold, strict=True))
    medians = statistics.median(tenfold), statistics.median(times)
    tell(work, "a tenth of it", medians, "seconds", ratio, at_most(most), len(more))


def main() -> None:
    directory = Path(sys.argv[1])
    large = directory / "plain-100000.json"
    largest = (directory / "plain-1000000.json").read_bytes()
    bytes_to_groups(large)
    many_groups((directory / "groups-6000.json").read_bytes())
    small_body((directory / "plain-5.json").read_bytes())
    regrouping(largest)
    growth("1,000,000 entries, 1,200 groups", KEYS, large.read_bytes(), largest, 11)
    growth("1,000,000 entries, each a group", DIMENSIONS, large.read_bytes(), largest, 14)
    subprocess.run([sys.executable, Path(__file__).with_name("collecting.py")], check=True)
    for keep in MEMORY_KEPT:
        memory = Path(__file__).with_name("memory.py")
        subprocess.run([sys.executable, memory, directory, *keep], check=True)


if __name__ == "__main__":
    main()
