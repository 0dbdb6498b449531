"""Running totals of settled windows, for scrapes and OTLP."""

import os
import threading
import warnings
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, final

from tallyfold._errors import ConfigError
from tallyfold._export.async_push import async_push
from tallyfold._export.exporting import InexactCountWarning
from tallyfold._export.push import push
from tallyfold._extras import installed
from tallyfold._files.lock import Turn, Turns
from tallyfold._files.state import StateFile, aside
from tallyfold._names import ExportFormat
from tallyfold._ranges.values import Revision
from tallyfold._tallyfold import Pending, Totals
from tallyfold._time import EPOCH, Now
from tallyfold._values import PushReport

if TYPE_CHECKING:
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

__all__ = ["Ledger"]

SETTLED_UNTIL = "End of the newest window in the totals, in seconds since 1970"
"""The help of the gauge, as in the OpenMetrics text."""


@final
class Ledger:
    """Running totals of settled windows, by group. They are counters that never decrease.

    A scrape reads the totals as `openmetrics`, or from a `collector`; `push` sends them as
    cumulative sums of OTLP.

    A `follow` yields each window once as settled, in the window's last revision, and the ledger
    adds only these revisions. With the path of a file, each revision is on the disk, together with
    the state of the follow, before a scrape can see it. So if the process is killed at any moment
    and started again, it counts nothing twice and loses nothing, and no scrape sees a counter
    decrease.

    Only one process at a time may add to a file: `add` locks it, and refuses a file that another
    process has written since this ledger read it. Don't restore an older file, because the ledger
    can't recognize it. Prometheus would see the counters reset, and `increase` and `rate` would
    count the totals of the older file once more.

    Args:
        path: the file, which is created if it is missing. Without a path, the ledger keeps the
            totals in memory, and `save` returns the document to store.
        saved: the result of `save`, instead of a path.

    Raises:
        ConfigError: `invalid_checkpoint` for a document that is incomplete or was changed;
            `invalid_argument` for the path of anything but a regular file.

    >>> import pathlib, tempfile
    >>> directory = tempfile.TemporaryDirectory()
    >>> path = pathlib.Path(directory.name) / "totals.json"
    >>> query = "event_delivery", "2026-01-01T00:00:00Z", ["integration"]
    >>> end = "2026-01-01T00:15:00Z"
    >>> ledger = tallyfold.Ledger(path)
    >>> with client.follow(*query, window="15m", end=end, state=ledger.state) as revisions:
    ...     for revision in revisions:
    ...         ledger.add(revision, revisions.state())
    >>> again = tallyfold.Ledger(path)
    >>> print(again.openmetrics({"cluster": "eu-1"}, name="events"))
    # TYPE events_by_integration_success_settled_events counter
    ...
    events_by_integration_success_settled_events_total{cluster="eu-1",integration="warehouse"} 7
    ...
    # EOF
    >>> directory.cleanup()
    """

    media_type: ClassVar[str] = Totals.media_type
    """The media type of the text that `openmetrics` returns, for `Content-Type`."""

    __slots__ = ("_file", "_lock", "_pushes", "_totals")

    def __init__(
        self, path: str | os.PathLike[str] | None = None, *, saved: str | bytes | None = None
    ) -> None:
        """Reads the file, if it is there."""
        self._file = None if path is None else StateFile(path)
        if self._file is not None and saved is None:
            saved = self._file.read()
            with self._file.named():
                totals = Totals(saved)
        else:
            totals = Totals(saved)
        # New totals begin now.
        self._totals = totals if saved is not None else totals.stamped(Now.read().unix_ms)
        self._lock = threading.Lock()
        self._pushes = Turns()

    def add(self, revision: Revision, state: str, *, allow_gap: bool = False) -> None:
        """Stores a revision, and the state of its follow after it: `revisions.state()`.

        The counts are added if the window is settled. If a total becomes larger than 2^53, which
        Prometheus rounds, the ledger first issues an `InexactCountWarning`.

        Args:
            revision: the revision.
            state: the state of its follow after it.
            allow_gap: whether windows before this revision may be missing. The totals then lack
                their counts. Set it for the first revision after a time whose counts can't be read
                any more. It isn't needed for a window that can't be read for days: the window is
                added once it can be read.

        Raises:
            ConfigError: `incompatible_tables` for counts by other dimensions, of another metric,
                cluster or client; `overlapping_coverage` for a settled window that was added
                before; `out_of_order` if a window was skipped, with its time; `invalid_argument`
                for an empty state; `invalid_checkpoint` for a state that is incomplete or was
                changed.
            ResponseError: `sum_overflow`.
            OSError: for a failure of the file; `BlockingIOError` if another process adds to it, or
                has written it since it was read. The ledger is unchanged then.
        """
        with self._lock:
            before = self._totals
            added = before.added(revision, state, allow_gap, Now.read().unix_ms)
            # Warns first, because a filter may turn the warning into an error.
            if before.inexact is None and added.inexact is not None:
                warnings.warn(added.inexact, InexactCountWarning, stacklevel=2)
            self._store(added)

    def push(
        self,
        format: ExportFormat,  # noqa: A002
        url: str,
        labels: Mapping[str, str] | None = None,
        **options: Any,  # noqa: ANN401
    ) -> PushReport:
        """Sends the totals as cumulative sums, for destinations that refuse deltas.

        The arguments are the same as for `tallyfold.push`; the format is `"otlp"` or `"otlp-json"`.
        Each sum begins at the start of the ledger and ends at the current time: this machine's
        time, or the service's time if the last revision has shown that this machine's clock is
        ahead. If the clock was set back, the sums end a millisecond after the end of the previous
        push. With a path, the totals and their end are on the disk before anything is sent. So the
        totals may be sent any number of times, and are never in doubt; after an error, the next
        push makes up for it. Push after each settled revision, and at least every few minutes,
        because Prometheus forgets a sum after five minutes.

        Raises:
            ConfigError: `out_of_order` while another push of this ledger is under way;
                `invalid_checkpoint` if the clock is more than five minutes behind the last push;
                and the errors of `tallyfold.push`.
            OSError: for a failure of the file, as for `add`. Nothing is sent then.

        >>> import httpx2
        >>> url = "https://otlp.example/v1/metrics"
        >>> receiver = httpx2.MockTransport(lambda request: httpx2.Response(200))
        >>> tallyfold.Ledger().push("otlp", url, {"cluster": "eu-1"}, transport=receiver).samples
        0
        """
        # During the push, no frame here keeps the options. A traceback that shows locals would show
        # headers.
        given = [{"format": format, "url": url, "labels": labels, **options}]
        del url, options

        def act(turn: Turn) -> PushReport:
            self._begin(turn)
            totals: Any = self._stamped()
            return push(totals, **given.pop())

        try:
            return Turn().run(act)
        finally:
            given.clear()

    async def async_push(
        self,
        format: ExportFormat,  # noqa: A002
        url: str,
        labels: Mapping[str, str] | None = None,
        **options: Any,  # noqa: ANN401
    ) -> PushReport:
        """Does the same as `push` in asyncio, with the arguments of `tallyfold.async_push`."""
        # During the push, no frame here keeps the options. A traceback that shows locals would show
        # headers.
        given = [{"format": format, "url": url, "labels": labels, **options}]
        del url, options

        async def act(turn: Turn) -> PushReport:
            self._begin(turn)
            totals: Any = await aside(self._stamped)
            return await async_push(totals, **given.pop())

        try:
            return await Turn().async_run(act)
        finally:
            given.clear()

    def _stamped(self) -> Pending:
        """Returns the totals with a timestamp that no earlier push had, even in another process."""
        with self._lock:
            return self._store(self._totals.stamped(Now.read().unix_ms)).pending()

    def _store(self, totals: Totals) -> Totals:
        file = self._file
        if file is not None:
            document = totals.to_json().encode()

            def replace(turn: Turn) -> None:
                file.hold(turn)
                file.replace(document)

            # Writes the file first, because a scrape must not see totals that a restart would undo.
            Turn().run(replace)
        self._totals = totals
        return totals

    def _begin(self, turn: Turn) -> None:
        """Allows only one push at a time: of two pushes, the later totals might arrive first."""
        if not self._pushes.begin(turn):
            message = "out_of_order: another push is under way: wait for its end"
            raise ConfigError(message, code="out_of_order")

    def save(self) -> str:
        """The document to store, with the totals and the state: JSON without secrets.

        >>> ledger = tallyfold.Ledger()
        >>> tallyfold.Ledger(saved=ledger.save()).state is None
        True
        """
        return self._totals.to_json()

    @property
    def state(self) -> str | None:
        """The state of the follow after the last stored revision: pass it to `follow`."""
        return self._totals.state

    @property
    def settled_until(self) -> datetime | None:
        """The end of the newest window that was added.

        >>> tallyfold.Ledger().settled_until is None
        True
        """
        end = self._totals.settled_until
        return None if end is None else EPOCH + timedelta(microseconds=end[1])

    def openmetrics(self, labels: Mapping[str, str] | None = None, name: str | None = None) -> str:
        r"""The totals as OpenMetrics text, for a scrape, with the end of the newest window.

        Args:
            labels: names and values that each counter gets, as for `export`.
            name: the prefix of the names of the counters, as for `export`.

        >>> tallyfold.Ledger().openmetrics()
        '# EOF\n'
        """
        return self._totals.openmetrics(labels, name)

    def collector(
        self, labels: Mapping[str, str] | None = None, name: str | None = None
    ) -> "Collector":
        """A collector for a registry of `prometheus_client`, which always has the current totals.

        That package shows counts as 64-bit floats, as Prometheus stores them, so counts above 2^53
        are rounded. The arguments are the same as for `openmetrics`.

        Raises:
            ModuleNotFoundError: if the package is not installed: `pip install prometheus-client`.

        >>> from prometheus_client import CollectorRegistry
        >>> registry = CollectorRegistry()
        >>> registry.register(tallyfold.Ledger().collector({"cluster": "eu-1"}))
        """
        # Refuses arguments that can't be used now, and not during a scrape.
        self._totals.openmetrics(labels, name)
        return Collector(self, dict(labels or {}), name)

    def __repr__(self) -> str:
        """Names the end of the newest window."""
        end = self._totals.settled_until
        return f"<Ledger until {end[0]}>" if end else "<Ledger: empty>"

    def __reduce__(self) -> NoReturn:
        """Refuses to be pickled or copied."""
        raise TypeError("a Ledger can't be pickled or copied: pass what save() gives")


class Collector:
    """Exposes a ledger to a registry of `prometheus_client`."""

    def __init__(self, ledger: Ledger, labels: dict[str, str], name: str | None) -> None:
        """Imports the package, and raises `ModuleNotFoundError` if it is not installed."""
        message = "a collector needs prometheus_client: pip install prometheus-client"
        (core,) = installed(message, "prometheus_client.core")
        self._counter, self._gauge = core.CounterMetricFamily, core.GaugeMetricFamily
        self._ledger = ledger
        self._arguments = labels, name

    def collect(self) -> "Iterator[CounterMetricFamily | GaugeMetricFamily]":
        """Yields the counters and the end of the newest window, for a scrape."""
        totals = self._ledger._totals  # noqa: SLF001 - of one moment
        name = ""
        for name, help_text, labels, samples in totals.counters(*self._arguments):
            family = self._counter(name, help_text, labels=labels)
            for values, count in samples:
                family.add_metric(values, count)
            yield family
        end = totals.settled_until
        if name and end is not None:
            # Counters are called STEM_COUNT_settled_events.
            name = f"{name.rsplit('_', 3)[0]}_settled_until_seconds"
            fixed = {label: value for label, value in self._arguments[0].items() if value}
            gauge = self._gauge(name, SETTLED_UNTIL, labels=fixed, unit="seconds")
            gauge.add_metric(list(fixed.values()), end[1] // 1000 / 1000)
            yield gauge
