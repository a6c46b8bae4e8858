"""Which rows carry a tag."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Int32s = NDArray[np.int32]

_NONE: Int32s = np.empty(0, np.int32)


_TAGGED_BYTES = 200
"""Of a document that has tags: its place in a dictionary, and the tuple of them."""


class TagPostings:
    """The rows of every tag. One writer; readers need no lock."""

    def __init__(self) -> None:
        self._postings: dict[str, Int32s] = {}
        self._buffers: dict[str, Int32s] = {}
        self._tags: dict[int, tuple[str, ...]] = {}

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays, and about those of each document's tags."""
        arrays = sum(buffer.nbytes for buffer in list(self._buffers.values()))
        return arrays + _TAGGED_BYTES * len(self._tags)

    def rows(self, tag: str) -> Int32s:
        """Return the rows that carry `tag`, in no particular order."""
        return self._postings.get(tag, _NONE)

    def put(self, row: int, tags: tuple[str, ...]) -> None:
        """Make `tags` the tags of `row`."""
        before = self._tags.get(row, ())
        if before == tags:
            return
        for tag in set(before) - set(tags):
            kept = self._postings[tag][self._postings[tag] != row]
            self._buffers[tag] = kept
            self._postings[tag] = kept
        for tag in set(tags) - set(before):
            self._append(tag, row)
        if tags:
            self._tags[row] = tags
        else:
            self._tags.pop(row, None)

    def _append(self, tag: str, row: int) -> None:
        buffer = self._buffers.get(tag, _NONE)
        size = self._postings.get(tag, _NONE).size
        if size == buffer.size:
            larger = np.empty(max(2, size + size // 2 + 1), np.int32)
            larger[:size] = buffer
            buffer = self._buffers[tag] = larger
        buffer[size] = row
        self._postings[tag] = buffer[: size + 1]
