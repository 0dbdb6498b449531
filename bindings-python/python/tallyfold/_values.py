"""The small value classes of tables, attempts, exports and pushes."""

from dataclasses import dataclass
from typing import NoReturn, get_args

from tallyfold._names import (
    CountName,
    DimensionName,
    ErrorCode,
    NoteKind,
    Presence,
    TargetName,
    Verdict,
)
from tallyfold._tallyfold import count_rates
from tallyfold._time import SeriesWindow, Window

__all__ = [
    "COUNTS",
    "Attempt",
    "ClockDifference",
    "ComparisonRow",
    "Counts",
    "Deltas",
    "Note",
    "Notes",
    "PushReport",
    "Rates",
    "Reconciliation",
    "Rejected",
    "Row",
    "SeriesRow",
    "Shares",
]


@dataclass(frozen=True, slots=True)
class Rates:
    """The fractions of events that were delivered, failed or were filtered, each from 0 to 1.

    The service reference shows no rates; these definitions are ours. If there are no events to
    divide by, a rate is `None`, never 0, 1 or NaN. Each rate is the float nearest to the exact
    quotient, and it is 0 only if its count is 0.

    >>> table.totals.rates
    Rates(delivery=0.875, error=0.125, filter=0.2)
    >>> tallyfold.Counts(success=0, errors=0, filtered=2).rates
    Rates(delivery=None, error=None, filter=1.0)
    """

    delivery: float | None
    """`success / (success + errors)`: the fraction of all attempts."""
    error: float | None
    """`errors / (success + errors)`: the fraction of all attempts."""
    filter: float | None
    """`filtered / (success + errors + filtered)`: the fraction of all events."""


@dataclass(frozen=True, slots=True)
class Counts:
    """How many events were delivered, failed and were filtered (service reference 2.3).

    >>> table.totals.success
    7
    """

    success: int
    """Events delivered."""
    errors: int
    """Events not sent due to an error."""
    filtered: int
    """Events filtered from the stream."""

    @property
    def rates(self) -> Rates:
        """The rates of these counts.

        Raises:
            ConfigError: `invalid_argument` for a count below 0 or above 2**64 - 1.
        """
        return count_rates(self.success, self.errors, self.filtered)


@dataclass(frozen=True, slots=True)
class Deltas:
    """For each of the three counts, the count after minus the count before: an exact signed number.

    >>> tallyfold.compare(table, table).total_delta
    Deltas(success=0, errors=0, filtered=0)
    """

    success: int
    """The change of events delivered."""
    errors: int
    """The change of events not sent due to an error."""
    filtered: int
    """The change of events filtered."""


@dataclass(frozen=True, slots=True)
class Shares:
    """A group's part of the change of each total: its delta divided by the delta of the total.

    A share is negative if the group changed in the opposite direction to the total, and may be
    above 1 if other groups did. If the total did not change, the share is `None`, never 0, infinite
    or NaN. Each share is the float nearest to the exact quotient.

    >>> tallyfold.compare(table, table)[0].share
    Shares(success=None, errors=None, filtered=None)
    """

    success: float | None
    """The part of the change of events delivered."""
    errors: float | None
    """The part of the change of events not sent due to an error."""
    filtered: float | None
    """The part of the change of events filtered."""


COUNTS: tuple[CountName, ...] = get_args(CountName)
"""The names of the three counts."""


def _named(of: object, prefix: str = "") -> dict[str, object]:
    return {f"{prefix}{name}": getattr(of, name) for name in COUNTS}


def _texts(row: "Row | ComparisonRow") -> dict[str, object]:
    return dict(zip(row.names, row.values, strict=True))


class _Values:
    """The base class of rows: immutable values, in the order of `__match_args__`."""

    # This is not a dataclass, because pandas makes columns of a dataclass's fields:
    # `DataFrame(list(table))` would seem to work, but without the table's columns.
    # `DataFrame.from_arrow(table)` has them.
    __slots__ = ()
    __match_args__: tuple[str, ...] = ()

    def _keep(self, *values: object) -> None:
        for name, value in zip(self.__match_args__, values, strict=True):
            object.__setattr__(self, name, value)

    def _values(self) -> tuple[object, ...]:
        return tuple(getattr(self, name) for name in self.__match_args__)

    def __eq__(self, other: object) -> bool:
        """Whether the other is of the same class and has the same values."""
        if not isinstance(other, _Values) or type(self) is not type(other):
            return NotImplemented
        return self._values() == other._values()

    def __hash__(self) -> int:
        """Hashes the values."""
        return hash(self._values())

    def __setattr__(self, name: str, value: object) -> NoReturn:
        """Refuses to change."""
        raise AttributeError(f"a {type(self).__name__} does not change: {name}")

    def __delattr__(self, name: str) -> NoReturn:
        """Refuses to change."""
        raise AttributeError(f"a {type(self).__name__} does not change: {name}")

    def __reduce__(self) -> tuple[type["_Values"], tuple[object, ...]]:
        """Supports pickling and copying."""
        return type(self), self._values()


class Row(_Values):
    """One combination of dimension values, and its counts. A row is immutable.

    >>> for row in table:
    ...     print(row.dimensions["integration"], row.success, row.errors, row.filtered)
    email 0 0 2
    warehouse 7 1 0
    """

    __slots__ = __match_args__ = ("names", "values", "success", "errors", "filtered")

    names: tuple[DimensionName, ...]
    """The names of the dimensions, in the table's order."""
    values: tuple[str, ...]
    """The value of each dimension."""
    success: int
    """Events delivered."""
    errors: int
    """Events not sent due to an error."""
    filtered: int
    """Events filtered from the stream."""

    def __init__(
        self,
        names: tuple[DimensionName, ...],
        values: tuple[str, ...],
        success: int,
        errors: int,
        filtered: int,
    ) -> None:
        """Keeps the values as they are."""
        self._keep(names, values, success, errors, filtered)

    @property
    def dimensions(self) -> dict[DimensionName, str]:
        """The value of each dimension by its name, as a new dict."""
        return dict(zip(self.names, self.values, strict=True))

    @property
    def rates(self) -> Rates:
        """The rates of the row's counts."""
        return count_rates(self.success, self.errors, self.filtered)

    def to_dict(self) -> dict[str, object]:
        """The row as a flat dict with the names of a data frame's columns.

        >>> table[1].to_dict()
        {'integration': 'warehouse', 'reason': '', 'success': 7, 'errors': 1, 'filtered': 0}
        """
        return {**_texts(self), **_named(self)}

    def _counts(self) -> str:
        return f"success={self.success}, errors={self.errors}, filtered={self.filtered}"

    def __repr__(self) -> str:
        """Shows the dimensions as a mapping."""
        return f"Row({self.dimensions}, {self._counts()})"


class SeriesRow(Row):
    """One combination of dimension values in one window, and its counts. A row is immutable.

    >>> row = table.by_window()[1]
    >>> row.window, row.dimensions["integration"], row.success
    (SeriesWindow('2026-01-01T00:00:00Z', '2026-01-01T00:15:00Z', complete=True), 'warehouse', 7)
    """

    __slots__ = ("window",)
    __match_args__ = ("window", "names", "values", "success", "errors", "filtered")

    window: SeriesWindow
    """The window; rows of the same window share it."""

    def __init__(
        self,
        window: SeriesWindow,
        names: tuple[DimensionName, ...],
        values: tuple[str, ...],
        success: int,
        errors: int,
        filtered: int,
    ) -> None:
        """Keeps the values as they are."""
        self._keep(window, names, values, success, errors, filtered)

    @property
    def complete(self) -> bool:
        """Whether the table covers all of the window. If not, the counts cover only a part."""
        return self.window.complete

    @property
    def provisional(self) -> bool:
        """Whether the counts of the window may still change."""
        return self.window.provisional

    @property
    def settled(self) -> bool:
        """Whether the counts of the window are complete and no longer change."""
        return self.complete and not self.provisional

    def to_dict(self) -> dict[str, object]:
        """The row as a flat dict with the names of a data frame's columns.

        >>> row = table.group_by().by_window()[0].to_dict()
        >>> row["window_start"], row["complete"], row["success"]
        (datetime.datetime(2026, 1, 1, 0, 0, tzinfo=datetime.timezone.utc), True, 7)
        """
        window = {"window_start": self.window.start, "window_end": self.window.end}
        flags = {"complete": self.complete, "settled": self.settled}
        return {**window, **flags, **super().to_dict()}

    def __repr__(self) -> str:
        """Shows the window, and the dimensions as a mapping."""
        return f"SeriesRow({self.window}, {self.dimensions}, {self._counts()})"


class ComparisonRow(_Values):
    """One group of either table, and how its counts differ. A row is immutable.

    >>> row = tallyfold.compare(table, table)[1]
    >>> row.presence, row.before, row.delta.success
    ('both', Counts(success=7, errors=1, filtered=0), 0)
    """

    __slots__ = __match_args__ = (
        "names",
        "values",
        "presence",
        "before",
        "after",
        "delta",
        "share",
    )

    names: tuple[DimensionName, ...]
    """The names of the dimensions, in the comparison's order."""
    values: tuple[str, ...]
    """The value of each dimension."""
    presence: Presence
    """Which of the tables has the group. A table has a group even if its counts are 0."""
    before: Counts | None
    """The counts before; `None` if the group is new."""
    after: Counts | None
    """The counts after; `None` if the group has vanished."""
    delta: Deltas
    """How the counts changed. If a table lacks the group, its counts are taken as 0."""
    share: Shares
    """The part of the change of the totals that the group causes."""

    def __init__(
        self,
        names: tuple[DimensionName, ...],
        values: tuple[str, ...],
        presence: Presence,
        before: Counts | None,
        after: Counts | None,
        delta: Deltas,
        share: Shares,
    ) -> None:
        """Keeps the values as they are."""
        self._keep(names, values, presence, before, after, delta, share)

    @property
    def dimensions(self) -> dict[DimensionName, str]:
        """The value of each dimension by its name, as a new dict."""
        return dict(zip(self.names, self.values, strict=True))

    def to_dict(self) -> dict[str, object]:
        """The row as a flat dict with the names of a data frame's columns.

        If a table lacks the group, its counts are 0, as in a data frame.

        >>> row = tallyfold.compare(table, table)[1].to_dict()
        >>> row["integration"], row["presence"], row["after_success"], row["delta_success"]
        ('warehouse', 'both', 7, 0)
        """
        nothing = Counts(0, 0, 0)
        return {
            **_texts(self),
            "presence": self.presence,
            **_named(self.before or nothing, "before_"),
            **_named(self.after or nothing, "after_"),
            **_named(self.delta, "delta_"),
            **_named(self.share, "share_"),
        }

    def __repr__(self) -> str:
        """Shows the dimensions as a mapping. It omits the shares, which follow from the totals."""
        return (
            f"ComparisonRow({self.dimensions}, {self.presence!r}, "
            f"before={self.before}, after={self.after}, delta={self.delta})"
        )


@dataclass(frozen=True, slots=True)
class ClockDifference:
    """How this machine's clock differs from the service's `Date`.

    A window settles only once `settle` seconds have passed since its end by both clocks.

    >>> tallyfold.ClockDifference(ahead=90.0, is_alarming=False, message="…").ahead
    90.0
    """

    ahead: float
    """By how many seconds this machine's clock is ahead; a negative number if it is behind."""
    is_alarming: bool
    """Whether the clocks differ by more than five minutes. Then there is a `ClockWarning`, too."""
    message: str
    """A sentence about the difference."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One request of a call, after it has ended, successful or not. It contains no secret.

    >>> def log(attempt):
    ...     print(attempt.target, attempt.number, attempt.status, attempt.code, attempt.wait)
    >>> watched = tallyfold.Client(
    ...     cluster_endpoint="https://sandbox.example",
    ...     transport=sandbox.transport(),
    ...     on_attempt=log,
    ...     **sandbox.credentials,
    ... )
    >>> sandbox.inject("status", endpoint="event_delivery", status=503)
    >>> totals = watched.event_delivery(
    ...     "2026-01-01T00:00:00Z", "2026-01-01T00:15:00Z", ["integration"]
    ... ).totals
    token 1 200 None None
    event_delivery 1 503 server_error 0...
    event_delivery 2 200 None None
    """

    target: TargetName
    """The endpoint that the request was sent to."""
    window: Window | None
    """The window of the call; `None` for audit logs."""
    number: int
    """The number of the request among this call's requests to the same target, from 1."""
    status: int | None
    """The status, if there was a response."""
    code: ErrorCode | None
    """The code of the error; `None` if the request succeeded."""
    wait: float | None
    """The call tries again after this many seconds or later; `None` if it does not try again. If a
    collect or follow is waiting for a service that is down, the collect or follow tries again."""
    clock: ClockDifference | None = None
    """How this machine's clock differs from the response's `Date`, if by more than a minute."""


@dataclass(frozen=True, slots=True)
class Reconciliation:
    """Whether the totals that the service reports are the sums of its counts.

    The object is true only if the verdict is `"balanced"`.

    >>> table.reconciliation
    Reconciliation(verdict='balanced', success=0, errors=0, filtered=0)
    >>> table.filter(integration="email").reconciliation.verdict
    'unavailable'
    """

    verdict: Verdict
    """`"unavailable"` for a filtered table, because the reported totals are of all events."""
    success: int | None = None
    """`totalDelivered` minus the sum of `success`."""
    errors: int | None = None
    """`totalErrors` minus the sum of `errors`."""
    filtered: int | None = None
    """`totalFiltered` minus the sum of `filtered`."""

    def __post_init__(self) -> None:
        """Sets the differences of a balanced table, which are all 0."""
        if self.verdict == "balanced":
            for name in COUNTS:
                object.__setattr__(self, name, 0)

    def __bool__(self) -> bool:
        """Whether the verdict is `"balanced"`."""
        return self.verdict == "balanced"


@dataclass(frozen=True, slots=True)
class Notes:
    """How many deviations were tolerated because of `tolerate`.

    >>> table.notes
    Notes(repeated_combinations=0, null_dimensions=0)
    """

    repeated_combinations: int
    """Entries that repeated a combination in the same response; they were added up."""
    null_dimensions: int
    """Dimension values that were `null`; they were read as empty strings."""


@dataclass(frozen=True, slots=True)
class Note:
    """A note about an export.

    >>> tallyfold.export(table, "openmetrics").notes
    ()
    """

    kind: NoteKind
    """The kind of note."""
    message: str
    """A sentence for people."""


@dataclass(frozen=True, slots=True)
class Rejected:
    """Samples that a destination rejected in a message whose other samples it accepted.

    >>> tallyfold.Rejected(points=2, message="too old").points
    2
    """

    points: int | None
    """How many data points were rejected, if the response contains the number."""
    message: str
    """The reason in the response, as one line; empty if there is none."""


@dataclass(frozen=True, slots=True)
class PushReport:
    """The result of a push. If an error ends the push, its `report` is this result, too.

    >>> receiver = httpx2.MockTransport(lambda request: httpx2.Response(204))
    >>> url = "https://influx.example/api/v2/write?bucket=counts"
    >>> report = tallyfold.push(table, "influx", url, transport=receiver)
    >>> report.messages, report.samples
    (1, 2)
    """

    messages: int
    """How many messages the destination has accepted."""
    samples: int
    """How many samples they contain. The counts of a group in a window are one sample."""
    bytes: int
    """The size of their bodies, in bytes."""
    retries: int
    """How many messages were sent again."""
    unsure: int
    """How many samples were sent but not acknowledged, and are not sent again. The number is above
    0 only with the guarantee `at_most_once`."""
    rejected: list[Rejected]
    """The samples that the destination rejected in messages that it accepted. They are not sent
    again."""


# Pickles and docs should name the package, from which users import the classes.
for _class in (
    *(Counts, Rates, Deltas, Shares, Row, SeriesRow, ComparisonRow),
    *(Attempt, ClockDifference, Reconciliation, Notes, Note, PushReport, Rejected),
):
    _class.__module__ = "tallyfold"
