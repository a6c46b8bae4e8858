"""Concurrent callers share the embedder's batches, and a query does not wait behind a bulk job."""

import enum
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from mneme_server.common.deadline import time_left
from mneme_server.embedding.errors import EmbeddingError
from mneme_server.embedding.port import Embedder

_RETRY_AFTER_S = 1.0
_PATIENCE_S = 1.0
_LOOK_EVERY_S = 0.25
_CLOSE_S = 10.0


_EmbedBatch: TypeAlias = Callable[[Sequence[str]], NDArray[np.float32]]


class Priority(enum.IntEnum):
    """INTERACTIVE: someone waits for an answer. BACKGROUND: indexing, which takes what is left
    over.
    """

    INTERACTIVE = 0
    BACKGROUND = 1


@dataclass(eq=False)
class _Call:
    """One caller's embed(): complete when every piece has its rows or one has failed."""

    pending: int
    done: threading.Event = field(default_factory=threading.Event)
    error: EmbeddingError | None = None


@dataclass(eq=False)
class _Piece:
    """A part of a call that fits a batch."""

    call: _Call
    texts: Sequence[str]
    rows: NDArray[np.float32] | None = None


class MicroBatcher:
    """An Embedder whose worker threads take whatever is queued, up to `max_batch` texts, as soon as
    they are free.

    There is no waiting for a batch to fill: with an idle embedder a text starts at once, under load
    batches grow by themselves. Interactive texts go before background ones; background batches are
    cut to `background_batch` texts and never occupy the last of several workers, so that a query
    finds one free. The queue holds at most `max_queued` texts beyond the batches in work (one
    larger call is accepted when it is empty); what does not fit is refused with a retryable
    EmbeddingError.

    A caller holds a thread while it waits, so waiting is limited. A call whose `time_left` is up is
    withdrawn. Of the interactive ones, `max_slow_calls` may wait for longer than `patience_s`
    seconds: while that many do, the embedder is slow, and what comes beyond is refused with a
    retryable EmbeddingError. An embedder that keeps up refuses nobody.

    A batch that fails for a reason of its own (not retryable) is repeated call by call, so that one
    caller's text fails only that caller.
    """

    def __init__(
        self,
        embedder: Embedder,
        *,
        max_batch: int = 64,
        background_batch: int = 16,
        workers: int = 2,
        max_queued: int = 10_000,
        max_slow_calls: int | None = None,
        patience_s: float = _PATIENCE_S,
    ) -> None:
        if min(max_batch, background_batch, workers, max_queued) < 1:
            raise ValueError(
                "max_batch, background_batch, workers and max_queued must be at least 1"
            )
        self._embedder = embedder
        # Some embedders can do bulk work on threads that give way to all others.
        quietly = getattr(embedder, "embed_quietly", embedder.embed)
        self._embed_batch: tuple[_EmbedBatch, _EmbedBatch] = (embedder.embed, quietly)
        self._batch_sizes = (max_batch, min(background_batch, max_batch))
        self._background_workers = max(1, workers - 1)
        self._max_queued = max_queued
        self._max_slow_calls = max_slow_calls
        self._patience_s = patience_s
        self._state = threading.Condition()  # guards what follows
        self._queues: tuple[deque[_Piece], deque[_Piece]] = (deque(), deque())
        self._queued = 0
        self._slow_calls = 0
        self._background_running = 0
        self._closed = False
        self._workers = [
            threading.Thread(target=self._work, name=f"embed-batch-{number}", daemon=True)
            for number in range(workers)
        ]
        for worker in self._workers:
            worker.start()

    @property
    def model_id(self) -> str:
        """See Embedder."""
        return self._embedder.model_id

    @property
    def dimensions(self) -> int:
        """See Embedder."""
        return self._embedder.dimensions

    @property
    def queued(self) -> int:
        """Texts that wait for a worker."""
        with self._state:
            return self._queued

    @property
    def background(self) -> Embedder:
        """The same embedder for bulk work: a view whose calls have background priority."""
        return _BackgroundView(self)

    def embed(
        self, texts: Sequence[str], priority: Priority = Priority.INTERACTIVE
    ) -> NDArray[np.float32]:
        """See Embedder. Blocks until the texts' batches are done, or the caller's time is up."""
        return self.begin(texts, priority)()

    def begin(
        self, texts: Sequence[str], priority: Priority = Priority.INTERACTIVE
    ) -> Callable[[], NDArray[np.float32]]:
        """Start what `embed` does. The function returned waits for the vectors and returns them; it
        is to be called once, by the thread that began. Both raise EmbeddingError.
        """
        if not texts:
            if self._closed:
                raise EmbeddingError("the embedder is closed")
            return lambda: np.empty((0, self.dimensions), np.float32)
        size = self._batch_sizes[priority]
        parts = [texts[start : start + size] for start in range(0, len(texts), size)]
        call = _Call(pending=len(parts))
        pieces = [_Piece(call, part) for part in parts]
        with self._state:
            self._admit(len(texts), priority)
            self._queues[priority].extend(pieces)
            self._queued += len(texts)
            self._state.notify(len(pieces))
        return partial(self._result, call, pieces, priority)

    def _result(
        self, call: _Call, pieces: Sequence[_Piece], priority: Priority
    ) -> NDArray[np.float32]:
        self._wait(call, priority)
        if call.error is not None:
            # A fresh exception per caller: several threads raising one object would mix their
            # tracebacks.
            raise EmbeddingError(
                call.error.message,
                detail=call.error.detail,
                retryable=call.error.retryable,
                retry_after_s=call.error.retry_after_s,
            ) from call.error
        return np.concatenate([piece.rows for piece in pieces if piece.rows is not None])

    def close(self) -> None:
        """Refuse new calls, finish those queued, then close the embedder.

        A batch that takes longer than 10 s, as a backend that hangs does, is left behind, and the
        embedder open.
        """
        with self._state:
            self._closed = True
            self._state.notify_all()
        until = time.monotonic() + _CLOSE_S
        for worker in self._workers:
            worker.join(max(0.0, until - time.monotonic()))
        if not any(worker.is_alive() for worker in self._workers):
            self._embedder.close()

    def _admit(self, count: int, priority: Priority) -> None:
        if self._closed:
            raise EmbeddingError("the embedder is closed")
        if time_left() == 0:
            raise _out_of_time()
        if priority is Priority.INTERACTIVE and self._slow_seats_taken():
            raise _too_slow()
        if self._queued and self._queued + count > self._max_queued:
            raise EmbeddingError(
                f"the embedding queue is full ({self._queued} texts wait)",
                retryable=True,
                retry_after_s=_RETRY_AFTER_S,
            )

    def _wait(self, call: _Call, priority: Priority) -> None:
        """Wait until the call is done; withdraw it when it may wait no longer."""
        patient_until = time.monotonic() + self._patience_s
        may_wait = priority is Priority.BACKGROUND  # Nobody's thread: it may wait as it likes.
        counted = False
        try:
            while not call.done.wait(self._until_next_look(may_wait, patient_until)):
                if time_left() == 0:
                    self._withdraw(call, _out_of_time())
                elif not may_wait and time.monotonic() >= patient_until:
                    may_wait = True
                    counted = self._take_slow_seat()
                    if not counted:
                        self._withdraw(call, _too_slow())
        finally:
            with self._state:
                self._slow_calls -= counted

    def _take_slow_seat(self) -> bool:
        with self._state:
            if self._slow_seats_taken():
                return False
            self._slow_calls += 1
            return True

    def _until_next_look(self, may_wait: bool, patient_until: float) -> float:
        """Return how long to wait before seeing whether the call may go on waiting."""
        left = time_left()
        pause = _LOOK_EVERY_S if left is None else min(_LOOK_EVERY_S, left)
        return pause if may_wait else max(0.0, min(pause, patient_until - time.monotonic()))

    def _slow_seats_taken(self) -> bool:
        return self._max_slow_calls is not None and self._slow_calls >= self._max_slow_calls

    def _withdraw(self, call: _Call, error: EmbeddingError) -> None:
        """Fail a call and take what waits of it out of the queues."""
        with self._state:
            if call.done.is_set():
                return
            call.error = error
            for queue in self._queues:
                kept = [piece for piece in queue if piece.call is not call]
                self._queued -= sum(len(p.texts) for p in queue if p.call is call)
                queue.clear()
                queue.extend(kept)
            call.done.set()
            self._state.notify_all()

    # -- workers
    # ---------------------------------------------------------------------------------------------

    def _work(self) -> None:
        while True:
            with self._state:
                self._state.wait_for(self._has_work_or_is_over)
                batch, priority = self._take()
                if priority is None:
                    return
                self._background_running += priority is Priority.BACKGROUND
            try:
                self._run(batch, priority)
            finally:
                if priority is Priority.BACKGROUND:
                    with self._state:
                        self._background_running -= 1
                        self._state.notify_all()  # Another may do background work now.

    def _has_work_or_is_over(self) -> bool:
        return self._next_priority() is not None or (self._closed and not self._queued)

    def _next_priority(self) -> Priority | None:
        if self._queues[Priority.INTERACTIVE]:
            return Priority.INTERACTIVE
        if (
            self._queues[Priority.BACKGROUND]
            and self._background_running < self._background_workers
        ):
            return Priority.BACKGROUND
        return None

    def _take(self) -> tuple[list[_Piece], Priority | None]:
        """Remove a batch of one priority from its queue: pieces in order, up to the batch size.

        It is empty when all that was queued belongs to calls that have failed already.
        """
        priority = self._next_priority()
        if priority is None:
            return [], None
        queue, limit = self._queues[priority], self._batch_sizes[priority]
        batch: list[_Piece] = []
        size = 0
        while queue and (not batch or size + len(queue[0].texts) <= limit):
            piece = queue.popleft()
            self._queued -= len(piece.texts)
            if piece.call.error is None:  # the rest of a call that failed is not worth the work
                batch.append(piece)
                size += len(piece.texts)
        return batch, priority

    def _run(self, batch: list[_Piece], priority: Priority) -> None:
        if not batch:
            return
        try:
            vectors = self._embed_batch[priority]([t for piece in batch for t in piece.texts])
        except Exception as error:
            failure = _as_embedding_error(error)
            if failure.retryable or len({id(piece.call) for piece in batch}) == 1:
                for piece in batch:
                    self._finish(piece, error=failure)
            else:
                for piece in batch:
                    self._run([piece], priority)
            return
        start = 0
        for piece in batch:
            self._finish(piece, rows=vectors[start : start + len(piece.texts)])
            start += len(piece.texts)

    def _finish(
        self,
        piece: _Piece,
        *,
        rows: NDArray[np.float32] | None = None,
        error: EmbeddingError | None = None,
    ) -> None:
        with self._state:
            call = piece.call
            piece.rows = rows
            call.error = call.error or error
            call.pending -= 1
            if call.pending == 0 or call.error is not None:
                call.done.set()


class _BackgroundView:
    def __init__(self, batcher: MicroBatcher) -> None:
        self._batcher = batcher

    @property
    def model_id(self) -> str:
        """See Embedder."""
        return self._batcher.model_id

    @property
    def dimensions(self) -> int:
        """See Embedder."""
        return self._batcher.dimensions

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """See Embedder."""
        return self._batcher.embed(texts, Priority.BACKGROUND)

    def close(self) -> None:
        """Does nothing: the batcher is closed by whoever built it."""


def _as_embedding_error(error: Exception) -> EmbeddingError:
    if isinstance(error, EmbeddingError):
        return error
    wrapped = EmbeddingError("the embedder failed", detail=f"{type(error).__name__}: {error}")
    wrapped.__cause__ = error
    return wrapped


def _out_of_time() -> EmbeddingError:
    return EmbeddingError(
        "the time for the call was up before its texts were embedded",
        retryable=True,
        retry_after_s=_RETRY_AFTER_S,
    )


def _too_slow() -> EmbeddingError:
    return EmbeddingError(
        "the embedding backend is slow and as many calls wait for it as may; try again later",
        retryable=True,
        retry_after_s=_RETRY_AFTER_S,
    )
