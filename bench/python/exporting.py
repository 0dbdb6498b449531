"""Measures exports of a large table: their speed compared with what people would write instead, and their memory.

Takes the directory of the bodies that `tallyfold-bench bodies` wrote.
"""

import csv
import io
import statistics
import sys
from pathlib import Path

import pandas as pd
import tallyfold
from folding import DIMENSIONS, fold
from measuring import at_least, at_most, compare, take_turns, tell
from memory import status
from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.openmetrics.exposition import generate_latest
from prometheus_client.registry import Collector

TEXTS: list[tallyfold.ExportFormat] = ["openmetrics", "influx", "dogstatsd", "datadog", "csv", "ndjson", "otlp-json"]
PROTOBUFS: list[tallyfold.ExportFormat] = ["remote-write", "remote-write-2", "otlp"]
LABELS = {"cluster": "eu-1"}
COUNTS = ["success", "errors", "filtered"]


def main() -> None:
    bodies = Path(sys.argv[1])
    some = fold((bodies / "plain-100000.json").read_bytes(), DIMENSIONS)
    table = fold((bodies / "plain-1000000.json").read_bytes(), DIMENSIONS)
    assert len(table) == 1_000_000
    # Memory is measured first: later exports could reuse freed memory, which this would not measure.
    for name in (*TEXTS, *PROTOBUFS):
        memory(table, name)
    rows = [(*row.dimensions.values(), row.success, row.errors, row.filtered) for row in some]
    for formats, least in ((TEXTS, 7), (PROTOBUFS, 3)):
        for name in formats:
            speed(table, name, rows, least)
    beside_prometheus_client(some)
    beside_pandas(some)


def export(table: tallyfold.CountTable, name: tallyfold.ExportFormat) -> int:
    """Exports the table, and returns the number of bytes before compression."""
    return sum(map(uncompressed if name.startswith("remote") else len, tallyfold.export(table, name, LABELS)))


def uncompressed(piece: bytes) -> int:
    """The length before compression by snappy. A compressed piece begins with it, seven bits in each byte."""
    length = 0
    for position, byte in enumerate(piece):
        length |= (byte & 0x7F) << 7 * position
        if byte < 0x80:
            break
    return length


def speed(table: tallyfold.CountTable, name: tallyfold.ExportFormat, rows: list[tuple[object, ...]], least: float) -> None:
    """Compares the bytes per second with csv.writer, whose rows are already Python objects."""
    size, written = export(table, name), len(with_csv(rows))
    our_times, their_times = take_turns(3, 1, [lambda: export(table, name), lambda: with_csv(rows)])
    # The time that csv.writer would take for the same number of bytes.
    scaled = [seconds * size / written for seconds in their_times]
    ratio = statistics.median(theirs / ours for ours, theirs in zip(our_times, scaled, strict=True))
    medians = statistics.median(our_times), statistics.median(scaled)
    tell(f"1,000,000 rows as {name}", "csv.writer, by bytes", medians, "seconds", ratio, at_least(least), size)


def with_csv(rows: list[tuple[object, ...]]) -> bytes:
    out = io.StringIO()
    csv.writer(out).writerows(rows)
    return out.getvalue().encode()


def memory(table: tallyfold.CountTable, name: tallyfold.ExportFormat) -> None:
    Path("/proc/self/clear_refs").write_text("5")
    idle = status("VmRSS")
    export(table, name)
    used, allowed = status("VmHWM") - idle, 8 << 20
    tell(f"1,000,000 rows as {name}, peak memory", "8 MiB", (used, allowed), "bytes", used / allowed, at_most(1))


class Known(Collector):
    """Returns the same families each time."""

    def __init__(self, families: list[GaugeMetricFamily]) -> None:
        self.families = families

    def collect(self) -> list[Metric]:
        return list(self.families)


def beside_prometheus_client(table: tallyfold.CountTable) -> None:
    names = ["cluster", *table.dimensions]
    stamp = table.coverage[0].end.timestamp() - 0.001
    families = []
    for count in COUNTS:
        family = GaugeMetricFamily(f"tallyfold_{count}_events", "Events", labels=names, unit="events")
        for row in table:
            family.add_metric([LABELS["cluster"], *row.dimensions.values()], getattr(row, count), timestamp=stamp)
        families.append(family)
    registry = CollectorRegistry()
    registry.register(Known(families))
    ours = sum(piece.count(b"\n") for piece in tallyfold.export(table, "openmetrics", LABELS))

    def exposition() -> bytes:
        text: bytes = generate_latest(registry)  # type: ignore[no-untyped-call]
        return text

    assert exposition().count(b"\n") == ours
    peers = {"prometheus_client's exposition": (exposition, at_least(50))}
    compare("100,000 rows as openmetrics", lambda: export(table, "openmetrics"), peers, rounds=3)


def beside_pandas(table: tallyfold.CountTable) -> None:
    frame = pd.DataFrame.from_arrow(table)  # type: ignore[attr-defined]
    theirs = frame.to_csv(index=False).splitlines()[1:]
    read = pd.read_csv(io.BytesIO(b"".join(tallyfold.export(table, "csv"))), dtype=str)
    assert read[frame.columns].to_csv(index=False).splitlines()[1:] == theirs
    peers = {"pandas' to_csv": (lambda: frame.to_csv(index=False), at_least(10))}
    compare("100,000 rows as csv", lambda: export(table, "csv"), peers, rounds=5)


if __name__ == "__main__":
    main()
