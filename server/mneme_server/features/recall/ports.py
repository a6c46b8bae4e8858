"""What recall needs from the embedder."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from mneme_server.common.begun import Begun
from mneme_server.engine.corpus.ports import Matrix


class SoonEmbedder(Protocol):
    """Embeds queries while a caller waits, if that can be done soon."""

    def begin(self, texts: Sequence[str]) -> Begun[Matrix | None]:
        """Start embedding, for unit vectors (n, d), or None when they are not to be had soon."""
        ...


class QueryEmbedder(Protocol):
    """Embeds queries while a caller waits."""

    def begin(self, texts: Sequence[str]) -> Begun[Matrix]:
        """Start embedding, for unit vectors (n, d)."""
        ...
