"""Whoever waits for a short text, of a model in this process, computes it in a worker's place."""

import threading
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np
import pytest
from mneme_server.common import deadline
from mneme_server.engine.embedding.batcher import MicroBatcher
from mneme_server.engine.embedding.best_effort import BestEffortEmbedder
from mneme_server.engine.embedding.cache import CachedEmbedder
from mneme_server.engine.embedding.port import EmbeddingError
from numpy.typing import NDArray
from unit.engine.embedding.fakes import WAIT_S, FakeEmbedder, vector_of, wait_until


class InProcess(FakeEmbedder):
    """Remembers which thread computed each batch."""

    in_process = True

    def __init__(self) -> None:
        self.threads: dict[str, str] = {}
        super().__init__(self._note)

    def _note(self, texts: list[str]) -> None:
        self.threads |= dict.fromkeys(texts, threading.current_thread().name)


def held(
    batcher: MicroBatcher, embedder: InProcess, callers: ThreadPoolExecutor, *texts: str
) -> "list[Future[NDArray[np.float32]]]":
    """Have callers compute a text each until the embedder's gate is opened."""
    embedder.gate.clear()
    futures = [callers.submit(batcher.embed, [text]) for text in texts]
    for _ in texts:
        assert embedder.started.acquire(timeout=WAIT_S)
    return futures


def test_a_short_text_that_somebody_waits_for_is_computed_in_that_thread() -> None:
    embedder = InProcess()
    batcher = MicroBatcher(embedder)
    soon = BestEffortEmbedder(CachedEmbedder(batcher), patience_s=WAIT_S)
    mine = threading.current_thread().name
    np.testing.assert_array_equal(batcher.embed(["a"]), [vector_of("a")])
    np.testing.assert_array_equal(soon.embed(["b", "b"]), [vector_of("b")] * 2)
    assert embedder.threads == {"a": mine, "b": mine}
    batcher.close()


def test_what_is_begun_what_is_long_and_what_is_many_batches_are_left_to_the_workers() -> None:
    embedder = InProcess()
    batcher = MicroBatcher(embedder, background_batch=2)
    long = "a long text " * 60
    batcher.begin(["begun"])()
    batcher.embed([long])
    batcher.background.embed(["much", "in the", "background"])
    batcher.background.embed(["long " * 1_000, "longer " * 1_000] * 4)
    assert {"begun", long, "much", "in the", "background", "long " * 1_000} <= set(embedder.threads)
    assert all(name.startswith("embed-batch") for name in embedder.threads.values())
    batcher.close()


def test_a_batch_from_the_background_is_computed_in_a_workers_place_by_who_brings_it() -> None:
    embedder = InProcess()
    batcher = MicroBatcher(embedder, background_batch=2)
    batcher.background.embed(["one", "two"])
    assert embedder.batches == [["one", "two"]]
    assert set(embedder.threads.values()) == {threading.current_thread().name}
    batcher.close()


def test_the_background_waits_for_its_place_and_leaves_the_others_theirs(
    callers: ThreadPoolExecutor,
) -> None:
    embedder = InProcess()
    batcher = MicroBatcher(embedder, workers=3, background_batch=2)
    embedder.gate.clear()
    first = callers.submit(batcher.background.embed, ["bulk"])
    assert embedder.started.acquire(timeout=WAIT_S)
    second = callers.submit(batcher.background.embed, ["more"])
    wait_until(lambda: batcher.queued == 1)
    short = callers.submit(batcher.embed, ["short"])
    assert embedder.started.acquire(timeout=WAIT_S)
    assert batcher.queued == 1
    embedder.gate.set()
    for future in (first, second, short):
        future.result(WAIT_S)
    assert embedder.threads["more"].startswith("embed-batch")
    assert not embedder.threads["short"].startswith("embed-batch")
    batcher.close()


def test_a_text_of_a_backend_that_may_hang_is_left_to_the_workers() -> None:
    embedder = InProcess()
    embedder.in_process = False
    batcher = MicroBatcher(embedder)
    batcher.embed(["a"])
    assert embedder.threads["a"].startswith("embed-batch")
    batcher.close()


def test_callers_beyond_the_places_of_workers_wait_and_share_a_batch(
    callers: ThreadPoolExecutor,
) -> None:
    embedder = InProcess()
    batcher = MicroBatcher(embedder, workers=3)
    first = held(batcher, embedder, callers, "a", "b")  # As many as short texts may take.
    others = {text: callers.submit(batcher.embed, [text]) for text in "cdef"}
    wait_until(lambda: batcher.queued == 4)
    embedder.gate.set()
    for text, future in others.items():
        np.testing.assert_array_equal(future.result(WAIT_S), [vector_of(text)])
    for future in first:
        future.result(WAIT_S)
    assert [len(batch) for batch in embedder.batches] == [1, 1, 4]
    assert embedder.threads["c"].startswith("embed-batch")
    batcher.close()


def test_who_comes_while_others_wait_goes_behind_them(callers: ThreadPoolExecutor) -> None:
    embedder = InProcess()
    batcher = MicroBatcher(embedder, workers=1)
    (first,) = held(batcher, embedder, callers, "a")
    begun = batcher.begin(["waits"])
    last = callers.submit(batcher.embed, ["last"])
    wait_until(lambda: batcher.queued == 2)
    embedder.gate.set()
    begun()
    for future in (first, last):
        future.result(WAIT_S)
    assert embedder.batches == [["a"], ["waits", "last"]]
    batcher.close()


def test_a_failure_in_the_callers_thread_is_an_embedding_error_and_gives_the_place_back() -> None:
    embedder = InProcess()
    embedder.failures = {"bad": RuntimeError("broken"), "refused": EmbeddingError("not this one")}
    batcher = MicroBatcher(embedder, workers=1)
    for _ in range(3):
        with pytest.raises(EmbeddingError, match="the embedder failed") as failure:
            batcher.embed(["bad"])
        assert "broken" in failure.value.detail
        with pytest.raises(EmbeddingError, match="not this one"):
            batcher.embed(["refused"])
    np.testing.assert_array_equal(batcher.embed(["good"]), [vector_of("good")])
    assert embedder.threads["good"] == threading.current_thread().name
    batcher.close()


def test_nothing_is_computed_for_a_caller_whose_time_is_up() -> None:
    embedder = InProcess()
    batcher = MicroBatcher(embedder)
    with deadline.within(0), pytest.raises(EmbeddingError, match="time for the call was up"):
        batcher.embed(["late"])
    assert embedder.batches == []
    batcher.close()


def test_closing_waits_for_callers_that_compute(callers: ThreadPoolExecutor) -> None:
    embedder = InProcess()
    batcher = MicroBatcher(embedder)
    (computing,) = held(batcher, embedder, callers, "a")
    closing = callers.submit(batcher.close)
    wait_until(lambda: batcher._closed)
    with pytest.raises(EmbeddingError, match="closed"):
        batcher.embed(["late"])
    assert not embedder.closed
    embedder.gate.set()
    closing.result(WAIT_S)
    assert computing.result(WAIT_S).shape == (1, 32)
    assert embedder.closed
