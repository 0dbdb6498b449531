"""How tallyfold is used: a body in chunks, as it would come from a socket."""

from collections.abc import Sequence

import tallyfold

CHUNK = 64 * 1024
DIMENSIONS: list[tallyfold.DimensionName] = ["event_name", "write_key", "integration", "reason"]
KEYS: list[tallyfold.DimensionName] = ["write_key", "integration"]

Groups = dict[tuple[str, ...], tuple[int, ...]]


def fold(body: bytes, keep: Sequence[tallyfold.DimensionName]) -> tallyfold.CountTable:
    """Folds a whole body."""
    aggregator = tallyfold.Aggregator(DIMENSIONS, group_by=keep)
    view = memoryview(body)
    for start in range(0, len(body), CHUNK):
        aggregator.push(view[start : start + CHUNK])
    return aggregator.finish()


def groups_of(table: tallyfold.CountTable) -> Groups:
    """Every row of a table, to compare with the result of a peer."""
    return {tuple(row.dimensions.values()): (row.success, row.errors, row.filtered) for row in table}
