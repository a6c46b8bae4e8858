"""The queues in which texts wait to be embedded: three, and in each of them tenants take turns. And
the count of the calls that wait for long.
"""

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
from mneme_server.engine.embedding.port import EmbeddingError

LONG = 500
"""Characters of a call's texts beyond which the call is long: it takes a local model many times as
long as a question does."""
_MOST_COUNTED = 1_500
"""Characters of a text that count: models read no further, or not much."""
_FULL_BATCH = 8_000
"""Characters in a batch of long calls or background work: what a free worker may have to be waited
for."""


class EmbedQueue(enum.IntEnum):
    """Where pieces wait, the first to be served first."""

    SHORT = 0
    LONG = 1
    BACKGROUND = 2


@dataclass(eq=False)
class EmbedCall:
    """One caller's embed(): complete when every piece has its rows or one has failed."""

    tenant_id: str
    queue: EmbedQueue
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


class EmbedQueues:
    """The pieces that wait, and whose turn it is. Not thread-safe.

    Short calls go first. Long ones and background work are each served by all but two of the
    workers, and together by all but one (of a single one too), in batches of few characters: a
    short text finds a worker free, or one that other short texts will free soon, and neither of
    the others stops the third. Short ones are served by all but one.

    Args:
        workers: how many batches are in work at once.
        batch_sizes: texts in a batch, by queue.
    """

    def __init__(self, workers: int, batch_sizes: Sequence[int]) -> None:
        self._batch_sizes = tuple(batch_sizes)
        # Two for short ones, too: of three, each would have batches too small to be worth it.
        self._workers_of = (max(1, workers - 1), max(1, workers - 2), max(1, workers - 2))
        self._workers_of_bulk = max(1, workers - 1)
        self._pieces = tuple(FairQueue[Piece]() for _ in EmbedQueue)
        self._queued: Counter[str] = Counter()  # Texts by tenant.
        self._running: Counter[EmbedQueue] = Counter()  # Batches.

    @property
    def queued(self) -> int:
        """Texts that wait."""
        return self._queued.total()

    def queued_of(self, tenant_id: str) -> int:
        """Return how many of a tenant's texts wait."""
        return self._queued[tenant_id]

    def cut(self, call: EmbedCall, texts: Sequence[str]) -> Iterator[Piece]:
        """Yield the pieces of a call, each no larger than a batch of its queue."""
        most, part, characters = self._batch_sizes[call.queue], list[str](), 0
        for text in texts:
            counted = min(len(text), _MOST_COUNTED)
            if part and (len(part) == most or _is_full(call.queue, characters + counted)):
                yield Piece(call, part, characters)
                part, characters = [], 0
            part.append(text)
            characters += counted
        if part:
            yield Piece(call, part, characters)

    def are_one_batch(self, texts: Sequence[str], queue: EmbedQueue) -> bool:
        """Whether a call of these texts is no larger than a batch of the queue."""
        if queue is EmbedQueue.SHORT:
            return True
        characters = sum(min(len(text), _MOST_COUNTED) for text in texts)
        few = len(texts) <= self._batch_sizes[queue]
        return few and (len(texts) == 1 or not _is_full(queue, characters))

    def push(self, piece: Piece) -> None:
        """Put a piece at the end of its queue."""
        call = piece.call
        self._pieces[call.queue].push(call.tenant_id, piece, piece.characters)
        self._queued[call.tenant_id] += len(piece.texts)

    def remove(self, piece: Piece) -> None:
        """Take a piece out of its queue, if it waits there."""
        if self._pieces[piece.call.queue].remove(piece.call.tenant_id, piece):
            self._gone(piece)

    def next(self) -> EmbedQueue | None:
        """Return the queue that a free worker should take from; None when it should wait."""
        for queue in EmbedQueue:
            if not self._pieces[queue] or self._running[queue] >= self._workers_of[queue]:
                continue
            if queue is EmbedQueue.SHORT or self._bulk < self._workers_of_bulk:
                return queue
        return None

    def take(self, queue: EmbedQueue) -> list[Piece]:
        """Remove a batch from a queue, for a worker that says when it is `done`."""
        batch: list[Piece] = []
        size = characters = 0

        def fits(piece: Piece) -> bool:
            return not batch or (
                size + len(piece.texts) <= self._batch_sizes[queue]
                and not _is_full(queue, characters + piece.characters)
            )

        while piece := self._pieces[queue].pop(fits):
            self._gone(piece)
            batch.append(piece)
            size += len(piece.texts)
            characters += piece.characters
        self._running[queue] += 1
        return batch

    def enter(self, queue: EmbedQueue) -> bool:
        """Have someone do a worker's work who brings it, until it is `done`: if the queue is empty
        and a worker might take from it now."""
        if self._pieces[queue] or self._running[queue] >= self._workers_of[queue]:
            return False
        if queue is not EmbedQueue.SHORT and self._bulk >= self._workers_of_bulk:
            return False
        self._running[queue] += 1
        return True

    def done(self, queue: EmbedQueue) -> None:
        """Say that a worker is done with what it took."""
        self._running[queue] -= 1

    @property
    def _bulk(self) -> int:
        """Batches in work for nobody who waits for a short text."""
        return self._running[EmbedQueue.LONG] + self._running[EmbedQueue.BACKGROUND]

    def _gone(self, piece: Piece) -> None:
        tenant_id = piece.call.tenant_id
        self._queued[tenant_id] -= len(piece.texts)
        if not self._queued[tenant_id]:
            del self._queued[tenant_id]


class SlowCalls:
    """The calls that wait for longer than they should, counted by their tenants.

    That others' calls wait is no reason to refuse one, unless so many tenants' do that it can only
    be the embedder: `most` calls may wait in all, and as many again that are the first of their
    tenants. The caller's lock guards it.

    Args:
        most: None for no limit.
    """

    def __init__(self, most: int | None) -> None:
        self._most = most
        self._waiting: Counter[str] = Counter()

    def count_of(self, tenant_id: str) -> int:
        """Return how many calls of the tenant wait for long."""
        return self._waiting[tenant_id]

    def have_room(self, tenant_id: str) -> bool:
        """Whether one more call of the tenant may wait for long."""
        if self._most is None:
            return True
        return self._waiting.total() < self._most * (1 if self.count_of(tenant_id) else 2)

    def add(self, tenant_id: str) -> bool:
        """Count a call of the tenant; False, and uncounted, where there is no room for it."""
        room = self.have_room(tenant_id)
        if room:
            self._waiting[tenant_id] += 1
        return room

    def remove(self, tenant_id: str) -> None:
        """Count a call of the tenant no more."""
        self._waiting -= Counter([tenant_id])  # Forgets who has none left.


def queue_of(texts: Sequence[str]) -> EmbedQueue:
    """Return the queue of a call that somebody waits for."""
    return EmbedQueue.SHORT if sum(map(len, texts)) <= LONG else EmbedQueue.LONG


def _is_full(queue: EmbedQueue, characters: int) -> bool:
    return queue is not EmbedQueue.SHORT and characters > _FULL_BATCH
