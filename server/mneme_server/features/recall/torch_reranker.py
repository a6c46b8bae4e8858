"""A reranker of sentence-transformers, on torch."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

import numpy as np

from mneme_server.engine.embedding.sentence_transformers import first_line, load_model
from mneme_server.features.recall.reranker import (
    MAX_CHARACTERS,
    PAIRS_PER_RUN,
    Relevance,
    RerankingError,
    checked,
)


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
