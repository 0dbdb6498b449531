"""Sends each revision of a follow once, even if the process restarts."""

import contextlib
import os
from collections.abc import Mapping
from typing import Any, NoReturn, final

from tallyfold._errors import ConfigError, TallyfoldError
from tallyfold._export.async_push import async_push
from tallyfold._export.push import push
from tallyfold._export.sending import OfStep
from tallyfold._files.lock import Turn, Turns
from tallyfold._files.state import StateFile, aside
from tallyfold._names import ExportFormat
from tallyfold._ranges.values import Revision
from tallyfold._tallyfold import Finished, Held
from tallyfold._values import PushReport

__all__ = ["Outbox"]


@final
class Outbox:
    """Sends the revisions of a `follow` to another system, and keeps unsent revisions in a file.

    The file contains the state of the follow together with the revision to send. So if a process
    is killed at any moment and started again, it loses no revision, and a revision that it sends
    again keeps its number. Only one `put`, push or `drop` may run at a time, in all threads and
    tasks; any other raises `out_of_order`.

    Only one process at a time may use a file: `put`, a push and `drop` lock it, and refuse a file
    that another process has written since this outbox read it. Don't restore an older file, because
    the outbox then sends later revisions again. If the destination refuses another value for the
    same sample, as Prometheus does, the push fails. If it keeps the newest value, it reports
    nothing. If it adds up changes, as with OTLP deltas, it counts them twice.

    Args:
        path: the file, which is created if it is missing.
        format: the format of all messages, as for `push`.

    Raises:
        ConfigError: `invalid_checkpoint` for a file that is incomplete or was changed;
            `invalid_argument` for the path of anything but a regular file.

    >>> import pathlib, tempfile
    >>> directory = tempfile.TemporaryDirectory()
    >>> outbox = tallyfold.Outbox(pathlib.Path(directory.name) / "outbox.json", "influx")
    >>> receiver = httpx2.MockTransport(lambda request: httpx2.Response(204))
    >>> url = "https://influx.example/api/v2/write?bucket=counts"
    >>> query = "event_delivery", "2026-01-01T00:00:00Z", ["integration"]
    >>> end = "2026-01-01T00:15:00Z"
    >>> outbox.push(url, transport=receiver)  # What an earlier process did not send; here nothing.
    >>> with client.follow(*query, window="15m", end=end, state=outbox.state) as revisions:
    ...     for revision in revisions:
    ...         outbox.put(revision, revisions.state())
    ...         print(outbox.push(url, transport=receiver).samples)
    2
    >>> directory.cleanup()
    """

    __slots__ = ("_file", "_format", "_held", "_turns")

    def __init__(self, path: str | os.PathLike[str], format: ExportFormat) -> None:  # noqa: A002
        """Reads the file, if it is there."""
        self._file = StateFile(path)
        self._format = format
        self._turns = Turns()
        with self._file.named():
            self._held = Held(self._file.read())
        # Refuses an unknown format, and any format but the one of a pending revision.
        self._held.finished(format)

    @property
    def state(self) -> str | None:
        """The state of the follow after the last stored revision: pass it to `follow`."""
        return self._held.state

    @property
    def is_pending(self) -> bool:
        """Whether a revision is waiting to be sent."""
        return self._held.finished(self._format) is not None

    def put(self, revision: Revision, state: str) -> None:
        """Stores a revision, and the state of its follow after it: `revisions.state()`.

        Put in every revision, even if it changes no count.

        Raises:
            ConfigError: `out_of_order` if another revision is pending (push it first), if the
                revision was put in before, or if another one was skipped (resume the follow from
                `state`); `incompatible_tables` for counts of another cluster or client;
                `invalid_argument` for an empty state; `invalid_checkpoint` for a state that is
                incomplete or was changed.
            OSError: for a failure of the file; `BlockingIOError` if another process uses it, or has
                written it since it was read. The outbox is unchanged then.
        """

        def act(turn: Turn) -> None:
            self._begin(turn)
            self._store(self._held.put(revision, state, self._format))

        Turn().run(act)

    def push(
        self,
        url: str,
        labels: Mapping[str, str] | None = None,
        **options: Any,  # noqa: ANN401
    ) -> PushReport | None:
        """Sends the pending revision; returns `None` if there is nothing to send or to report.

        The arguments are the same as for `tallyfold.push`. After an error, the revision is still
        pending: push again to resume, or `drop` it. If an earlier push was interrupted while it was
        sending samples that are sent at most once, `unsure` of the report is their number, even if
        nothing is pending any more. The file keeps this number until a push has reported it, in its
        result or in its error.
        """
        # During the push, no frame here keeps the options. A traceback that shows locals would show
        # headers.
        given = [{"url": url, "labels": labels, **options}]
        del url, options

        def act(turn: Turn) -> PushReport | None:
            self._begin(turn)
            found = self._held.pending(self._format)
            if found is None:
                return self._reported(None)
            changes, finished = found
            try:
                report = push(
                    changes,  # type: ignore[arg-type]
                    self._format,
                    finished=finished,
                    on_finished=OfStep(self._note),
                    **given.pop(),
                )
            except TallyfoldError as error:
                self._acknowledge(error.report)
                raise
            self._store(self._held.clear())
            return self._reported(report)

        try:
            return Turn().run(act)
        finally:
            given.clear()

    async def async_push(
        self,
        url: str,
        labels: Mapping[str, str] | None = None,
        **options: Any,  # noqa: ANN401
    ) -> PushReport | None:
        """Does the same as `push` in asyncio, with the arguments of `tallyfold.async_push`."""
        # During the push, no frame here keeps the options. A traceback that shows locals would show
        # headers.
        given = [{"url": url, "labels": labels, **options}]
        del url, options

        async def act(turn: Turn) -> PushReport | None:
            self._begin(turn)
            found = self._held.pending(self._format)
            if found is None:
                return self._reported(None)
            changes, finished = found
            try:
                report = await async_push(
                    changes,  # type: ignore[arg-type]
                    self._format,
                    finished=finished,
                    on_finished=OfStep(self._note_aside),
                    **given.pop(),
                )
            except TallyfoldError as error:
                self._acknowledge(error.report)
                raise
            await self._store_aside(self._held.clear())
            return self._reported(report)

        try:
            return await Turn().async_run(act)
        finally:
            given.clear()

    def drop(self) -> None:
        """Gives up the pending revision, which is then not sent any more.

        The next push still reports samples that an earlier push left in doubt.
        """

        def act(turn: Turn) -> None:
            self._begin(turn)
            self._store(self._held.clear())

        Turn().run(act)

    def _begin(self, turn: Turn) -> None:
        """Allows only one operation at a time: two pushes would send the same samples twice."""
        if not self._turns.begin(turn):
            message = "out_of_order: another put, push or drop is under way: wait for its end"
            raise ConfigError(message, code="out_of_order")
        self._file.hold(turn)

    def _reported(self, report: PushReport | None) -> PushReport | None:
        """Returns the report of a push, and stores that the caller gets it.

        Without a push, returns a report of the samples that an earlier push left in doubt, or
        `None` if there are no such samples.
        """
        unsure = self._held.in_doubt
        if report is None and unsure:
            report = PushReport(0, 0, 0, 0, unsure, [])
        self._acknowledge(report)
        return report

    def _acknowledge(self, report: PushReport | None) -> None:
        """Stores that the caller gets this report of samples in doubt.

        Even in asyncio, this doesn't await: if the task was cancelled here, it would return no
        report.
        """
        if report is not None and report.unsure:
            # If this can't be stored, the next push reports the samples again.
            with contextlib.suppress(OSError):
                self._store(self._held.acknowledge(report.unsure))

    def _note(self, finished: Finished) -> None:
        """Stores how many samples are finished, and how many are in doubt."""
        self._store(self._held.finish(finished))

    async def _note_aside(self, finished: Finished) -> None:
        await self._store_aside(self._held.finish(finished))

    async def _store_aside(self, held: Held) -> None:
        await aside(lambda: self._store(held))

    def _store(self, held: Held) -> None:
        self._file.replace(held.to_json().encode())
        self._held = held

    def __repr__(self) -> str:
        """Shows whether a revision is pending."""
        return f"<Outbox of {self._format}: {'one revision' if self.is_pending else 'empty'}>"

    def __reduce__(self) -> NoReturn:
        """Refuses to be pickled or copied."""
        raise TypeError("an Outbox can't be pickled or copied: one process at a time may use it")
