"""Whoever asks for a reranking gets one in time, or is told to go on without."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextvars import copy_context

import numpy as np
import pytest
from mneme_server.common.deadline import within
from mneme_server.common.fairness import enter
from mneme_server.features.recall.reranker import (
    DeferredReranker,
    Relevance,
    Reranking,
    RerankingError,
)


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
        assert self.hold.wait(60)
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
    soon = DeferredReranker(fake, patience_s=20)
    assert soon.order("q", ["a", "bbb", "c", "dd"]) == ([1, 3, 0, 2], Reranking.DONE)


def test_who_has_less_time_waits_for_half_of_it(fake: FakeReranker) -> None:
    fake.hold.clear()
    soon = DeferredReranker(fake, patience_s=60)
    began = time.monotonic()
    with within(0.2):
        assert soon.order("q", ["a"]) == (None, Reranking.LATE)
    assert time.monotonic() - began < 30  # Not the patience of those who have the time.


class Callers:
    """Threads that ask for an order and wait for it, one after the other."""

    def __init__(self, soon: DeferredReranker, fake: FakeReranker) -> None:
        self._soon = soon
        self._fake = fake
        self._threads: list[threading.Thread] = []
        self.found: list[object] = []

    def wait(self, tenant_id: str) -> None:
        def ask() -> None:
            enter(tenant_id)
            self.found.append(self._soon.order("q", ["a"]))

        thread = threading.Thread(target=ask)
        thread.start()
        self._threads.append(thread)
        assert self._fake.began.acquire(timeout=30)

    def join(self) -> None:
        self._fake.hold.set()
        for thread in self._threads:
            thread.join(30)


def order_for(tenant_id: str, soon: DeferredReranker) -> object:
    return copy_context().run(lambda: (enter(tenant_id), soon.order("q", ["a"]))[1])


def test_beyond_the_seats_nobody_queues(fake: FakeReranker) -> None:
    fake.hold.clear()
    soon = DeferredReranker(fake, patience_s=60)
    callers = Callers(soon, fake)
    for _ in range(3):
        callers.wait("ann")
    assert order_for("ann", soon) == (None, Reranking.LATE)
    callers.join()
    assert callers.found == [([0], Reranking.DONE)] * 3
    assert order_for("ann", soon) == ([0], Reranking.DONE)


def test_a_tenant_that_asks_all_the_time_leaves_others_a_seat(fake: FakeReranker) -> None:
    fake.hold.clear()
    soon = DeferredReranker(fake, patience_s=60)
    callers = Callers(soon, fake)
    for tenant_id in ("ann", "ann", "ann", "bob", "bob", "eve"):
        callers.wait(tenant_id)
    assert order_for("ann", soon) == (None, Reranking.LATE)
    assert order_for("ivo", soon) == (None, Reranking.LATE)
    callers.join()
    assert callers.found == [([0], Reranking.DONE)] * 6


def test_after_a_failure_nobody_asks_for_a_while(fake: FakeReranker) -> None:
    soon = DeferredReranker(fake, patience_s=20)
    fake.answer = fail
    assert soon.order("q", ["a"]) == (None, Reranking.FAILED)
    fake.answer = len
    assert soon.order("q", ["a"]) == (None, Reranking.FAILED)
    assert fake.calls == 1


def test_closing_it_lets_callers_go_on_without(fake: FakeReranker) -> None:
    soon = DeferredReranker(fake, patience_s=20)
    soon.close()
    assert fake.closed
    assert soon.order("q", ["a"]) == (None, Reranking.FAILED)
