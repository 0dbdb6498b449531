"""Compares the fold in Python with what people would write instead, in one run.

Takes the directory of the bodies that `tallyfold-bench bodies` wrote. `make bench` runs it.
"""

import subprocess
import sys
from functools import partial
from pathlib import Path

import orjson
import peers
import polars
from folding import DIMENSIONS, KEYS, fold, groups_of
from measuring import at_least, compare
from tallyfold import DimensionName

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
        "polars, with a schema": (lambda: peers.with_polars(body, peers.SCHEMA), None),
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


def run(name: str, *arguments: str | Path) -> None:
    """Runs a part in a process of its own, which can't reuse memory that the peers have freed here."""
    subprocess.run([sys.executable, Path(__file__).with_name(name), *arguments], check=True)


def main() -> None:
    directory = Path(sys.argv[1])
    bytes_to_groups(directory / "plain-100000.json")
    many_groups((directory / "groups-6000.json").read_bytes())
    small_body((directory / "plain-5.json").read_bytes())
    regrouping((directory / "plain-1000000.json").read_bytes())
    run("growth.py", directory)
    run("collecting.py")
    for keep in MEMORY_KEPT:
        run("memory.py", directory, *keep)


if __name__ == "__main__":
    main()
