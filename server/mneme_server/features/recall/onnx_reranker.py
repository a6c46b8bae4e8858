"""A reranker exported to ONNX."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnxruntime
from numpy.typing import NDArray
from tokenizers import Encoding, Tokenizer

from mneme_server.engine.embedding.port import ModelUnavailable
from mneme_server.features.recall.reranker import (
    MAX_CHARACTERS,
    PAIRS_PER_RUN,
    Relevance,
    RerankingError,
    checked,
)

_MAX_TOKENS = 512
"""The window of the common cross-encoders; the query and a text share it."""
_GRAPHS = ("model.onnx", "onnx/model.onnx")


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
