"""The worker that turns queued documents into vectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

import numpy as np
import structlog

from mneme_server.common import tracing
from mneme_server.common.clock import MICROSECONDS, now_us
from mneme_server.common.passages import passages
from mneme_server.common.tracing import NOTHING, Span
from mneme_server.engine.background.tenant_worker import MOST_ATTEMPTS, TenantWorker, retry_delay_s
from mneme_server.engine.corpus.ports import Matrix
from mneme_server.engine.corpus.tenant import OpenTenant
from mneme_server.engine.corpus.tenant_store import QueuedText

_PIECES = 256
"""Passages that are embedded in one call."""
_CHARACTERS = 400_000
"""Of the texts of a step: some thousand passages, which take seconds."""
_IN_COMMON = 0.7
"""Of the mean of a text's passages, what their vectors are without."""
_PROBE = "words"
"""A text that every model takes."""
_log = structlog.get_logger(__name__)


class BackgroundEmbedder(Protocol):
    """Embeds texts, giving way to those that somebody waits for."""

    def embed(self, texts: Sequence[str]) -> Matrix:
        """Return unit vectors (n, d)."""
        ...


class EmbeddingPipeline(TenantWorker):
    """Embeds the queued documents of all tenants.

    Args:
        open_tenant: lends a tenant's memory.
        embedder: makes the vectors.
        batch: documents a step takes from one tenant before it is the next one's turn.
        spans: what the spans of embeddings are parts of.
    """

    def __init__(
        self,
        open_tenant: Callable[[str], AbstractContextManager[OpenTenant]],
        embedder: BackgroundEmbedder,
        *,
        batch: int,
        spans: Span = NOTHING,
    ) -> None:
        super().__init__("embedding", thread="embedding-pipeline")
        self._open_tenant = open_tenant
        self._embedder = embedder
        self._batch = batch
        self._spans = spans

    def step(self, tenant_id: str) -> int | None:
        """Embed one batch of the tenant."""
        tracing.enter(self._spans)
        with self._open_tenant(tenant_id) as tenant:
            if tenant.pending and not tenant.backlog.is_long:
                self.give_way()
            with tenant.read() as unit:
                queued = unit.queue.due(now_us(), self._batch)
                if not queued:
                    return unit.queue.next_due_us()
                texts = list({item.text for item in queued})
                known = dict(unit.queue.known_vectors(texts))
            return self._embed(tenant, queued, texts, known)

    def _embed(
        self,
        tenant: OpenTenant,
        queued: Sequence[QueuedText],
        texts: Sequence[str],
        known: dict[str, Matrix],
    ) -> int | None:
        """Embed what is due; return when the tenant's next turn comes."""
        missing = _at_once([text for text in texts if text not in known])
        hopeless: set[str] = set()
        wanted = {*known, *missing}
        failure = self._embed_missing(missing, known, hopeless) if missing else None
        failure = self._try_last(queued, known, hopeless) or failure
        ready = [item for item in queued if item.text in known]
        lost = [item for item in queued if item.text in hopeless]
        left = known.keys() | hopeless
        late = [item for item in queued if item.text in wanted and item.text not in left]
        with tenant.write() as unit:
            if ready:
                unit.queue.finish(ready, [known[item.text] for item in ready])
            if lost:
                unit.queue.give_up([item.doc_id for item in lost])
            if late and not self.stopping:
                attempts = max(item.attempts for item in late)
                delay_s = retry_delay_s(attempts)
                until_us = now_us() + int(delay_s * MICROSECONDS)
                unit.queue.defer(
                    [item.doc_id for item in late], until_us=until_us, error=str(failure)
                )
            # Of a full batch more is left, as a rule; else whoever adds more wakes this.
            full = len(queued) == self._batch or len(wanted) < len(texts)
            next_us = now_us() if full else unit.queue.next_due_us()
        if lost:
            _log.error(
                "texts cannot be embedded, and are found by their words alone",
                tenant=tenant.tenant_id, texts=len(lost), error=str(failure),
            )  # fmt: skip
        if late and not self.stopping:
            _log.warning(
                "texts could not be embedded, will be tried again", tenant=tenant.tenant_id,
                texts=len(late), retry_in_s=delay_s, error=str(failure),
            )  # fmt: skip
        return next_us

    def _try_last(
        self, queued: Sequence[QueuedText], known: dict[str, Matrix], hopeless: set[str]
    ) -> Exception | None:
        """Embed by itself, for the last time, what failed too often while other texts can be
        embedded: it would be tried for ever, and hold back those beside it. Return the failure."""
        last: Exception | None = None
        often = {item.text for item in queued if item.attempts >= MOST_ATTEMPTS - 1}
        for text in sorted(often - known.keys() - hopeless):
            try:
                known[text] = self._embed_whole([text])[0]
            except Exception as failure:
                if self.stopping or not self._works():
                    return failure  # It is not the text's fault.
                hopeless.add(text)
                last = failure
        return last

    def _works(self) -> bool:
        try:
            self._embedder.embed([_PROBE])
        except Exception:
            return False
        return True

    def _embed_missing(
        self, missing: list[str], known: dict[str, Matrix], hopeless: set[str]
    ) -> Exception | None:
        """Embed texts into `known`; one by one when a batch fails, so that one bad text does not
        hold back the others. Note those that never will be; return the last failure."""
        try:
            known.update(zip(missing, self._embed_whole(missing), strict=True))
        except Exception as failure:
            if len(missing) == 1 and getattr(failure, "hopeless", False):
                hopeless.update(missing)
            if len(missing) == 1 or getattr(failure, "retryable", False) or self.stopping:
                return failure
            last: Exception | None = None
            for text in missing:
                last = self._embed_missing([text], known, hopeless) or last
            return last
        return None

    def _embed_whole(self, texts: Sequence[str]) -> list[Matrix]:
        """Return the vectors (k, d) of each: of all that is read of it at once, and of the passages
        of what is longer. Of a book they are thousands: others get their turn between."""
        pieces = [[text, *(one.of(text) for one in passages(text))] for text in texts]
        flat = [piece for of_one in pieces for piece in of_one]
        made: list[Matrix] = []
        for start in range(0, len(flat), _PIECES):
            if start and self.stopping:
                raise Stopped
            made.append(self._embedder.embed(flat[start : start + _PIECES]))
        ends = np.cumsum([len(of_one) for of_one in pieces])
        return [*map(_set_apart, np.split(np.concatenate(made), ends[:-1]))]


def _set_apart(vectors: Matrix) -> Matrix:
    """Return the vectors (k, d) of a text with those of its passages less the most of what these
    have in common.

    What a text is about on the whole, its first vector says. The best of many passages on one
    subject is near to any question on it by chance, and would outrank the short text that answers
    it; what one passage says besides is what it is for. `docs/adr/0058` has what that is worth.
    """
    if len(vectors) > 1:
        vectors[1:] -= _IN_COMMON * vectors[1:].mean(axis=0)
    return vectors


def _at_once(texts: Sequence[str]) -> list[str]:
    """Return those of them that are embedded in one step, the shortest first, so that a book holds
    up nobody's line: at least one, and as many characters as a step has."""
    ordered = sorted(texts, key=len)
    sizes = np.cumsum([len(text) for text in ordered])
    return ordered[: max(1, int(np.searchsorted(sizes, _CHARACTERS, side="right")))]


class Stopped(Exception):
    """The server is being stopped: what was not embedded yet stays queued."""
