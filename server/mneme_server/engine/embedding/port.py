"""The port through which the rest of the server sees embeddings."""

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray


class Embedder(Protocol):
    """Turns texts into unit vectors of one vector space. Implementations are safe to share between
    threads.
    """

    @property
    def model_id(self) -> str:
        """Names the vector space.

        It is stored with every tenant's index: vectors of different model ids are never compared.
        The same weights computed in another precision have another id, because the same text then
        gives another vector.
        """
        ...

    @property
    def dimensions(self) -> int:
        """Length d of each vector. A remote embedder may have to ask its backend once, and raise
        EmbeddingError.
        """
        ...

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return an (n, d) float32 array, row i the L2-normalised vector of texts[i]; (0, d) for no
        texts.

        A text longer than the model's window is embedded by its beginning. Raises EmbeddingError.
        """
        ...

    def close(self) -> None:
        """Release threads, connections and memory. Closing twice is allowed; embedding afterwards
        raises. One that waits for a peer fails what waits; one that computes is closed when nobody
        uses it.
        """
        ...


class EmbedderView:
    """An embedder that is seen through another way to embed.

    Args:
        embedder: whose model it is.
        embed: embeds; see `Embedder.embed`.
    """

    def __init__(
        self, embedder: Embedder, embed: Callable[[Sequence[str]], NDArray[np.float32]]
    ) -> None:
        self._embedder = embedder
        self._embed = embed

    @property
    def model_id(self) -> str:
        """See Embedder."""
        return self._embedder.model_id

    @property
    def dimensions(self) -> int:
        """See Embedder."""
        return self._embedder.dimensions

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """See Embedder."""
        return self._embed(texts)

    def close(self) -> None:
        """Does nothing: the embedder is closed by whoever built it."""


def for_questions(embedder: Embedder) -> Embedder:
    """Return what embeds questions, in the same vector space.

    Most models read a question as they read any text, and are it themselves. One that does not has
    an attribute `questions`, and its own `embed` is for what is stored.
    """
    questions: Embedder = getattr(embedder, "questions", embedder)
    return questions


def load(embedder: Embedder) -> None:
    """Have it ready to embed, where it is not when it is made: such a one has a method `load`.

    Raises:
        ModelUnavailable: its model cannot be loaded; the message says what to do.
    """
    ready: Callable[[], object] | None = getattr(embedder, "load", None)
    if ready is not None:
        ready()
