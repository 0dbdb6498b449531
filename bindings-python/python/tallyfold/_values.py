"""The small values that a table is made of."""

from dataclasses import dataclass
from typing import NoReturn, Unpack

from tallyfold._arguments import LimitsArguments
from tallyfold._names import DimensionName, ErrorCode, Presence, TargetName, Verdict
from tallyfold._tallyfold import count_rates, limits_of
from tallyfold._time import SeriesWindow, Window

__all__ = [
    "Attempt",
    "ClockDifference",
    "ComparisonRow",
    "Counts",
    "Deltas",
    "Limits",
    "Notes",
    "Rates",
    "Reconciliation",
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
    """`success / (success + errors)`: of the events that were to be sent."""
    error: float | None
    """`errors / (success + errors)`: of the events that were to be sent."""
    filter: float | None
    """`filtered / (success + errors + filtered)`: of all events."""


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
    """The count after minus the count before, for each of the three: exact, with its sign.

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
    """The part of the change of each total that a group causes: its delta divided by the total's.

    A share is negative if the group changed in the opposite direction to the total; it may be above
    1 if other groups did. If the total did not change, the share is `None`, never 0, infinite or
    NaN. Each share is the float nearest to the exact quotient.

    >>> tallyfold.compare(table, table)[0].share
    Shares(success=None, errors=None, filtered=None)
    """

    success: float | None
    """The part of the change of events delivered."""
    errors: float | None
    """The part of the change of events not sent due to an error."""
    filtered: float | None
    """The part of the change of events filtered."""


def _named(of: object, prefix: str = "") -> dict[str, object]:
    names = ("success", "errors", "filtered")
    return {f"{prefix}{name}": getattr(of, name) for name in names}


def _texts(row: "Row | ComparisonRow") -> dict[str, object]:
    return dict(zip(row.names, row.values, strict=True))


class _Values:
    """Values that do not change, in the order of `__match_args__`."""

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
        """Lets it be pickled and copied."""
        return type(self), self._values()


class Row(_Values):
    """One combination of dimension values and its counts. It does not change.

    >>> for row in table:
    ...     print(row.dimensions["integration"], row.success, row.errors, row.filtered)
    email 0 0 2
    warehouse 7 1 0
    """

    __slots__ = __match_args__ = ("names", "values", "success", "errors", "filtered")

    names: tuple[DimensionName, ...]
    """The names of the dimensions, in the table's order."""
    values: tuple[str, ...]
    """The value of each."""
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
    """One combination of dimension values in one window, and its counts. It does not change.

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
        """Whether the counts of the window are all that there are and no longer change."""
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
    """One group of either table, and how its counts changed. It does not change.

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
    """The value of each."""
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

        As there, the counts of a table that lacks the group are 0.

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

    No window settles before its time by either of them.

    >>> tallyfold.ClockDifference(ahead=90.0, is_alarming=False, message="…").ahead
    90.0
    """

    ahead: float
    """By how many seconds this machine's clock is ahead; a negative number if it is behind."""
    is_alarming: bool
    """Whether they differ by more than five minutes. Then there is a `ClockWarning`, too."""
    message: str
    """A sentence about it."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One request of a call that has ended, successful or not. It holds no secret.

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
    """Where it was sent."""
    window: Window | None
    """The window that the call is about; `None` for audit logs."""
    number: int
    """The number of the request among this call's requests to the same target, from 1."""
    status: int | None
    """The status, if there was one."""
    code: ErrorCode | None
    """What was wrong; `None` if the request succeeded."""
    wait: float | None
    """The call tries again after this many seconds or later; `None` if it does not try again. If it
    is one of a collect or follow that waits for a service that is down, these try again."""
    clock: ClockDifference | None = None
    """How this machine's clock differs from the response's `Date`, if by more than a minute."""


@dataclass(frozen=True, slots=True)
class Reconciliation:
    """Whether the totals that the service reports are the sums of its counts.

    It is true only when the verdict is `"balanced"`.

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
            for name in ("success", "errors", "filtered"):
                object.__setattr__(self, name, 0)

    def __bool__(self) -> bool:
        """Whether the verdict is `"balanced"`."""
        return self.verdict == "balanced"


@dataclass(frozen=True, slots=True)
class Notes:
    """How many deviations were tolerated, because the caller requested it.

    >>> table.notes
    Notes(repeated_combinations=0, null_dimensions=0)
    """

    repeated_combinations: int
    """Entries that repeated a combination in the same response; they were added up."""
    null_dimensions: int
    """Dimension values that were `null`; they were read as empty strings."""


@dataclass(frozen=True, slots=True, init=False)
class Limits:
    """How much of a response is read before it is refused.

    Limits that are not given have their default.

    Args:
        depth: how deeply objects and arrays may be nested (`depth_limit`).
        string_bytes: the bytes of one string once its escapes are resolved (`string_limit`).
        keys: the keys of one object (`key_limit`).
        body_bytes: the bytes of one body (`body_limit`).
        groups: the groups of one table (`group_limit`).
        table_bytes: the bytes of one table: for each distinct value its bytes and 32 more, and 64
            for each group (`group_limit`).

    Raises:
        ConfigError: for a limit that is not a number, or too large for this machine.

    >>> tallyfold.Limits(groups=1000).groups
    1000
    """

    depth: int
    """How deeply objects and arrays may be nested (`depth_limit`)."""
    string_bytes: int
    """The bytes of one string once its escapes are resolved (`string_limit`)."""
    keys: int
    """The keys of one object (`key_limit`)."""
    body_bytes: int
    """The bytes of one body (`body_limit`)."""
    groups: int
    """The groups of one table (`group_limit`)."""
    table_bytes: int
    """The bytes of one table: the bytes of each distinct value and 32 more, and 64 for each group
    (`group_limit`)."""

    def __init__(self, **limits: Unpack[LimitsArguments]) -> None:
        """Checks the limits, and uses the defaults for the others."""
        for name, value in limits_of(**limits).items():
            object.__setattr__(self, name, value)


# Pickles and docs should name the package, from which users import the classes.
for _class in (
    *(Counts, Rates, Deltas, Shares, Row, SeriesRow, ComparisonRow),
    *(Attempt, ClockDifference, Limits, Reconciliation, Notes),
):
    _class.__module__ = "tallyfold"
