"""The reranker that the setting MNEME_RERANKER names."""

from __future__ import annotations

from pathlib import Path

from mneme_server.features.recall.reranker import Reranker

FORMS = "none, http:MODEL, onnx:FOLDER, sentence-transformers:NAME"


def build_reranker(
    spec: str, *, url: str = "", api_key: str | None = None, threads: int = 2
) -> Reranker | None:
    """Build the reranker that `spec` names; None for "none". See FORMS.

    Only the chosen model's libraries are imported. Raises ValueError for an unknown form or a
    missing URL, and ModelUnavailable when a local model cannot be loaded.
    """
    kind, _, name = spec.strip().partition(":")
    name = name.strip()
    match kind:
        case "none" if not name:
            return None
        case "http" if name:
            from mneme_server.features.recall.http_reranker import RemoteReranker

            if not url:
                raise ValueError(
                    f"the reranker {spec!r} needs the address that takes its requests; set"
                    " MNEME_RERANKER_URL, e.g. http://127.0.0.1:8000/v1/rerank"
                )
            return RemoteReranker(name, url=url, api_key=api_key)
        case "onnx" if name:
            from mneme_server.features.recall.onnx_reranker import OnnxReranker

            return OnnxReranker(Path(name), threads=threads)
        case "sentence-transformers" if name:
            from mneme_server.features.recall.torch_reranker import CrossEncoderReranker

            return CrossEncoderReranker(name, threads=threads)
    raise ValueError(f"unknown reranker {spec!r}; valid forms: {FORMS}")
