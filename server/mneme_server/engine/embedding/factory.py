"""From the setting MNEME_EMBEDDER to an embedder."""

from collections.abc import Callable
from pathlib import Path

from mneme_server.engine.embedding.port import Embedder

FORMS = "local, local:fp32, e5, sentence-transformers:NAME, openai:MODEL, ollama:MODEL"


def build_embedder(
    spec: str,
    model_dir: Path | None,
    *,
    openai_api_key: str | None = None,
    openai_base_url: str = "https://api.openai.com/v1",
    ollama_base_url: str = "http://127.0.0.1:11434",
    threads: int = 2,
    progress: Callable[[str], None] = lambda line: None,
) -> Embedder:
    """Build the embedder that `spec` names; see FORMS.

    `model_dir` holds the local model; None: its package does. Only the chosen backend's libraries
    are imported. Raises ValueError for an unknown form or a
    missing API key, and ModelUnavailable when a local model cannot be loaded. Remote backends are
    first contacted when first used.
    """
    kind, separator, name = spec.strip().partition(":")
    name = name.strip()
    match kind:
        case "local" if not separator or name in ("int8", "fp32"):
            from mneme_server.engine.embedding.local import LocalEmbedder

            return LocalEmbedder(
                model_dir,
                precision="fp32" if name == "fp32" else "int8",
                threads=threads,
            )
        case "e5" if not separator:
            from mneme_server.engine.embedding.e5 import E5Embedder

            return E5Embedder(threads=threads)
        case "sentence-transformers" if name:
            from mneme_server.engine.embedding.sentence_transformers import (
                SentenceTransformersEmbedder,
            )

            return SentenceTransformersEmbedder(name, threads=threads, progress=progress)
        case "openai" if name:
            from mneme_server.engine.embedding.openai import OpenAIEmbedder

            if not openai_api_key:
                raise ValueError(
                    f"the embedder {spec!r} needs an API key; set MNEME_OPENAI_API_KEY"
                )
            return OpenAIEmbedder(name, api_key=openai_api_key, base_url=openai_base_url)
        case "ollama" if name:
            from mneme_server.engine.embedding.ollama import OllamaEmbedder

            return OllamaEmbedder(name, base_url=ollama_base_url)
    raise ValueError(f"unknown embedder {spec!r}; valid forms: {FORMS}")
