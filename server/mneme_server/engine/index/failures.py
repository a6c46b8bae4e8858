"""Which parts of an index failed, and who is told of it."""

from __future__ import annotations

from collections.abc import Callable

from mneme_server.common.errors import MnemeError, is_failure
from mneme_server.engine.index.log import Log
from mneme_server.engine.index.parts import Part


def _nobody() -> None:
    """Tell nobody."""


class Failures:
    """The parts of one index that failed, until another index takes its place.

    Args:
        log: told of each.
    """

    def __init__(self, log: Log) -> None:
        self._log = log
        self._parts: set[Part] = set()
        self._told: Callable[[], object] = _nobody

    @property
    def parts(self) -> frozenset[Part]:
        """The parts that failed."""
        return frozenset(self._parts)

    def on_failure(self, told: Callable[[], object]) -> None:
        """Have `told` called, on any thread, whenever a part fails. It must not wait."""
        self._told = told

    def note(self, part: Part, error: BaseException) -> None:
        """Note that a part failed and have the owner told, or raise what is no failure of it."""
        if isinstance(error, MnemeError) or not is_failure(error):
            raise error
        self.add(part, error)

    def add(self, part: Part, error: BaseException) -> None:
        """Note that a part failed and have the owner told."""
        self._parts.add(part)
        self._log.warning("an index failed", part=part.value, error=repr(error))
        self._told()
