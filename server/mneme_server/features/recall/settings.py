"""The settings of recall."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, BeforeValidator, Field, SecretStr

from mneme_server.engine.settings import none_if_empty


class RecallSettings(BaseModel):
    """What recall is told. Times are in seconds."""

    reranker: str = Field(
        "none",
        description="what reorders the first results of Recall: http:MODEL (at MNEME_RERANKER_URL,"
        " in the format of Cohere, Jina and vLLM), onnx:FOLDER (an exported cross-encoder) or"
        " sentence-transformers:NAME; none: nothing does",
    )
    reranker_url: str = Field(
        "",
        description="where http:MODEL is served, path included, e.g."
        " http://127.0.0.1:8000/v1/rerank",
    )
    reranker_api_key: Annotated[SecretStr | None, BeforeValidator(none_if_empty)] = Field(
        None, description="key for http:MODEL, if it needs one"
    )
    reranker_seconds: float = Field(
        1.0,
        gt=0,
        le=30,
        description="how long a call waits for the reranker, at most half of its own deadline;"
        " then it goes on without it",
    )
