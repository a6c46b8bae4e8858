"""Any cross-encoder of sentence-transformers, by name or path, on torch."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

import numpy as np

from mneme_server.embedding.errors import ModelUnavailable
from mneme_server.recall.reranker.port import Relevance, RerankingError, checked

_PAIRS_PER_RUN = 8
"""Between runs it is seen whether the time is up."""
_MAX_CHARACTERS = 8_192


class CrossEncoderReranker:
    """Compares with sentence-transformers; slower and larger than OnnxReranker, but takes any
    cross-encoder.
    """

    def __init__(self, name: str, *, threads: int = 2) -> None:
        """Load the model called `name` on the Hugging Face hub, or the one in the folder `name`.

        `threads` is torch's process-wide setting. Raises ModelUnavailable.
        """
        try:
            import torch
            from sentence_transformers import CrossEncoder
        except ImportError as error:
            raise ModelUnavailable(
                f"sentence-transformers is not installed ({error}); "
                "it comes with the extra `sentence-transformers` of mneme-grpc"
            ) from error
        torch.set_num_threads(threads)
        try:
            self._model = CrossEncoder(name, device="cpu")
        except Exception as error:  # OSError, ValueError, and several of its HTTP client's
            raise ModelUnavailable(
                f"cannot load the cross-encoder {name!r}: {_first_line(error)}. Check the name; on"
                f" a machine without network access, download it elsewhere with `hf download {name}"
                " --local-dir FOLDER`, copy the folder here and set"
                " MNEME_RERANKER=sentence-transformers:FOLDER"
            ) from error
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
        pairs = [(query[:_MAX_CHARACTERS], text[:_MAX_CHARACTERS]) for text in texts]
        values: list[float] = []
        for start in range(0, len(pairs), _PAIRS_PER_RUN):
            if self._closed:
                raise RerankingError("the reranker is closed")
            if not self._lock.acquire(timeout=max(0.0, until_s - time.monotonic())):
                raise RerankingError(f"{start} of {len(texts)} texts were read when time was up")
            try:
                some = self._model.predict(
                    pairs[start : start + _PAIRS_PER_RUN], show_progress_bar=False
                )
            except Exception as error:  # torch's and the tokenizer's share no base class
                raise RerankingError(f"{self._name} failed: {_first_line(error)}") from error
            finally:
                self._lock.release()
            values += np.asarray(some).reshape(-1).tolist()
        return checked(values, len(texts), self.model_id)

    def close(self) -> None:
        """See Reranker."""
        self._closed = True


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
