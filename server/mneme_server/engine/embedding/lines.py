"""Lines in which texts wait to be embedded: three, and in each of them tenants take turns."""

from __future__ import annotations

import enum
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from mneme_server.common import deadline
from mneme_server.common.fairness import FairQueue
from mneme_server.engine.embedding.errors import EmbeddingError

LONG = 500
"""Characters of a call's texts beyond which the call is long: it takes a local model many times as
long as a question does."""
_MOST_COUNTED = 1_500
"""Characters of a text that count: models read no further, or not much."""
_FULL_BATCH = 8_000
"""Characters in a batch of long calls or background work: what a free worker may have to be waited
for."""


class Line(enum.IntEnum):
    """Where pieces wait, the first to be served first."""

    SHORT = 0
    LONG = 1
    BACKGROUND = 2


@dataclass(eq=False)
class EmbedCall:
    """One caller's embed(): complete when every piece has its rows or one has failed."""

    tenant_id: str
    line: Line
    time_left: deadline.TimeLeft
    asked: bool = False
    """Whether its texts are questions, and the embedder tells these from other texts."""
    pending: int = 0
    done: threading.Event = field(default_factory=threading.Event)
    error: EmbeddingError | None = None

    @property
    def is_over(self) -> bool:
        """Whether no piece of it is waited for any more."""
        return self.pending == 0 or self.error is not None


@dataclass(eq=False)
class Piece:
    """A part of a call that fits a batch. Its rows (n, d) are there once it was embedded."""

    call: EmbedCall
    texts: Sequence[str]
    characters: int
    rows: NDArray[np.float32] | None = None


class Lines:
    """The pieces that wait, and whose turn it is. Not thread-safe.

    Short calls go first. Long ones and background work are each served by all but two of the
    workers, and together by all but one (of a single one too), in batches of few characters: a
    short text finds a worker free, or one that other short texts will free soon, and neither of
    the others stops the third. Short ones are served by all but one.

    Args:
        workers: how many batches are in work at once.
        batch_sizes: texts in a batch, by line.
    """

    def __init__(self, workers: int, batch_sizes: Sequence[int]) -> None:
        self._batch_sizes = tuple(batch_sizes)
        # Two for short ones, too: of three, each would have batches too small to be worth it.
        self._workers_of = (max(1, workers - 1), max(1, workers - 2), max(1, workers - 2))
        self._workers_of_bulk = max(1, workers - 1)
        self._queues = tuple(FairQueue[Piece]() for _ in Line)
        self._queued: Counter[str] = Counter()  # Texts by tenant.
        self._running: Counter[Line] = Counter()  # Batches.

    @property
    def queued(self) -> int:
        """Texts that wait."""
        return self._queued.total()

    def queued_of(self, tenant_id: str) -> int:
        """Return how many of a tenant's texts wait."""
        return self._queued[tenant_id]

    def cut(self, call: EmbedCall, texts: Sequence[str]) -> Iterator[Piece]:
        """Yield the pieces of a call, each no larger than a batch of its line."""
        most, part, characters = self._batch_sizes[call.line], list[str](), 0
        for text in texts:
            counted = min(len(text), _MOST_COUNTED)
            if part and (len(part) == most or _is_full(call.line, characters + counted)):
                yield Piece(call, part, characters)
                part, characters = [], 0
            part.append(text)
            characters += counted
        if part:
            yield Piece(call, part, characters)

    def push(self, piece: Piece) -> None:
        """Put a piece at the end of its line."""
        call = piece.call
        self._queues[call.line].push(call.tenant_id, piece, piece.characters)
        self._queued[call.tenant_id] += len(piece.texts)

    def remove(self, piece: Piece) -> None:
        """Take a piece out of its line, if it waits there."""
        if self._queues[piece.call.line].remove(piece.call.tenant_id, piece):
            self._gone(piece)

    def next(self) -> Line | None:
        """Return the line that a free worker should take from; None when it should wait."""
        bulk = self._running[Line.LONG] + self._running[Line.BACKGROUND]
        for line in Line:
            if not self._queues[line] or self._running[line] >= self._workers_of[line]:
                continue
            if line is Line.SHORT or bulk < self._workers_of_bulk:
                return line
        return None

    def take(self, line: Line) -> list[Piece]:
        """Remove a batch from a line, for a worker that says when it is `done`."""
        batch: list[Piece] = []
        size = characters = 0

        def fits(piece: Piece) -> bool:
            return not batch or (
                size + len(piece.texts) <= self._batch_sizes[line]
                and not _is_full(line, characters + piece.characters)
            )

        while piece := self._queues[line].pop(fits):
            self._gone(piece)
            batch.append(piece)
            size += len(piece.texts)
            characters += piece.characters
        self._running[line] += 1
        return batch

    def enter(self, line: Line) -> bool:
        """Have someone do a worker's work who brings it, until it is `done`: if the line is empty
        and a worker might take from it now."""
        if self._queues[line] or self._running[line] >= self._workers_of[line]:
            return False
        self._running[line] += 1
        return True

    def done(self, line: Line) -> None:
        """Say that a worker is done with what it took."""
        self._running[line] -= 1

    def _gone(self, piece: Piece) -> None:
        tenant_id = piece.call.tenant_id
        self._queued[tenant_id] -= len(piece.texts)
        if not self._queued[tenant_id]:
            del self._queued[tenant_id]


def line_of(texts: Sequence[str]) -> Line:
    """Return the line of a call that somebody waits for."""
    return Line.SHORT if sum(map(len, texts)) <= LONG else Line.LONG


def _is_full(line: Line, characters: int) -> bool:
    return line is not Line.SHORT and characters > _FULL_BATCH
