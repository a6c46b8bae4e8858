"""The worker that turns queued documents into vectors.

The queue is a table that was written with the documents, so nothing is lost when the process dies:
a tenant that is opened with a queue goes on where it stopped.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

import numpy as np
import structlog

from mneme_server.common.clock import MICROSECONDS, now_us
from mneme_server.common.errors import MnemeError, NotFound
from mneme_server.corpus.ports import Matrix
from mneme_server.corpus.tenant import CorpusUnit, QueuedText, TenantMemory

FIRST_RETRY_S = 1.0
LONGEST_RETRY_S = 600.0

_log = structlog.get_logger(__name__)


class BackgroundEmbedder(Protocol):
    """Embeds texts, giving way to those that somebody waits for."""

    def embed(self, texts: Sequence[str]) -> Matrix:
        """Return unit vectors (n, d)."""
        ...


class EmbeddingPipeline:
    """Drains the queues of all tenants, in turn, on one thread.

    Args:
        open_tenant: lends a tenant's memory.
        embedder: makes the vectors.
        batch: documents a step takes from one tenant before it is the next one's turn.
    """

    def __init__(
        self,
        open_tenant: Callable[[str], AbstractContextManager[TenantMemory[CorpusUnit]]],
        embedder: BackgroundEmbedder,
        *,
        batch: int,
    ) -> None:
        self._open_tenant = open_tenant
        self._embedder = embedder
        self._batch = batch
        self._due: OrderedDict[str, float] = OrderedDict()  # tenant -> monotonic time of its turn
        self._changed = threading.Condition()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="embedding-pipeline", daemon=True)

    def start(self) -> None:
        """Start the worker."""
        self._thread.start()

    def wake(self, tenant_id: str) -> None:
        """Say that the tenant has queued documents."""
        with self._changed:
            self._due[tenant_id] = 0.0
            self._changed.notify()

    def run_once(self, tenant_id: str) -> None:
        """Embed one batch of the tenant here and now; for use without `start`."""
        self._step(tenant_id)

    def stop(self) -> None:
        """Finish the step at hand and stop; what is left stays in the queues."""
        with self._changed:
            self._stopping = True
            self._changed.notify()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        while (tenant_id := self._next()) is not None:
            try:
                wait_s = self._step(tenant_id)
            except NotFound:
                continue  # The tenant was deleted meanwhile.
            except Exception as error:
                expected = isinstance(error, MnemeError)
                _log.error(
                    "embedding step failed, will be tried again",
                    tenant=tenant_id, error=str(error), exc_info=not expected,
                )  # fmt: skip
                wait_s = (error.retry_after_s if isinstance(error, MnemeError) else None) or 5.0
            if wait_s is not None:
                with self._changed:
                    # A wake that came meanwhile asks for an earlier turn; keep it.
                    turn = time.monotonic() + wait_s
                    self._due[tenant_id] = min(self._due.get(tenant_id, turn), turn)

    def _next(self) -> str | None:
        """Wait for a tenant whose turn has come; None when stopping."""
        with self._changed:
            while not self._stopping:
                now = time.monotonic()
                for tenant_id, turn in self._due.items():
                    if turn <= now:
                        del self._due[tenant_id]
                        return tenant_id
                self._changed.wait(max(0.0, min(self._due.values()) - now) if self._due else None)
            return None

    def _step(self, tenant_id: str) -> float | None:
        """Embed one batch of the tenant; return when its next turn is, in seconds, or None."""
        with self._open_tenant(tenant_id) as memory:
            with memory.read() as unit:
                queued = unit.queue.due(now_us(), self._batch)
                if not queued:
                    next_due = unit.queue.next_due_us()
                    return None if next_due is None else max(0.0, (next_due - now_us()) / 1e6)
                texts = list({item.text for item in queued})
                known = dict(unit.queue.known_vectors(texts))
            self._embed(memory, queued, texts, known)
        return 0.0

    def _embed(
        self,
        memory: TenantMemory[CorpusUnit],
        queued: Sequence[QueuedText],
        texts: Sequence[str],
        known: dict[str, Matrix],
    ) -> None:
        missing = [text for text in texts if text not in known]
        failure = self._embed_missing(missing, known) if missing else None
        ready = [item for item in queued if item.text in known]
        late = [item for item in queued if item.text not in known]
        with memory.write() as unit:
            if ready:
                unit.queue.finish(ready, np.stack([known[item.text] for item in ready]))
            if late:
                attempts = max(item.attempts for item in late)
                delay_s = min(LONGEST_RETRY_S, FIRST_RETRY_S * 2.0**attempts)
                until_us = now_us() + int(delay_s * MICROSECONDS)
                unit.queue.defer(
                    [item.doc_id for item in late], until_us=until_us, error=str(failure)
                )
        if late:
            _log.warning(
                "texts could not be embedded, will be tried again", tenant=memory.tenant_id,
                texts=len(late), retry_in_s=delay_s, error=str(failure),
            )  # fmt: skip

    def _embed_missing(self, missing: list[str], known: dict[str, Matrix]) -> Exception | None:
        """Embed texts into `known`; one by one when a batch fails, so that one bad text does not
        hold back the others. Return the last failure."""
        try:
            known.update(zip(missing, self._embedder.embed(missing), strict=True))
        except Exception as failure:
            if len(missing) == 1 or getattr(failure, "retryable", False):
                return failure
            last: Exception | None = None
            for text in missing:
                last = self._embed_missing([text], known) or last
            return last
        return None
