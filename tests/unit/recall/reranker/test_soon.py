"""Whoever asks for a reranking gets one in time, or is told to go on without."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pytest
from mneme_server.common.deadline import within
from mneme_server.recall.reranker.port import Relevance, RerankingError
from mneme_server.recall.reranker.soon import Reranking, SoonReranker


class FakeReranker:
    """Answers with what `answer` gives for each text; waits for `hold` before it does."""

    model_id = "fake"

    def __init__(self, answer: Callable[[str], float] = len) -> None:
        self.answer = answer
        self.hold = threading.Event()
        self.hold.set()
        self.began = threading.Semaphore(0)
        self.calls = 0
        self.closed = False

    def relevance(self, query: str, texts: Sequence[str], *, until_s: float) -> Relevance:
        self.calls += 1
        self.began.release()
        assert self.hold.wait(30)
        return np.array([self.answer(text) for text in texts], np.float32)

    def close(self) -> None:
        self.closed = True


def fail(_text: str) -> float:
    raise RerankingError("it is down")


@pytest.fixture
def fake() -> Iterator[FakeReranker]:
    reranker = FakeReranker()
    yield reranker
    reranker.hold.set()


def test_the_best_answer_comes_first_and_equal_ones_stay_as_they_came(fake: FakeReranker) -> None:
    soon = SoonReranker(fake, patience_s=20)
    assert soon.order("q", ["a", "bbb", "c", "dd"]) == ([1, 3, 0, 2], Reranking.DONE)


def test_who_has_less_time_waits_for_half_of_it(fake: FakeReranker) -> None:
    fake.hold.clear()
    soon = SoonReranker(fake, patience_s=60)
    began = time.monotonic()
    with within(0.2):
        assert soon.order("q", ["a"]) == (None, Reranking.LATE)
    assert time.monotonic() - began < 30  # Not the patience of those who have the time.


def test_beyond_the_seats_nobody_queues(fake: FakeReranker) -> None:
    fake.hold.clear()
    soon = SoonReranker(fake, patience_s=20)
    found: list[object] = []
    waiting = [
        threading.Thread(target=lambda: found.append(soon.order("q", ["a"]))) for _ in range(4)
    ]
    for thread in waiting:
        thread.start()
    for _ in waiting:
        assert fake.began.acquire(timeout=10)
    assert soon.order("q", ["a"]) == (None, Reranking.LATE)
    fake.hold.set()
    for thread in waiting:
        thread.join(20)
    assert found == [([0], Reranking.DONE)] * 4
    assert soon.order("q", ["a"]) == ([0], Reranking.DONE)


def test_after_a_failure_nobody_asks_for_a_while(fake: FakeReranker) -> None:
    soon = SoonReranker(fake, patience_s=20)
    fake.answer = fail
    assert soon.order("q", ["a"]) == (None, Reranking.FAILED)
    fake.answer = len
    assert soon.order("q", ["a"]) == (None, Reranking.FAILED)
    assert fake.calls == 1


def test_closing_it_lets_callers_go_on_without(fake: FakeReranker) -> None:
    soon = SoonReranker(fake, patience_s=20)
    soon.close()
    assert fake.closed
    assert soon.order("q", ["a"]) == (None, Reranking.FAILED)
