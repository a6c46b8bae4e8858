"""What is too much for one go is done in parts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")


def parts(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """Yield the items, in order, in parts of at most `size`; nothing when there are none."""
    for start in range(0, len(items), size):
        yield items[start : start + size]
