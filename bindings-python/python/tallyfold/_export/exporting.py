"""Exports: exact counts in the formats of observability systems."""

import io
import os
import warnings
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, BinaryIO, NoReturn, Protocol, Unpack, final

from tallyfold._arguments import ExportArguments
from tallyfold._errors import ConfigError, wrong_type
from tallyfold._export.arrow import MEDIA_TYPES, Table
from tallyfold._files.file import given_path, replacing
from tallyfold._names import ExportFormat, NoteKind
from tallyfold._ranges.values import Revision
from tallyfold._tallyfold import Columns, CountTable, Pieces, Series
from tallyfold._time import Now
from tallyfold._values import Note

__all__ = [
    "Export",
    "ExportWarning",
    "InexactCountWarning",
    "LabelLimitWarning",
    "LongValueWarning",
    "WindowsLeftOutWarning",
    "export",
    "warn_of",
]


class ExportWarning(UserWarning):
    """A warning about an export. Each subclass is one kind of warning.

    >>> issubclass(tallyfold.InexactCountWarning, tallyfold.ExportWarning)
    True
    """


class InexactCountWarning(ExportWarning):
    """A count is above 2^53, and the target stores 64-bit floats. `exact=True` makes it an error.

    >>> import warnings
    >>> warnings.simplefilter("error", tallyfold.InexactCountWarning)
    """


class WindowsLeftOutWarning(ExportWarning):
    """Windows were left out, because their counts may still change or are incomplete.

    >>> import warnings
    >>> warnings.simplefilter("ignore", tallyfold.WindowsLeftOutWarning)
    """


class LongValueWarning(ExportWarning):
    """A value is longer than the default limit of a system that reads the format.

    >>> import warnings
    >>> warnings.simplefilter("error", tallyfold.LongValueWarning)
    """


class LabelLimitWarning(ExportWarning):
    """A sample has more labels, or longer label names, than a system that reads the format accepts.

    >>> import warnings
    >>> warnings.simplefilter("error", tallyfold.LabelLimitWarning)
    """


_WARNINGS: dict[NoteKind, type[ExportWarning]] = {
    "inexact_count": InexactCountWarning,
    "windows_left_out": WindowsLeftOutWarning,
    "long_value": LongValueWarning,
    "label_limit": LabelLimitWarning,
}


class _Whole(Protocol):
    """An object whose `again` returns an iterator over all pieces, from the first one."""

    @property
    def media_type(self) -> str: ...
    @property
    def is_messages(self) -> bool: ...
    @property
    def notes(self) -> list[Note]: ...
    def again(self) -> Iterator[bytes]: ...


@final
class Export(Iterator[bytes]):
    """An export: an iterator over pieces of bytes. `export` returns it.

    The export makes each piece when it is requested, so memory does not grow with the number of
    rows. Threads may share an export; each piece goes to one of them.

    >>> exported = tallyfold.export(table, "openmetrics")
    >>> exported
    <Export: openmetrics>
    >>> b"".join(exported).splitlines()[-1]
    b'# EOF'
    """

    __slots__ = ("_format", "_notes", "_pieces", "_whole")

    def __init__(self, format: ExportFormat, whole: _Whole) -> None:  # noqa: A002
        """Begins with the first piece."""
        self._format = format
        self._whole = whole
        self._pieces = whole.again()
        self._notes = tuple(whole.notes)

    @property
    def media_type(self) -> str:
        """The media type of the export, for `Content-Type`.

        >>> tallyfold.export(table, "openmetrics").media_type
        'application/openmetrics-text; version=1.0.0; charset=utf-8'
        """
        return self._whole.media_type

    @property
    def notes(self) -> tuple[Note, ...]:
        """Notes about the export. Each was also issued as a warning."""
        return self._notes

    @property
    def is_messages(self) -> bool:
        """Whether each piece is a message of its own, to be sent separately.

        Otherwise, all pieces together are one text.

        >>> tallyfold.export(table, "openmetrics").is_messages
        False
        """
        return self._whole.is_messages

    def __next__(self) -> bytes:
        """Returns the next piece."""
        return next(self._pieces)

    def write_to(self, target: "str | os.PathLike[str] | BinaryIO") -> int:
        """Writes the whole export, even if pieces were read before, and returns how many bytes.

        With a path, the file is replaced atomically, once everything is written and synced to the
        disk: if anything fails, the old file stays as it was. A file object gets the pieces one by
        one, and stays open. Its `write` must return how many bytes it has written; if some are
        left, it is called again with the rest.

        Raises:
            OSError: for a failure of the file; `BlockingIOError` if `write` returns `None`, as a
                non-blocking raw file does when it can't accept bytes.
            ConfigError: `unsupported_by_format` if the counts need more than one message of the
                format, because a file can contain only one: iterate, and send or write each message
                separately.

        >>> import pathlib, tempfile
        >>> directory = tempfile.TemporaryDirectory()
        >>> path = pathlib.Path(directory.name) / "counts.txt"
        >>> tallyfold.export(table, "openmetrics").write_to(path) == path.stat().st_size
        True
        >>> directory.cleanup()
        """
        if isinstance(target, (str, os.PathLike)):
            with replacing(given_path("target", target)) as file:
                return self._write(file)
        if isinstance(target, io.TextIOBase) or not callable(getattr(target, "write", None)):
            raise wrong_type("target", "want a path, or a file that is open for bytes", target)
        return self._write(target)

    def _write(self, file: BinaryIO) -> int:
        written = 0
        for number, piece in enumerate(self._whole.again()):
            if number and self.is_messages:
                message = (
                    "unsupported_by_format: the counts take more than one message of "
                    f"{self._format}, which a file cannot hold: iterate over the export and "
                    "write each by itself, or give a larger max_bytes"
                )
                raise ConfigError(message, code="unsupported_by_format")
            _write_all(file, piece)
            written += len(piece)
        return written

    def __repr__(self) -> str:
        """Names the format."""
        return f"<Export: {self._format}>"

    def __reduce__(self) -> NoReturn:
        """Refuses to be pickled or copied."""
        raise TypeError("an Export can't be pickled or copied: export the counts again")


def _write_all(file: BinaryIO, piece: bytes) -> None:
    rest = memoryview(piece)
    while rest:
        # A raw file may write only a part, even inside a wrapper, as in `tempfile`.
        taken: object = file.write(rest)
        if taken is None:
            message = (
                "the file's write returned None: it takes no bytes now, or does not say how many; "
                "open it as one that blocks"
            )
            raise BlockingIOError(message)
        if not isinstance(taken, int) or not 0 < taken <= len(rest):
            raise OSError(f"the file's write returned {taken!r} for {len(rest)} bytes")
        rest = rest[taken:]


def export(
    counts: CountTable | Series | Revision,
    format: ExportFormat,  # noqa: A002
    labels: Mapping[str, str] | None = None,
    **options: Unpack[ExportArguments],
) -> Export:
    """Writes counts in the format of another system.

    The time of a sample is the last millisecond of its window. The changes of a revision have the
    label `revision` with its number, and the sum of all revisions of a window is its newest count.

    Args:
        counts: a table, with a sample for each group in each window; a series; or a revision of a
            `follow`, with its signed changes.
        format: `"openmetrics"`, `"remote-write"` and `"remote-write-2"` (Prometheus), `"otlp"` and
            `"otlp-json"` (OpenTelemetry), `"influx"`, `"dogstatsd"`, `"statsd"`, `"datadog"`,
            `"csv"`, `"ndjson"`; `"parquet"` and `"arrow"` (an Arrow IPC stream), which pyarrow
            writes: `pip install 'tallyfold[arrow]'`.
        labels: names and values that each sample gets in addition to its dimensions, such as
            `{"cluster": "eu-1"}`.
        name: the prefix of the names of metrics, instead of `tallyfold` and the endpoint. The
            dimensions follow, as in `tallyfold_event_delivery_by_integration`: counts by other
            dimensions are other metrics, so that no sum contains an event twice.
        windows: `"settled"` for complete windows that no longer change, or `"all"`. By default,
            CSV, NDJSON, Parquet and Arrow contain all windows, and other formats only settled ones,
            because counts that another system has accepted can't be changed. A revision is always
            written.
        exact: whether counts above 2^53 are an error, if the target stores 64-bit floats; by
            default, they are written with an `InexactCountWarning`.
        max_bytes: the approximate maximum size of a piece in bytes, before compression.

    Raises:
        ConfigError: for arguments that can't be used; `unsupported_by_format` for counts that the
            format can't represent.
        ResponseError: `inexact_count` with `exact`; `count_overflow` for a count above 2^63 - 1, if
            the format stores signed integers.

    >>> counts = table.group_by("integration")
    >>> exported = tallyfold.export(counts, "openmetrics", {"cluster": "eu-1"}, name="app")
    >>> print(b"".join(exported).decode())
    # TYPE app_by_integration_success_events gauge
    ...
    app_by_integration_success_events{cluster="eu-1",integration="warehouse"} 7 1767226499.999
    ...
    # EOF
    """
    given: Any = {"format": format, "labels": labels, **options}
    whole: _Whole
    if isinstance(format, str) and format in MEDIA_TYPES:
        whole = Table(format, Columns(counts, **given), options.get("max_bytes"))
    else:
        whole = Pieces(counts, Now.read().unix_ms, **given)
    exported = Export(format, whole)
    warn_of(exported.notes)
    return exported


def warn_of(notes: Iterable[Note]) -> None:
    """Issues notes as warnings, which point to the code that calls the caller of this function."""
    for note in notes:
        warnings.warn(note.message, _WARNINGS[note.kind], stacklevel=3)


# Pickles and docs should name the package, from which users import the classes.
for _class in (Export, ExportWarning, *_WARNINGS.values()):
    _class.__module__ = "tallyfold"
