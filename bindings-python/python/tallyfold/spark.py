"""A data source of Spark 4: counts as a DataFrame, in batches and as a stream.

    import tallyfold.spark

    tallyfold.spark.register(spark)
    counts = spark.read.format("tallyfold").option("start", "2026-01-01T00:00:00Z").load()

The address and the credentials come from the environment of the driver, as `Client.from_env` reads
them. They aren't options, so no plan, log or user interface of Spark shows them. The driver
obtains one token and gives it to the executors.

It needs `pip install 'tallyfold[spark]'`.
"""

import base64
import dataclasses
import json
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, get_args

from tallyfold._calls.steps import Drive
from tallyfold._client.client import Client
from tallyfold._client.collecting import read_part
from tallyfold._errors import ConfigError, ResponseError, TallyfoldError, invalid
from tallyfold._names import DimensionName, MetricName
from tallyfold._ranges.ended import ended_windows
from tallyfold._ranges.outage_log import LOGGER
from tallyfold._ranges.parts import Assignment, Part, decoded
from tallyfold._ranges.planned import by_plan
from tallyfold._ranges.revisions import Revisions
from tallyfold._ranges.values import Revision
from tallyfold._tallyfold import CountTable
from tallyfold._time import Now, Window
from tallyfold._values import COUNTS

try:
    import pyarrow as pa
    import pyarrow.compute as pc
    from pyspark.sql import SparkSession
    from pyspark.sql.datasource import (
        DataSource,
        DataSourceReader,
        DataSourceStreamReader,
        EqualNullSafe,
        EqualTo,
        Filter,
        GreaterThan,
        GreaterThanOrEqual,
        In,
        InputPartition,
        LessThan,
        LessThanOrEqual,
    )
    from pyspark.sql.pandas.types import to_arrow_schema
    from pyspark.sql.types import StructType
except ModuleNotFoundError as error:
    message = "tallyfold.spark needs pyspark and pyarrow: pip install 'tallyfold[spark]'"
    raise ModuleNotFoundError(message, name=error.name) from error

__all__ = ["CountsSource", "register"]

DIMENSIONS: tuple[DimensionName, ...] = get_args(DimensionName)
OF_WINDOWS = {
    "cluster": "string",
    "window_start": "timestamp",
    "window_end": "timestamp",
    "settled": "boolean",
    "revision": "int",
}
OPTIONS = {
    "start",
    "end",
    "metric",
    "dimensions",
    "window",
    "settle",
    "reread",
    "cluster",
    "partitions",
    "concurrency",
    "windowsPerBatch",
}
MOST_LONG = 2**63 - 1
"""The largest `long` of Spark, which has no unsigned integers."""


def register(spark: SparkSession) -> None:
    """Registers the format `tallyfold` with a session, with filters pushed down.

    >>> import tallyfold.spark
    >>> tallyfold.spark.register(spark)
    >>> spark.read.format("tallyfold").option("start", "2026-01-01T00:00:00Z").load().columns
    ['cluster', 'window_start', 'window_end', 'settled', 'revision', 'integration', ...]
    """
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    spark.dataSource.register(CountsSource)


@dataclasses.dataclass(frozen=True)
class _Query:
    """The values of the options."""

    metric: MetricName
    start: str
    end: str | None
    dimensions: tuple[DimensionName, ...]
    window: str
    settle: int
    reread: int | None
    cluster: str | None
    partitions: int
    concurrency: int
    windows_per_batch: int

    @classmethod
    def of(cls, options: Mapping[str, str], schema: StructType | None = None) -> "_Query":
        """Checks the options. If there is a schema, its columns decide on the dimensions."""
        known = {name.lower() for name in OPTIONS}
        for name in options:
            if name.lower() not in known and name.lower() != "path":
                names = ", ".join(sorted(OPTIONS))
                raise invalid(ConfigError, name, f"there is no such option; want one of {names}")
        given = {name.lower(): value for name, value in options.items()}
        if "start" not in given:
            raise invalid(ConfigError, "start", "want the start of the range")
        metric = given.get("metric", "event_delivery")
        named = given.get("dimensions")
        if named is None:
            named = "integration" if metric == "event_ingestion" else "integration,reason"
        dimensions = tuple(name.strip() for name in named.split(",") if name.strip())
        if schema is not None:
            dimensions = tuple(name for name in DIMENSIONS if name in schema.names)
            columns = {*OF_WINDOWS, *DIMENSIONS, *COUNTS}
            for name in schema.names:
                if name not in columns:
                    wanted = ", ".join((*OF_WINDOWS, *DIMENSIONS, *COUNTS))
                    raise invalid(ConfigError, "schema", f"{name} isn't a column; want {wanted}")
        if not dimensions:
            raise invalid(ConfigError, "dimensions", f"want one or more of {', '.join(DIMENSIONS)}")
        for name in dimensions:
            if name not in DIMENSIONS:
                message = f"{name!r}: want one or more of {', '.join(DIMENSIONS)}"
                raise invalid(ConfigError, "dimensions", message)

        def number(name: str, usual: int) -> int:
            text = given.get(name.lower(), str(usual))
            if not (text.isascii() and text.isdigit() and int(text) > 0):
                raise invalid(ConfigError, name, f"{text!r}: want a whole number above 0")
            return int(text)

        return cls(
            metric=metric,  # type: ignore[arg-type]
            start=given["start"],
            end=given.get("end"),
            dimensions=dimensions,  # type: ignore[arg-type]
            window=given.get("window", "15m"),
            settle=number("settle", 3600),
            reread=number("reread", 1) if "reread" in given else None,
            cluster=given.get("cluster"),
            partitions=number("partitions", 8),
            concurrency=number("concurrency", 8),
            windows_per_batch=number("windowsPerBatch", 96),
        )

    def columns(self) -> str:
        """Returns the columns of a read without a schema, as Spark's DDL."""
        kinds: dict[str, str] = {
            **OF_WINDOWS,
            **dict.fromkeys(map(str, self.dimensions), "string"),
            **dict.fromkeys(COUNTS, "long"),
        }
        return ", ".join(f"{name} {kind}" for name, kind in kinds.items())


class CountsSource(DataSource):
    """The format `tallyfold`.

    Its options:

    - `start`, required, and `end`: the range. A batch reads the windows that have ended. Without an
      `end`, a batch ends with the newest of these windows, and a stream has no end.
    - `metric` (`event_delivery`), `dimensions` (`integration,reason`), `window` (`15m`).
    - `settle` (3600): for how many seconds after a window's end its counts may still change.
    - `reread` (the window's length): how many seconds after a reading a stream reads an unsettled
      window again.
    - `cluster`: the value of the column `cluster`, by default the identity of the client.
    - `partitions` (8) and `concurrency` (8 requests at a time, over all partitions).
    - `windowsPerBatch` (96): the maximum number of readings in a micro-batch of a stream.

    A schema with fewer columns requests fewer dimensions. A batch has the newest counts of each
    window, and its `revision` is null. The rows of a stream are signed changes: their sum by window
    and group is the newest count.
    """

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return "tallyfold"

    def schema(self) -> str:
        """The columns if the user gives no schema."""
        return _Query.of(self.options).columns()

    def reader(self, schema: StructType) -> "CountsReader":
        """Reads a range."""
        return CountsReader(_Query.of(self.options, schema), schema)

    def streamReader(self, schema: StructType) -> "CountsStreamReader":  # noqa: N802
        """Follows the newest windows."""
        return CountsStreamReader(_Query.of(self.options, schema), schema)


class _PartOfRange(InputPartition):
    """What an executor reads. It contains a token, so it has no printable form."""

    def __init__(self, assignment: Assignment | None, cluster: str, windows: int) -> None:
        super().__init__(None)
        self.assignment = assignment
        self.cluster = cluster
        self.windows = windows

    def __repr__(self) -> str:
        return f"a partition of {self.windows} windows"


class CountsReader(DataSourceReader):
    """Reads a range: each partition reads adjacent windows."""

    def __init__(self, query: _Query, schema: StructType) -> None:
        self._query = query
        self._schema = to_arrow_schema(schema, timezone="UTC")
        self._of_windows: list[Filter] = []
        self._values: dict[str, list[str]] = {}

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802
        """Keeps the filters on windows and values. Returns all, so that Spark applies them, too."""
        for one in filters:
            name = one.attribute[0] if len(getattr(one, "attribute", ())) == 1 else None
            if name in {"window_start", "window_end"}:
                self._of_windows.append(one)
            elif name in self._query.dimensions and isinstance(one, EqualTo | EqualNullSafe | In):
                values = list(one.value) if isinstance(one, In) else [one.value]
                kept = [value for value in values if isinstance(value, str)]
                before = self._values.get(name, kept)
                self._values[name] = [value for value in kept if value in before]
            yield one

    def partitions(self) -> Sequence[InputPartition]:
        """Cuts the windows that the filters keep into parts, each with the driver's token."""
        query = self._query
        planned = ended_windows(query.start, query.end, query.window, datetime.now(UTC))
        windows = [one for one in planned if self._keeps(one)]
        nothing = [_PartOfRange(None, "", 0)]
        if not windows or [] in self._values.values():
            return nothing
        count = min(query.partitions, len(windows))
        each = max(query.concurrency // count, 1)
        with Client.from_env() as client:
            settings = client._settings()  # noqa: SLF001
            token = client.token("control")
            cluster = query.cluster or _identity(client)
        parts = []
        for number in range(count):
            first = number * len(windows) // count
            own = windows[first : (number + 1) * len(windows) // count]
            part = Part(number, own[0].start_text, own[-1].end_text, len(own))
            asked = (query.metric, part.start, part.end, query.dimensions)
            options = {"window": query.window, "concurrency": each, "settle": query.settle}
            assignment = Assignment(part, settings, token, asked, options, wants_attempts=False)
            parts.append(_PartOfRange(assignment, cluster, len(own)))
        return parts

    def _keeps(self, window: Window) -> bool:
        return all(_is_kept(one, window) for one in self._of_windows)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Reads a part in an executor."""
        if not isinstance(partition, _PartOfRange) or partition.assignment is None:
            return
        outcome = read_part(partition.assignment)
        if outcome.error is not None:
            raise outcome.error
        table = decoded(outcome.table)
        if table is None:
            return
        if self._values:
            table = table.filter(**self._values)
        rows = _rows_of(table, partition.assignment.part.window, self._query.window)
        yield from _batches(rows, partition.cluster, self._schema)


def _is_kept(one: Filter, window: Window) -> bool:
    """Whether a filter may keep the rows of a window; filters of other kinds keep all."""
    name = one.attribute[0]
    at = window.start if name == "window_start" else window.end
    value = getattr(one, "value", None)
    if not isinstance(value, datetime):
        return True
    value = value if value.tzinfo else value.astimezone()
    match one:
        case EqualTo() | EqualNullSafe():
            return at == value
        case GreaterThan():
            return at > value
        case GreaterThanOrEqual():
            return at >= value
        case LessThan():
            return at < value
        case LessThanOrEqual():
            return at <= value
        case _:
            return True


def _identity(client: Client) -> str:
    try:
        return str(client._machine._shared_identity())  # noqa: SLF001
    except ConfigError as error:
        message = "want a name for the cluster, because tokens don't show whose counts they give"
        raise invalid(ConfigError, "cluster", message) from error


def _rows_of(table: CountTable, part: Window, step: str) -> pa.Table:
    """Returns the rows of adjacent windows, with the windows' own edges."""
    series, unsettled = by_plan(table, part.start, step)
    rows = pa.table(series)
    starts, ends = rows["window_start"], rows["window_end"]
    first, last = (pa.scalar(edge, starts.type) for edge in (part.start, part.end))
    starts = pc.if_else(pc.less(starts, first), first, starts)
    ends = pc.if_else(pc.greater(ends, last), last, ends)
    settled = pc.invert(pc.is_in(starts, value_set=pa.array(unsettled, starts.type)))
    own = {"window_start": starts, "window_end": ends, "settled": settled}
    return pa.table({name: own.get(name, rows[name]) for name in rows.column_names})


def _batches(rows: pa.Table, cluster: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yields rows with the columns of a schema."""
    columns = []
    for field in schema:
        if field.name == "cluster":
            column = pa.array([cluster] * rows.num_rows, pa.string())
        elif field.name == "revision":
            column = pa.nulls(rows.num_rows, pa.int32())
        else:
            column = rows[field.name]
            if pa.types.is_dictionary(column.type):
                column = column.cast(column.type.value_type)
        try:
            columns.append(column.cast(field.type))
        except pa.ArrowInvalid as error:
            if field.name not in COUNTS:
                raise
            message = f"a count in {field.name} is above {MOST_LONG}, Spark's largest long"
            raise OverflowError(message) from error
    yield from pa.table(columns, schema=schema).to_batches()


class CountsStreamReader(DataSourceStreamReader):
    """Follows windows as they close, and again while their counts may change.

    An offset has the state of the follow after a micro-batch, and the changes of that batch. Spark
    stores the offset before it runs the batch, so a batch that is run again has the same rows,
    whatever the service answers by then.
    """

    def __init__(self, query: _Query, schema: StructType) -> None:
        self._query = query
        self._schema = to_arrow_schema(schema, timezone="UTC")
        self._client: Client | None = None
        # The follow of the last micro-batch, and the offset that has its state. It remembers how
        # long to wait for a service that is down, which a state does not contain.
        self._revisions: Revisions | None = None
        self._offset: dict[str, str] | None = None

    def initialOffset(self) -> dict[str, str]:  # noqa: N802
        """The offset before the first window."""
        return {"state": "", "changes": ""}

    def latestOffset(self, start: dict[str, str], limit: object = None) -> dict[str, str]:  # noqa: ARG002, N802
        """Reads the windows that are due now, up to `windowsPerBatch`."""
        query = self._query
        if self._client is None:
            self._client = Client.from_env()
        cluster = query.cluster or _identity(self._client)
        if self._revisions is None or start != self._offset:
            if self._revisions is not None:
                self._revisions.close()
            self._revisions = self._resumed(self._client, start["state"])
        revisions = self._revisions
        # An error drops what this micro-batch has read, so the next one resumes from the state.
        self._offset = None
        rows: list[list[object]] = []
        read = 0
        while read < query.windows_per_batch:
            step = revisions._machine.next(Now.read())  # noqa: SLF001
            if not isinstance(step, Drive):
                break
            revision = revisions._read(step)  # noqa: SLF001
            if revision is None:
                break
            read += 1
            rows += _changes(revision, cluster)
        end = {"state": revisions.state(), "changes": _packed(rows)} if read > 0 else start
        self._offset = end
        return end

    def _resumed(self, client: Client, state: str) -> Revisions:
        query = self._query
        return client.follow(
            query.metric,
            query.start,
            query.dimensions,
            window=query.window,
            end=query.end,
            settle=query.settle,
            reread=query.reread,
            state=state or None,
            # If the service is down, this micro-batch ends, and a later one tries again.
            patience=None,
            on_failure=_warn,
        )

    def partitions(self, start: dict[str, str], end: dict[str, str]) -> Sequence[InputPartition]:  # noqa: ARG002
        """The changes of a micro-batch."""
        return [InputPartition(end["changes"])]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yields the changes as rows."""
        names = [*OF_WINDOWS, *self._query.dimensions, *COUNTS]
        rows = _unpacked(partition.value)
        columns = []
        for field in self._schema:
            place = names.index(field.name)
            values = [row[place] for row in rows]
            if field.name in {"window_start", "window_end"}:
                values = [datetime.fromisoformat(str(value)) for value in values]
            columns.append(pa.array(values, field.type))
        yield from pa.table(columns, schema=self._schema).to_batches()

    def commit(self, end: dict[str, str]) -> None:
        """Does nothing, because the offsets contain the whole state."""

    def stop(self) -> None:
        """Closes the connections."""
        if self._client is not None:
            self._client.close()


def _warn(window: Window, error: TallyfoldError) -> None:
    """Lets the other windows go on if the service's response for one of them is invalid."""
    if not isinstance(error, ResponseError):
        raise error
    LOGGER.warning("%s is read again later: %s", window, error)


def _changes(revision: Revision, cluster: str) -> Iterator[list[object]]:
    window = revision.window
    own = [cluster, window.start_text, window.end_text, revision.settled, revision.number]
    for row in revision.changes:
        delta = [row.delta.success, row.delta.errors, row.delta.filtered]
        if max(delta) > MOST_LONG or min(delta) < -MOST_LONG:
            raise OverflowError(f"a count of {window} is above {MOST_LONG}, Spark's largest long")
        yield [*own, *row.values, *delta]


def _packed(rows: list[list[object]]) -> str:
    text = json.dumps(rows, separators=(",", ":"))
    return base64.b64encode(zlib.compress(text.encode())).decode()


def _unpacked(text: str) -> list[list[Any]]:
    found: list[list[Any]] = json.loads(zlib.decompress(base64.b64decode(text))) if text else []
    return found
