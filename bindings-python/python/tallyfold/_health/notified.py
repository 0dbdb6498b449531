"""The result of notifications, and the type of a receiver."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Required

from tallyfold._arguments import ReceiverArguments
from tallyfold._errors import wrong_type
from tallyfold._health.results import Receipt
from tallyfold._names import ReceiverKind

__all__ = ["Notified", "Receiver", "listed"]


class Receiver(ReceiverArguments, total=False):
    """A receiver of alerts.

    >>> url = "https://chat.example/hook"
    >>> chat: tallyfold.Receiver = {"kind": "webhook", "name": "chat", "url": url}
    >>> nothing = tallyfold.Rules.standard().check(delivery=table)
    >>> tallyfold.notify(nothing, [chat]).complete
    True
    """

    kind: Required[ReceiverKind]
    """The kind of receiver."""


def listed(receivers: Iterable[Receiver]) -> list[Receiver]:
    """Returns the caller's receivers, from any iterable of mappings."""
    if isinstance(receivers, str | bytes | Mapping) or not isinstance(receivers, Iterable):
        raise wrong_type("receivers", "want an iterable of mappings", receivers)
    return list(receivers)


@dataclass(frozen=True, slots=True)
class Notified:
    """The outcome of notifications, and the state for the next ones.

    >>> notified = tallyfold.notify(tallyfold.Rules.standard().check(delivery=table), [])
    >>> notified.complete, notified.receivers
    (True, [])
    """

    state: str
    """What each receiver was notified of, as a document with a checksum: pass it as `state`."""
    receivers: list[Receipt]
    """The outcome for each receiver, in the order of the receivers."""

    @property
    def complete(self) -> bool:
        """Whether all messages were accepted. The next notifications send the others again."""
        return all(receipt.code is None for receipt in self.receivers)


# Pickles and docs should name the package, from which users import the classes.
for _class in (Notified, Receiver):
    _class.__module__ = "tallyfold"
del _class
