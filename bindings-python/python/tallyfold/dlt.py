"""A source for dlt that loads counts into warehouses and keeps them correct.

    import dlt
    import tallyfold
    from tallyfold.dlt import source

    pipeline = dlt.pipeline("counts", destination="duckdb", dataset_name="delivery")
    with tallyfold.Client.from_env() as client:
        pipeline.run(source(client, "2026-01-30T00:00:00Z"))

It needs `pip install 'tallyfold[dlt]'` and the packages of the destination.
"""

import hashlib
import json
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from tallyfold._client.client import Client
from tallyfold._errors import ConfigError, ResponseError, invalid, wrong_type
from tallyfold._files.stores import given_folder
from tallyfold._names import DimensionName, MetricName
from tallyfold._ranges.ended import ended_windows
from tallyfold._ranges.planned import by_plan
from tallyfold._tallyfold import Plan, Series
from tallyfold._time import Window
from tallyfold._values import COUNTS

try:
    import dlt
    from dlt.sources import DltResource, DltSource
except ModuleNotFoundError as error:
    message = "tallyfold.dlt needs dlt: pip install 'tallyfold[dlt]'"
    raise ModuleNotFoundError(message, name=error.name) from error

__all__ = ["source"]

DAY = timedelta(days=1)
"""The longest time that is read at once, which limits the memory."""

LOGS_OF_A_PAGE = 100

MOST_PAGES = 10_000
"""The maximum number of pages of audit logs: a million records."""


def source(
    client: Client,
    start: datetime | str,
    end: datetime | str | None = None,
    *,
    dimensions: Sequence[DimensionName] = ("integration", "reason"),
    window: str = "15m",
    cluster: str | None = None,
    settle: float = 3600,
    provisional: bool = True,
    checkpoint: str | os.PathLike[str] | None = None,
    concurrency: int = 8,
) -> DltSource:
    """Returns the resources `event_delivery`, `event_ingestion` and `audit_logs` of a cluster.

    A run reads the windows that have ended since `start` and are not settled in the warehouse, and
    replaces all rows of each window. So late events correct the rows of their window, and a killed
    run neither loses nor doubles rows. A window without events has one row, whose dimensions are
    null and whose counts are 0.

    Columns: `cluster`, `window_start`, `window_end`, `settled`, the dimensions, and `success`,
    `errors` and `filtered` as decimals of 20 digits.

    Args:
        client: the client that reads the counts. The source does not close it.
        start: the time that the first window contains. Windows start at multiples of their length
            in UTC, so the first one may start earlier.
        end: the end of the last window. By default, the newest window that has ended is the last.
        dimensions: the dimensions of the rows. For ingestion, `reason` is left out.
        window: the length of the windows.
        cluster: the value of the column `cluster`, for a dataset with several clusters. By default,
            the address of the cluster and the Client ID.
        settle: for how many seconds after a window's end its counts may still change. Until then,
            each run reads the window again. Events that arrive later are missing until a run with a
            larger `settle` reads their windows again.
        provisional: whether to load windows whose counts may still change. In their rows, `settled`
            is false, and the next run reads them again. Without such windows, rows never change.
        checkpoint: a folder in which a run finds what a killed run with the same `settle` has read;
            see `Client.collect`. It contains a folder for each metric and each `settle`.
        concurrency: how many requests are under way at the same time.

    Raises:
        ConfigError: for arguments that can't be used. When dlt reads the source, also
            `incompatible_tables` if the warehouse has other counts with this value of `cluster`:
            from another client, with other dimensions or in other windows.

    >>> from tallyfold.dlt import source
    >>> sorted(source(client, "2026-01-01T00:00:00Z").resources)
    ['audit_logs', 'event_delivery', 'event_ingestion']
    """
    if not isinstance(client, Client):
        raise wrong_type("client", "want a Client", client)
    try:
        identity = client._machine._shared_identity()  # noqa: SLF001
    except ConfigError:
        # The caller provides the tokens, which don't show whose counts they give access to.
        identity = None
    name = cluster or identity
    if name is None:
        raise invalid(ConfigError, "cluster", "want a name for the cluster of this client")
    now = datetime.now(UTC)
    windows = _whole(ended_windows(start, end, window, now), end, window, now)
    options: dict[str, Any] = {"window": window, "concurrency": concurrency, "settle": settle}
    # Begins a collect of any range, which checks the options before anything is read.
    client._machine.collect("event_ingestion", now - DAY, now, ["integration"], **options)  # noqa: SLF001
    folder = None if checkpoint is None else given_folder(checkpoint)
    reading = _Reading(
        client, windows, tuple(dimensions), name, identity, options, provisional, now, folder
    )

    # The function has no arguments, because dlt would look for them in its configuration.
    @dlt.source(name="tallyfold")
    def counts() -> list[DltResource]:
        resources = [reading.resource("event_delivery"), reading.resource("event_ingestion")]
        return [*resources, _audit_logs(client, name)]

    return counts()


def _whole(
    windows: list[Window], end: datetime | str | None, step: str, now: datetime
) -> list[Window]:
    """Lets the first window start at a multiple of the step.

    A run replaces rows with the same start of a window. If this start depended on the start of the
    range, the rows of two runs could count the same events.
    """
    if not windows:
        return windows
    first, second = Plan(windows[0].start, windows[0].start + 3 * DAY, step)[:2]
    return ended_windows(first.end - (second.end - second.start), end, step, now)


@dataclass(frozen=True, slots=True)
class _Reading:
    """What the resources with counts read."""

    client: Client
    windows: list[Window]
    dimensions: tuple[DimensionName, ...]
    cluster: str
    identity: str | None
    options: dict[str, Any]
    provisional: bool
    now: datetime
    checkpoint: str | None

    def resource(self, metric: MetricName) -> DltResource:
        names = self.dimensions
        if metric == "event_ingestion":
            names = tuple(name for name in names if name != "reason")

        @dlt.resource(
            name=metric,
            # All rows of a window are replaced, even if there are fewer new rows.
            write_disposition={"disposition": "merge", "strategy": "delete-insert"},
            merge_key=("cluster", "window_start"),
            columns=_columns(names),
        )
        def rows() -> Iterator[list[dict[str, Any]]]:
            if names:
                yield from self._rows(metric, names)

        return rows

    def _rows(
        self, metric: MetricName, names: tuple[DimensionName, ...]
    ) -> Iterator[list[dict[str, Any]]]:
        # dlt stores the state together with the rows, or not at all.
        state = self._state(names)
        settle, step = self.options["settle"], self.options["window"]
        settled_until = self.now - timedelta(seconds=settle)
        settled = [
            # With a larger `settle` than before, some windows are no longer settled.
            (_time(start), min(_time(end), settled_until))
            for start, end in state["settled"]
            if _time(start) < settled_until
        ]
        options = dict(self.options)
        if self.checkpoint is not None:
            # A window that is settled for a small `settle` must be read again for a larger one.
            options["checkpoint"] = f"{self.checkpoint.rstrip('/')}/{metric}-{settle:.15g}"
            options["drop_old"] = True
        due = [
            one
            for one in self.windows
            if not any(start <= one.start and one.end <= end for start, end in settled)
        ]
        while due:
            count = 1
            while (
                count < len(due)
                and due[count].start == due[count - 1].end
                and due[count].end <= due[0].start + DAY
            ):
                count += 1
            read, due = due[:count], due[count:]
            start, end = read[0].start, read[-1].end
            table = self.client.collect(metric, start, end, names, **options)
            # If this run is killed, the next one needs what was read from the first window on.
            options.pop("drop_old", None)
            series, provisional = by_plan(table, start, step)
            rows = _rows_of(self.cluster, series, read, names, provisional)
            yield [row for row in rows if row["settled"] or self.provisional]
            settled += [(one.start, one.end) for one in read if one.start not in provisional]
            state["settled"] = [
                [start.isoformat(), end.isoformat()] for start, end in _joined(settled)
            ]

    def _state(self, names: tuple[DimensionName, ...]) -> dict[str, Any]:
        """Returns the state of the cluster, which dlt stores with the counts.

        Raises:
            ConfigError: `incompatible_tables` if the stored counts are of another client, by other
                dimensions or in other windows.
        """
        clusters: dict[str, dict[str, Any]] = dlt.current.resource_state().setdefault(
            "clusters", {}
        )
        own = {
            "identity": self.identity,
            "dimensions": list(names),
            "window": self.options["window"],
        }
        state = clusters.setdefault(self.cluster, {**own, "settled": []})
        for name, value in own.items():
            if state[name] != value:
                message = (
                    f"incompatible_tables: {name}: the warehouse has counts of the cluster "
                    f"{self.cluster!r} with {name} {state[name]!r}, and not {value!r}; "
                    "want the same, another name of a cluster, or another dataset"
                )
                raise ConfigError(message, code="incompatible_tables", argument=name)
        return state


def _columns(names: tuple[DimensionName, ...]) -> dict[str, Any]:
    # 20 digits hold counts up to 2^64 - 1. Warehouses have no unsigned integers.
    count = {"data_type": "decimal", "precision": 20, "scale": 0, "nullable": False}
    own = {
        "cluster": {"data_type": "text", "nullable": False},
        "window_start": {"data_type": "timestamp", "nullable": False},
        "window_end": {"data_type": "timestamp", "nullable": False},
        "settled": {"data_type": "bool", "nullable": False},
    }
    dimension = {"data_type": "text", "nullable": True}
    # dlt changes these dicts, so each column has its own.
    of_names: dict[str, Any] = {name: dict(dimension) for name in names}
    return {**own, **of_names, **{name: dict(count) for name in COUNTS}}


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)


def _joined(spans: list[tuple[datetime, datetime]]) -> list[tuple[datetime, datetime]]:
    """Sorts the spans, and joins adjacent and overlapping ones."""
    joined: list[tuple[datetime, datetime]] = []
    for start, end in sorted(spans):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], end))
        else:
            joined.append((start, end))
    return joined


def _rows_of(
    cluster: str,
    series: Series,
    windows: list[Window],
    names: tuple[DimensionName, ...],
    provisional: list[datetime],
) -> Iterator[dict[str, Any]]:
    """Yields the rows of all windows. A window without events has one, with null dimensions."""
    groups: dict[datetime, list[tuple[tuple[str | None, ...], tuple[int, int, int]]]]
    groups = {window.start: [] for window in windows}
    for row in series:
        counts = (row.success, row.errors, row.filtered)
        groups[row.window.start].append((tuple(row.dimensions.values()), counts))
    nothing = ((None,) * len(names), (0, 0, 0))
    for window in windows:
        for group, counts in groups[window.start] or [nothing]:
            yield {
                "cluster": cluster,
                "window_start": window.start,
                "window_end": window.end,
                "settled": window.start not in provisional,
                **dict(zip(names, group, strict=True)),
                **dict(zip(COUNTS, map(Decimal, counts), strict=True)),
            }


def _audit_logs(client: Client, cluster: str) -> DltResource:
    @dlt.resource(
        name="audit_logs",
        write_disposition="merge",
        primary_key=("cluster", "digest"),
        columns={"record": {"data_type": "json"}},
    )
    def records() -> Iterator[list[dict[str, Any]]]:
        """The records as JSON, because the service reference (4.2) does not show their fields."""
        previous: object = None
        for page in range(1, MOST_PAGES + 1):
            body = client.audit_logs(page=page, per_page=LOGS_OF_A_PAGE)
            found = _records(body)
            # A service that ignores the page sends the same records for ever.
            content = found if found != [body] else _content(body, page)
            if not found or content == previous:
                return
            yield [
                {"cluster": cluster, "digest": _digest(record), "record": record}
                for record in found
            ]
            previous = content
        message = f"body_limit: the audit logs don't end after {MOST_PAGES} pages"
        raise ResponseError(message, code="body_limit")

    return records


def _records(body: Any) -> list[Any]:  # noqa: ANN401 - any JSON
    """Returns the records of a page.

    They are the page itself, if it is a list, or its only field that is a list. If its fields are
    no lists, the fields of its objects count in the same way. If there is no list, or more than
    one, the whole page is one record; but if all lists are empty, there is no record.
    """
    if isinstance(body, list):
        return body
    level, lists = [body], list[Any]()
    while level and not lists:
        level = [value for one in level for value in _nested(one).values()]
        lists = [value for value in level if isinstance(value, list)]
    if len(lists) == 1:
        found: list[Any] = lists[0]
        return found
    return [body] if any(lists) or (body and not lists) else []


def _content(body: Any, page: int) -> str:  # noqa: ANN401 - any JSON
    """Returns what a page that is one record contains, for a comparison with the previous page.

    The page's number and its neighbours may be in any field, for example in a link, so they become
    relative to the page. Fields that are neither objects nor lists don't count.
    """

    def relative(number: re.Match[str]) -> str:
        ahead = int(number[0]) - page
        return f"page{ahead:+}" if abs(ahead) <= 1 else number[0]

    return re.sub(
        r"(?<![\d.])\d{1,9}(?![\d.])", relative, json.dumps(_nested(body), sort_keys=True)
    )


def _nested(body: Any) -> dict[str, Any]:  # noqa: ANN401 - any JSON
    """Returns the fields of an object that are objects or lists."""
    fields = body.items() if isinstance(body, dict) else ()
    return {name: value for name, value in fields if isinstance(value, (dict, list))}


def _digest(record: Any) -> str:  # noqa: ANN401 - any JSON
    text = json.dumps(record, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
