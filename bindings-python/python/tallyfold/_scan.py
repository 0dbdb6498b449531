"""A lazy frame of polars, which reads only the counts that a query needs."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TypedDict, Unpack, get_args

from tallyfold._arguments import Dimensions, Instant, Step
from tallyfold._client.client import Client
from tallyfold._errors import ArgumentTypeError, check_flag, wrong_type
from tallyfold._extras import installed
from tallyfold._names import DimensionName, MetricName
from tallyfold._ranges.planned import by_plan
from tallyfold._tallyfold import CountTable, Plan
from tallyfold._time import Window
from tallyfold._values import COUNTS

if TYPE_CHECKING:
    import polars

__all__ = ["ScanArguments", "scan"]

TIMES = ("window_start", "window_end")

WINDOWS_AT_ONCE = 12
"""How many windows a batch has for each request that may be under way."""


class ScanArguments(TypedDict, total=False):
    """Arguments of `scan`, by name: some of the arguments of `Client.collect`."""

    window: Step
    """The length of the windows. Default: `15m`."""
    concurrency: int
    """How many windows are read at the same time. Default: `8`."""
    finest: Step
    """The shortest windows to read."""
    settle: float
    """For how many seconds after a window's end its counts may still change."""
    patience: float | None
    """For how many seconds to wait for a service that is down."""


def scan(
    client: Client,
    metric: MetricName,
    start: Instant,
    end: Instant,
    dimensions: Dimensions | None = None,
    *,
    sums_only: bool = False,
    **options: Unpack[ScanArguments],
) -> "polars.LazyFrame":
    """Returns the counts of `[start, end)` as a `polars.LazyFrame`, which reads what a query needs.

    The columns are the same as in an exported file: `window_start`, `window_end` and `settled`, a
    column for each dimension, and `success`, `errors` and `filtered` as unsigned 64-bit integers.
    There is a row for each window and each group by all `dimensions`, so each query has the same
    result as with the whole frame in memory.

    A filter on `window_start` and `window_end` reads only the windows that match. A filter on one
    dimension is applied before rows are made. Windows are read in batches, and `head` ends the
    reading early.

    Args:
        client: the client that reads the counts whenever the frame is collected. Keep it open.
        metric: `"event_delivery"` or `"event_ingestion"`.
        start: an aware `datetime`, or ISO 8601 text with `Z` or an offset from UTC.
        end: a timestamp after `start`, in the same forms.
        dimensions: the dimensions that queries may use, in the order of the columns; by default,
            all of the metric.
        sums_only: whether the queries do nothing with the counts except add them up with `sum`.
            Each query then requests only the dimensions that it uses, and rows are groups by these
            dimensions. The sums are the same, but all other results that depend on single rows
            differ: `len`, `max`, `mean`, and conditions on counts.
        **options: `window`, `concurrency`, `finest`, `settle` and `patience` of `Client.collect`.

    Raises:
        ConfigError: for arguments that can't be used.
        ModuleNotFoundError: if polars is not installed (`tallyfold[polars]`).

    When the frame is collected, it raises the errors of `Client.collect`; polars 1 turns them into
    a `ComputeError`.

    >>> import polars
    >>> frame = tallyfold.scan(
    ...     client, "event_delivery", "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"
    ... )
    >>> frame.group_by("integration").agg(polars.col("success").sum()).sort("integration").collect()
    shape: (2, 2)
    ...
    """
    message = "scan needs polars: pip install 'tallyfold[polars]'"
    pl, plugins = installed(message, "polars", "polars.io.plugins")
    if not isinstance(client, Client):
        raise wrong_type("client", "want a Client", client)
    check_flag("sums_only", sums_only)
    source = _Source(client, metric, start, end, dimensions, options, sums_only=sums_only)
    time, count = pl.Datetime("us", "UTC"), pl.UInt64
    schema: dict[str, Any] = {
        **dict.fromkeys(TIMES, time),
        "settled": pl.Boolean,
        **dict.fromkeys(source.dimensions, pl.Categorical()),
        **dict.fromkeys(COUNTS, count),
    }
    source.schema = pl.Schema(schema)
    register = plugins.register_io_source
    frame: polars.LazyFrame = register(source.read, schema=source.schema, is_pure=True)
    return frame


class _Source:
    """What a lazy frame reads from."""

    schema: "polars.Schema"

    def __init__(
        self,
        client: Client,
        metric: MetricName,
        start: Instant,
        end: Instant,
        dimensions: Dimensions | None,
        options: ScanArguments,
        *,
        sums_only: bool,
    ) -> None:
        """Checks the arguments, and sends nothing."""
        for name in options.keys() - ScanArguments.__annotations__.keys():
            wanted = f"want one of {', '.join(['sums_only', *ScanArguments.__annotations__])}"
            message = f"unknown_argument: {name}: {wanted}, for `scan` reads what a query needs"
            raise ArgumentTypeError(message, code="unknown_argument", argument=name)
        if dimensions is None:
            known = get_args(DimensionName)
            dimensions = [name for name in known if metric != "event_ingestion" or name != "reason"]
        self._client = client
        self._metric = metric
        self._options = options
        machine = client._machine.collect(metric, start, end, dimensions, **options)  # noqa: SLF001
        self._batch = machine.concurrency * WINDOWS_AT_ONCE
        self._first = machine.concurrency
        self._step = options.get("window", "15m")
        self._plan = Plan(start, end, self._step)
        self._sums_only = sums_only
        self.dimensions = tuple(dimensions)

    def read(
        self,
        columns: list[str] | None,
        predicate: "polars.Expr | None",
        rows: int | None,
        batch_rows: int | None,
    ) -> "Iterator[polars.DataFrame]":
        """Yields the rows of a query. polars calls this method.

        If there are `rows`, reads only that many rows, and then applies the predicate to them.
        """
        columns = self.schema.names() if columns is None else columns
        dimensions = self._requested({*columns}, predicate)
        parts = [] if predicate is None else _conjuncts(predicate)
        # The rows that the predicate removes count, too, so nothing may be left out before.
        is_narrowed = rows is None
        windows = self._windows(parts) if is_narrowed else list(self._plan)
        left = rows
        for some in self._batches(windows, small=rows is not None):
            if left == 0:
                return
            table = self._collect(some, dimensions)
            narrowed = _narrowed(table, dimensions, parts) if is_narrowed else table
            if narrowed is None:
                continue
            frame = self._frame(narrowed, some)
            if left is not None:
                frame = frame.head(left)
                left -= frame.height
            if predicate is not None:
                frame = frame.filter(predicate)
            frame = frame.select(columns)
            yield from frame.iter_slices(batch_rows) if batch_rows else [frame]

    def _requested(self, columns: set[str], predicate: "polars.Expr | None") -> list[str]:
        """Returns the dimensions that rows have.

        Rows by fewer dimensions have other counts. polars does not pass on all conditions on
        counts, so the dimensions don't follow from the columns and the predicate.
        """
        needed = {*predicate.meta.root_names()} if predicate is not None else set()
        if not self._sums_only or needed & {*COUNTS}:
            return list(self.dimensions)
        return [name for name in self.dimensions if name in needed | columns]

    def _windows(self, parts: "list[polars.Expr]") -> list[Window]:
        """Returns the windows that the conditions on their times keep."""
        import polars as pl

        windows = list(self._plan)
        of_time = [part for part in parts if {*part.meta.root_names()} <= {*TIMES}]
        if not of_time:
            return windows
        edges = {
            "window_start": [window.start for window in windows],
            "window_end": [window.end for window in windows],
        }
        frame = pl.DataFrame(edges, schema={name: self.schema[name] for name in TIMES})
        kept = frame.with_row_index("place").filter(*of_time)["place"]
        return [windows[place] for place in kept]

    def _batches(self, windows: list[Window], *, small: bool) -> Iterator[list[Window]]:
        """Yields adjacent windows to read together. If `small`, the first batches are smaller."""
        most = self._first if small else self._batch
        batch: list[Window] = []
        for window in windows:
            if batch and (len(batch) == most or batch[-1].end_text != window.start_text):
                yield batch
                batch = []
                most = min(2 * most, self._batch)
            batch.append(window)
        if batch:
            yield batch

    def _collect(self, windows: list[Window], dimensions: list[str]) -> CountTable:
        # The service requires a dimension, even for totals.
        requested = dimensions or list(self.dimensions[:1])
        return self._client.collect(
            self._metric,
            windows[0].start_text,
            windows[-1].end_text,
            requested,
            group_by=dimensions,
            progress=False,
            **self._options,
        )

    def _frame(self, table: CountTable, windows: list[Window]) -> "polars.DataFrame":
        """Makes the rows of adjacent windows."""
        import polars as pl

        start, end = windows[0].start, windows[-1].end
        series, unsettled = by_plan(table, start, self._step)
        frame = pl.DataFrame(series).with_columns(
            pl.col("window_start").clip(lower_bound=start),
            pl.col("window_end").clip(upper_bound=end),
        )
        changing = pl.Series(unsettled, dtype=self.schema["window_start"])
        missing = [
            pl.lit("").cast(dtype).alias(name)
            for name, dtype in self.schema.items()
            if name not in frame.columns
        ]
        settled = ~pl.col("window_start").is_in(changing.implode())
        return frame.with_columns(*missing, settled=settled).select(self.schema.names())


def _conjuncts(predicate: "polars.Expr") -> "list[polars.Expr]":
    """Returns the conditions that a predicate joins by `and`."""
    inputs = predicate.meta.pop()
    if len(inputs) == 2:
        for one, other in (inputs, inputs[::-1]):
            if (one & other).meta == predicate:
                return [*_conjuncts(one), *_conjuncts(other)]
    return [predicate]


def _narrowed(
    table: CountTable, dimensions: list[str], parts: "list[polars.Expr]"
) -> CountTable | None:
    """Applies the conditions on single dimensions. Returns `None` if no group is left."""
    import polars as pl

    for dimension in dimensions:
        own = [part for part in parts if part.meta.root_names() == [dimension]]
        if not own:
            continue
        values = pl.DataFrame(table.group_by(dimension)).filter(*own)[dimension].to_list()
        if not values:
            return None
        table = table.filter(**{dimension: values})
    return table
