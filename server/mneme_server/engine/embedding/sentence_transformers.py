"""Any sentence-transformers model, by name or path, on torch."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
from mneme._extras import from_wheels
from numpy.typing import NDArray

from mneme_server.engine.embedding.port import EmbeddingError, ModelUnavailable
from mneme_server.engine.embedding.vectors import as_unit_rows

T = TypeVar("T")

_BATCH_SIZE = 32


class SentenceTransformersEmbedder:
    """Embeds with sentence-transformers; slower and larger than LocalEmbedder, but takes any of its
    models.
    """

    def __init__(
        self,
        name: str,
        *,
        threads: int = 2,
        progress: Callable[[str], None] = lambda line: None,
    ) -> None:
        """Load the model called `name` on the Hugging Face hub, or the one in the folder `name`.

        `threads` is torch's process-wide setting. Raises ModelUnavailable.
        """
        progress(f"loading {name} with sentence-transformers; this takes some seconds")
        self._model = load_model(
            lambda library: library.SentenceTransformer(name, device="cpu"),
            name,
            what="sentence-transformers model",
            setting="MNEME_EMBEDDER",
            threads=threads,
        )
        dimensions = self._model.get_embedding_dimension()
        if dimensions is None:
            raise ModelUnavailable(f"{name!r} is not an embedding model: it has no dimensions")
        self._name = name
        self._dimensions = int(dimensions)
        # Fast tokenizers refuse concurrent use while they change their padding.
        self._lock = threading.Lock()
        self._closed = False

    @property
    def model_id(self) -> str:
        """See Embedder."""
        return f"sentence-transformers:{self._name}"

    @property
    def dimensions(self) -> int:
        """See Embedder."""
        return self._dimensions

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """See Embedder. Texts beyond the model's window are cut by its tokenizer."""
        if self._closed:
            raise EmbeddingError("the embedder is closed")
        if not texts:
            return np.empty((0, self._dimensions), np.float32)
        try:
            with self._lock:
                vectors = self._model.encode(
                    list(texts),
                    batch_size=_BATCH_SIZE,
                    normalize_embeddings=True,
                    show_progress_bar=False,
                    convert_to_numpy=True,
                )
        except Exception as error:  # torch's and the tokenizer's share no base class
            raise EmbeddingError(f"{self._name} failed: {first_line(error)}") from error
        return as_unit_rows(
            vectors, rows=len(texts), dimensions=self._dimensions, source=self._name
        )

    def close(self) -> None:
        """See Embedder."""
        self._closed = True


def load_model(build: Callable[[Any], T], name: str, *, what: str, setting: str, threads: int) -> T:
    """Return what `build` makes with the module sentence_transformers.

    Args:
        build: loads the model called `name`.
        name: the model on the Hugging Face hub, or its folder.
        what: how errors call such a model.
        setting: the setting that names it.
        threads: torch's process-wide setting.

    Raises:
        ModelUnavailable: sentence-transformers is not installed, or the model cannot be loaded.
    """
    try:
        import sentence_transformers
        import torch
    except ImportError as error:
        raise ModelUnavailable(
            f"sentence-transformers is not installed ({error}): install it"
            f" {from_wheels('server-without-model,sentence-transformers')}"
        ) from error
    torch.set_num_threads(threads)
    try:
        return build(sentence_transformers)
    except Exception as error:  # OSError, ValueError, and several of its HTTP client's
        raise ModelUnavailable(
            f"cannot load the {what} {name!r}: {first_line(error)}. Check the name; on a machine"
            f" without network access, download it elsewhere with `hf download {name}"
            f" --local-dir FOLDER`, copy the folder here and set {setting}="
            "sentence-transformers:FOLDER"
        ) from error


def first_line(error: Exception) -> str:
    """Return what an error says first; these libraries' messages go on for pages."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]
