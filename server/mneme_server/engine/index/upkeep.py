"""The upkeep of indexes in the background: building graphs, writing snapshots, committing words."""

from __future__ import annotations

import heapq
import itertools
import math
import threading
import time
import weakref
from collections.abc import Callable

import structlog

from mneme_server.common.errors import is_failure, is_panic
from mneme_server.engine.index.dense import DenseIndex
from mneme_server.engine.index.settings import IndexLog, IndexSettings
from mneme_server.engine.index.words.lexical import LexicalIndex

_RETRY_S = 30.0
_IDLE_S = 60.0
_SOONER_S = 1.0
"""What is to be done sooner by less than that is done when it was to be done."""
_log = structlog.get_logger(__name__)


class Upkeep:
    """Builds graphs, writes snapshots, commits words, releases the lexical writer in time, and lets
    words rest that nobody uses.

    Args:
        snapshot: writes the vectors to the disk.
        dense: the vectors.
        lexical: the words.
        settings: when to do what.
        failed: told when a library panicked: what it works on cannot be relied on any more.
        log: told of builds, and of what went wrong.
        worker: the thread that does it.
    """

    def __init__(
        self,
        *,
        snapshot: Callable[[], None],
        dense: DenseIndex,
        lexical: LexicalIndex,
        settings: IndexSettings,
        failed: Callable[[BaseException], object],
        log: IndexLog,
        worker: BackgroundWorker,
    ) -> None:
        self._snapshot = snapshot
        self._dense = dense
        self._lexical = lexical
        self._settings = settings
        self._failed = failed
        self._log = log
        self._worker = worker
        self._stop = threading.Event()
        self._running = threading.Lock()
        self._vectors_due = False
        self._commit_due = False
        self._tidy_at = math.inf
        self._rest_due = False
        self._not_before = 0.0

    def vectors_changed(self, unsaved: int) -> None:
        """Note that something came or went; `unsaved` of it since the last snapshot."""
        if self._vectors_due or self._stop.is_set():
            return
        wants_snapshot = unsaved >= self._settings.snapshot_after
        if wants_snapshot or self._dense.wants_build():
            self._vectors_due = True
            self._schedule(
                max(0.0, self._not_before - time.monotonic()),
                weakref.WeakMethod(self._save if wants_snapshot else self._build),
            )

    def words_changed(self) -> None:
        """Note that documents came or went."""
        if self._stop.is_set():
            return
        if not self._commit_due and self._lexical.wants_commit:
            self._commit_due = True
            self._schedule(self._settings.commit_delay_s, weakref.WeakMethod(self._commit_words))
        self._tidy_later()

    def words_used(self) -> None:
        """Note that words were searched: the files are open now, and may have been written."""
        if self._lexical.has_writer and not self._stop.is_set():
            self._tidy_later()
        if not self._rest_due and not self._stop.is_set():
            self._rest_due = True
            self._schedule(self._settings.words_unused_s, weakref.WeakMethod(self._rest_words))

    def save_soon(self) -> None:
        """Have a snapshot written, whether or not much changed."""
        if not (self._vectors_due or self._stop.is_set()):
            self._vectors_due = True
            self._schedule(self._settings.commit_delay_s, weakref.WeakMethod(self._save))

    def close(self) -> None:
        """End background work, then write everything to the disk.

        A snapshot that cannot be written is reported and left: the database has what it lacks.
        """
        self._stop.set()
        with self._running:
            self._attempt(self._snapshot)
            self._attempt(self._lexical.close)
            self._forget_owner()

    def abandon(self) -> None:
        """End background work and write nothing more to the disk: another index does that now."""
        self._stop.set()
        with self._running:
            self._forget_owner()

    def _forget_owner(self) -> None:
        self._snapshot = _nothing  # It refers back to the owner, whose memory is large.
        self._failed = _ignored

    def _schedule(self, delay_s: float, method: weakref.WeakMethod[Callable[[], None]]) -> None:
        """Run `method` later, unless the index is closed or gone by then."""

        def run() -> None:
            task = method()
            if task is not None:
                task()

        self._worker.schedule(delay_s, run)

    def _build(self) -> None:
        self._maintain(save=False)

    def _save(self) -> None:
        self._maintain(save=True)

    def _maintain(self, *, save: bool) -> None:
        with self._running:
            self._vectors_due = False
            if self._stop.is_set():
                return
            mode, waiting = self._dense.mode, self._dense.waiting
            if self._dense.wants_build():
                self._attempt(self._build_graph)
            built = waiting - self._dense.waiting >= self._settings.snapshot_after
            save = save or built or mode != self._dense.mode
            if save and not self._stop.is_set():
                self._attempt(self._snapshot)
            if self._dense.wants_build():  # It takes one step at a time: what is saved can wait.
                self.vectors_changed(0)

    def _build_graph(self) -> None:
        start = time.monotonic()
        if self._dense.build(self._stop):
            self._log.info(
                "vectors indexed",
                mode=self._dense.mode,
                vectors=len(self._dense),
                seconds=round(time.monotonic() - start, 3),
            )

    def _commit_words(self) -> None:
        with self._running:
            self._commit_due = False
            if not self._stop.is_set():
                lexical = self._lexical
                self._attempt(lexical.release_writer if lexical.wants_copy else lexical.commit)
                self._tidy_later()

    def _tidy_words(self) -> None:
        """When nothing has come for long, commit the few that wait and release the writer."""
        with self._running:
            self._tidy_at = math.inf
            if self._stop.is_set():
                return
            if self._until_quiet_s() <= 0:
                self._attempt(self._lexical.release_writer)
                self.words_used()
            else:
                self._tidy_later()

    def _tidy_later(self) -> None:
        left_s = max(0.0, self._until_quiet_s())
        at = time.monotonic() + left_s
        if at < self._tidy_at - _SOONER_S:
            self._tidy_at = at
            self._schedule(left_s, weakref.WeakMethod(self._tidy_words))

    def _until_quiet_s(self) -> float:
        settings = self._settings
        quiet_s = settings.writer_idle_s if self._lexical.has_writer else settings.quiet_s
        return quiet_s - self._lexical.idle_for()

    def _rest_words(self) -> None:
        """Let the words rest, unless they were used a moment ago."""
        with self._running:
            self._rest_due = False
            if self._stop.is_set() or self._lexical.rest(self._settings.words_unused_s):
                return
            if not (self._rest_due or self._lexical.has_writer):  # Else they are tidied before.
                left_s = self._settings.words_unused_s - self._lexical.unused_for()
                self._rest_due = True
                self._schedule(max(0.0, left_s), weakref.WeakMethod(self._rest_words))

    def _attempt(self, task: Callable[[], None]) -> None:
        try:
            task()
        except BaseException as error:
            # The database still has everything; the log says what failed.
            if not is_failure(error):
                raise
            self._not_before = time.monotonic() + _RETRY_S
            self._log.warning("index upkeep failed", error=repr(error))
            if is_panic(error):
                self._failed(error)


class BackgroundWorker:
    """Runs functions one after another, each not before its time: work that can wait.

    One thread for the whole process, so that background work takes at most one core and the memory
    of one build, however many tenants are open.

    The thread starts with the first function and ends after a minute without any. A function
    must not raise; whoever schedules it catches and reports.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._queue: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = itertools.count()
        self._thread: threading.Thread | None = None

    def schedule(self, delay_s: float, run: Callable[[], None]) -> None:
        """Call `run` on the worker's thread, `delay_s` seconds from now at the earliest."""
        with self._changed:
            entry = (time.monotonic() + delay_s, next(self._numbers), run)
            heapq.heappush(self._queue, entry)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="index-worker", daemon=True)
                self._thread.start()
            if self._queue[0] is entry:  # Else it wakes before that.
                self._changed.notify()

    def _run(self) -> None:
        while True:
            with self._changed:
                run = self._next()
                if run is None:
                    self._thread = None
                    return
            try:
                run()
            except BaseException:  # One task's fault must not end the work of all tenants.
                _log.exception("work in the background failed")

    def _next(self) -> Callable[[], None] | None:
        idle_until = time.monotonic() + _IDLE_S
        while True:
            now = time.monotonic()
            if self._queue:
                if self._queue[0][0] <= now:
                    return heapq.heappop(self._queue)[2]
                self._changed.wait(self._queue[0][0] - now)
                idle_until = time.monotonic() + _IDLE_S
            elif now >= idle_until:
                return None
            else:
                self._changed.wait(idle_until - now)


SHARED_WORKER = BackgroundWorker()


def _nothing() -> None:
    """Do nothing."""


def _ignored(_error: BaseException) -> None:
    """Do nothing."""
