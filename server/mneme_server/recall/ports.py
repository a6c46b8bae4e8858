"""What recall needs from the embedder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from mneme_server.corpus.ports import Matrix


class SoonEmbedder(Protocol):
    """Embeds queries while a caller waits, if that can be done soon."""

    def begin(self, texts: Sequence[str]) -> Callable[[], Matrix | None]:
        """Start embedding. The function returned waits for the unit vectors and returns them
        (n, d), or None when they are not to be had soon; it is to be called once, by the thread
        that began.
        """
        ...


class QueryEmbedder(Protocol):
    """Embeds queries while a caller waits."""

    def begin(self, texts: Sequence[str]) -> Callable[[], Matrix]:
        """Start embedding. The function returned waits for the unit vectors and returns them
        (n, d); it is to be called once, by the thread that began.
        """
        ...
