"""The batches in which concurrent callers share an embedder, by turns: a query does not wait behind
a bulk job.
"""

from __future__ import annotations

import enum
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from mneme_server.common import deadline, interpreter, tracing
from mneme_server.common.begun import Begun
from mneme_server.common.errors import is_failure
from mneme_server.common.fairness import on_behalf_of
from mneme_server.common.tracing import SpanKind
from mneme_server.engine.embedding.port import Embedder, EmbedderView, EmbeddingError, for_questions
from mneme_server.engine.embedding.queues import (
    EmbedCall,
    EmbedQueue,
    EmbedQueues,
    Piece,
    SlowCalls,
    queue_of,
)

_RETRY_AFTER_S = 1.0
_PATIENCE_S = 1.0
_LOOK_EVERY_S = 0.25
_CLOSE_S = 10.0

_SPAN = "embeddings"
_REMOTE = frozenset({"openai", "ollama"})
"""Providers of models by the names in their ids."""
_OWN = "mneme"

_EmbedBatch: TypeAlias = Callable[[Sequence[str]], NDArray[np.float32]]


class Priority(enum.IntEnum):
    """INTERACTIVE: someone waits for an answer. BACKGROUND: indexing, which takes what is left
    over.
    """

    INTERACTIVE = 0
    BACKGROUND = 1


class MicroBatcher:
    """An Embedder whose worker threads take whatever is queued, up to `max_batch` texts, as soon as
    they are free.

    There is no waiting for a batch to fill: with an idle embedder a text starts at once, under load
    batches grow by themselves. How texts wait is told in `queues`. Whoever waits for a short one,
    of an embedder that computes in this process, and whoever brings a batch's worth from the
    background, has it computed in a free worker's place: handing it to another thread and back cost
    nearly half as much processor time as the text itself.

    The queues hold at most `max_queued` texts beyond the batches in work. A tenant may have as many
    waiting as it leaves places free; what goes beyond is refused with a retryable EmbeddingError,
    but never a tenant's first call.

    A caller holds a thread while it waits, so waiting is limited. A call whose time is up is
    withdrawn. Of the interactive ones, `max_slow_calls` may wait for longer than `patience_s`
    seconds: while that many do, the embedder is slow, and what comes beyond is refused with a
    retryable EmbeddingError. As many again may wait that are the first of their tenants. An
    embedder that keeps up refuses nobody.

    A batch that fails for a reason of its own (not retryable) is repeated call by call, so that one
    caller's text fails only that caller.
    """

    def __init__(
        self,
        embedder: Embedder,
        *,
        max_batch: int = 64,
        background_batch: int = 16,
        workers: int = 3,
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
        self._embed_batch: tuple[_EmbedBatch, ...] = (embedder.embed, quietly, quietly)
        self._embed_questions = for_questions(embedder).embed
        self._tells_questions = for_questions(embedder) is not embedder
        # Some compute in the thread that asks, and wait for nobody.
        self.in_process = getattr(embedder, "in_process", False)
        self._max_queued = max_queued
        self._patience_s = patience_s
        self._state = threading.Condition()  # guards what follows
        batch_sizes = max_batch, max_batch, min(background_batch, max_batch)
        self._queues = EmbedQueues(workers, batch_sizes)
        self._slow = SlowCalls(max_slow_calls)
        self._callers = 0  # that embed in a worker's place
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
            return self._queues.queued

    @property
    def background(self) -> Embedder:
        """The same embedder for bulk work: a view whose calls have background priority."""
        return EmbedderView(self, partial(self.embed, priority=Priority.BACKGROUND))

    @property
    def questions(self) -> Embedder:
        """The same embedder for questions; see `for_questions`. They wait in the same queues."""
        return _QuestionsView(self) if self._tells_questions else self

    def embed(
        self,
        texts: Sequence[str],
        priority: Priority = Priority.INTERACTIVE,
        *,
        asked: bool = False,
    ) -> NDArray[np.float32]:
        """See Embedder. Blocks until the texts' batches are done, or the caller's time is up. As to
        `asked` see `begin`.
        """
        queue = _queue_of(texts, priority)
        if self._takes_a_place(texts, queue):
            with _embedding_span(self.model_id, len(texts), time.time_ns()):
                return self._embed_here(texts, queue, asked=asked)
        return self.begin(texts, priority, asked=asked)()

    def begin(
        self,
        texts: Sequence[str],
        priority: Priority = Priority.INTERACTIVE,
        *,
        asked: bool = False,
    ) -> Begun[NDArray[np.float32]]:
        """Start what `embed` does, and wait for the vectors where what is returned is called, or
        not at all: what nobody waits for is not embedded once the time of who began is up. Both
        raise EmbeddingError. `asked` says that they are questions.
        """
        queue = _queue_of(texts, priority)
        call = EmbedCall(
            on_behalf_of(), queue, deadline.current(), asked=asked and self._tells_questions
        )
        pieces = list(self._queues.cut(call, texts))
        call.pending = len(pieces)
        with self._state:
            self._admit(call, len(texts))
            for piece in pieces:
                self._queues.push(piece)
            self._state.notify(len(pieces))
        result = partial(self._result, call, pieces, time.time_ns())
        return Begun(result, call.done.is_set) if pieces else Begun(result)

    def _result(
        self, call: EmbedCall, pieces: Sequence[Piece], began_ns: int
    ) -> NDArray[np.float32]:
        if not pieces:
            return np.empty((0, self.dimensions), np.float32)
        with _embedding_span(self.model_id, sum(len(piece.texts) for piece in pieces), began_ns):
            return self._waited_for(call, pieces)

    def _waited_for(self, call: EmbedCall, pieces: Sequence[Piece]) -> NDArray[np.float32]:
        self._wait(call, pieces)
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

    def _takes_a_place(self, texts: Sequence[str], queue: EmbedQueue) -> bool:
        """Take a free worker's place for a caller who waits for few texts, or brings one batch from
        the background, if nobody is before."""
        if not (self.in_process and texts) or deadline.time_left() == 0:
            return False
        if queue is EmbedQueue.LONG or not self._queues.are_one_batch(texts, queue):
            return False
        with self._state:
            if self._closed or not self._queues.enter(queue):
                return False
            self._callers += 1
            return True

    def _embed_here(
        self, texts: Sequence[str], queue: EmbedQueue, *, asked: bool
    ) -> NDArray[np.float32]:
        interpreter.leave_turn()
        try:
            return (self._embed_questions if asked else self._embed_batch[queue])(texts)
        except BaseException as error:
            if not is_failure(error):
                raise
            raise _as_embedding_error(error) from error.__cause__
        finally:
            with self._state:
                self._queues.done(queue)
                self._callers -= 1
                if self._closed or queue is not EmbedQueue.SHORT:
                    self._state.notify_all()
                elif self._queues.next() is not None:
                    self._state.notify()  # It found the place taken.

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
        with self._state:
            left = until - time.monotonic()
            idle = self._state.wait_for(lambda: not self._callers, max(0.0, left))
        if idle and not any(worker.is_alive() for worker in self._workers):
            self._embedder.close()

    def _admit(self, call: EmbedCall, count: int) -> None:
        if self._closed:
            raise EmbeddingError("the embedder is closed")
        if call.time_left() == 0:
            raise _out_of_time()
        if call.queue is not EmbedQueue.BACKGROUND and not self._slow.have_room(call.tenant_id):
            raise _too_slow()
        mine, free = self._queues.queued_of(call.tenant_id), self._max_queued - self._queues.queued
        if mine and mine + count > free:
            raise EmbeddingError(
                f"the embedding queue is full ({mine} texts waiting)",
                retryable=True,
                retry_after_s=_RETRY_AFTER_S,
            )

    def _wait(self, call: EmbedCall, pieces: Sequence[Piece]) -> None:
        """Wait until the call is done; withdraw it when it may wait no longer."""
        interpreter.leave_turn()
        patient_until = time.monotonic() + self._patience_s
        may_wait = call.queue is EmbedQueue.BACKGROUND  # Nobody's thread: it may wait as it likes.
        counted = False
        try:
            while not call.done.wait(self._until_next_look(may_wait, patient_until)):
                if deadline.time_left() == 0:
                    self._withdraw(call, pieces, _out_of_time())
                elif not may_wait and time.monotonic() >= patient_until:
                    may_wait = True
                    with self._state:
                        counted = self._slow.add(call.tenant_id)
                    if not counted:
                        self._withdraw(call, pieces, _too_slow())
        finally:
            if counted:
                with self._state:
                    self._slow.remove(call.tenant_id)

    def _until_next_look(self, may_wait: bool, patient_until: float) -> float:
        """Return how long to wait before seeing whether the call may go on waiting."""
        pause = deadline.pause(_LOOK_EVERY_S)
        return pause if may_wait else max(0.0, min(pause, patient_until - time.monotonic()))

    def _withdraw(self, call: EmbedCall, pieces: Sequence[Piece], error: EmbeddingError) -> None:
        """Fail a call that is not done and take what waits of it out of its queue."""
        with self._state:
            if call.is_over:
                return
            call.error = error
            for piece in pieces:
                self._queues.remove(piece)
            call.done.set()
            self._state.notify_all()

    # -- workers
    # ---------------------------------------------------------------------------------------------

    def _work(self) -> None:
        while True:
            with self._state:
                self._state.wait_for(self._has_work_or_is_over)
                queue = self._queues.next()
                if queue is None:
                    return
                batch = [piece for piece in self._queues.take(queue) if self._is_wanted(piece.call)]
            try:
                for asked in (True, False):
                    self._run([piece for piece in batch if piece.call.asked is asked], queue)
            finally:
                with self._state:
                    self._queues.done(queue)
                    if queue is not EmbedQueue.SHORT:
                        self._state.notify_all()  # Another may go on with the queue now.

    def _has_work_or_is_over(self) -> bool:
        return self._queues.next() is not None or (self._closed and not self._queues.queued)

    @staticmethod
    def _is_wanted(call: EmbedCall) -> bool:
        """Whether a call is worth the work: it has not failed, and somebody waits for it."""
        if call.error is None and call.time_left() == 0:
            call.error = _out_of_time()
            call.done.set()
        return call.error is None

    def _run(self, batch: list[Piece], queue: EmbedQueue) -> None:
        if not batch:
            return
        try:
            texts = [text for piece in batch for text in piece.texts]
            asked = batch[0].call.asked
            vectors = (self._embed_questions if asked else self._embed_batch[queue])(texts)
        except BaseException as error:
            if not is_failure(error):  # A tokenizer's panic is one, and fails only these calls.
                raise
            failure = _as_embedding_error(error)
            if failure.retryable or len({id(piece.call) for piece in batch}) == 1:
                for piece in batch:
                    self._finish(piece, error=failure)
            else:
                for piece in batch:
                    self._run([piece], queue)
            return
        start = 0
        for piece in batch:
            self._finish(piece, rows=vectors[start : start + len(piece.texts)])
            start += len(piece.texts)

    def _finish(
        self,
        piece: Piece,
        *,
        rows: NDArray[np.float32] | None = None,
        error: EmbeddingError | None = None,
    ) -> None:
        with self._state:
            call = piece.call
            piece.rows = rows
            call.error = call.error or error
            call.pending -= 1
            is_over = call.is_over
        if is_over:
            call.done.set()  # Behind the lock: who is woken needs the interpreter, and only that.


class _QuestionsView(EmbedderView):
    """Can be begun and waited for later, too."""

    def __init__(self, batcher: MicroBatcher) -> None:
        super().__init__(batcher, partial(batcher.embed, asked=True))
        self.begin = partial(batcher.begin, asked=True)


@contextmanager
def _embedding_span(model_id: str, texts: int, began_ns: int) -> Iterator[None]:
    """Tell of an embedding, whose vectors the block waits for, by a span as OpenTelemetry's
    conventions for generative AI have it.

    Args:
        model_id: the model; what is before a colon provides it.
        texts: how many are embedded.
        began_ns: when that began, in nanoseconds since 1970.
    """
    outer = tracing.current()
    if not outer.is_told:
        yield
        return
    provider, _, model = model_id.rpartition(":")
    remote = provider in _REMOTE
    span = outer.child(
        f"{_SPAN} {model}",
        {
            "gen_ai.operation.name": _SPAN,
            "gen_ai.provider.name": provider if remote else _OWN,
            "gen_ai.request.model": model,
            "mneme.tenant": on_behalf_of(),
            "mneme.texts": texts,
        },
        kind=SpanKind.CLIENT if remote else SpanKind.INTERNAL,
        began_ns=began_ns,
    )
    try:
        yield
    except BaseException as error:
        span.end(type(error).__name__)
        raise
    span.end()


def _queue_of(texts: Sequence[str], priority: Priority) -> EmbedQueue:
    return EmbedQueue.BACKGROUND if priority is Priority.BACKGROUND else queue_of(texts)


def _as_embedding_error(error: BaseException) -> EmbeddingError:
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
        "the embedding backend is slow and too many calls already wait for it; try again later",
        retryable=True,
        retry_after_s=_RETRY_AFTER_S,
    )
