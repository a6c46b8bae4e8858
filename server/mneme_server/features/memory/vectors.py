"""Vectors of texts that are to be stored, and where they came from."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from mneme_server.engine.corpus.ports import Matrix, TextEmbedder
from mneme_server.engine.corpus.tenant import OpenTenant
from mneme_server.features.memory.model import Figures
from mneme_server.features.memory.ports import MemoriesUnit


class KnownTexts(Protocol):
    """What the server has embedded lately."""

    def holds(self, texts: Sequence[str]) -> Sequence[bool]:
        """Return for each text whether its vector is at hand."""
        ...


@dataclass(frozen=True, slots=True)
class Vectors:
    """Where the vectors of texts come from: the cache, the tenant's own, else the model."""

    embedder: TextEmbedder
    lately: KnownTexts

    def of(
        self, tenant: OpenTenant[MemoriesUnit], texts: Collection[str], figures: Figures
    ) -> Mapping[str, Matrix]:
        """Return the vectors (d,) by text; those that are not to be had soon are missing.

        It may take long. `figures` are told what it took.
        """
        began = time.perf_counter()
        distinct = list(dict.fromkeys(texts))
        held = self.lately.holds(distinct)
        others = [text for text, is_held in zip(distinct, held, strict=True) if not is_held]
        found: dict[str, Matrix] = {}
        if others:
            with tenant.read() as unit:
                found |= unit.queue.known_vectors(others)
        misses = len(others) - len(found)
        asked = [text for text in distinct if text not in found]
        if asked:
            vectors = self.embedder.embed(asked)
            if vectors is not None:
                found |= zip(asked, vectors, strict=True)
        figures.cache_hits += len(texts) - misses
        figures.cache_misses += misses
        figures.embedding_s += time.perf_counter() - began
        return found
