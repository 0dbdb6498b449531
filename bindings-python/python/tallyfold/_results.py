"""Results of health, as values.

Written by scripts/declare.py from what the Rust crates declare. Change it there.
"""

from dataclasses import dataclass

from tallyfold._names import Measure

__all__ = [
    "Amount",
    "Cause",
    "Explanation",
]


@dataclass(frozen=True, slots=True)
class Amount:
    """Events of a group in one time.

    >>> tallyfold.explain(table, table, "error_rate").now
    Amount(part=1, whole=8)
    """

    part: int
    """The events that are counted."""
    whole: int | None
    """Of a rate, the events that they are a share of."""


@dataclass(frozen=True, slots=True)
class Cause:
    """A combination of attribute values, and what it explains.

    >>> sandbox.record(at, "errors", integration="email", count=5, **event)
    >>> later = client.event_delivery(
    ...     "2026-01-01T00:00:00Z", "2026-01-01T00:15:00Z", ["integration", "reason"]
    ... )
    >>> (cause,) = tallyfold.explain(table, later, "errors").causes
    >>> cause.where["integration"], cause.events
    ('email', 5)
    """

    where: dict[str, str]
    """The values, in the order of the attributes. Attributes that are not named may have any value.
    """
    before: Amount
    """Its events before."""
    now: Amount
    """Its events now."""
    expected: float
    """How many events of the part were expected now."""
    events: int
    """By how many events now differs from that, rounded to whole events."""
    share: float
    """The part of the whole change that these events are; 0 if there is no change."""
    score: float
    """How much better everything is explained with this cause than without any: a difference of log
    likelihoods. Only for ranking.
    """


@dataclass(frozen=True, slots=True)
class Explanation:
    """What explains a change: causes that were named, and by how many events exactly.

    >>> tallyfold.explain(table, table, "errors").change
    0
    """

    measure: Measure
    """What changed."""
    before: Amount
    """All events before."""
    now: Amount
    """All events now."""
    change: int
    """By how many events now differs from what was expected after before: of a volume, the
    difference; of a rate, the events beyond those that the rate before would have given.
    """
    causes: list[Cause]
    """The causes, most important first. No event belongs to two of them: the counts of each are
    those of the events that no cause before it has.
    """
    others: list[Cause]
    """Further combinations that were thought of but not named, best first. They may overlap with
    causes and with each other.
    """
    unexplained: int
    """The events of the change that no cause has: `change` less the `events` of all causes."""
    is_global: bool
    """Whether nothing narrower than everything explains the change."""
    sentence: str
    """The same in one sentence."""


# Pickles and docs should name the package, from which users import the classes.
for _class in (Amount, Cause, Explanation):
    _class.__module__ = "tallyfold"
