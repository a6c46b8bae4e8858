import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mneme_server.engine.embedding.cache import CachedEmbedder, CacheStats, VectorCache
from mneme_server.engine.embedding.local import LocalEmbedder
from mneme_server.engine.embedding.port import EmbeddingError
from unit.engine.embedding.fakes import FakeEmbedder, TellsQuestions, vector_of

ENTRY_BYTES = 32 * 4 + 400  # what the cache counts for one of the fake's vectors


def test_a_text_embedded_twice_costs_one_inference_and_gives_the_same_vector() -> None:
    embedder = FakeEmbedder()
    cached = CachedEmbedder(embedder)
    np.testing.assert_array_equal(cached.embed(["a"]), cached.embed(["a"]))
    assert embedder.batches == [["a"]]
    assert cached.cache.stats().hits == 1


def test_duplicates_in_one_call_are_embedded_once_and_keep_their_places() -> None:
    embedder = FakeEmbedder()
    vectors = CachedEmbedder(embedder).embed(["a", "b", "a", "a"])
    assert embedder.batches == [["a", "b"]]
    np.testing.assert_array_equal(vectors, [vector_of(text) for text in "abaa"])


def test_only_texts_that_are_not_cached_are_embedded() -> None:
    embedder = FakeEmbedder()
    cached = CachedEmbedder(embedder)
    cached.embed(["a", "b"])
    np.testing.assert_array_equal(cached.embed(["b", "c"]), [vector_of("b"), vector_of("c")])
    assert embedder.batches == [["a", "b"], ["c"]]


def test_the_least_recently_used_vector_goes_first() -> None:
    embedder = FakeEmbedder()
    cached = CachedEmbedder(embedder, VectorCache(max_bytes=2 * ENTRY_BYTES))
    for text in ("a", "b", "a", "c"):
        cached.embed([text])
    embedder.batches.clear()
    cached.embed(["a"])
    cached.embed(["b"])
    assert embedder.batches == [["b"]]
    assert cached.cache.stats() == CacheStats(
        hits=2, misses=4, evictions=2, entries=2, max_entries=2
    )


def test_the_default_budget_holds_about_fifty_megabytes(local: LocalEmbedder) -> None:
    cached = CachedEmbedder(local)
    cached.embed(["text"])
    assert 20_000 < cached.cache.stats().max_entries < 50_000_000 // (384 * 4)


def test_a_call_with_more_texts_than_the_cache_holds_is_answered_whole() -> None:
    cached = CachedEmbedder(FakeEmbedder(), VectorCache(max_bytes=2 * ENTRY_BYTES))
    texts = [str(number) for number in range(10)]
    np.testing.assert_array_equal(cached.embed(texts), [vector_of(text) for text in texts])
    assert cached.cache.stats().entries == 2


def test_a_cache_without_room_passes_everything_through() -> None:
    embedder = FakeEmbedder()
    cached = CachedEmbedder(embedder, VectorCache(max_bytes=0))
    cached.embed(["a"])
    np.testing.assert_array_equal(cached.embed(["a"]), [vector_of("a")])
    assert len(embedder.batches) == 2


def test_clearing_forgets_the_vectors_and_keeps_the_counts() -> None:
    embedder = FakeEmbedder()
    cached = CachedEmbedder(embedder)
    cached.embed(["a"])
    cached.cache.clear()
    assert cached.cache.stats().entries == 0
    cached.embed(["a"])
    assert len(embedder.batches) == 2
    assert cached.cache.stats().misses == 2


def test_what_a_caller_does_to_its_rows_does_not_reach_the_cache() -> None:
    cached = CachedEmbedder(FakeEmbedder())
    cached.embed(["a"])[:] = 0
    cached.embed(["a"])[:] = 0
    np.testing.assert_array_equal(cached.embed(["a"]), [vector_of("a")])


def test_a_failure_caches_nothing_and_a_later_call_succeeds() -> None:
    embedder = FakeEmbedder()
    embedder.failures["a"] = EmbeddingError("down", retryable=True)
    cached = CachedEmbedder(embedder)
    with pytest.raises(EmbeddingError, match="down"):
        cached.embed(["a", "b"])
    embedder.failures.clear()
    np.testing.assert_array_equal(cached.embed(["a"]), [vector_of("a")])


def test_embedders_of_two_models_share_a_cache_without_mixing_vectors() -> None:
    class Other(FakeEmbedder):
        @property
        def model_id(self) -> str:
            return "other"

    cache = VectorCache()
    other = Other()
    CachedEmbedder(FakeEmbedder(), cache).embed(["a"])
    CachedEmbedder(other, cache).embed(["a"])
    assert other.batches == [["a"]]


def test_a_question_is_not_answered_with_the_vector_of_the_same_text() -> None:
    embedder = TellsQuestions()
    texts = CachedEmbedder(embedder)
    questions = CachedEmbedder(embedder.questions, texts.cache, asked=True)
    for _ in range(2):
        np.testing.assert_array_equal(texts.embed(["a"]), [vector_of("a")])
        np.testing.assert_array_equal(questions.embed(["a"]), [vector_of("question: a")])
    assert embedder.batches == embedder.asked == [["a"]]


def test_an_empty_call_gives_an_empty_array_and_closing_closes_the_embedder() -> None:
    embedder = FakeEmbedder()
    cached = CachedEmbedder(embedder)
    assert cached.embed([]).shape == (0, 32)
    cached.close()
    assert embedder.closed


@given(st.lists(st.lists(st.sampled_from("abcdefgh"), max_size=6), max_size=20), st.integers(0, 5))
def test_whatever_is_cached_the_vectors_are_those_of_the_texts(
    calls: list[list[str]], room: int
) -> None:
    cached = CachedEmbedder(FakeEmbedder(), VectorCache(max_bytes=room * ENTRY_BYTES))
    for texts in calls:
        vectors = cached.embed(texts)
        assert vectors.shape == (len(texts), 32)
        for row, text in zip(vectors, texts, strict=True):
            np.testing.assert_array_equal(row, vector_of(text))
        assert cached.cache.stats().entries <= room
