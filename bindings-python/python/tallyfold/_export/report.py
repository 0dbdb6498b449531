"""What became of a push."""

from dataclasses import dataclass

__all__ = ["PushReport", "Rejected"]


@dataclass(frozen=True, slots=True)
class Rejected:
    """What a receiver rejected in a message that it took otherwise.

    >>> tallyfold.Rejected(points=2, message="too old").points
    2
    """

    points: int | None
    """How many data points, if the receiver says so."""
    message: str
    """What it says, as one line; empty if it says nothing."""


@dataclass(frozen=True, slots=True)
class PushReport:
    """What became of a push; `report` of an error that ended one has it, too.

    >>> receiver = httpx2.MockTransport(lambda request: httpx2.Response(204))
    >>> url = "https://influx.example/api/v2/write?bucket=counts"
    >>> report = tallyfold.push(table, "influx", url, transport=receiver)
    >>> report.messages, report.samples
    (1, 2)
    """

    messages: int
    """Messages that were taken."""
    samples: int
    """Samples in them: the counts of a group in a window are one sample."""
    bytes: int
    """Bytes of their bodies."""
    retries: int
    """Messages that were sent again."""
    unsure: int
    """Samples that were sent but not acknowledged, and are not sent again: only if each is to be
    sent at most once."""
    rejected: list[Rejected]
    """What the destination rejected in messages that it accepted. It is not sent again."""


# Pickles and docs should name the package, from which users import the classes.
for _class in (PushReport, Rejected):
    _class.__module__ = "tallyfold"
