"""The base of embedders behind HTTP, beside their requests: batches, and dimensions learned from
the first answer.
"""

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
import structlog
from numpy.typing import NDArray

from mneme_server.common.pages import parts
from mneme_server.engine.embedding.port import EmbeddingError, ServiceFailed, ServiceRefused
from mneme_server.engine.embedding.vectors import as_unit_rows

REFUSALS = frozenset({400, 413, 422})
"""Statuses of HTTP that may mean a text, and not who asks or how."""
_PROBE = "dimensions"
"""A text that any model takes."""
_LEAST_CHARACTERS = 32
"""What is shorter is not too long for any model."""
_REFUSED = (ServiceRefused, ServiceFailed)
_log = structlog.get_logger(__name__)


class RemoteEmbedder:
    """An Embedder whose vectors come from a service; a subclass says how one batch is asked for."""

    def __init__(self, name: str, *, batch_size: int, max_characters: int = 1_000_000) -> None:
        """`name` is the model id, and what errors call the service; of a text that has more than
        `max_characters`, no more is asked for."""
        self._name = name
        self._max_characters = max_characters
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
            self.embed([_PROBE])
        assert self._dimensions is not None
        return self._dimensions

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """See Embedder."""
        if not texts:
            return np.empty((0, self.dimensions), np.float32)
        return np.concatenate([*map(self._embed_batch, parts(texts, self._batch_size))])

    def _embed_batch(self, texts: Sequence[str]) -> NDArray[np.float32]:
        try:
            return self._embed_once(texts)
        except _REFUSED:
            # A service counts tokens, and here only characters are known. Where it takes a short
            # text, one of these is to blame; where it takes none, none of them is.
            self._embed_once([_PROBE])
        return self._embed_apart(texts)

    def _embed_apart(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed the texts of a batch that was refused: of one that is too long, its beginning."""
        middle = len(texts) // 2
        halves = (texts[:middle], texts[middle:]) if middle else ()
        found = []
        for half in halves:
            try:
                found.append(self._embed_once(half))
            except _REFUSED:
                found.append(self._embed_apart(half))
        if halves:
            return np.concatenate(found)
        try:
            return self._embed_once(texts)  # A service that failed may be well again.
        except _REFUSED:
            return self._embed_beginning(texts[0])

    def _embed_beginning(self, text: str) -> NDArray[np.float32]:
        kept = text[: self._max_characters]
        while len(kept) > _LEAST_CHARACTERS:
            kept = kept[: len(kept) // 2]
            try:
                vector = self._embed_once([kept])
            except _REFUSED:
                continue
            _log.warning(
                "a text has more tokens than the model takes; its beginning was embedded",
                model=self._name, characters=len(text), embedded=len(kept),
            )  # fmt: skip
            return vector
        self._embed_once([_PROBE])  # Where it takes nothing any more, the text is not to blame.
        raise EmbeddingError(
            f"{self._name} refuses a text of {len(text):,} characters, and its beginning too",
            hopeless=True,
        )

    def _embed_once(self, texts: Sequence[str]) -> NDArray[np.float32]:
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
        """Ask for one batch: a vector per text, in order. Raises EmbeddingError; ServiceRefused or
        ServiceFailed where a text may be to blame.
        """
        raise NotImplementedError
