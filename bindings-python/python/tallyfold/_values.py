"""The small values that a table is made of."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, NoReturn

__all__ = [
    "CountName",
    "Counts",
    "DimensionName",
    "MetricName",
    "Notes",
    "Reconciliation",
    "Row",
    "Tolerance",
    "Verdict",
    "Window",
]

DimensionName = Literal["event_name", "write_key", "integration", "reason"]
"""A group-by field (service reference 2.4)."""

CountName = Literal["success", "errors", "filtered"]
"""One of the three counts of an entry (service reference 2.3)."""

MetricName = Literal["event_delivery", "event_ingestion"]
"""Which counts they are (service reference 4.4 and 4.5)."""

Tolerance = Literal["repeated_combination", "null_dimension"]
"""A deviation from the service reference that a caller lets pass."""

Verdict = Literal["balanced", "unbalanced", "unavailable"]
"""How the reported totals compare with the sums of the counts."""


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


class Row:
    """One combination of dimension values and its counts. It does not change.

    >>> for row in table:
    ...     print(row.dimensions["integration"], row.success, row.errors, row.filtered)
    email 0 0 2
    warehouse 7 1 0
    """

    # No dataclass: pandas makes columns of a dataclass's fields, so that `DataFrame(table)` would
    # seem to work and have none of the table's columns. `DataFrame.from_arrow(table)` has them.
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
        fields = (names, values, success, errors, filtered)
        for name, value in zip(self.__slots__, fields, strict=True):
            object.__setattr__(self, name, value)

    @property
    def dimensions(self) -> dict[DimensionName, str]:
        """The value of each dimension by its name, as a new dict."""
        return dict(zip(self.names, self.values, strict=True))

    def _fields(self) -> tuple[object, ...]:
        return self.names, self.values, self.success, self.errors, self.filtered

    def __eq__(self, other: object) -> bool:
        """Whether the other is a row of the same names, values and counts."""
        return self._fields() == other._fields() if isinstance(other, Row) else NotImplemented

    def __hash__(self) -> int:
        """Goes by names, values and counts."""
        return hash(self._fields())

    def __setattr__(self, name: str, value: object) -> NoReturn:
        """Refuses to change."""
        raise AttributeError(f"a Row does not change: {name}")

    def __delattr__(self, name: str) -> NoReturn:
        """Refuses to change."""
        raise AttributeError(f"a Row does not change: {name}")

    def __reduce__(self) -> tuple[type["Row"], tuple[object, ...]]:
        """Lets a row be pickled and copied."""
        return type(self), self._fields()

    def __repr__(self) -> str:
        """Shows the dimensions as a mapping."""
        counts = f"success={self.success}, errors={self.errors}, filtered={self.filtered}"
        return f"Row({self.dimensions}, {counts})"


@dataclass(frozen=True, slots=True, repr=False)
class Window:
    """A half-open time window `[start, end)` in UTC.

    >>> window = table.coverage[0]
    >>> window.start_text, window.start
    ('2026-01-01T00:00:00Z', datetime.datetime(2026, 1, 1, 0, 0, tzinfo=datetime.timezone.utc))
    """

    start_text: str
    """The first instant inside, exact to the nanosecond, as UTC ISO 8601."""
    end_text: str
    """The first instant after, likewise."""

    @property
    def start(self) -> datetime:
        """The first instant inside, cut to the microsecond."""
        return datetime.fromisoformat(self.start_text)

    @property
    def end(self) -> datetime:
        """The first instant after, cut to the microsecond."""
        return datetime.fromisoformat(self.end_text)

    def __repr__(self) -> str:
        """Shows both edges exactly."""
        return f"Window({self.start_text!r}, {self.end_text!r})"


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
    """`"unavailable"` for a filtered table: totals of the whole say nothing about a part."""
    success: int | None = None
    """`totalDelivered` minus the sum of `success`."""
    errors: int | None = None
    """`totalErrors` minus the sum of `errors`."""
    filtered: int | None = None
    """`totalFiltered` minus the sum of `filtered`."""

    def __bool__(self) -> bool:
        """Whether the verdict is `"balanced"`."""
        return self.verdict == "balanced"


@dataclass(frozen=True, slots=True)
class Notes:
    """What was let pass because the caller asked for tolerance.

    >>> table.notes
    Notes(repeated_combinations=0, null_dimensions=0)
    """

    repeated_combinations: int
    """Entries whose combination stood in the response before; they were added up."""
    null_dimensions: int
    """Dimension values that were `null`; they were read as empty strings."""


# People import the classes from the package, and pickles and docs say so.
for _class in (Counts, Row, Window, Reconciliation, Notes):
    _class.__module__ = "tallyfold"
