"""Health: what explains a change."""

from typing import Unpack

from tallyfold import _tallyfold
from tallyfold._arguments import ExplainArguments
from tallyfold._names import Measure
from tallyfold._results import Explanation
from tallyfold._tallyfold import CountTable

__all__ = ["explain"]


def explain(
    before: CountTable,
    now: CountTable,
    measure: Measure,
    **options: Unpack[ExplainArguments],
) -> Explanation:
    """Which few combinations of dimension values explain how a measure changed, by exact counts.

    Args:
        before: a table. A rate before may be of any time, and better of a long one. A volume is
            compared with as many windows before as it has itself: counts are not scaled.
        now: a table with the same dimensions.
        measure: what is made of the counts: `"success"`, `"errors"`, `"filtered"`, `"events"`,
            which are volumes; `"error_rate"`, `"filtered_rate"`.
        most: at most how many causes are named, 5 by default.
        others: at most how many further candidates are listed, 5 by default.

    Raises:
        ConfigError: `incompatible_tables` for tables of other dimensions, another metric or another
            filter; for other arguments that can't be used.

    >>> explained = tallyfold.explain(table, table, "error_rate")
    >>> explained.now, explained.change
    (Amount(part=1, whole=8), 0)
    """
    return _tallyfold.explain(before, now, measure, **options)


# Tracebacks and docs should name the package, from which users import it.
explain.__module__ = "tallyfold"
