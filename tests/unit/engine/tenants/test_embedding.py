"""The turns of a tenant whose texts are embedded in the background."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from unittest.mock import MagicMock

import numpy as np
import pytest
from mneme_server.common.clock import now_us
from mneme_server.common.passages import passages
from mneme_server.engine.corpus.ports import Matrix
from mneme_server.engine.corpus.tenant_store import QueuedText
from mneme_server.engine.embedding.port import EmbeddingError
from mneme_server.engine.tenants.embedding import EmbeddingPipeline

BATCH = 4
LATER = 2**60


class Queue:
    """Implements what of `EmbeddingQueue` a step asks for."""

    def __init__(self, count: int) -> None:
        self.waiting = {i: QueuedText(i, 0, f"text {i}") for i in range(count)}
        self.put_off: dict[int, int] = {}
        self.made: dict[int, int] = {}
        self.asked = 0

    def due(self, now: int, limit: int) -> Sequence[QueuedText]:
        self.asked += 1
        return [one for i, one in self.waiting.items() if i not in self.put_off][:limit]

    def next_due_us(self) -> int | None:
        return min((self.put_off.get(i, 0) for i in self.waiting), default=None)

    def known_vectors(self, texts: Sequence[str]) -> dict[str, Matrix]:
        return {}

    def finish(self, embedded: Sequence[QueuedText], vectors: Sequence[Matrix]) -> None:
        for one, matrix in zip(embedded, vectors, strict=True):
            del self.waiting[one.doc_id]
            self.made[one.doc_id] = len(matrix)

    def defer(self, doc_ids: Sequence[int], *, until_us: int, error: str) -> None:
        self.put_off |= dict.fromkeys(doc_ids, until_us)


class Embedder:
    """Embeds, unless the text is said to fail."""

    def __init__(self, failing: str = "") -> None:
        self._failing = failing

    def embed(self, texts: Sequence[str]) -> Matrix:
        if self._failing in texts:
            raise EmbeddingError("not now", retryable=len(texts) == 1)
        return np.ones((len(texts), 2), np.float32)


def pipeline(queue: Queue, failing: str = "") -> EmbeddingPipeline:
    unit = MagicMock(queue=queue)

    @contextmanager
    def opened(_tenant_id: str) -> Iterator[Any]:
        tenant = MagicMock(pending=0)
        tenant.read.return_value.__enter__.return_value = unit
        tenant.write.return_value.__enter__.return_value = unit
        yield tenant

    return EmbeddingPipeline(opened, Embedder(failing), batch=BATCH)


def test_a_queue_that_a_step_emptied_has_no_further_turn() -> None:
    queue = Queue(BATCH - 1)
    assert pipeline(queue).step("acme") is None
    assert (queue.waiting, queue.asked) == ({}, 1)


@pytest.mark.parametrize("count", [BATCH, BATCH + 1])
def test_after_a_full_batch_the_next_turn_comes_at_once(count: int) -> None:
    queue = Queue(count)
    before = now_us()
    due = pipeline(queue).step("acme")
    assert due is not None
    assert before <= due <= now_us()


def test_what_failed_has_its_turn_when_it_is_tried_again() -> None:
    queue = Queue(2)
    due = pipeline(queue, failing="text 1").step("acme")
    assert queue.put_off == {1: due}
    assert due is not None
    assert due > now_us()


def test_of_a_long_text_each_passage_is_embedded_too() -> None:
    queue = Queue(2)
    text = "It is said once more. " * 100
    queue.waiting[1] = QueuedText(1, 0, text)
    pipeline(queue).step("acme")
    assert queue.made == {0: 1, 1: 1 + len(passages(text))}


def test_books_take_a_step_each_and_none_is_left() -> None:
    queue = Queue(BATCH - 1)
    for number in range(2):
        book = f"It is said once more, {number}. " * 20_000
        queue.waiting[number] = QueuedText(number, 0, book)
    embedding = pipeline(queue)
    left = []
    while queue.waiting:
        assert embedding.step("acme") is not None or not queue.waiting
        left.append(len(queue.waiting))
    assert left == [2, 1, 0], "the short ones behind them go first"
