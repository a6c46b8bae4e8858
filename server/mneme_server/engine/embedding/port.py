"""The port through which the rest of the server sees embeddings, with its errors.

It loads no numpy, which starts threads: commands know the errors before they limit what threads
take.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_NICENESS = 10


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


def give_way() -> None:
    """Lower this thread's priority, where threads have one of their own (Linux): it does bulk work
    of an embedder, and leaves the processor to others.
    """
    if sys.platform == "linux":
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICENESS)


class EmbeddingError(Exception):
    """A text could not be embedded.

    `message` is for any caller. `detail` is for whoever runs the server, who sees both in
    `str(error)`: where the backend is, what the system said. `retryable` tells whether the same
    call may succeed later, `retry_after_s` (seconds) when the backend said so. `hopeless` tells
    that the fault is the text's: no call will ever embed it.
    """

    def __init__(
        self,
        message: str,
        *,
        detail: str = "",
        retryable: bool = False,
        retry_after_s: float | None = None,
        hopeless: bool = False,
    ) -> None:
        super().__init__(f"{message} ({detail})" if detail else message)
        self.message = message
        self.detail = detail
        self.retryable = retryable
        self.retry_after_s = retry_after_s
        self.hopeless = hopeless


class ModelUnavailable(EmbeddingError):
    """The model itself is missing or damaged; the message says what to install, pull or run. Never
    retryable.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message, retryable=False)


class ServiceFailed(EmbeddingError):
    """A service failed at what it was sent, again and again: it may be broken, or the text be to
    blame (some answer 500 to one of too many tokens). Retryable, as far as is known."""


class ServiceRefused(EmbeddingError):
    """A service refused what it was sent, such as a text of too many tokens. Never retryable."""
