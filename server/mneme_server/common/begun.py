"""Work that was begun elsewhere, and whose result is waited for later."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


def _always() -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Begun(Generic[T]):
    """Called once, by the thread that began it, it waits and returns what came of it.

    Args:
        result: waits, and returns it or raises.
        is_ready: whether there is nothing to wait for any more. By default there never was.
    """

    result: Callable[[], T]
    is_ready: Callable[[], bool] = _always

    def __call__(self) -> T:
        """Return the result, or raise what it raised."""
        return self.result()
