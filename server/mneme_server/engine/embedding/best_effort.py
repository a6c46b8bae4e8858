"""Embeddings for callers who can do without: soon, or not at all.

What is written goes into the durable queue when its vector is not to be had soon, and what is asked
is searched by words alone. A backend that is down or hangs then costs such a caller a moment.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

import numpy as np
import structlog
from numpy.typing import NDArray

from mneme_server.common.begun import Begun
from mneme_server.common.deadline import time_left, within
from mneme_server.common.fairness import on_behalf_of
from mneme_server.engine.embedding.cache import CachedEmbedder
from mneme_server.engine.embedding.port import EmbeddingError

_PER_TEXT_S = 0.01
_PAUSE_S = 2.0
_LONGEST_PAUSE_S = 5.0
_REMEMBERED = 1_000
"""Tenants whose failures are remembered before those that are over are forgotten."""

_log = structlog.get_logger(__name__)


class BestEffortEmbedder:
    """Embeds texts unless that takes too long. Thread-safe.

    After a failure its tenant does not try for two seconds, or for as long as the backend asks,
    five at most: while it is down, one call of a tenant in two seconds waits for it and the others
    do not. Other tenants find out for themselves: what failed may be this one's alone. What the
    cache holds is answered all the same.

    Args:
        embedder: makes the vectors.
        patience_s: how long a call waits for one text, ten milliseconds more for each further one;
            never more than half of the time that its caller gives it.
    """

    def __init__(self, embedder: CachedEmbedder, *, patience_s: float) -> None:
        self._embedder = embedder
        self._patience_s = patience_s
        self._lock = threading.Lock()
        self._again_s: dict[str, float] = {}  # When a tenant may try again, after a failure.

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32] | None:
        """Return unit vectors (n, d); None when they are not to be had soon."""
        if self._is_paused():
            return self._embedder.cached(texts)
        try:
            with within(self._patience_for(texts)):
                return self._embedder.embed(texts)
        except EmbeddingError as error:
            self._failed(error)
            return None

    def begin(self, texts: Sequence[str]) -> Begun[NDArray[np.float32] | None]:
        """Start what `embed` does, and wait for it where what is returned is called."""
        if self._is_paused():
            known = self._embedder.cached(texts)
            return Begun(lambda: known)
        until = time.monotonic() + self._patience_for(texts)
        try:
            pending = self._embedder.begin(texts)
        except EmbeddingError as error:
            self._failed(error)
            return Begun(lambda: None)

        def result() -> NDArray[np.float32] | None:
            try:
                with within(until - time.monotonic()):
                    return pending()
            except EmbeddingError as error:
                self._failed(error)
                return None

        return Begun(result, pending.is_ready)

    def _is_paused(self) -> bool:
        return time.monotonic() < self._again_s.get(on_behalf_of(), 0.0)

    def _patience_for(self, texts: Sequence[str]) -> float:
        patience_s = self._patience_s + _PER_TEXT_S * (len(texts) - 1)
        left = time_left()
        return patience_s if left is None else min(patience_s, left / 2)

    def _failed(self, error: EmbeddingError) -> None:
        """Pause.

        Raises:
            EmbeddingError: nobody waits for the call any more.
        """
        if time_left() == 0:
            raise error
        pause_s = min(error.retry_after_s or _PAUSE_S, _LONGEST_PAUSE_S)
        now = time.monotonic()
        with self._lock:
            if len(self._again_s) >= _REMEMBERED:
                self._again_s = {t: again for t, again in self._again_s.items() if again > now}
            first = now >= self._again_s.get(on_behalf_of(), 0.0)
            self._again_s[on_behalf_of()] = now + pause_s
        if first:
            _log.warning("not embedded soon, going on without", error=str(error))
