"""OpenAI's embeddings API, and services that speak it (`POST /embeddings`)."""

from collections.abc import Sequence
from typing import Any

from mneme_server.engine.embedding.http import HttpPolicy, JsonHttpClient, StatusError
from mneme_server.engine.embedding.port import EmbeddingError, ModelUnavailable, ServiceRefused
from mneme_server.engine.embedding.remote import REFUSALS, RemoteEmbedder

DEFAULT_BASE_URL = "https://api.openai.com/v1"

# The API takes 2,048 texts and 300,000 tokens in one request, 8,192 tokens in one text. It counts
# tokens, refusing what is longer; characters are counted here, at four to a token as in English,
# with room to spare. A text of more tokens than that, as Chinese may be, is cut once it is refused.
_BATCH_SIZE = 64
_MAX_CHARACTERS = 16_000


class OpenAIEmbedder(RemoteEmbedder):
    """Embeds with a model behind OpenAI's API; the model id is `openai:MODEL`."""

    def __init__(
        self,
        model: str,
        *,
        api_key: str,
        base_url: str = DEFAULT_BASE_URL,
        batch_size: int = _BATCH_SIZE,
        policy: HttpPolicy | None = None,
    ) -> None:
        """Raises ValueError for a base URL that is none. The service is first contacted when first
        used.
        """
        super().__init__(f"openai:{model}", batch_size=batch_size, max_characters=_MAX_CHARACTERS)
        self._model = model
        self._http = JsonHttpClient(
            "OpenAI",
            base_url,
            headers={"Authorization": f"Bearer {api_key}"},
            policy=policy or HttpPolicy(),
        )

    def close(self) -> None:
        """See Embedder."""
        self._http.close()

    def _request(self, texts: Sequence[str]) -> Sequence[Any]:
        # The API refuses an empty text.
        cut = [text[:_MAX_CHARACTERS] if text.strip() else "(empty)" for text in texts]
        body = {"model": self._model, "input": cut, "encoding_format": "float"}
        try:
            answer = self._http.post("/embeddings", body)
        except StatusError as error:
            raise self._explain(error) from error
        try:
            rows = sorted(answer["data"], key=lambda row: int(row["index"]))
            if [row["index"] for row in rows] != list(range(len(texts))):
                raise EmbeddingError(
                    f"{self._name} did not return exactly one vector for each text"
                )
            return [row["embedding"] for row in rows]
        except (KeyError, TypeError, ValueError) as error:
            raise EmbeddingError(
                f"{self._name}: the answer lacks data[].embedding: {error!r}"
            ) from error

    def _explain(self, error: StatusError) -> EmbeddingError:
        if error.status in (401, 403):
            return EmbeddingError(
                f"OpenAI refused the API key (HTTP {error.status}: {error.message}); "
                "check MNEME_OPENAI_API_KEY"
            )
        if error.status == 404 or error.code == "model_not_found":
            return ModelUnavailable(
                f"OpenAI has no embedding model {self._model!r} for this key ({error.message}); "
                "check the name in MNEME_EMBEDDER=openai:MODEL"
            )
        if error.code == "insufficient_quota":
            return EmbeddingError(f"the OpenAI account's quota is used up: {error.message}")
        kind = ServiceRefused if error.status in REFUSALS else EmbeddingError
        return kind(f"OpenAI refused the request (HTTP {error.status}): {error.message}")
