"""Measures the memory that it takes to stream a body of 1 GB, in a process of its own.

Takes the directory of the bodies, and the names of the dimensions to keep.
"""

import re
import sys
from pathlib import Path
from typing import cast

from folding import CHUNK, DIMENSIONS, fold
from measuring import at_most, tell
from tallyfold import Aggregator, DimensionName

BODY_BYTES = 1_000_000_000


def status(name: str) -> int:
    """A field of the kernel's status of this process, in bytes."""
    field = re.search(rf"^{name}:\s+(\d+) kB$", Path("/proc/self/status").read_text("ascii"), re.MULTILINE)
    assert field
    return int(field[1]) * 1024


def main() -> None:
    directory, keep = Path(sys.argv[1]), cast("list[DimensionName]", sys.argv[2:])
    sample = (directory / "plain-100000.json").read_bytes()
    start = sample.index(b'"counts":[') + len(b'"counts":[')
    body = memoryview(sample)
    entries = body[start : -len(b"]}")]
    repeats = BODY_BYTES // (len(entries) + 1)

    fold((directory / "plain-1000.json").read_bytes(), keep)
    Path("/proc/self/clear_refs").write_text("5")
    idle = status("VmRSS")
    aggregator = Aggregator(DIMENSIONS, group_by=keep)
    aggregator.push(body[:start])
    for repeat in range(repeats):
        if repeat > 0:
            aggregator.push(b",")
        for offset in range(0, len(entries), CHUNK):
            aggregator.push(entries[offset : offset + CHUNK])
    aggregator.push(b"]}")
    table = aggregator.finish()
    used = status("VmHWM") - idle

    assert table.reported
    assert table.totals.success == table.reported.success * repeats
    allowed = (8 << 20) + 512 * len(table)
    work = f"1 GB to {len(table):,} groups, peak memory"
    tell(work, "8 MiB + 512 B per group", (used, allowed), "bytes", used / allowed, at_most(1))


if __name__ == "__main__":
    main()
