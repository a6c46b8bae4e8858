"""The size of what is done or answered in one go."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")

PAGE_BYTES = 3 * 1024 * 1024
"""A page holds fewer rows when they are large: gRPC's clients refuse answers above 4 MiB unless
they are told otherwise, and the server those above `MNEME_MAX_MESSAGE_BYTES`."""

_ESCAPED = 6
"""Characters of JSON, as in `\\u0001`, that are one byte of a message at most."""


def least_bytes(texts: int, json: int) -> int:
    """Return how many bytes an answer takes at least that holds so many characters of texts, and as
    objects what is so many characters of canonical JSON."""
    return texts + json // _ESCAPED


def parts(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """Yield the items, in order, in parts of at most `size`; nothing when there are none."""
    for start in range(0, len(items), size):
        yield items[start : start + size]
