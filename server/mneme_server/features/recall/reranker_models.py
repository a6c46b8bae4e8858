"""Reranking models: one exported to ONNX, one on torch, one behind HTTP; a setting names which."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnxruntime
from numpy.typing import NDArray
from tokenizers import Encoding, Tokenizer

from mneme_server.engine.embedding.errors import EmbeddingError, ModelUnavailable
from mneme_server.engine.embedding.http import HttpPolicy, JsonHttpClient, StatusError
from mneme_server.engine.embedding.torch_models import first_line, load_model
from mneme_server.features.recall.reranker import (
    MAX_CHARACTERS,
    PAIRS_PER_RUN,
    Relevance,
    Reranker,
    RerankingError,
    checked,
)

FORMS = "none, http:MODEL, onnx:FOLDER, sentence-transformers:NAME"
_MAX_TOKENS = 512
"""The window of the common cross-encoders; the query and a text share it."""
_GRAPHS = ("model.onnx", "onnx/model.onnx")
_MAX_CHARACTERS = 8_000
"""Of a text; at four characters to a token about 2,000 tokens, which all of them take."""
_LEAST_S = 0.05
_LONGEST_S = 10.0


def build_reranker(
    spec: str, *, url: str = "", api_key: str | None = None, threads: int = 2
) -> Reranker | None:
    """Build the reranker that `spec` names; None for "none". See FORMS.

    torch is imported where a model on it is chosen. Raises ValueError for an unknown form or a
    missing URL, and ModelUnavailable when a local model cannot be loaded.
    """
    kind, _, name = spec.strip().partition(":")
    name = name.strip()
    match kind:
        case "none" if not name:
            return None
        case "http" if name:
            if not url:
                raise ValueError(
                    f"the reranker {spec!r} needs the address that takes its requests; set"
                    " MNEME_RERANKER_URL, e.g. http://127.0.0.1:8000/v1/rerank"
                )
            return RemoteReranker(name, url=url, api_key=api_key)
        case "onnx" if name:
            return OnnxReranker(Path(name), threads=threads)
        case "sentence-transformers" if name:
            return CrossEncoderReranker(name, threads=threads)
    raise ValueError(f"unknown reranker {spec!r}; valid forms: {FORMS}")


class OnnxReranker:
    """Compares with a cross-encoder exported to ONNX, in this process, without torch; the model id
    is `onnx:` and its folder's name.

    The folder is as `optimum-cli export onnx --task text-classification` writes it: `model.onnx`
    (or `onnx/model.onnx`) and `tokenizer.json`.
    """

    def __init__(self, folder: Path, *, threads: int = 2) -> None:
        """Load the model. Raises ModelUnavailable."""
        self._name = folder.name
        graph = next((folder / name for name in _GRAPHS if (folder / name).is_file()), None)
        if graph is None or not (folder / "tokenizer.json").is_file():
            raise ModelUnavailable(
                f"{folder} holds no exported cross-encoder: model.onnx and tokenizer.json are"
                " needed, as `optimum-cli export onnx --task text-classification` writes them;"
                " check MNEME_RERANKER=onnx:FOLDER"
            )
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        try:
            self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
            self._session = onnxruntime.InferenceSession(
                str(graph), options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # Both libraries raise bare Exception subclasses of their own.
            raise ModelUnavailable(f"cannot load the reranker in {folder}: {error}") from error
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(_MAX_TOKENS)
        self._inputs = {given.name for given in self._session.get_inputs()}
        self._closed = False

    @property
    def model_id(self) -> str:
        """See Reranker."""
        return f"onnx:{self._name}"

    def relevance(self, query: str, texts: Sequence[str], *, until_s: float) -> Relevance:
        """See Reranker."""
        asked = query[:MAX_CHARACTERS]
        try:
            pairs = self._tokenizer.encode_batch([(asked, text[:MAX_CHARACTERS]) for text in texts])
        except (TypeError, UnicodeEncodeError) as error:
            raise RerankingError(f"a text is not valid Unicode: {error}") from error
        # Those of one length together, so that little is computed for padding.
        order = sorted(range(len(pairs)), key=lambda place: len(pairs[place].ids))
        values = np.empty(len(pairs), np.float32)
        for start in range(0, len(order), PAIRS_PER_RUN):
            if self._closed:
                raise RerankingError("the reranker is closed")
            if time.monotonic() > until_s:
                raise RerankingError(f"{start} of {len(texts)} texts were read when time was up")
            places = order[start : start + PAIRS_PER_RUN]
            values[places] = self._run([pairs[place] for place in places])
        return checked(values, len(texts), self.model_id)

    def close(self) -> None:
        """See Reranker."""
        self._closed = True

    def _run(self, pairs: Sequence[Encoding]) -> NDArray[np.float32]:
        shape = len(pairs), max(len(pair.ids) for pair in pairs)
        given = {
            name: np.zeros(shape, np.int64)
            for name in ("input_ids", "attention_mask", "token_type_ids")
        }
        for row, pair in enumerate(pairs):
            length = len(pair.ids)
            given["input_ids"][row, :length] = pair.ids
            given["attention_mask"][row, :length] = 1
            given["token_type_ids"][row, :length] = pair.type_ids
        try:
            logits = self._session.run(
                None, {name: array for name, array in given.items() if name in self._inputs}
            )[0]
        except Exception as error:  # ONNX Runtime's exceptions share no public base class.
            raise RerankingError(f"the reranker failed: {error}") from error
        return _relevance_of(np.asarray(logits, np.float32))


def _relevance_of(logits: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the relevance (n,) in a cross-encoder's answer: (n,), (n, 1), or (n, 2), where the
    second label means relevant."""
    if logits.ndim == 2 and logits.shape[1] == 2:
        return logits[:, 1] - logits[:, 0]
    if logits.ndim == 2 and logits.shape[1] != 1:
        raise RerankingError(
            f"the model has {logits.shape[1]} labels; a cross-encoder for ranking has one or two"
        )
    return logits.reshape(len(logits))


class CrossEncoderReranker:
    """Compares with sentence-transformers, on torch; slower and larger than OnnxReranker, but takes
    any cross-encoder, by name or path."""

    def __init__(self, name: str, *, threads: int = 2) -> None:
        """Load the model called `name` on the Hugging Face hub, or the one in the folder `name`.

        `threads` is torch's process-wide setting. Raises ModelUnavailable.
        """
        self._model = load_model(
            lambda library: library.CrossEncoder(name, device="cpu"),
            name,
            what="cross-encoder",
            setting="MNEME_RERANKER",
            threads=threads,
        )
        self._name = name
        # Fast tokenizers refuse concurrent use while they change their padding.
        self._lock = threading.Lock()
        self._closed = False

    @property
    def model_id(self) -> str:
        """See Reranker."""
        return f"sentence-transformers:{self._name}"

    def relevance(self, query: str, texts: Sequence[str], *, until_s: float) -> Relevance:
        """See Reranker."""
        pairs = [(query[:MAX_CHARACTERS], text[:MAX_CHARACTERS]) for text in texts]
        values: list[float] = []
        for start in range(0, len(pairs), PAIRS_PER_RUN):
            if self._closed:
                raise RerankingError("the reranker is closed")
            if not self._lock.acquire(timeout=max(0.0, until_s - time.monotonic())):
                raise RerankingError(f"{start} of {len(texts)} texts were read when time was up")
            try:
                some = self._model.predict(
                    pairs[start : start + PAIRS_PER_RUN], show_progress_bar=False
                )
            except Exception as error:  # torch's and the tokenizer's share no base class
                raise RerankingError(f"{self._name} failed: {first_line(error)}") from error
            finally:
                self._lock.release()
            values += np.asarray(some).reshape(-1).tolist()
        return checked(values, len(texts), self.model_id)

    def close(self) -> None:
        """See Reranker."""
        self._closed = True


class RemoteReranker:
    """Asks a service over HTTP, in the form that Cohere, Jina and vLLM share; the model id is
    `http:MODEL`.

    `POST URL {"model", "query", "documents", "top_n"}` is answered with `{"results": [{"index",
    "relevance_score"}, …]}`, in any order.
    """

    def __init__(self, model: str, *, url: str, api_key: str | None = None) -> None:
        """Raises ValueError for a URL that is none. The service is first asked when first used."""
        self._model = model
        self._http = JsonHttpClient(
            f"the reranker {model}",
            url,
            headers={"Authorization": f"Bearer {api_key}"} if api_key else {},
            # Whoever asks goes on without it; a second attempt would come too late.
            policy=HttpPolicy(connect_timeout_s=2.0, request_timeout_s=_LONGEST_S, attempts=1),
        )

    @property
    def model_id(self) -> str:
        """See Reranker."""
        return f"http:{self._model}"

    def relevance(self, query: str, texts: Sequence[str], *, until_s: float) -> Relevance:
        """See Reranker. A request is not taken back when the time is up; its answer is dropped."""
        if until_s - time.monotonic() < _LEAST_S:
            raise RerankingError("there was no time left to ask")
        body = {
            "model": self._model,
            "query": query,
            # The services refuse an empty text.
            "documents": [text[:_MAX_CHARACTERS] if text.strip() else "(empty)" for text in texts],
            "top_n": len(texts),
        }
        try:
            answer = self._http.post("", body)
        except StatusError as error:
            raise RerankingError(self._explain(error)) from error
        except EmbeddingError as error:
            raise RerankingError(str(error)) from error
        try:
            by_index = {int(one["index"]): one["relevance_score"] for one in answer["results"]}
            values = [by_index[index] for index in range(len(texts))]
        except (KeyError, TypeError, ValueError) as error:
            raise RerankingError(
                f"{self.model_id}: the answer lacks results[] with index and relevance_score for"
                f" each text: {error!r}"
            ) from error
        return checked(values, len(texts), self.model_id)

    def close(self) -> None:
        """See Reranker."""
        self._http.close()

    def _explain(self, error: StatusError) -> str:
        if error.status in (401, 403):
            return (
                f"the reranker refused the API key (HTTP {error.status}: {error.message});"
                " check MNEME_RERANKER_API_KEY"
            )
        if error.status == 404:
            return (
                f"there is no reranker {self._model!r} (HTTP 404: {error.message}); check the name"
                " in MNEME_RERANKER=http:MODEL and the path in MNEME_RERANKER_URL"
            )
        return f"the reranker refused the request (HTTP {error.status}: {error.message})"
