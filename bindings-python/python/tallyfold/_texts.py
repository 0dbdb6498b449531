"""A type for any sequence of text that is not itself a text."""

from collections.abc import Iterator
from typing import Protocol

__all__ = ["Texts"]


class Texts(Protocol):
    """Every `Sequence[str]` but `str`, which can't be asked whether it contains any object."""

    def __contains__(self, value: object, /) -> bool: ...
    def __getitem__(self, index: int, /) -> str: ...
    def __iter__(self) -> Iterator[str]: ...
    def __len__(self) -> int: ...
