"""Rerankers: a second look at the best candidates by a model that reads query and text together.

Callers who can do without it get it in time, or not at all.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotInTime
from enum import Enum
from typing import Protocol, TypeAlias

import numpy as np
import structlog
from numpy.typing import NDArray

from mneme_server.common.deadline import time_left
from mneme_server.common.fairness import on_behalf_of

Relevance: TypeAlias = NDArray[np.float32]

PAIRS_PER_RUN = 8
"""Pairs that a local model reads in one run; between runs it is seen whether the time is up."""
MAX_CHARACTERS = 8_192
"""Of a query and of a text: more than a local model's window holds, so tokenizing it is in vain."""
_PAUSE_S = 2.0
"""After a failure nobody asks for so long: a service that is down costs a call now and then."""
_AT_ONCE = 6
"""Calls that are reranked at once; others go on without, rather than queue. A tenant takes another
seat only while more are free than it has: alone it gets three, and leaves others room."""
_log = structlog.get_logger(__name__)


class RerankingError(Exception):
    """Texts could not be compared with a query; the message is for whoever runs the server."""


class Reranker(Protocol):
    """Tells how well texts answer a query. Implementations are safe to share between threads."""

    @property
    def model_id(self) -> str:
        """What logs call the model."""
        ...

    def relevance(self, query: str, texts: Sequence[str], *, until_s: float) -> Relevance:
        """Return a number (n,) for each text, larger for one that answers the query better.

        Numbers of different queries or models cannot be compared. A text longer than the model's
        window is read from its beginning.

        Args:
            query: what is asked.
            texts: n candidates.
            until_s: when to give up, as `time.monotonic()` counts.

        Raises:
            RerankingError: the model failed, or was not done in time.
        """
        ...

    def close(self) -> None:
        """Release threads, connections and memory; what is under way fails. Closing twice is
        allowed.
        """
        ...


def checked(values: object, texts: int, source: str) -> Relevance:
    """Return what a model answered as (texts,) finite float32 numbers.

    Raises:
        RerankingError: it is something else.
    """
    try:
        array = np.asarray(values, dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise RerankingError(f"{source} answered with something that is no number") from error
    if array.shape != (texts,) or not np.isfinite(array).all():
        raise RerankingError(f"{source} did not answer with one finite number for each text")
    return array


class Reranking(Enum):
    """Whether a reranker ordered the best; the names are those of `mneme.v1.Reranking`."""

    DONE = "done"
    LATE = "it was not done in time, or busy"
    FAILED = "it failed"


class DeferredReranker:
    """Orders candidates unless that takes too long. Thread-safe.

    Args:
        reranker: the model.
        patience_s: how long a call waits for it; never more than half of the time its caller gives.
    """

    def __init__(self, reranker: Reranker, *, patience_s: float) -> None:
        self._reranker = reranker
        self._patience_s = patience_s
        self._seating = threading.Lock()  # Guards the next.
        self._seated: Counter[str] = Counter()  # Calls that are being reranked, by tenant.
        self._pool = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="rerank")
        self._again_s = 0.0

    def order(self, query: str, texts: Sequence[str]) -> tuple[Sequence[int] | None, Reranking]:
        """Return the places of the texts, the best answer first, equal ones as they came; None when
        that is not to be had soon. And why.
        """
        if time.monotonic() < self._again_s:
            return None, Reranking.FAILED
        patience_s, left = self._patience_s, time_left()
        if left is not None:
            patience_s = min(patience_s, left / 2)
        tenant_id = on_behalf_of()
        if not self._take_seat(tenant_id):
            return None, Reranking.LATE
        until_s = time.monotonic() + patience_s
        try:
            pending = self._pool.submit(self._relevance, tenant_id, query, texts, until_s)
        except RuntimeError:  # Closed by another thread.
            self._leave(tenant_id)
            return None, Reranking.FAILED
        try:
            values = pending.result(max(0.0, until_s - time.monotonic()))
        except (NotInTime, CancelledError):  # Cancelled: closed before it began.
            return None, Reranking.LATE
        except RerankingError as error:
            return None, self._failed(error, late=time.monotonic() >= until_s)
        return np.argsort(-values, kind="stable").tolist(), Reranking.DONE

    def close(self) -> None:
        """Close the model; callers go on without."""
        self._reranker.close()
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _relevance(
        self, tenant_id: str, query: str, texts: Sequence[str], until_s: float
    ) -> Relevance:
        try:
            return self._reranker.relevance(query, texts, until_s=until_s)
        finally:
            self._leave(tenant_id)

    def _take_seat(self, tenant_id: str) -> bool:
        with self._seating:
            free = _AT_ONCE - self._seated.total()
            if self._seated[tenant_id] >= free:
                return False
            self._seated[tenant_id] += 1
            return True

    def _leave(self, tenant_id: str) -> None:
        with self._seating:
            self._seated[tenant_id] -= 1
            self._seated += Counter()  # Without those who have none.

    def _failed(self, error: RerankingError, *, late: bool) -> Reranking:
        if late:
            return Reranking.LATE
        self._again_s = time.monotonic() + _PAUSE_S
        _log.warning(
            "not reranked, going on without", model=self._reranker.model_id, error=str(error)
        )
        return Reranking.FAILED
