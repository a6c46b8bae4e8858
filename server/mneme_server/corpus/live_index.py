"""A tenant's index while it is in use: one that fails is built again and replaced.

Calls, writes and watches go on meanwhile. What is committed while the new one is built is applied
to both; what the failed one still finds is answered, marked as partial.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol, TypeAlias, TypeVar

import structlog

from mneme_server.common.panics import is_failure
from mneme_server.corpus.feed import CorpusChange
from mneme_server.corpus.ports import CorpusIndex

T = TypeVar("T")

_log = structlog.get_logger(__name__)

_FEW = 8
"""Changes that are applied while others wait; more are applied before."""
_AT_ONCE = 128
"""Documents that come or go in one step: a millisecond or two."""
_STEADY_S = 60.0
"""An index that fails so soon after it was built waits longer for the next one, ever longer."""
_LONGEST_DELAY_S = 60.0


Steps: TypeAlias = Sequence[Callable[[], object]]
"""Work in steps of some milliseconds each."""


def do_at_once(steps: Steps) -> None:
    """Do one step after the other."""
    for step in steps:
        step()


class ManagedIndex(CorpusIndex, Protocol):
    """An index with a life of its own."""

    @property
    def mode(self) -> str:
        """How vectors are searched: "exact" or "hnsw"."""
        ...

    @property
    def document_count(self) -> int:
        """Documents that can be found."""
        ...

    @property
    def vector_count(self) -> int:
        """Vectors that are searched."""
        ...

    @property
    def memory_bytes(self) -> int:
        """Bytes of memory that it holds. It takes some microseconds."""
        ...

    def keep_up(self) -> None:
        """Do what the background is behind with, if it is: whoever adds much waits for it."""
        ...

    def on_failure(self, told: Callable[[], object]) -> None:
        """Have `told` called, on any thread, whenever a part fails. It must not wait."""
        ...

    def missed(self, error: BaseException) -> None:
        """Note that a change could not be applied, as a failure of the index."""
        ...

    def abandon(self) -> None:
        """Write nothing more to the disk; it is searched and added to until it is discarded."""
        ...

    def rebuilt(self) -> ManagedIndex:
        """Build another from the database; this one must be abandoned.

        What is committed meanwhile must be applied to it afterwards, in order, whether the database
        held it already or not.
        """
        ...

    def discard(self) -> None:
        """Release everything of an abandoned index."""
        ...

    def close(self) -> None:
        """Write what must be kept and free the rest."""
        ...


class LiveIndex:
    """Holds the index that is in use. Thread-safe.

    Args:
        tenant_id: the tenant, for the log.
        index: its index.
        by_turns: does the steps of a large change, all of them, and lets others go on in between.
    """

    def __init__(
        self, tenant_id: str, index: ManagedIndex, by_turns: Callable[[Steps], None] = do_at_once
    ) -> None:
        self._tenant_id = tenant_id
        self._by_turns = by_turns
        self._order = threading.Lock()  # Changes and the swap, one after the other.
        self._starting = threading.Lock()  # Guards the four below; never held for long.
        self._thread: threading.Thread | None = None
        self._closing = threading.Event()
        self._failures = 0
        self._built_s = float("-inf")
        self._missed: list[CorpusChange] | None = None
        self._current = index
        self._use(index)

    @property
    def current(self) -> ManagedIndex:
        """The index in use. A call keeps to one: rows of another one are others."""
        return self._current

    def apply(self, change: CorpusChange) -> None:
        """Change the index as the database was changed; called in the order of the commits.

        The change is committed, so nothing fails here: an index that does is built again.
        """
        with self._order:
            if self._missed is not None:
                self._missed.append(change)
            try:
                do = self._by_turns if _is_large(change) else do_at_once
                do(_steps(self._current, change))
                self._current.keep_up()
            except BaseException as error:
                self._current.missed(error)

    def close(self) -> None:
        """Stop building, write what must be kept and free the rest."""
        with self._starting:
            self._closing.set()
            thread = self._thread
        if thread is not None:
            thread.join()
        self._current.close()

    def _use(self, index: ManagedIndex) -> None:
        self._current = index
        index.on_failure(lambda: self._failed(index))

    def _failed(self, index: ManagedIndex) -> None:
        with self._starting:
            if index is self._current and self._thread is None and not self._closing.is_set():
                soon = time.monotonic() - self._built_s < _STEADY_S
                self._failures = self._failures + 1 if soon else 0
                self._thread = threading.Thread(
                    target=self._repair, args=(index,), name="index-repair", daemon=True
                )
                self._thread.start()

    def _repair(self, index: ManagedIndex) -> None:
        failures = self._failures
        while not self._closing.wait(_delay_s(failures)):
            try:
                self._replace(index)
                break
            except BaseException as error:
                if not is_failure(error):
                    raise
                failures += 1
                _log.exception("an index could not be built again", tenant=self._tenant_id)
        with self._starting:
            self._thread = None
            self._built_s = time.monotonic()
        if self._current is not index and self._current.partial:
            self._failed(self._current)  # It failed before anybody could be told.

    def _replace(self, index: ManagedIndex) -> None:
        """Build another index, bring it up to date and put it in the place of `index`."""
        start = time.monotonic()
        with self._order:
            self._missed = []
        try:
            index.abandon()
            built = index.rebuilt()
            try:
                self._catch_up(built)
            except BaseException:
                built.abandon()
                built.discard()
                raise
        finally:
            with self._order:
                self._missed = None
        index.discard()
        _log.info(
            "index built again", tenant=self._tenant_id, documents=built.document_count,
            seconds=round(time.monotonic() - start, 3),
        )  # fmt: skip

    def _catch_up(self, built: ManagedIndex) -> None:
        while True:
            with self._order:
                missed, self._missed = self._missed or [], []
                if len(missed) <= _FEW:
                    for change in missed:
                        do_at_once(_steps(built, change))
                    self._use(built)
                    return
            for change in missed:
                do_at_once(_steps(built, change))
                built.keep_up()


def _delay_s(failures: int) -> float:
    return 0.0 if not failures else min(_LONGEST_DELAY_S, 2.0 ** (failures - 1))


def _is_large(change: CorpusChange) -> bool:
    """Whether to apply it takes more than one step."""
    return max(len(change.saved), len(change.removed)) > _AT_ONCE


def _steps(index: CorpusIndex, change: CorpusChange) -> Steps:
    return [
        *(partial(index.add_documents, part) for part in _parts(change.saved)),
        *(partial(index.add_vectors, batch) for batch in change.vectors),
        # Last, so that what was replaced is there at every moment: as it was, or as it is.
        *(partial(index.remove, part) for part in _parts(change.removed)),
    ]


def _parts(items: Sequence[T]) -> Sequence[Sequence[T]]:
    return [items[start : start + _AT_ONCE] for start in range(0, len(items), _AT_ONCE)]
