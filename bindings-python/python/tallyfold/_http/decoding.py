"""Compressed responses, decoded in pieces of bounded size."""

import zlib
from collections.abc import Iterator

import httpx2

__all__ = ["Gunzip", "decoder", "is_decoded"]

PIECE = 64 * 1024
"""The maximum number of bytes in a decoded piece. Ten bytes may decode to ten thousand."""


class Gunzip:
    """Decodes one gzip member, and nothing before or after it."""

    def __init__(self) -> None:
        """Has read nothing yet."""
        self._inflate = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)

    def pieces(self, chunk: bytes) -> Iterator[bytes]:
        """Yields what a chunk decodes to. The caller may stop between two pieces.

        Raises:
            DecodingError: for bytes that aren't gzip, or come after its end.
        """
        piece = b""
        # After a full piece, another may follow, even if all bytes of the chunk are consumed.
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
    """Passes on the bytes of a response that is not compressed."""

    def pieces(self, chunk: bytes) -> tuple[bytes]:
        """Returns the chunk as the only piece."""
        return (chunk,)

    def end(self) -> None:
        """Has nothing to check."""


def decoder(response: httpx2.Response) -> "Gunzip | _Plain":
    """Returns a decoder for a response. The core accepts no content encoding other than gzip."""
    coding = response.headers.get("content-encoding", "").strip().lower()
    return Gunzip() if coding in {"gzip", "x-gzip"} else _Plain()


def is_decoded(response: httpx2.Response) -> bool:
    """Whether httpx2 has already decoded the body, as it does with a body given in one piece."""
    return response.is_stream_consumed
