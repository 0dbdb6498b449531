"""Sends the revisions of a follow, each once, over restarts."""

import asyncio
import os
import pathlib
from collections.abc import Mapping
from typing import Any, NoReturn, final

from tallyfold._async_push import async_push
from tallyfold._errors import wrong_type
from tallyfold._files import replacing
from tallyfold._names import ExportFormat
from tallyfold._push import push
from tallyfold._ranges import Revision
from tallyfold._report import PushReport
from tallyfold._tallyfold import Held

__all__ = ["Outbox"]


@final
class Outbox:
    """Sends the revisions of a `follow` to another system; a file keeps what is not sent yet.

    The file holds the state of the follow together with the revision that is to be sent. So a
    process that is ended at any moment, and started again, loses no revision and sends none under
    another number. One process at a time may use a file.

    Args:
        path: the file, which is made if it is not there.
        format: the format of all messages, as of `push`.

    Raises:
        ConfigError: `invalid_checkpoint` for a file that is torn or was changed.

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

    __slots__ = ("_format", "_held", "_path")

    def __init__(self, path: str | os.PathLike[str], format: ExportFormat) -> None:  # noqa: A002
        """Reads the file, if it is there."""
        if path == "" or not isinstance(path, (str, os.PathLike)):
            raise wrong_type("path", "want the path of a file", path)
        self._path = pathlib.Path(path)
        self._format = format
        self._held = Held(self._path.read_bytes() if self._path.exists() else None)
        # Refuses a wrong format, and one that what is pending is not to be sent in.
        self._held.pending(format)

    @property
    def state(self) -> str | None:
        """The state of the follow after the last revision that was put in, for its `state`."""
        return self._held.state

    @property
    def is_pending(self) -> bool:
        """Whether a revision is to be sent."""
        return self._held.pending(self._format) is not None

    def put(self, revision: Revision, state: str) -> None:
        """Stores a revision, and the state of its follow after it: `revisions.state()`.

        Raises:
            ConfigError: `out_of_order` if another revision is pending: push it first.
            OSError: of the file. Nothing is changed then.
        """
        self._store(self._held.put(revision, state, self._format))

    def push(
        self,
        url: str,
        labels: Mapping[str, str] | None = None,
        **options: Any,  # noqa: ANN401
    ) -> PushReport | None:
        """Sends what is pending; `None` if nothing is. Arguments are those of `tallyfold.push`.

        After an error the revision is still pending: push again to go on with it, or `drop` it.
        """
        found = self._held.pending(self._format)
        if found is None:
            return None
        changes, finished = found
        report = push(
            changes,  # type: ignore[arg-type]
            self._format,
            url,
            labels,
            finished=finished,
            on_finished=lambda samples: self._store(self._held.finish(samples)),
            **options,
        )
        self.drop()
        return report

    async def async_push(
        self,
        url: str,
        labels: Mapping[str, str] | None = None,
        **options: Any,  # noqa: ANN401
    ) -> PushReport | None:
        """The same in asyncio, with the arguments of `tallyfold.async_push`."""
        found = self._held.pending(self._format)
        if found is None:
            return None
        changes, finished = found
        report = await async_push(
            changes,  # type: ignore[arg-type]
            self._format,
            url,
            labels,
            finished=finished,
            on_finished=lambda samples: asyncio.to_thread(self._store, self._held.finish(samples)),
            **options,
        )
        await asyncio.to_thread(self.drop)
        return report

    def drop(self) -> None:
        """Gives up what is pending: it is not sent any more."""
        self._store(self._held.clear())

    def _store(self, held: Held) -> None:
        with replacing(self._path) as file:
            file.write(held.to_json().encode())
        self._held = held

    def __repr__(self) -> str:
        """Says whether something is pending."""
        return f"<Outbox of {self._format}: {'one revision' if self.is_pending else 'empty'}>"

    def __reduce__(self) -> NoReturn:
        """Refuses to be pickled or copied."""
        raise TypeError("an Outbox can't be pickled or copied: one process at a time may use it")
