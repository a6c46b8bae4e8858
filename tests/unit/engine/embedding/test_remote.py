"""The embedders behind HTTP, against a local server that speaks their wire formats."""

import socket
import threading
import time
from collections.abc import Callable
from email.utils import formatdate
from typing import Any

import grpc
import numpy as np
import pytest
from mneme_server.edge.grpc.errors import failure_of
from mneme_server.engine.embedding.http import HttpPolicy
from mneme_server.engine.embedding.ollama import OllamaEmbedder
from mneme_server.engine.embedding.openai import OpenAIEmbedder
from mneme_server.engine.embedding.port import EmbeddingError, ModelUnavailable
from mneme_server.engine.embedding.remote import RemoteEmbedder
from unit.engine.embedding.scripted_http import Answer, Received, ScriptedServer

FAST = HttpPolicy(
    connect_timeout_s=2, request_timeout_s=2, attempts=3, first_wait_s=0.01, total_s=10
)
IMPATIENT = HttpPolicy(
    connect_timeout_s=0.2, request_timeout_s=0.2, attempts=2, first_wait_s=0.01, total_s=10
)


def openai_answer(request: Received) -> Answer:
    """As the API answers, with the rows in another order than asked: `index` decides."""
    rows = [
        {"object": "embedding", "index": index, "embedding": [3.0, 4.0, float(len(text))]}
        for index, text in enumerate(request.body["input"])
    ]
    usage = {"prompt_tokens": 5, "total_tokens": 5}
    return Answer(
        body={"object": "list", "data": rows[::-1], "model": request.body["model"], "usage": usage}
    )


def ollama_answer(request: Received) -> Answer:
    vectors = [[3.0, 4.0, float(len(text))] for text in request.body["input"]]
    return Answer(
        body={
            "model": request.body["model"],
            "embeddings": vectors,
            "total_duration": 14143917,
            "load_duration": 1019500,
            "prompt_eval_count": 8,
        }
    )


GOOD: dict[str, Any] = {"openai": openai_answer, "ollama": ollama_answer}


def embedder_for(
    kind: str, url: str, *, policy: HttpPolicy = FAST, batch_size: int = 64
) -> RemoteEmbedder:
    if kind == "openai":
        return OpenAIEmbedder(
            "text-embedding-3-small",
            api_key="sk-test",
            base_url=url + "/v1",
            policy=policy,
            batch_size=batch_size,
        )
    return OllamaEmbedder("nomic-embed-text", base_url=url, policy=policy, batch_size=batch_size)


both = pytest.mark.parametrize("kind", ["openai", "ollama"])


def test_openai_is_asked_in_its_own_wire_format(server: ScriptedServer) -> None:
    server.answers = [openai_answer]
    embedder = embedder_for("openai", server.url)
    embedder.embed(["one", "three"])
    (request,) = server.received
    assert request.path == "/v1/embeddings"
    assert request.authorization == "Bearer sk-test"
    assert request.body == {
        "model": "text-embedding-3-small",
        "input": ["one", "three"],
        "encoding_format": "float",
    }
    assert embedder.model_id == "openai:text-embedding-3-small"


def test_ollama_is_asked_in_its_own_wire_format(server: ScriptedServer) -> None:
    server.answers = [ollama_answer]
    embedder = embedder_for("ollama", server.url + "/")
    embedder.embed(["one", "three"])
    (request,) = server.received
    assert request.path == "/api/embed"
    assert request.body == {
        "model": "nomic-embed-text",
        "input": ["one", "three"],
        "truncate": True,
    }
    assert embedder.model_id == "ollama:nomic-embed-text"


@both
def test_vectors_come_back_normalised_and_in_the_order_of_the_texts(
    server: ScriptedServer, kind: str
) -> None:
    server.answers = [GOOD[kind]]
    vectors = embedder_for(kind, server.url).embed(["x", "xxxxxxxxxxxx"])
    assert vectors.dtype == np.float32
    expected = np.array([[3, 4, 1], [3, 4, 12]], float)
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(vectors, expected, rtol=1e-6)


@both
def test_many_texts_are_asked_for_in_batches(server: ScriptedServer, kind: str) -> None:
    server.answers = [GOOD[kind]]
    embedder = embedder_for(kind, server.url, batch_size=4)
    vectors = embedder.embed(["x" * length for length in range(1, 11)])
    assert [len(request.body["input"]) for request in server.received] == [4, 4, 2]
    assert (np.diff(vectors[:, 2]) > 0).all()


@both
def test_the_dimensions_are_learned_from_an_answer(server: ScriptedServer, kind: str) -> None:
    server.answers = [GOOD[kind]]
    embedder = embedder_for(kind, server.url)
    assert embedder.dimensions == 3
    assert len(server.received) == 1
    assert embedder.embed([]).shape == (0, 3)
    embedder.embed(["x"])
    assert embedder.dimensions == 3
    assert len(server.received) == 2


@both
def test_empty_texts_are_not_sent_as_such(server: ScriptedServer, kind: str) -> None:
    server.answers = [GOOD[kind]]
    assert embedder_for(kind, server.url).embed(["", " \n"]).shape == (2, 3)
    assert all(text.strip() for text in server.received[0].body["input"])


def test_openai_is_never_sent_more_than_its_model_takes(server: ScriptedServer) -> None:
    server.answers = [openai_answer]
    embedder_for("openai", server.url).embed(["x" * 100_000])
    assert len(server.received[0].body["input"][0]) <= 8192 * 4


@both
@pytest.mark.parametrize("status", [429, 500, 502, 503])
def test_a_passing_failure_is_tried_again(server: ScriptedServer, kind: str, status: int) -> None:
    server.answers = [Answer(status, {"error": {"message": "busy"}}), GOOD[kind]]
    assert embedder_for(kind, server.url).embed(["x"]).shape == (1, 3)
    assert len(server.received) == 2


@both
def test_a_dropped_connection_is_tried_again(server: ScriptedServer, kind: str) -> None:
    server.answers = [Answer(drop=True), GOOD[kind]]
    assert embedder_for(kind, server.url).embed(["x"]).shape == (1, 3)


@both
def test_a_lasting_failure_is_reported_as_retryable_after_the_last_attempt(
    server: ScriptedServer, kind: str
) -> None:
    server.answers = [Answer(503, {"error": "overloaded"})]
    with pytest.raises(EmbeddingError, match="HTTP 503: overloaded") as caught:
        embedder_for(kind, server.url).embed(["x"])
    assert caught.value.retryable
    assert len(server.received) == FAST.attempts


def test_the_wait_that_a_rate_limit_names_is_kept(server: ScriptedServer) -> None:
    arrivals: list[float] = []

    def limited(request: Received) -> Answer:
        arrivals.append(time.monotonic())
        if len(arrivals) == 1:
            body = {"error": {"message": "Rate limit reached", "type": "requests", "code": None}}
            return Answer(429, body, {"Retry-After": "1"})
        return openai_answer(request)

    server.answers = [limited]
    embedder_for("openai", server.url).embed(["x"])
    assert arrivals[1] - arrivals[0] >= 0.99


@pytest.mark.parametrize(
    ("headers", "least", "most"),
    [
        (lambda: {"Retry-After": "120"}, 120, 120),
        (lambda: {"Retry-After": formatdate(time.time() + 3600, usegmt=True)}, 3000, 3600),
        (lambda: {"retry-after-ms": "90500"}, 90.5, 90.5),
    ],
)
def test_a_wait_beyond_the_limit_is_left_to_the_caller(
    server: ScriptedServer, headers: Callable[[], dict[str, str]], least: float, most: float
) -> None:
    server.answers = [Answer(429, {"error": {"message": "slow down"}}, headers())]
    with pytest.raises(EmbeddingError, match="slow down") as caught:
        embedder_for("openai", server.url).embed(["x"])
    assert caught.value.retryable
    assert caught.value.retry_after_s is not None
    assert least <= caught.value.retry_after_s <= most
    assert len(server.received) == 1


@pytest.mark.parametrize(
    "headers",
    [
        {"Retry-After": "9" * 400},
        {"Retry-After": "Fri, 31 Dec 9999 23:59:59 GMT"},
        {"retry-after-ms": "inf"},
        {"retry-after-ms": "1e300"},
    ],
)
def test_a_wait_that_nobody_waits_for_is_told_as_a_day(
    server: ScriptedServer, headers: dict[str, str]
) -> None:
    server.answers = [Answer(429, {"error": {"message": "slow down"}}, headers)]
    with pytest.raises(EmbeddingError, match="slow down") as caught:
        embedder_for("openai", server.url).embed(["x"])
    assert caught.value.retry_after_s == 86_400
    failure = failure_of(caught.value, "r1")
    assert failure is not None
    assert failure.code is grpc.StatusCode.UNAVAILABLE


@pytest.mark.parametrize(
    "headers",
    [
        {"Retry-After": "soon"},
        {"Retry-After": "Mon, 01 Jan 99999999999 00:00:00 GMT"},
        {"Retry-After": "Mon, 01 Jan 2020 00:00:00 +9999999999999999"},
        {"retry-after-ms": "nan"},
    ],
)
def test_a_retry_after_that_makes_no_sense_is_ignored(
    server: ScriptedServer, headers: dict[str, str]
) -> None:
    server.answers = [Answer(429, {}, headers), openai_answer]
    assert embedder_for("openai", server.url).embed(["x"]).shape == (1, 3)


def test_a_quota_that_is_used_up_is_not_tried_again(server: ScriptedServer) -> None:
    error = {"message": "You exceeded your current quota", "code": "insufficient_quota"}
    server.answers = [Answer(429, {"error": error})]
    with pytest.raises(EmbeddingError, match="quota") as caught:
        embedder_for("openai", server.url).embed(["x"])
    assert not caught.value.retryable
    assert len(server.received) == 1


def test_a_refused_api_key_names_the_setting_and_not_the_key(server: ScriptedServer) -> None:
    error = {"message": "Incorrect API key provided", "code": "invalid_api_key"}
    server.answers = [Answer(401, {"error": error})]
    with pytest.raises(EmbeddingError, match="MNEME_OPENAI_API_KEY") as caught:
        embedder_for("openai", server.url).embed(["x"])
    assert not caught.value.retryable
    assert "sk-test" not in str(caught.value)
    assert len(server.received) == 1


def test_an_unknown_openai_model_names_the_setting(server: ScriptedServer) -> None:
    error = {"message": "The model `text-embedding-3-small` does not exist"}
    server.answers = [Answer(404, {"error": {**error, "code": "model_not_found"}})]
    with pytest.raises(ModelUnavailable, match=r"text-embedding-3-small.*MNEME_EMBEDDER"):
        embedder_for("openai", server.url).embed(["x"])


def test_an_ollama_model_that_is_not_pulled_gives_the_command(server: ScriptedServer) -> None:
    message = 'model "nomic-embed-text" not found, try pulling it first'
    server.answers = [Answer(404, {"error": message})]
    with pytest.raises(ModelUnavailable, match="`ollama pull nomic-embed-text`"):
        embedder_for("ollama", server.url).embed(["x"])


@both
def test_another_refusal_carries_the_services_message(server: ScriptedServer, kind: str) -> None:
    server.answers = [Answer(400, {"error": {"message": "input is wrong"}})]
    with pytest.raises(EmbeddingError, match=r"HTTP 400.*input is wrong") as caught:
        embedder_for(kind, server.url).embed(["x"])
    assert not caught.value.retryable


@both
@pytest.mark.parametrize(
    "body",
    [b"<html>proxy</html>", b'{"data": [', b"[1, 2]", b"{}", b'{"data": 1, "embeddings": 1}'],
)
def test_an_answer_in_another_format_is_an_error(
    server: ScriptedServer, kind: str, body: bytes
) -> None:
    server.answers = [Answer(200, body)]
    with pytest.raises(EmbeddingError, match=r"JSON|lacks"):
        embedder_for(kind, server.url).embed(["x"])


def with_vectors(kind: str, vectors: list[Any]) -> Answer:
    rows = [{"index": index, "embedding": vector} for index, vector in enumerate(vectors)]
    return Answer(body={"data": rows} if kind == "openai" else {"embeddings": vectors})


@both
@pytest.mark.parametrize(
    "vectors",
    [
        [[1.0, 2.0]],  # one for two texts
        [[1.0, 2.0], [1.0, 2.0, 3.0]],
        [[1.0, 2.0], ["a", "b"]],
        [[1.0, 2.0], [0.0, 0.0]],
        [[1.0, 2.0], [float("nan"), 1.0]],
        [[], []],
        [None, None],
    ],
)
def test_vectors_that_cannot_be_used_are_an_error(
    server: ScriptedServer, kind: str, vectors: list[Any]
) -> None:
    server.answers = [with_vectors(kind, vectors)]
    with pytest.raises(EmbeddingError) as caught:
        embedder_for(kind, server.url).embed(["x", "y"])
    assert not caught.value.retryable


@both
def test_vectors_of_another_length_than_before_are_an_error(
    server: ScriptedServer, kind: str
) -> None:
    server.answers = [GOOD[kind], with_vectors(kind, [[1.0, 2.0]])]
    embedder = embedder_for(kind, server.url)
    embedder.embed(["x"])
    with pytest.raises(EmbeddingError, match="2 dimensions; they had 3 before"):
        embedder.embed(["y"])


@both
def test_a_service_that_does_not_listen_is_named_with_its_address(kind: str) -> None:
    with socket.socket() as reserved:  # bound and not listening: connections are refused
        reserved.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{reserved.getsockname()[1]}"
        with pytest.raises(EmbeddingError, match=f"cannot connect to .*{url}") as caught:
            embedder_for(kind, url).embed(["x"])
    assert caught.value.retryable


@both
def test_a_service_that_is_too_slow_is_a_retryable_error(server: ScriptedServer, kind: str) -> None:
    server.answers = [Answer(delay_s=1)]
    with pytest.raises(EmbeddingError, match="did not answer in time") as caught:
        embedder_for(kind, server.url, policy=IMPATIENT).embed(["x"])
    assert caught.value.retryable
    assert len(server.received) == IMPATIENT.attempts


@both
def test_closing_ends_a_wait_between_attempts(server: ScriptedServer, kind: str) -> None:
    refused = threading.Event()

    def refuse(_: Received) -> Answer:
        refused.set()
        return Answer(429, {"error": "later"}, {"Retry-After": "9"})

    server.answers = [refuse]
    embedder = embedder_for(kind, server.url)
    failures: list[EmbeddingError] = []

    def embed() -> None:
        try:
            embedder.embed(["x"])
        except EmbeddingError as error:
            failures.append(error)

    caller = threading.Thread(target=embed)
    caller.start()
    assert refused.wait(10)
    embedder.close()
    caller.join(8)
    assert not caller.is_alive()
    assert "closed" in str(failures[0])
    with pytest.raises(EmbeddingError, match="closed"):
        embedder.embed(["x"])


@both
@pytest.mark.parametrize("url", ["", "localhost:11434", "ftp://host"])
def test_a_base_url_that_is_none_is_refused_at_once(kind: str, url: str) -> None:
    with pytest.raises(ValueError, match="base URL"):
        embedder_for(kind, url)


@pytest.mark.parametrize("kind", ["openai", "ollama"])
def test_the_message_for_callers_does_not_say_where_the_backend_is(kind: str) -> None:
    with pytest.raises(EmbeddingError) as failed:
        embedder_for(kind, "http://127.0.0.1:1", policy=IMPATIENT).embed(["x"])
    assert "127.0.0.1" not in failed.value.message
    assert "http://127.0.0.1:1" in failed.value.detail
    assert failed.value.detail in str(failed.value)


def takes(tokens: int, *, unless: str = "\0") -> Callable[[Received], Answer]:
    """A service that takes so many characters in a text, and none with these words."""

    def answer(request: Received) -> Answer:
        given = request.body["input"]
        if any(len(text) > tokens or unless in text for text in given):
            error = {"message": "maximum context length is 8192 tokens", "code": "too_long"}
            return Answer(status=400, body={"error": error})
        return GOOD["openai" if "encoding_format" in request.body else "ollama"](request)

    return answer


@pytest.mark.parametrize("kind", GOOD)
def test_of_a_text_with_too_many_tokens_the_beginning_is_embedded(kind: str) -> None:
    texts = ["short", "long " * 2_000, "also short", "\u6570" * 14_400]
    with ScriptedServer() as server:
        server.answers = [takes(900)]
        embedder = embedder_for(kind, server.url)
        assert embedder.embed(texts).shape == (4, 3)
        assert np.array_equal(embedder.embed(texts[:1])[0], embedder.embed(texts)[0])
        assert len(server.received) < 60


@pytest.mark.parametrize("kind", GOOD)
def test_a_text_that_is_refused_however_short_is_told_to_be_hopeless(kind: str) -> None:
    with ScriptedServer() as server:
        server.answers = [takes(900, unless="POISON")]
        with pytest.raises(EmbeddingError, match="refuses a text of 12 characters") as failure:
            embedder_for(kind, server.url).embed(["fine", "POISON apple"])
    assert failure.value.hopeless


@pytest.mark.parametrize("kind", GOOD)
def test_a_service_that_refuses_every_text_blames_none_of_them(kind: str) -> None:
    with ScriptedServer() as server:
        server.answers = [takes(0)]
        with pytest.raises(EmbeddingError) as failure:
            embedder_for(kind, server.url).embed(["one", "two"])
        assert len(server.received) == 2
    assert not failure.value.hopeless


def breaks_at(characters: int, *, unless: str = "\0") -> Callable[[Received], Answer]:
    """A service that answers 500 to a text that is too long, as Ollama does with some models."""
    told = takes(characters, unless=unless)

    def answer(request: Received) -> Answer:
        answered = told(request)
        if answered.status == 400:
            return Answer(status=500, body={"error": "the input length exceeds the context length"})
        return answered

    return answer


QUICK = HttpPolicy(attempts=2, first_wait_s=0.001, total_s=10)


@pytest.mark.parametrize("kind", GOOD)
def test_a_text_that_a_service_breaks_at_is_cut_as_one_that_it_refuses(kind: str) -> None:
    with ScriptedServer() as server:
        server.answers = [breaks_at(900)]
        embedder = embedder_for(kind, server.url, policy=QUICK)
        assert embedder.embed(["short", "long " * 2_000, "also short"]).shape == (3, 3)


@pytest.mark.parametrize("kind", GOOD)
def test_a_text_that_a_service_breaks_at_however_short_is_hopeless(kind: str) -> None:
    with ScriptedServer() as server:
        server.answers = [breaks_at(900, unless="POISON")]
        with pytest.raises(EmbeddingError, match="refuses a text of 12 characters") as failure:
            embedder_for(kind, server.url, policy=QUICK).embed(["fine", "POISON apple"])
    assert failure.value.hopeless


@pytest.mark.parametrize("kind", GOOD)
def test_a_service_that_breaks_at_every_text_is_asked_again_later(kind: str) -> None:
    with ScriptedServer() as server:
        server.answers = [breaks_at(0)]
        with pytest.raises(EmbeddingError, match="HTTP 500") as failure:
            embedder_for(kind, server.url, policy=QUICK).embed(["one", "two"])
    assert failure.value.retryable
    assert not failure.value.hopeless
