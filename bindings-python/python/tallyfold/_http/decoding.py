"""Compressed responses, decoded in pieces of bounded size."""

import zlib
from collections.abc import Iterator

import httpx2

__all__ = ["Gunzip", "decoder", "is_decoded"]

PIECE = 64 * 1024
"""The bytes of a decoded piece, at most. Ten bytes may decode to ten thousand."""


class Gunzip:
    """Decodes one gzip member, and nothing before or after it."""

    def __init__(self) -> None:
        """Has read nothing yet."""
        self._inflate = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)

    def pieces(self, chunk: bytes) -> Iterator[bytes]:
        """Gives what a chunk decodes to. Whoever takes the pieces may stop between two of them.

        Raises:
            DecodingError: for bytes that aren't gzip, or come after its end.
        """
        piece = b""
        # A full piece may not be the last one, even if all bytes of the chunk are taken in.
        while chunk or len(piece) == PIECE:
            if self._inflate.eof:
                if chunk:
                    raise httpx2.DecodingError("bytes after the end of the gzip member")
                return
            try:
                piece = self._inflate.decompress(chunk, PIECE)
            except zlib.error as error:
                raise httpx2.DecodingError(str(error)) from error
            chunk = self._inflate.unconsumed_tail or self._inflate.unused_data
            if piece:
                yield piece

    def end(self) -> None:
        """Checks that the member is complete, with its checksum.

        Raises:
            DecodingError: if it is not.
        """
        if not self._inflate.eof:
            raise httpx2.DecodingError("the gzip member has no end")


class _Plain:
    """Gives a response that is not compressed as it is."""

    def pieces(self, chunk: bytes) -> tuple[bytes]:
        """Gives the chunk."""
        return (chunk,)

    def end(self) -> None:
        """Has nothing to check."""


def decoder(response: httpx2.Response) -> "Gunzip | _Plain":
    """What decodes a response, whose head the core has accepted: it has no coding but gzip."""
    coding = response.headers.get("content-encoding", "").strip().lower()
    return Gunzip() if coding in {"gzip", "x-gzip"} else _Plain()


def is_decoded(response: httpx2.Response) -> bool:
    """Whether httpx2 has decoded it already, as it does with a body that is given in one piece."""
    return response.is_stream_consumed
