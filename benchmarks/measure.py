"""Timing calls: alone, several in flight, at a pace, in rounds; and what is said of the times."""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol, TypeVar

T = TypeVar("T")


def percentile(values: Sequence[float], q: float) -> float:
    """Return the value that `q` percent of `values` do not exceed, between neighbours linearly.

    Raises:
        ValueError: there are no values.
    """
    if not values:
        raise ValueError("there is no percentile of no values")
    ordered = sorted(values)
    place = (len(ordered) - 1) * q / 100
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


@dataclass(frozen=True)
class Round:
    """One round of calls: the time of each in seconds, and of all together.

    `cpu_s` is the processor time that the server used meanwhile: unlike the others it says little
    of what else runs on the machine.
    """

    times_s: Sequence[float]
    seconds: float
    cpu_s: float | None = None

    @property
    def p50_ms(self) -> float:
        return percentile(self.times_s, 50) * 1000

    @property
    def p95_ms(self) -> float:
        return percentile(self.times_s, 95) * 1000

    @property
    def per_second(self) -> float:
        return len(self.times_s) / self.seconds


@dataclass(frozen=True)
class Rounds:
    """Several rounds of the same; each figure is the median over the rounds."""

    rounds: Sequence[Round]

    @property
    def p50_ms(self) -> float:
        return statistics.median(r.p50_ms for r in self.rounds)

    @property
    def p95_ms(self) -> float:
        return statistics.median(r.p95_ms for r in self.rounds)

    @property
    def per_second(self) -> float:
        return statistics.median(r.per_second for r in self.rounds)

    @property
    def cpu_ms(self) -> float | None:
        """The server's processor time for a call; None when it was not measured."""
        used = [r.cpu_s / len(r.times_s) * 1000 for r in self.rounds if r.cpu_s is not None]
        return statistics.median(used) if used else None

    def figures(self) -> dict[str, float]:
        """Return the figures by name, with the best and the worst round's p95."""
        p95s = [r.p95_ms for r in self.rounds]
        cpu = {} if self.cpu_ms is None else {"server_cpu_ms_a_call": self.cpu_ms}
        return {
            **cpu,
            "p50_ms": self.p50_ms,
            "p95_ms": self.p95_ms,
            "p95_ms_best_round": min(p95s),
            "p95_ms_worst_round": max(p95s),
            "per_second": self.per_second,
            "calls": sum(len(r.times_s) for r in self.rounds),
            "rounds": len(self.rounds),
        }


def time_calls(call: Callable[[T], object], inputs: Iterable[T], in_flight: int = 1) -> Round:
    """Call with each input, `in_flight` at a time, and time each call and all together.

    The first call that fails ends the round.
    """
    times: list[float] = []
    if in_flight == 1:
        started = time.perf_counter()
        for item in inputs:
            before = time.perf_counter()
            call(item)
            times.append(time.perf_counter() - before)
        return Round(times, time.perf_counter() - started)
    waiting = _Shared(inputs)
    failures: list[BaseException] = []

    def work() -> None:
        try:
            for item in waiting:
                before = time.perf_counter()
                call(item)
                times.append(time.perf_counter() - before)
        except BaseException as error:
            failures.append(error)
            waiting.stop()

    threads = [threading.Thread(target=work) for _ in range(in_flight)]
    started = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds = time.perf_counter() - started
    if failures:
        raise failures[0]
    return Round(times, seconds)


class Pending(Protocol):
    """A call on its way."""

    def result(self) -> object: ...

    def add_done_callback(self, callback: Callable[..., None]) -> None: ...


def flood(send: Callable[[], Pending], count: int, in_flight: int) -> float:
    """Send `count` calls without a thread for each, and return how many a second were answered.

    The first call that fails ends it.
    """
    free = threading.Semaphore(in_flight)
    failures: list[BaseException] = []

    def done(call: Pending) -> None:
        try:
            call.result()
        except BaseException as error:
            failures.append(error)
        free.release()

    started = time.perf_counter()
    for _ in range(count):
        free.acquire()
        if failures:
            break
        send().add_done_callback(done)
    else:
        for _ in range(in_flight):
            free.acquire()
    seconds = time.perf_counter() - started
    if failures:
        raise failures[0]
    return count / seconds


def paced(
    call: Callable[[T], object], inputs: Iterable[T], a_second: float, in_flight: int
) -> Round:
    """Call with each input, `a_second` of them at even distances, at most `in_flight` at a time.

    What is late begins as soon as it can. A call's time counts from when it was due, so that those
    who wait for others to end are seen. The first call that fails ends the round.
    """
    free = threading.Semaphore(in_flight)
    times: list[float] = []
    running: list[Future[None]] = []

    def timed(item: T, due_s: float) -> None:
        try:
            call(item)
            times.append(time.perf_counter() - due_s)
        finally:
            free.release()

    started = time.perf_counter()
    with ThreadPoolExecutor(in_flight) as pool:
        for number, item in enumerate(inputs):
            due_s = started + number / a_second
            time.sleep(max(0.0, due_s - time.perf_counter()))
            free.acquire()
            if any(done.exception() for done in running if done.done()):
                free.release()
                break
            running = [one for one in running if not one.done()]
            running.append(pool.submit(timed, item, due_s))
        for one in running:
            one.result()
    return Round(times, time.perf_counter() - started)


class _Shared(Iterator[T]):
    """An iterator that many threads take from."""

    def __init__(self, items: Iterable[T]) -> None:
        self._items = iter(items)
        self._lock = threading.Lock()
        self._stopped = False

    def __next__(self) -> T:
        with self._lock:
            if self._stopped:
                raise StopIteration
            return next(self._items)

    def stop(self) -> None:
        self._stopped = True
