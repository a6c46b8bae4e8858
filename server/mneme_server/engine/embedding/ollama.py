"""Ollama's embedding API (`POST /api/embed`), a model server of one's own."""

from collections.abc import Sequence
from typing import Any

from mneme_server.engine.embedding.http import HttpPolicy, JsonHttpClient, StatusError
from mneme_server.engine.embedding.port import EmbeddingError, ModelUnavailable, ServiceRefused
from mneme_server.engine.embedding.remote import REFUSALS, RemoteEmbedder

DEFAULT_BASE_URL = "http://127.0.0.1:11434"

_BATCH_SIZE = 32
# Ollama loads a model at its first use, which takes a while for a large one.
_POLICY = HttpPolicy(request_timeout_s=120.0, total_s=180.0)


class OllamaEmbedder(RemoteEmbedder):
    """Embeds with a model that Ollama serves; the model id is `ollama:MODEL`. Ollama cuts texts
    that are too long.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str = DEFAULT_BASE_URL,
        batch_size: int = _BATCH_SIZE,
        policy: HttpPolicy | None = None,
    ) -> None:
        """Raises ValueError for a base URL that is none. The service is first contacted when first
        used.
        """
        super().__init__(f"ollama:{model}", batch_size=batch_size)
        self._model = model
        self._http = JsonHttpClient("Ollama", base_url, policy=policy or _POLICY)

    def close(self) -> None:
        """See Embedder."""
        self._http.close()

    def _request(self, texts: Sequence[str]) -> Sequence[Any]:
        # An empty text has no tokens with some models, and then no vector.
        filled = [text if text.strip() else "(empty)" for text in texts]
        try:
            answer = self._http.post(
                "/api/embed", {"model": self._model, "input": filled, "truncate": True}
            )
        except StatusError as error:
            if error.status == 404:
                raise ModelUnavailable(
                    f"Ollama does not have the model {self._model!r} ({error.message}); "
                    f"run `ollama pull {self._model}`"
                ) from error
            kind = ServiceRefused if error.status in REFUSALS else EmbeddingError
            raise kind(
                f"Ollama refused the request (HTTP {error.status}): {error.message}"
            ) from error
        vectors = answer.get("embeddings")
        if not isinstance(vectors, list):
            raise EmbeddingError(f"{self._name}: the answer lacks the list `embeddings`")
        return vectors
