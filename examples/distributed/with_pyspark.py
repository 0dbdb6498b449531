"""Collects a day of counts with PySpark, by `mapInArrow` on a local cluster.

There are two ways: each part's table is returned as bytes and merged at the end, or each part's
counts are returned as Arrow rows, which Spark adds up itself. Spark has no unsigned 64-bit
integers, so counts are decimals of 20 digits there.
"""

from collections.abc import Iterable, Iterator

import pyarrow as pa
import tallyfold
from job import DIMENSIONS, PARTS, collect
from pyspark.sql import SparkSession

COUNTS = ("success", "errors", "filtered")
COUNT = pa.decimal128(20, 0)


def as_bytes(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Each part's table as JSON."""
    for batch in batches:
        for index in batch.column("id").to_pylist():
            table = collect(part=(index, PARTS)).to_json().encode()
            yield pa.record_batch([pa.array([table], pa.binary())], names=["table"])


def as_rows(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Each part's counts as rows. Plain strings and decimals replace types that Spark lacks."""
    fields = [(name, pa.string()) for name in DIMENSIONS] + [(name, COUNT) for name in COUNTS]
    for batch in batches:
        for index in batch.column("id").to_pylist():
            rows = pa.table(collect(part=(index, PARTS)))
            yield from rows.select([name for name, _ in fields]).cast(pa.schema(fields)).to_batches()


def main() -> None:
    spark = (
        SparkSession.builder.master("local[4]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.log.level", "ERROR")
        .config("spark.sql.execution.arrow.maxRecordsPerBatch", "1")
        .getOrCreate()
    )
    parts = spark.range(0, PARTS, numPartitions=PARTS)
    alone = collect()

    tables = parts.mapInArrow(as_bytes, "table binary").collect()
    merged = tallyfold.CountTable.merge_all(tallyfold.CountTable.from_json(bytes(row.table)) for row in reversed(tables))
    if merged != alone:
        raise SystemExit("the parts do not add up to the whole")
    print(f"{PARTS} tables by Spark: {merged.totals}, equal to one process alone")

    columns = [f"{name} string" for name in DIMENSIONS] + [f"{name} decimal(20)" for name in COUNTS]
    rows = parts.mapInArrow(as_rows, ", ".join(columns)).groupBy(*DIMENSIONS).sum(*COUNTS).collect()
    added_up = {tuple(row)[:-3]: tuple(int(count) for count in tuple(row)[-3:]) for row in rows}
    expected = {tuple(row.dimensions[name] for name in alone.dimensions): (row.success, row.errors, row.filtered) for row in alone}
    if added_up != expected:
        raise SystemExit("the rows do not add up to the whole")
    print(f"{len(added_up)} groups added up by Spark: equal to the last count")
    spark.stop()


if __name__ == "__main__":
    main()
