"""What the embedders behind HTTP share beside the requests: batches, and dimensions learned from
the first answer.
"""

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mneme_server.common.parts import parts
from mneme_server.embedding.vectors import as_unit_rows


class RemoteEmbedder:
    """An Embedder whose vectors come from a service; a subclass says how one batch is asked for."""

    def __init__(self, name: str, *, batch_size: int) -> None:
        """`name` is the model id, and what errors call the service."""
        self._name = name
        self._batch_size = batch_size
        self._dimensions: int | None = None
        self._lock = threading.Lock()

    @property
    def model_id(self) -> str:
        """See Embedder."""
        return self._name

    @property
    def dimensions(self) -> int:
        """Learned from the first answer; asks for one vector when there was none yet."""
        if self._dimensions is None:
            self.embed(["dimensions"])
        assert self._dimensions is not None
        return self._dimensions

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """See Embedder."""
        if not texts:
            return np.empty((0, self.dimensions), np.float32)
        return np.concatenate([*map(self._embed_batch, parts(texts, self._batch_size))])

    def _embed_batch(self, texts: Sequence[str]) -> NDArray[np.float32]:
        vectors = as_unit_rows(
            self._request(texts), rows=len(texts), dimensions=self._dimensions, source=self._name
        )
        with self._lock:
            if self._dimensions is None:
                self._dimensions = vectors.shape[1]
        return vectors

    def close(self) -> None:
        """See Embedder."""
        raise NotImplementedError

    def hang_up(self) -> None:
        """Fail the requests that wait for the service, and those that come; others may wait for
        them. What batches for it can then be closed at once.
        """
        self.close()

    def _request(self, texts: Sequence[str]) -> Sequence[Any]:
        """Ask for one batch: a vector per text, in order. Raises EmbeddingError."""
        raise NotImplementedError
