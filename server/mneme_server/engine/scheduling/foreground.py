"""Calls go before work in the background, small ones before large ones, and few compute at once.

All threads share one interpreter, and its lock lets one of them run Python at a time. Work in the
background that runs beside a call takes from it, whatever its threads' priorities; and of many
calls that compute at once each only takes the lock from the others, a hundred times a call.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TypeVar

from mneme_server.common import deadline, interpreter, turns
from mneme_server.common.fairness import FairGate

T = TypeVar("T")

_PATIENCE = 3.0
"""Small calls get three quarters of the time, when they could use all of it."""
_MOST_PATIENCE_S = 0.05

_QUIET_S = 0.02
"""Without a call for so long the foreground is quiet: a client that sends one call after the other
pauses for less."""
_GIVE_WAY_S = 0.25
"""The longest that work in the background waits for quiet before each step: calls without a pause
slow it down and do not stop it."""
_AT_WORK_S = 0.05
"""How long work in the background goes on before it gives way again."""


class Foreground:
    """What the calls of one process are doing. Thread-safe.

    Calls are small or large. Few small ones compute at once, tenants by turns. Large ones compute
    one at a time, tenants by turns, in parts; before each part they give way to the small ones, so
    that these never wait for them: whoever holds the interpreter's lock for long slows all others,
    many times over.

    Args:
        at_once: small calls that may compute at once; some of what they do is done in libraries,
            without the interpreter's lock. With eight recalls in flight and no limit, a third fewer
            were answered a second, and each took half as much processor time again.
    """

    def __init__(self, at_once: int = 2) -> None:
        self._small = FairGate(at_once)
        self._large = FairGate(1)
        self._changing = threading.Condition()  # Guards what follows.
        self._active = 0
        self._small_calls = 0  # That compute, or wait for their turn.
        self._hurrying = 0
        self._last_s = float("-inf")  # When a call was last at work.
        # Only who has the large turn touches these.
        self._large_began_s = 0.0
        self._large_took_s = 0.0  # Since large calls last gave way to small ones.

    @contextmanager
    def active(self) -> Iterator[None]:
        """Say that a call is at work, so that work in the background gives way."""
        self._begin()
        try:
            yield
        finally:
            self._end()

    def _begin(self) -> None:
        with self._changing:
            self._active += 1

    def _end(self) -> None:
        with self._changing:
            self._active -= 1
            self._last_s = time.monotonic()

    @property
    def is_quiet(self) -> bool:
        """Whether no call writes, computes or waits for its turn to."""
        return not (self._active or self._small_calls)

    def turn(self, *, large: bool = False) -> CallTurn:
        """Return the turn of a call that asks for little, or for much."""
        return CallTurn(self, large=large)

    def finish(self, steps: Sequence[Callable[[], object]]) -> None:
        """Do what must be done whether anybody waits for it or not, in steps of some milliseconds
        each, with a large turn; give way before each of them."""
        turn = turns.current()
        if not isinstance(turn, CallTurn):
            turn = CallTurn(self)
        with turn.computing(len(steps), large=True, to_the_end=True):
            for number, step in enumerate(steps):
                if number:
                    turn.give_way()
                step()

    def _enter(self, cost: float, *, large: bool, stay: bool = False) -> None:
        if large:
            self._large.enter(cost, stay=stay)
            self._let_small_go_first()
            self._large_began_s = time.monotonic()
            return
        with self._changing:
            self._small_calls += 1
        try:
            self._small.enter(cost, stay=stay)
        except BaseException:
            self._small_call_left()
            raise

    def _leave(self, *, large: bool) -> None:
        if large:
            self._large_took_s += time.monotonic() - self._large_began_s
            self._large.leave()
        else:
            self._small.leave()
            self._small_call_left()

    def _give_way_to_others(self) -> None:
        """Between two parts of a large call: let other tenants' large calls and all small ones have
        their turn. Those of the same tenant can wait: to change places costs time, too."""
        self._large_took_s += time.monotonic() - self._large_began_s
        if self._large.is_waited_for_by_others():
            self._large.leave()
            self._large.enter(stay=True)
        self._let_small_go_first()
        self._large_began_s = time.monotonic()

    def _small_call_left(self) -> None:
        with self._changing:
            self._small_calls -= 1
            if not self._small_calls:
                self._changing.notify_all()

    def _let_small_go_first(self) -> None:
        """Wait while small calls compute, but only in proportion to what large ones have taken:
        small calls without a pause slow them down and do not stop them."""
        if self._small_calls:
            longest_s = min(_MOST_PATIENCE_S, _PATIENCE * self._large_took_s)
            with self._changing:
                self._changing.wait_for(lambda: not self._small_calls, longest_s)
            self._large_took_s = 0.0

    @contextmanager
    def hurry(self) -> Iterator[None]:
        """Say that a call waits for work in the background, so that it gives way to nobody."""
        with self._changing:
            self._hurrying += 1
        try:
            yield
        finally:
            with self._changing:
                self._hurrying -= 1

    def give_way(
        self,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Wait until the foreground is quiet, a quarter of a second at most."""
        until = clock() + _GIVE_WAY_S
        while not self._hurrying:
            now = clock()
            quiet_at = now + _QUIET_S if self._active else self._last_s + _QUIET_S
            pause = min(quiet_at, until) - now
            if pause <= 0:
                return
            sleep(pause)


class Shift:
    """Steps of one worker in the background, which give way to calls every 50 ms, not before each:
    beside calls without a pause only four steps a second would be done, however small they are, and
    tenants that have little to do would wait for each other for minutes.

    Args:
        give_way: waits a moment while calls are at work.
    """

    def __init__(
        self, give_way: Callable[[], object], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._give_way = give_way
        self._clock = clock
        self._began_s = float("-inf")

    def step(self) -> None:
        """Begin a step: give way before it if those since the last time took long, or a pause."""
        if self._clock() - self._began_s > _AT_WORK_S:
            self._give_way()
            self._began_s = self._clock()


class CallTurn:
    """The turn of one call, or of one piece of work in the background; see `turns.Turn`."""

    __slots__ = ("_foreground", "_has_large", "_is_large")

    def __init__(self, foreground: Foreground, *, large: bool = False) -> None:
        self._foreground = foreground
        self._is_large = large
        self._has_large: bool | None = None
        """Whether the turn that it has now is a large one; None: it has none."""

    def size(self, *, large: bool) -> None:
        """See `turns.Turn`."""
        self._is_large = large

    def computing(
        self, cost: float = 1.0, *, large: bool = False, to_the_end: bool = False
    ) -> AbstractContextManager[None]:
        """See `turns.Turn`; `to_the_end`: do it also when nobody waits for the call any more."""
        return _Computing(self, cost, large=large, to_the_end=to_the_end)

    def between(self) -> None:
        """See `turns.Turn`."""
        if self._has_large:
            self._foreground._give_way_to_others()
            deadline.check()

    def give_way(self) -> None:
        """Give way between two parts, and go on whoever has left."""
        if self._has_large:
            self._foreground._give_way_to_others()

    def outside(self, wait: Callable[[], T]) -> T:
        """See `turns.Turn`."""
        has_large, foreground = self._has_large, self._foreground
        if has_large is None:
            return wait()
        self._has_large = None
        foreground._leave(large=has_large)
        try:
            return wait()
        finally:
            # `computing` ends by leaving, so the call comes back also when nobody waits for it.
            foreground._enter(0.0, large=has_large, stay=True)
            self._has_large = has_large

    def active(self) -> AbstractContextManager[None]:
        """See `turns.Turn`."""
        return self._foreground.active()

    def hurry(self) -> AbstractContextManager[None]:
        """See `turns.Turn`."""
        return self._foreground.hurry()

    def is_alone(self) -> bool:
        """See `turns.Turn`."""
        return self._foreground.is_quiet


class _Computing(AbstractContextManager[None]):
    """The block in which a call computes; see `CallTurn.computing`.

    Calls pass several of them, and a generator would cost twice as much.
    """

    __slots__ = ("_cost", "_joins", "_large", "_to_the_end", "_turn")

    def __init__(self, turn: CallTurn, cost: float, *, large: bool, to_the_end: bool) -> None:
        self._turn = turn
        self._cost = cost
        self._large = large
        self._to_the_end = to_the_end
        self._joins = False

    def __enter__(self) -> None:
        turn = self._turn
        if turn._has_large is not None:
            self._joins = True
            return
        interpreter.leave_turn()  # Half of what follows is done in libraries; the gates count.
        foreground, large = turn._foreground, self._large or turn._is_large
        foreground._begin()
        try:
            foreground._enter(self._cost, large=large, stay=self._to_the_end)
            try:
                if not self._to_the_end:
                    deadline.check()  # To go on would only prolong the jam.
            except BaseException:
                foreground._leave(large=large)
                raise
        except BaseException:
            foreground._end()
            raise
        turn._has_large = large

    def __exit__(self, *_raised: object) -> None:
        turn = self._turn
        if self._joins:
            return
        turn._foreground._leave(large=bool(turn._has_large))
        turn._has_large = None
        turn._foreground._end()
