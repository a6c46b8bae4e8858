"""The turn of the work at hand to compute: all threads share one interpreter.

The edge begins one for each call, of the size that the method's declaration tells, and whoever
works in the background one for its work. Whatever computes on its behalf, however deep below, asks
here, so that nothing needs a parameter for it and nothing knows who hands out turns. Work without a
turn, as in a test or a command, goes on at once.

A turn inside a turn is the same one. Nothing inside may wait for others, but through `outside`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from typing import Protocol, TypeVar

from mneme_server.common import deadline
from mneme_server.common.begun import Begun
from mneme_server.common.pages import PAGE_BYTES

T = TypeVar("T")
R = TypeVar("R")
K = TypeVar("K")

SMALL = 32
"""Items that a small call asks for at most, unless its declaration says otherwise; and that a large
one works off before it gives way: of events a few milliseconds' worth."""
_TOO_FEW = 2
"""Items up to which a turn would cost more than working them off does."""
_READ_PART = 100
"""Rows that a large page is read by: to begin anew costs as much as some rows do."""


class Turn(Protocol):
    """What work takes to compute. One thread uses it at a time."""

    def size(self, *, large: bool) -> None:
        """Say how much the call asks for; before it computes."""
        ...

    def computing(self, cost: float, *, large: bool = False) -> AbstractContextManager[None]:
        """Have the turn for a block, of the call's size, or `large`; join it inside of one."""
        ...

    def between(self) -> None:
        """Give way between two parts of what is large."""
        ...

    def outside(self, wait: Callable[[], T]) -> T:
        """Return what `wait` returns, and let others compute meanwhile."""
        ...

    def active(self) -> AbstractContextManager[None]:
        """Say that a call is at work, so that work in the background gives way."""
        ...

    def hurry(self) -> AbstractContextManager[None]:
        """Say that a call waits for work in the background, so that it gives way to nobody."""
        ...

    def is_alone(self) -> bool:
        """Tell whether no call writes or computes now; for one that does not yet."""
        ...


class _Free:
    """The turn where nobody hands them out: it is always there."""

    def size(self, *, large: bool) -> None:
        """Take any size."""

    def computing(self, cost: float, *, large: bool = False) -> AbstractContextManager[None]:
        """Go on while somebody waits."""
        return _WAITED_FOR

    def between(self) -> None:
        """Go on while somebody waits."""
        deadline.check()

    def outside(self, wait: Callable[[], T]) -> T:
        """Wait."""
        return wait()

    def active(self) -> AbstractContextManager[None]:
        """Tell nobody."""
        return _NOTHING

    def hurry(self) -> AbstractContextManager[None]:
        """Tell nobody."""
        return _NOTHING

    def is_alone(self) -> bool:
        """Know of nobody."""
        return True


class _WaitedFor(AbstractContextManager[None]):
    def __enter__(self) -> None:
        deadline.check()

    def __exit__(self, *_raised: object) -> None:
        return None


_NOTHING = nullcontext()
_WAITED_FOR = _WaitedFor()
FREE: Turn = _Free()
"""The turn of work that nobody hands out turns to."""

_current: ContextVar[Turn] = ContextVar("mneme_turn", default=FREE)


def enter(turn: Turn) -> None:
    """Have this context compute in these turns until it leaves. Threads that it starts do not
    inherit it."""
    _current.set(turn)


def leave() -> None:
    """Forget what `enter` was given."""
    _current.set(FREE)


def current() -> Turn:
    """Return the turn of the work at hand."""
    return _current.get()


def size(*, large: bool) -> None:
    """Say how much the call at hand asks for: its edge does, before anything is computed."""
    _current.get().size(large=large)


def computing(cost: float = 1.0) -> AbstractContextManager[None]:
    """Compute for the call, once it is its turn.

    Args:
        cost: what the turn counts as beside those of other tenants, of the same size.

    Raises:
        Abandoned: nobody waits for the call any more.
    """
    return _current.get().computing(cost)


def piece(cost: float = 1.0) -> AbstractContextManager[None]:
    """Compute one piece of what takes long whatever the call asks for, as reading through all there
    is does: a large call's turn, as `computing` is, for a call that is small otherwise."""
    return _current.get().computing(cost, large=True)


def between() -> None:
    """Give way between two parts of what is computed. A small call need not, and does not.

    Raises:
        Abandoned: nobody waits for the call any more.
    """
    _current.get().between()


def outside(wait: Callable[[], T] | Begun[T]) -> T:
    """Return what `wait` returns; while computing, let others compute meanwhile, unless there is
    nothing to wait for: who changes places needs two turns."""
    if isinstance(wait, Begun) and wait.is_ready():
        return wait()
    return _current.get().outside(wait)


def active() -> AbstractContextManager[None]:
    """Say that a call is at work, so that work in the background gives way."""
    return _current.get().active()


def hurry() -> AbstractContextManager[None]:
    """Say that a call waits for work in the background, so that it gives way to nobody."""
    return _current.get().hurry()


def is_alone() -> bool:
    """Tell whether no call writes or computes now, this one included: then it may do at once what
    others would be slowed down by."""
    return _current.get().is_alone()


def each(make: Callable[[T], R], items: Sequence[T]) -> list[R]:
    """Return what `make` makes of each item, computing: a large call part by part.

    Raises:
        Abandoned: nobody waits for the call any more.
    """
    if len(items) <= _TOO_FEW:
        return list(map(make, items))
    made: list[R] = []
    turn = _current.get()
    with turn.computing(len(items) / SMALL):
        for start in range(0, len(items), SMALL):
            if start:
                turn.between()
            made += map(make, items[start : start + SMALL])
    return made


def read_page(
    read: Callable[[K | None, int], Sequence[T]],
    after: K | None,
    limit: int,
    key: Callable[[T], K],
    least_bytes: Callable[[T], int] = lambda _row: 0,
) -> list[T]:
    """Return a page of rows, computing: a large one is read part by part, each after the last.

    Args:
        read: returns rows after a key, so many at most.
        after: where the page begins; None for the first row.
        limit: rows at most.
        key: a row's.
        least_bytes: what a row takes in an answer, at least. Of rows that are more than an
            answer can carry, no more are read: the page ends among them.

    Raises:
        Abandoned: nobody waits for the call any more.
    """
    rows: list[T] = []
    room = PAGE_BYTES
    turn = _current.get()
    with turn.computing(limit / SMALL):
        while True:
            wanted = min(limit - len(rows), _READ_PART)
            part = read(after, wanted)
            rows += part
            room -= sum(map(least_bytes, part))
            if len(part) < wanted or len(rows) >= limit or room < 0:
                return rows
            after = key(part[-1])
            turn.between()
