import contextvars
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mneme_server.common import deadline, fairness
from mneme_server.engine.embedding import batcher as batcher_module
from mneme_server.engine.embedding.batcher import MicroBatcher, Priority
from mneme_server.engine.embedding.local import LocalEmbedder
from mneme_server.engine.embedding.port import EmbeddingError
from numpy.typing import NDArray
from unit.engine.embedding.fakes import WAIT_S, FakeEmbedder, TellsQuestions, vector_of, wait_until


def hold(embedder: FakeEmbedder) -> None:
    """Make batches wait, and forget those before."""
    embedder.gate.clear()


def occupy(
    batcher: MicroBatcher, embedder: FakeEmbedder, callers: ThreadPoolExecutor
) -> "Future[NDArray[np.float32]]":
    """Have one worker wait at the gate with a batch in its hands."""
    hold(embedder)
    future = callers.submit(batcher.embed, ["occupied"])
    assert embedder.started.acquire(timeout=WAIT_S)
    return future


def test_callers_that_wait_together_share_one_batch(callers: ThreadPoolExecutor) -> None:
    embedder = FakeEmbedder()
    batcher = MicroBatcher(embedder, workers=1)
    first = occupy(batcher, embedder, callers)
    futures = {text: callers.submit(batcher.embed, [text]) for text in "abcdef"}
    wait_until(lambda: batcher.queued == 6)
    embedder.gate.set()
    for text, future in futures.items():
        np.testing.assert_array_equal(future.result(WAIT_S), [vector_of(text)])
    first.result(WAIT_S)
    assert sorted(embedder.batches[1]) == list("abcdef")
    assert len(embedder.batches) == 2
    batcher.close()


def test_a_lone_text_is_embedded_at_once_without_company() -> None:
    embedder = FakeEmbedder()
    batcher = MicroBatcher(embedder)
    batcher.embed(["alone"])
    assert embedder.batches == [["alone"]]
    batcher.close()


def test_no_batch_is_larger_than_allowed_for_its_priority(callers: ThreadPoolExecutor) -> None:
    embedder = FakeEmbedder()
    batcher = MicroBatcher(embedder, max_batch=8, background_batch=3)
    texts = [str(number) for number in range(50)]
    np.testing.assert_array_equal(batcher.embed(texts), np.stack([vector_of(t) for t in texts]))
    assert max(map(len, embedder.batches)) == 8
    embedder.batches.clear()
    np.testing.assert_array_equal(
        batcher.background.embed(texts), np.stack([vector_of(t) for t in texts])
    )
    assert max(map(len, embedder.batches)) == 3
    batcher.close()


def test_a_query_goes_before_background_texts_that_came_earlier(
    callers: ThreadPoolExecutor,
) -> None:
    embedder = FakeEmbedder()
    batcher = MicroBatcher(embedder, workers=1, background_batch=2)
    first = occupy(batcher, embedder, callers)
    bulk = callers.submit(batcher.background.embed, ["b1", "b2", "b3", "b4"])
    wait_until(lambda: batcher.queued == 4)
    query = callers.submit(batcher.embed, ["query"])
    wait_until(lambda: batcher.queued == 5)
    embedder.gate.set()
    for future in (first, bulk, query):
        future.result(WAIT_S)
    assert embedder.batches == [["occupied"], ["query"], ["b1", "b2"], ["b3", "b4"]]
    batcher.close()


def test_background_work_leaves_one_worker_to_queries(callers: ThreadPoolExecutor) -> None:
    embedder = FakeEmbedder()
    batcher = MicroBatcher(embedder, workers=2, background_batch=1)
    hold(embedder)
    bulk = callers.submit(batcher.background.embed, ["b1", "b2", "b3"])
    assert embedder.started.acquire(timeout=WAIT_S)
    query = callers.submit(batcher.embed, ["query"])
    assert embedder.started.acquire(timeout=WAIT_S)  # begins while b1 is still held
    assert embedder.batches == [["b1"], ["query"]]
    embedder.gate.set()
    query.result(WAIT_S)
    bulk.result(WAIT_S)
    batcher.close()


def test_a_bad_text_fails_only_its_own_caller(callers: ThreadPoolExecutor) -> None:
    embedder = FakeEmbedder()
    embedder.failures["bad"] = EmbeddingError("a text is not valid Unicode")
    batcher = MicroBatcher(embedder, workers=1)
    first = occupy(batcher, embedder, callers)
    good = [callers.submit(batcher.embed, [text]) for text in ("g1", "g2")]
    bad = callers.submit(batcher.embed, ["bad"])
    wait_until(lambda: batcher.queued == 3)
    embedder.gate.set()
    with pytest.raises(EmbeddingError, match="Unicode"):
        bad.result(WAIT_S)
    for future in (first, *good):
        assert future.result(WAIT_S).shape == (1, 32)
    batcher.close()


def test_an_outage_fails_the_batch_once_and_not_once_per_caller(
    callers: ThreadPoolExecutor,
) -> None:
    embedder = FakeEmbedder()
    outage = EmbeddingError("rate limited", retryable=True, retry_after_s=7)
    embedder.failures.update({"x": outage, "y": outage})
    batcher = MicroBatcher(embedder, workers=1)
    first = occupy(batcher, embedder, callers)
    failing = [callers.submit(batcher.embed, [text]) for text in ("x", "y")]
    wait_until(lambda: batcher.queued == 2)
    embedder.gate.set()
    for future in failing:
        with pytest.raises(EmbeddingError, match="rate limited") as caught:
            future.result(WAIT_S)
        assert (caught.value.retryable, caught.value.retry_after_s) == (True, 7)
    first.result(WAIT_S)
    assert len(embedder.batches) == 2
    assert batcher.embed(["after"]).shape == (1, 32)
    batcher.close()


class PanicException(BaseException):
    """As libraries written in Rust raise it: tokenizers is one."""


@pytest.mark.parametrize("error", [MemoryError("too much"), PanicException("too much")])
def test_an_unexpected_exception_reaches_the_caller_as_an_embedding_error(
    error: BaseException,
) -> None:
    embedder = FakeEmbedder()
    embedder.failures["x"] = error
    batcher = MicroBatcher(embedder)
    with pytest.raises(EmbeddingError, match=f"{type(error).__name__}: too much"):
        batcher.embed(["x"])
    assert batcher.embed(["after"]).shape == (1, 32)
    batcher.close()


def test_the_rest_of_a_failed_call_is_not_embedded_and_workers_go_on(
    callers: ThreadPoolExecutor,
) -> None:
    embedder = FakeEmbedder()
    embedder.failures["0"] = EmbeddingError("bad")
    batcher = MicroBatcher(embedder, workers=1, max_batch=1)
    with pytest.raises(EmbeddingError, match="bad"):
        batcher.embed([str(number) for number in range(100)])
    assert batcher.embed(["after"]).shape == (1, 32)
    assert len(embedder.batches) < 5
    assert batcher.queued == 0
    batcher.close()


def test_a_full_queue_refuses_with_a_retryable_error(callers: ThreadPoolExecutor) -> None:
    embedder = FakeEmbedder()
    batcher = MicroBatcher(embedder, workers=1, max_queued=3)
    first = occupy(batcher, embedder, callers)
    waiting = callers.submit(batcher.embed, ["1", "2"])
    wait_until(lambda: batcher.queued == 2)
    with pytest.raises(EmbeddingError, match="queue is full") as caught:
        batcher.embed(["3", "4"])
    assert caught.value.retryable
    assert caught.value.retry_after_s is not None
    embedder.gate.set()
    assert first.result(WAIT_S).shape == (1, 32)
    assert waiting.result(WAIT_S).shape == (2, 32)
    batcher.close()


def test_a_call_larger_than_the_queue_is_accepted_when_nothing_waits() -> None:
    batcher = MicroBatcher(FakeEmbedder(), max_queued=3)
    assert batcher.embed([str(number) for number in range(10)]).shape == (10, 32)
    batcher.close()


def limited(seconds: Callable[[], float | None], batcher: MicroBatcher, *texts: str) -> object:
    """Embed as a call does whose caller waits for so long."""
    deadline.enter(seconds)
    return batcher.embed(texts)


def test_a_caller_that_leaves_is_let_go_and_its_texts_are_not_embedded(
    callers: ThreadPoolExecutor,
) -> None:
    embedder = FakeEmbedder()
    batcher = MicroBatcher(embedder, workers=1)
    first = occupy(batcher, embedder, callers)
    left = threading.Event()
    leaving = callers.submit(
        contextvars.Context().run,
        limited, lambda: 0.0 if left.is_set() else 3600.0, batcher, "x", "y",
    )  # fmt: skip
    staying = callers.submit(batcher.embed, ["z"])
    wait_until(lambda: batcher.queued == 3)
    left.set()
    with pytest.raises(EmbeddingError, match="time for the call was up") as caught:
        leaving.result(WAIT_S)
    assert caught.value.retryable
    assert batcher.queued == 1
    embedder.gate.set()
    assert staying.result(WAIT_S).shape == (1, 32)
    first.result(WAIT_S)
    assert embedder.batches == [["occupied"], ["z"]]
    batcher.close()


def test_a_caller_whose_batch_is_in_work_is_let_go_too(callers: ThreadPoolExecutor) -> None:
    embedder = FakeEmbedder()
    batcher = MicroBatcher(embedder, workers=1)
    hold(embedder)
    began = time.monotonic()
    waiting = callers.submit(
        contextvars.Context().run,
        limited, lambda: max(0.0, began + 0.05 - time.monotonic()), batcher, "x",
    )  # fmt: skip
    with pytest.raises(EmbeddingError, match="time for the call was up"):
        waiting.result(WAIT_S)
    embedder.gate.set()
    assert batcher.embed(["after"]).shape == (1, 32)
    batcher.close()


def test_nothing_is_begun_for_a_caller_that_has_left() -> None:
    embedder = FakeEmbedder()
    batcher = MicroBatcher(embedder)
    with pytest.raises(EmbeddingError, match="time for the call was up"):
        contextvars.Context().run(limited, lambda: 0.0, batcher, "x")
    assert embedder.batches == []
    batcher.close()


def test_while_the_embedder_is_slow_only_so_many_calls_wait_for_it(
    callers: ThreadPoolExecutor,
) -> None:
    embedder = FakeEmbedder()
    batcher = MicroBatcher(embedder, workers=1, max_slow_calls=2, patience_s=0.05)
    hold(embedder)
    futures = [callers.submit(batcher.embed, [str(number)]) for number in range(6)]
    bulk = callers.submit(batcher.background.embed, ["bulk"])
    wait_until(lambda: sum(future.done() for future in futures) == 4)
    for future in futures:
        if future.done():
            error = future.exception()
            assert isinstance(error, EmbeddingError)
            assert "slow" in error.message
            assert (error.retryable, error.retry_after_s) == (True, 1.0)
    with pytest.raises(EmbeddingError, match="slow"):
        batcher.embed(["not even queued"])
    embedder.gate.set()
    for future in (*(f for f in futures if f.exception(WAIT_S) is None), bulk):
        assert future.result(WAIT_S).shape == (1, 32)
    assert sum(future.exception() is None for future in futures) == 2
    assert batcher.embed(["after"]).shape == (1, 32)
    batcher.close()


def test_a_burst_that_the_embedder_keeps_up_with_refuses_nobody(
    callers: ThreadPoolExecutor,
) -> None:
    embedder = FakeEmbedder()
    batcher = MicroBatcher(embedder, workers=1, max_slow_calls=1, patience_s=WAIT_S)
    first = occupy(batcher, embedder, callers)
    futures = [callers.submit(batcher.embed, [str(number)]) for number in range(20)]
    wait_until(lambda: batcher.queued == 20)
    embedder.gate.set()
    for future in (first, *futures):
        assert future.result(WAIT_S).shape == (1, 32)
    batcher.close()


def test_closing_finishes_what_is_queued_and_refuses_what_comes_later(
    callers: ThreadPoolExecutor,
) -> None:
    embedder = FakeEmbedder()
    others = set(threading.enumerate())
    batcher = MicroBatcher(embedder, workers=2, background_batch=1)
    workers = set(threading.enumerate()) - others
    hold(embedder)
    bulk = callers.submit(batcher.background.embed, ["1", "2", "3", "4"])
    assert embedder.started.acquire(timeout=WAIT_S)
    closing = callers.submit(batcher.close)
    wait_until(lambda: batcher._closed)
    with pytest.raises(EmbeddingError, match="closed"):
        batcher.embed(["late"])
    with pytest.raises(EmbeddingError, match="closed"):
        batcher.embed([])
    embedder.gate.set()
    assert bulk.result(WAIT_S).shape == (4, 32)
    closing.result(WAIT_S)
    assert embedder.closed
    assert not workers & set(threading.enumerate())
    batcher.close()


def test_a_batch_that_hangs_does_not_hold_up_closing(
    callers: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batcher_module, "_CLOSE_S", 0.05)
    embedder = FakeEmbedder()
    batcher = MicroBatcher(embedder, workers=2)
    hanging = occupy(batcher, embedder, callers)
    batcher.close()
    assert not embedder.closed
    embedder.gate.set()
    assert hanging.result(WAIT_S).shape == (1, 32)
    batcher.close()
    assert embedder.closed


def test_closing_the_background_view_leaves_the_batcher_open() -> None:
    batcher = MicroBatcher(FakeEmbedder())
    batcher.background.close()
    assert batcher.embed(["text"]).shape == (1, 32)
    assert batcher.background.model_id == batcher.model_id == "fake"
    assert batcher.background.dimensions == batcher.dimensions == 32
    batcher.close()


@settings(max_examples=40, deadline=None)
@given(
    calls=st.lists(
        st.tuples(st.lists(st.text(max_size=5), max_size=12), st.sampled_from(Priority)),
        max_size=12,
    ),
    workers=st.integers(1, 3),
    sizes=st.tuples(st.integers(1, 6), st.integers(1, 6)),
)
def test_every_caller_gets_the_vectors_of_its_own_texts_in_order(
    calls: list[tuple[list[str], Priority]], workers: int, sizes: tuple[int, int]
) -> None:
    batcher = MicroBatcher(
        FakeEmbedder(), workers=workers, max_batch=sizes[0], background_batch=sizes[1]
    )
    with ThreadPoolExecutor(6) as pool:
        futures = [pool.submit(batcher.embed, texts, priority) for texts, priority in calls]
        for (texts, _), future in zip(calls, futures, strict=True):
            vectors = future.result(WAIT_S)
            assert vectors.shape == (len(texts), 32)
            for row, text in zip(vectors, texts, strict=True):
                np.testing.assert_array_equal(row, vector_of(text))
    batcher.close()


def test_a_batched_text_has_the_vector_it_has_alone(local: LocalEmbedder) -> None:
    batcher = MicroBatcher(local)
    texts = [f"the deployment of service {number} failed" for number in range(40)]
    with ThreadPoolExecutor(8) as pool:
        found = np.concatenate(list(pool.map(lambda text: batcher.embed([text]), texts)))
    np.testing.assert_allclose(found, local.embed(texts), atol=1e-5)
    # Not closed: closing would close the embedder that other tests share.


def as_tenant(
    callers: ThreadPoolExecutor, tenant: str, embed: Callable[[list[str]], object], texts: list[str]
) -> "Future[object]":
    """Embed on behalf of a tenant."""

    def call() -> object:
        fairness.enter(tenant)
        return embed(texts)

    return callers.submit(contextvars.Context().run, call)


@pytest.mark.parametrize("background", [False, True])
def test_in_a_batch_are_texts_of_all_tenants_that_wait(
    background: bool, callers: ThreadPoolExecutor
) -> None:
    embedder = FakeEmbedder()
    batcher = MicroBatcher(embedder, workers=1, max_batch=4, background_batch=4)
    embed = batcher.background.embed if background else batcher.embed
    first = occupy(batcher, embedder, callers)
    futures: list[Future[object]] = []
    for tenant, texts in (("busy", [f"busy {n}" for n in range(20)]), ("calm", ["calm"])):
        for text in texts:
            futures.append(as_tenant(callers, tenant, embed, [text]))
            wait_until(lambda: batcher.queued == len(futures))
    embedder.gate.set()
    for future in (first, *futures):
        future.result(WAIT_S)
    assert "calm" in embedder.batches[1]
    batcher.close()


def test_a_question_is_not_embedded_behind_long_texts(callers: ThreadPoolExecutor) -> None:
    embedder = FakeEmbedder()
    batcher = MicroBatcher(embedder)
    hold(embedder)
    long_texts = [f"{n} " * 500 for n in range(10)]
    waiting = [as_tenant(callers, "busy", batcher.embed, [text]) for text in long_texts]
    bulk = callers.submit(batcher.background.embed, ["bulk"])
    for _ in range(2):
        assert embedder.started.acquire(timeout=WAIT_S)
    question = as_tenant(callers, "calm", batcher.embed, ["question"])
    assert embedder.started.acquire(timeout=WAIT_S)  # begins while all of those are held
    assert embedder.batches[2] == ["question"]
    embedder.gate.set()
    for future in (*waiting, bulk, question):
        future.result(WAIT_S)
    batcher.close()


def test_long_questions_do_not_keep_the_background_from_its_work(
    callers: ThreadPoolExecutor,
) -> None:
    embedder = FakeEmbedder()
    batcher = MicroBatcher(embedder)
    hold(embedder)
    waiting = [as_tenant(callers, "busy", batcher.embed, ["word " * 500]) for _ in range(10)]
    assert embedder.started.acquire(timeout=WAIT_S)
    bulk = callers.submit(batcher.background.embed, ["bulk"])
    assert embedder.started.acquire(timeout=WAIT_S)
    assert embedder.batches[1] == ["bulk"]
    embedder.gate.set()
    for future in (*waiting, bulk):
        future.result(WAIT_S)
    batcher.close()


def test_a_batch_of_long_texts_holds_few_of_them(callers: ThreadPoolExecutor) -> None:
    embedder = FakeEmbedder()
    batcher = MicroBatcher(embedder, workers=1)
    texts = [f"{n} " * 1000 for n in range(40)]
    np.testing.assert_array_equal(batcher.embed(texts), np.stack([vector_of(t) for t in texts]))
    assert max(map(len, embedder.batches)) <= 6
    embedder.batches.clear()
    batcher.background.embed(texts)
    assert max(map(len, embedder.batches)) <= 6
    batcher.close()


def test_what_is_begun_for_a_call_that_ended_is_not_embedded(
    callers: ThreadPoolExecutor,
) -> None:
    embedder = FakeEmbedder()
    batcher = MicroBatcher(embedder, workers=1)
    first = occupy(batcher, embedder, callers)
    ended = threading.Event()

    def begin() -> None:
        deadline.enter(lambda: 0.0 if ended.is_set() else None)
        batcher.begin(["nobody waits for this"])

    contextvars.Context().run(begin)
    ended.set()
    after = callers.submit(batcher.embed, ["after"])
    embedder.gate.set()
    for future in (first, after):
        future.result(WAIT_S)
    assert embedder.batches == [["occupied"], ["after"]]
    assert batcher.queued == 0
    batcher.close()


def test_while_one_tenants_calls_are_slow_anothers_first_is_not_refused(
    callers: ThreadPoolExecutor,
) -> None:
    embedder = FakeEmbedder()
    batcher = MicroBatcher(embedder, workers=1, max_slow_calls=2, patience_s=0.05)
    hold(embedder)
    busy = [as_tenant(callers, "busy", batcher.embed, [str(n)]) for n in range(6)]
    wait_until(lambda: sum(future.done() for future in busy) == 4)
    calm = as_tenant(callers, "calm", batcher.embed, ["calm"])
    wait_until(lambda: batcher._slow.count_of("calm") == 1)
    embedder.gate.set()
    calm.result(WAIT_S)
    batcher.close()


def test_a_tenant_that_fills_the_queue_leaves_room_to_another(
    callers: ThreadPoolExecutor,
) -> None:
    embedder = FakeEmbedder()
    batcher = MicroBatcher(embedder, workers=1, max_queued=10)
    first = occupy(batcher, embedder, callers)
    waiting = [as_tenant(callers, "busy", batcher.embed, [str(number)]) for number in range(5)]
    wait_until(lambda: batcher.queued == 5)
    with pytest.raises(EmbeddingError, match="queue is full"):
        as_tenant(callers, "busy", batcher.embed, ["one more"]).result(WAIT_S)
    calm = as_tenant(callers, "calm", batcher.embed, ["calm"])
    embedder.gate.set()
    for future in (first, *waiting, calm):
        future.result(WAIT_S)
    batcher.close()


def test_questions_and_texts_that_wait_together_are_embedded_apart(
    callers: ThreadPoolExecutor,
) -> None:
    embedder = TellsQuestions()
    batcher = MicroBatcher(embedder, workers=1)
    first = occupy(batcher, embedder, callers)
    texts = [callers.submit(batcher.embed, [text]) for text in "abc"]
    questions = [callers.submit(batcher.questions.embed, [text]) for text in "abc"]
    wait_until(lambda: batcher.queued == 6)
    embedder.gate.set()
    for text, stored, asked in zip("abc", texts, questions, strict=True):
        np.testing.assert_array_equal(stored.result(WAIT_S), [vector_of(text)])
        np.testing.assert_array_equal(asked.result(WAIT_S), [vector_of(f"question: {text}")])
    first.result(WAIT_S)
    assert [sorted(batch) for batch in embedder.asked] == [list("abc")]
    assert sorted(embedder.batches[1]) == list("abc")
    batcher.questions.close()
    assert batcher.questions.dimensions == 32
    batcher.close()


def test_an_embedder_that_tells_no_questions_embeds_them_as_texts() -> None:
    batcher = MicroBatcher(FakeEmbedder())
    assert batcher.questions is batcher
    batcher.close()
