"""Streams cut into batches: by count, by size, by time; and what is left when a stream fails."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mneme_server.common.errors import Reason, ResourceExhausted
from mneme_server.edge.grpc.batches import Batches, BatchLimits

LIMITS = BatchLimits(items=3, size=100, delay_s=30.0, idle_s=30.0)


class Stream:
    """A stream that yields what a test sends, when it sends it."""

    def __init__(self) -> None:
        self._sent: queue.Queue[int | BaseException | None] = queue.Queue()
        self.asked = 0

    def send(self, item: int | BaseException | None) -> None:
        """Send an item; an error breaks the stream off, None ends it."""
        self._sent.put(item)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        while True:
            self.asked += 1
            item = self._sent.get()
            if item is None:
                return
            if isinstance(item, BaseException):
                raise item
            yield item, 1


@given(
    sizes=st.lists(st.integers(0, 50), max_size=30),
    limits=st.builds(
        BatchLimits,
        items=st.integers(1, 5),
        size=st.integers(1, 60),
        delay_s=st.just(30.0),
        idle_s=st.just(30.0),
    ),
)
def test_every_item_is_given_once_in_order_and_no_batch_is_larger_than_allowed(
    sizes: list[int], limits: BatchLimits
) -> None:
    batches = list(Batches(((n, size) for n, size in enumerate(sizes)), limits))
    assert [item for batch in batches for item in batch] == list(range(len(sizes)))
    for batch in batches:
        assert 0 < len(batch) <= limits.items
        assert sum(sizes[item] for item in batch[:-1]) < limits.size


def test_a_batch_that_is_not_full_is_given_while_the_stream_stays_open() -> None:
    stream = Stream()
    batches = iter(Batches(stream, replace(LIMITS, delay_s=0.01)))
    stream.send(1)
    assert next(batches) == [1]
    stream.send(2)
    assert next(batches) == [2]
    stream.send(None)
    assert list(batches) == []


def test_what_arrived_before_the_stream_broke_off_is_given_before_the_error() -> None:
    stream = Stream()
    for item in (1, 2, ConnectionError("gone")):
        stream.send(item)
    batches = iter(Batches(stream, LIMITS))
    assert next(batches) == [1, 2]
    with pytest.raises(ConnectionError, match="gone"):
        next(batches)


def test_a_stream_that_sends_nothing_is_given_up() -> None:
    stream = Stream()
    batches = iter(Batches(stream, replace(LIMITS, delay_s=0.01, idle_s=0.05)))
    stream.send(1)
    assert next(batches) == [1]
    with pytest.raises(ResourceExhausted, match=r"sent nothing for 0\.05 s") as refused:
        next(batches)
    assert refused.value.reason is Reason.TOO_MANY_STREAMS
    stream.send(None)


def test_no_more_than_a_batch_is_read_ahead() -> None:
    stream = Stream()
    for item in range(20):
        stream.send(item)
    batches = iter(Batches(stream, LIMITS))
    assert next(batches) == [0, 1, 2]
    assert stream.asked <= 2 * LIMITS.items + 1
    stream.send(None)
    assert [len(batch) for batch in batches] == [3, 3, 3, 3, 3, 2]


def test_whoever_stops_in_the_middle_leaves_no_thread_behind() -> None:
    def endless() -> Iterator[tuple[int, int]]:
        while True:
            yield 0, 1

    before = set(threading.enumerate())
    batches = iter(Batches(endless(), LIMITS))
    next(batches)
    (reader,) = set(threading.enumerate()) - before
    batches.close()  # type: ignore[attr-defined]  # It is a generator.
    reader.join(10)
    assert not reader.is_alive()


def test_a_stream_that_is_told_to_end_gives_what_has_arrived() -> None:
    arrived, never = threading.Event(), threading.Event()

    def items() -> Iterator[tuple[int, int]]:
        yield 1, 1
        arrived.set()
        never.wait(20)

    batches = Batches(items(), BatchLimits(delay_s=20))
    found: list[list[int]] = []
    reading = threading.Thread(target=lambda: found.extend(batches))
    reading.start()
    assert arrived.wait(20)
    batches.end()
    reading.join(20)
    never.set()
    assert found == [[1]]
