"""A reranker behind HTTP."""

from __future__ import annotations

import time
from collections.abc import Sequence

from mneme_server.engine.embedding.http import HttpPolicy, JsonHttpClient, StatusError
from mneme_server.engine.embedding.port import EmbeddingError
from mneme_server.features.recall.reranker import Relevance, RerankingError, checked

_MAX_CHARACTERS = 8_000
"""Of a text; at four characters to a token about 2,000 tokens, which all of them take."""
_LEAST_S = 0.05
_LONGEST_S = 10.0


class RemoteReranker:
    """Asks a service over HTTP, in the form that Cohere, Jina and vLLM share; the model id is
    `http:MODEL`.

    `POST URL {"model", "query", "documents", "top_n"}` is answered with `{"results": [{"index",
    "relevance_score"}, …]}`, in any order.
    """

    def __init__(self, model: str, *, url: str, api_key: str | None = None) -> None:
        """Raises ValueError for a URL that is none. The service is first asked when first used."""
        self._model = model
        self._http = JsonHttpClient(
            f"the reranker {model}",
            url,
            headers={"Authorization": f"Bearer {api_key}"} if api_key else {},
            # Whoever asks goes on without it; a second attempt would come too late.
            policy=HttpPolicy(connect_timeout_s=2.0, request_timeout_s=_LONGEST_S, attempts=1),
        )

    @property
    def model_id(self) -> str:
        """See Reranker."""
        return f"http:{self._model}"

    def relevance(self, query: str, texts: Sequence[str], *, until_s: float) -> Relevance:
        """See Reranker. A request is not taken back when the time is up; its answer is dropped."""
        if until_s - time.monotonic() < _LEAST_S:
            raise RerankingError("there was no time left to ask")
        body = {
            "model": self._model,
            "query": query,
            # The services refuse an empty text.
            "documents": [text[:_MAX_CHARACTERS] if text.strip() else "(empty)" for text in texts],
            "top_n": len(texts),
        }
        try:
            answer = self._http.post("", body)
        except StatusError as error:
            raise RerankingError(self._explain(error)) from error
        except EmbeddingError as error:
            raise RerankingError(str(error)) from error
        try:
            by_index = {int(one["index"]): one["relevance_score"] for one in answer["results"]}
            values = [by_index[index] for index in range(len(texts))]
        except (KeyError, TypeError, ValueError) as error:
            raise RerankingError(
                f"{self.model_id}: the answer lacks results[] with index and relevance_score for"
                f" each text: {error!r}"
            ) from error
        return checked(values, len(texts), self.model_id)

    def close(self) -> None:
        """See Reranker."""
        self._http.close()

    def _explain(self, error: StatusError) -> str:
        if error.status in (401, 403):
            return (
                f"the reranker refused the API key (HTTP {error.status}: {error.message});"
                " check MNEME_RERANKER_API_KEY"
            )
        if error.status == 404:
            return (
                f"there is no reranker {self._model!r} (HTTP 404: {error.message}); check the name"
                " in MNEME_RERANKER=http:MODEL and the path in MNEME_RERANKER_URL"
            )
        return f"the reranker refused the request (HTTP {error.status}: {error.message})"
