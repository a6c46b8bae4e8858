"""Batches that a client's stream is cut into."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

from mneme_server.common import turns
from mneme_server.common.errors import Reason, ResourceExhausted

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """When a batch is cut.

    Args:
        items: this many at most.
        size: bytes; a batch is full once it holds as many, so it is larger by one item at most.
        delay_s: seconds after its first item arrived, full or not.
        idle_s: seconds without any item after which the stream is given up.
    """

    items: int = 500
    size: int = 4 * 1024 * 1024
    delay_s: float = 0.2
    idle_s: float = 60.0


class Batches(Generic[_T]):
    """Iterates over a stream's items in batches that do not wait for the stream's end. Each batch
    tells what computing it takes, as a request does.

    The stream is read on a thread of its own, because gRPC's iterators cannot wait for a limited
    time. It reads ahead by one batch, so a stream takes the memory of two. When the stream fails,
    or ends, what had arrived is given first; then the failure is raised.

    Args:
        items: the stream's items, each with its size in bytes.
        limits: when a batch is cut.
    """

    def __init__(self, items: Iterable[tuple[_T, int]], limits: BatchLimits) -> None:
        self._source = items
        self._limits = limits
        self._state = threading.Condition()  # guards what follows
        self._batch: list[_T] = []
        self._size = 0
        self._over = False
        self._closed = False
        self._error: BaseException | None = None

    def __iter__(self) -> Iterator[list[_T]]:
        """Yield batches; none is empty.

        Raises:
            ResourceExhausted: TOO_MANY_STREAMS, nothing came for `idle_s` seconds.
            As reading the stream does.
        """
        threading.Thread(target=self._read, name="upload", daemon=True).start()
        try:
            while batch := self._next():
                turns.size(large=len(batch) > turns.SMALL)
                yield batch
        finally:
            with self._state:
                self._closed = True
                self._state.notify_all()
        if self._error is not None:
            raise self._error

    def end(self) -> None:
        """Read no more: what has arrived is the last batch."""
        with self._state:
            self._closed = self._over = True
            self._state.notify_all()

    def _next(self) -> list[_T]:
        """Return the next batch; an empty one when there is none."""
        limits = self._limits
        with self._state:
            if not self._state.wait_for(lambda: self._batch or self._over, limits.idle_s):
                raise _idle(limits.idle_s)
            self._state.wait_for(lambda: self._is_full() or self._over, limits.delay_s)
            batch, self._batch, self._size = self._batch, [], 0
            self._state.notify_all()
            return batch

    def _read(self) -> None:
        error: BaseException | None = None
        try:
            for item, size in self._source:
                with self._state:
                    self._state.wait_for(lambda: self._closed or not self._is_full())
                    if self._closed:
                        return
                    self._batch.append(item)
                    self._size += size
                    self._state.notify_all()
        except BaseException as failure:  # Whatever it is, it belongs to who iterates.
            error = failure
        finally:
            with self._state:
                self._error = error
                self._over = True
                self._state.notify_all()

    def _is_full(self) -> bool:
        return len(self._batch) >= self._limits.items or self._size >= self._limits.size


def _idle(seconds: float) -> ResourceExhausted:
    return ResourceExhausted(
        f"the stream sent nothing for {seconds:g} s and lost its seat; what it had sent is"
        " recorded: open another one when there is more to send",
        reason=Reason.TOO_MANY_STREAMS,
    )
