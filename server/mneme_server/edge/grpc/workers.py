"""The threads that serve calls, shared fairly between tenants."""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Callable
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from functools import partial
from time import monotonic
from typing import Any, NamedTuple

from mneme_server.common import interpreter
from mneme_server.common.fairness import FairQueue


class Lane(NamedTuple):
    """Whose calls stand in one line. Streams have their own: their seats limit them already."""

    tenant_id: str
    streams: bool = False


@dataclass(slots=True, eq=False)
class _Waiting:
    lane: Lane
    run: Callable[[], Any]
    future: Future[Any]
    whose: Callable[[], str] | None
    begun: bool = False


class Workers(Executor):
    """An executor for gRPC's server: calls wait without a thread, and tenants take turns.

    Of the threads, and of the places to wait for one, a tenant gets no more than it leaves free:
    half of them while it is alone, a third beside another that asks for as many, and so on. So
    there is always room for one that comes now and then, however many others are busy, and nothing
    needs to be known of how many there are.

    gRPC asks its interceptors about a call and submits it on one thread: whoever knows whose call
    it is says so in between, with `next_is`.

    A call begins in its turn of the interpreter's; streams, which mostly wait, begin at once. While
    one has the turn no thread is woken for another call: whoever has answered takes the next.

    Args:
        threads: how many serve calls; they are started as they are needed.
        places: how many calls may wait.
    """

    def __init__(self, threads: int, places: int) -> None:
        self._most = threads
        self._places = places
        self._arriving = threading.local()
        self._serving = threading.local()
        # Guards what follows. A finalizer that runs in here may leave the thread's turn.
        lock = threading.RLock()
        self._state = threading.Condition(lock)
        self._all_begun = threading.Condition(lock)
        self._waiting: FairQueue[_Waiting] = FairQueue()
        self._strangers: deque[_Waiting] = deque()  # Of those, or that were: as they came.
        self._running: Counter[Lane] = Counter()
        self._busy = 0
        self._in_turn = 0
        self._turn_began_s = 0.0
        self._watched = False  # Whether an idle thread waits for the turn to take too long.
        self._threads: list[threading.Thread] = []
        self._idle = 0
        self._closed = False

    def next_is(self, lane: Lane, whose: Callable[[], str] | None = None) -> bool:
        """Say whose call this thread submits next, and tell whether there is room for it.

        `whose` is for a lane of calls of whom it is not known: it takes no time, and returns the
        tenant once it is, until then nothing. The call counts as that one's from then on.
        """
        self._arriving.lane, self._arriving.whose = lane, whose
        with self._state:
            return self._waiting.waiting_of(lane) < max(1, self._places - len(self._waiting))

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """See Executor."""
        lane = getattr(self._arriving, "lane", Lane(""))
        whose = getattr(self._arriving, "whose", None)
        waiting = _Waiting(lane, partial(fn, *args, **kwargs), Future(), whose)
        with self._state:
            if self._closed:
                raise RuntimeError("the server takes no more calls")
            # One that was woken before counts as idle until it runs, and is taken already.
            if len(self._waiting) >= self._idle and len(self._threads) < self._most:
                # Daemons: one that does not notice that its call was cut off ends with the process.
                thread = threading.Thread(
                    target=self._work, name=f"grpc-{len(self._threads)}", daemon=True
                )
                self._threads.append(thread)
                try:
                    thread.start()
                except RuntimeError:  # No memory for it: the call waits for one that runs.
                    self._threads.pop()
                    if not self._threads:
                        raise
            self._waiting.push(lane, waiting)
            if whose is not None:
                self._strangers.append(waiting)
            if lane.streams and self._idle:
                self._state.notify()
            else:
                self._wake()
        return waiting.future

    def is_of(self, tenant_id: str) -> None:
        """Say whose call this thread serves: that of a key that was not known before counts as its
        tenant's from now on, so that one's first calls do not hold up those of others."""
        serving: _Waiting | None = getattr(self._serving, "call", None)
        if serving is None or serving.lane.tenant_id == tenant_id:
            return
        with self._state:
            self._forget(serving.lane)
            serving.lane = serving.lane._replace(tenant_id=tenant_id)
            self._running[serving.lane] += 1
            self._wake()

    def wait_until_all_begun(self, seconds: float) -> None:
        """Wait until no call waits for a thread, so long at most."""
        with self._state:
            self._all_begun.wait_for(lambda: not self._waiting, seconds)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """See Executor."""
        with self._state:
            self._closed = True
            while cancel_futures and (waiting := self._waiting.pop()):
                waiting.future.cancel()
            self._state.notify_all()
        for thread in self._threads if wait else ():
            thread.join()

    def _work(self) -> None:
        while waiting := self._next():
            self._serving.call = waiting
            if not waiting.lane.streams:
                interpreter.begin_turn(self._leave_turn)
            if waiting.future.set_running_or_notify_cancel():
                try:
                    result = waiting.run()
                except BaseException as error:
                    waiting.future.set_exception(error)
                else:
                    waiting.future.set_result(result)
                    del result
            with self._state:
                self._busy -= 1
                self._in_turn -= interpreter.end_turn()
                self._forget(waiting.lane)
            del waiting, self._serving.call  # An idle thread keeps no request.

    def _forget(self, lane: Lane) -> None:
        self._running[lane] -= 1
        if not self._running[lane]:
            del self._running[lane]

    def _next(self) -> _Waiting | None:
        """Wait for a call that may begin; None when there will be none."""
        with self._state:
            while True:
                self._look_at_strangers()
                waiting = self._waiting.pop(self._may_begin)
                if waiting is not None:
                    self._begin(waiting)
                    if self._waiting:
                        self._wake()  # Another may begin, too.
                    else:
                        self._all_begun.notify_all()
                        if self._closed:
                            self._state.notify_all()  # The idle ones may end.
                    return waiting
                if self._closed and not self._waiting:
                    return None
                self._idle += 1
                self._wait()
                self._idle -= 1

    def _look_at_strangers(self) -> None:
        """Have those stand in their tenant's lane who are known by now, up to one who is not."""
        while self._strangers:
            first = self._strangers[0]
            if not first.begun and first.whose is not None:
                tenant_id = first.whose()
                if not tenant_id:
                    return
                if self._waiting.remove(first.lane, first):
                    first.lane = first.lane._replace(tenant_id=tenant_id)
                    self._waiting.push(first.lane, first)
            self._strangers.popleft()

    def _begin(self, waiting: _Waiting) -> None:
        waiting.begun = True
        self._busy += 1
        self._running[waiting.lane] += 1
        if not waiting.lane.streams:
            self._in_turn += 1
            self._turn_began_s = monotonic()

    def _may_begin(self, waiting: _Waiting) -> bool:
        if waiting.lane.streams:
            return True
        if self._in_turn and monotonic() - self._turn_began_s < interpreter.PATIENCE_S:
            return False
        return self._running[waiting.lane] < self._most - self._busy

    def _leave_turn(self) -> None:
        with self._state:
            self._in_turn -= 1
            self._wake()

    def _wake(self) -> None:
        """Wake a thread if a call may begin, or if nobody watches over those that may not."""
        if self._idle and self._waiting and not (self._in_turn and self._watched):
            self._state.notify()

    def _wait(self) -> None:
        """Wait for a call; one thread of all waits no longer than a turn should take."""
        if self._watched or not (self._in_turn and self._waiting):
            self._state.wait()
            return
        self._watched = True
        self._state.wait(interpreter.PATIENCE_S)
        self._watched = False
