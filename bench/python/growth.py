"""Measures how many times as long ten times the entries, or groups, take.

Takes the directory of the bodies. This runs in a process of its own: in `main.py`, memory that the peers have freed would make the smaller
body faster.
"""

import statistics
import sys
from collections.abc import Sequence
from pathlib import Path

from folding import DIMENSIONS, KEYS, fold
from measuring import at_most, take_turns, tell
from tallyfold import DimensionName


def growth(work: str, keep: Sequence[DimensionName], some: bytes, more: bytes, most: float) -> None:
    times, tenfold = take_turns(11, 1, [lambda: fold(some, keep), lambda: fold(more, keep)])
    ratio = statistics.median(large / small for small, large in zip(times, tenfold, strict=True))
    medians = statistics.median(tenfold), statistics.median(times)
    tell(work, "a tenth of it", medians, "seconds", ratio, at_most(most), len(more))


def main() -> None:
    directory = Path(sys.argv[1])
    some, more = ((directory / f"plain-{entries}.json").read_bytes() for entries in (100_000, 1_000_000))
    growth("1,000,000 entries, 1,200 groups", KEYS, some, more, 11)
    growth("1,000,000 entries, each a group", DIMENSIONS, some, more, 14)


if __name__ == "__main__":
    main()
