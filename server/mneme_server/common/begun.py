"""Work that was begun elsewhere, and whose result is waited for later."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


def _always() -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Begun(Generic[T_co]):
    """Called once, by the thread that began it, it waits and returns what came of it.

    Args:
        result: waits, and returns it or raises.
        is_ready: whether there is nothing to wait for any more. By default there never was.
    """

    result: Callable[[], T_co]
    is_ready: Callable[[], bool] = _always

    def __call__(self) -> T_co:
        """Return the result, or raise what it raised."""
        return self.result()


def repeatable(begun: Begun[T]) -> Begun[T]:
    """Return the same work for who asks for its result several times: it is kept."""
    known: list[T] = []

    def result() -> T:
        if not known:
            known.append(begun())
        return known[0]

    return Begun(result, lambda: bool(known) or begun.is_ready())
