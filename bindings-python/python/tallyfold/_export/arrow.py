"""Exports as Parquet and Arrow IPC, which pyarrow writes."""

import io
import threading
from collections.abc import Iterator
from typing import Any

from tallyfold._extras import installed
from tallyfold._tallyfold import Columns
from tallyfold._values import Note

__all__ = ["MEDIA_TYPES", "Table"]

MEDIA_TYPES = {
    "parquet": "application/vnd.apache.parquet",
    "arrow": "application/vnd.apache.arrow.stream",
}
"""The formats that are made of columns."""

PIECE = 1 << 20
"""The default maximum number of bytes in a piece."""


class Table:
    """An export as a file of columns. Each call of `again` begins with the first piece."""

    is_messages = False

    def __init__(self, format: str, columns: Columns, max_bytes: int | None) -> None:  # noqa: A002
        """Imports pyarrow, and raises `ModuleNotFoundError` if it is not installed."""
        message = f"{format} needs pyarrow: pip install 'tallyfold[arrow]'"
        self._pyarrow, *_ = installed(message, "pyarrow", "pyarrow.ipc", "pyarrow.parquet")
        self._format = format
        self._columns = columns
        # No piece is smaller than a byte.
        self._most = PIECE if max_bytes is None else max(max_bytes, 1)

    @property
    def media_type(self) -> str:
        """The media type of the file."""
        return MEDIA_TYPES[self._format]

    @property
    def notes(self) -> list[Note]:
        """Notes about the export."""
        return self._columns.notes

    def again(self) -> Iterator[bytes]:
        """Returns an iterator over all pieces."""
        return _OneByOne(self._pieces())

    def _pieces(self) -> Iterator[bytes]:
        pa, written = self._pyarrow, _Written()
        reader = pa.RecordBatchReader.from_stream(self._columns)
        with pa.PythonFile(written, mode="w") as file:
            with self._writer(file, reader.schema) as writer:
                for batch in reader:
                    writer.write_batch(batch)
                    yield from written.taken(self._most)
            yield from written.taken(self._most)

    def _writer(self, file: object, schema: object) -> Any:  # noqa: ANN401
        pa = self._pyarrow
        if self._format == "arrow":
            return pa.ipc.new_stream(file, schema)
        return pa.parquet.ParquetWriter(file, schema)


class _OneByOne(Iterator[bytes]):
    """An iterator that threads may share."""

    def __init__(self, inner: Iterator[bytes]) -> None:
        self._inner = inner
        self._lock = threading.Lock()

    def __next__(self) -> bytes:
        with self._lock:
            return next(self._inner)


class _Written(io.RawIOBase):
    """A file that keeps only the bytes that were not taken yet."""

    def __init__(self) -> None:
        super().__init__()
        self._held: list[bytes] = []
        self._length = 0

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._length

    def write(self, data: Any, /) -> int:  # noqa: ANN401
        piece = bytes(data)
        self._held.append(piece)
        self._length += len(piece)
        return len(piece)

    def taken(self, most: int) -> Iterator[bytes]:
        """Yields what was written since the last call, in pieces of at most `most` bytes."""
        held, self._held = b"".join(self._held), []
        for start in range(0, len(held), most):
            yield held[start : start + most]
