"""What calls to a server in this process cost, counted: statements, rows, memory, time."""

from __future__ import annotations

import math
import sqlite3
import time
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from mneme_server.common import deadline
from sqlalchemy import event
from sqlalchemy.pool import Pool

STEP = 4
"""How often as much the next size is: three sizes are sixteenfold in all."""
_INSTRUCTIONS = 100
"""SQLite is asked after so many instructions of its machine, some of which it takes for a row."""


@dataclass(frozen=True, slots=True)
class Costs:
    """What a call cost.

    Args:
        statements: SQL statements.
        instructions: of SQLite's machine: how many rows were looked at, and how often, whether
            they were returned or not.
        bytes: the most memory that was allocated at a time beyond what was before, in this
            process; NumPy's counts, what libraries in C allocate does not.
        cpu_s: processor time of this process.
    """

    statements: float
    instructions: float
    bytes: float
    cpu_s: float

    def at_most(self, other: Costs) -> Costs:
        """Return the smaller of each, which leaves out what others did beside one of the calls."""
        return Costs(
            min(self.statements, other.statements),
            min(self.instructions, other.instructions),
            min(self.bytes, other.bytes),
            min(self.cpu_s, other.cpu_s),
        )


NOTICED = Costs(statements=12, instructions=20_000, bytes=2**21, cpu_s=0.02)
"""Growth from one size to the next that is too small to say how it goes on."""


class Meter:
    """Counts what calls have SQLite do, and what they allocate; with `memory`, which takes time
    that is counted."""

    def __init__(self, *, memory: bool = True) -> None:
        self._memory = memory
        self._statements = self._instructions = 0

    def connected(self, connection: Any, _record: object) -> None:
        """Listen to a connection; work of the server's own, which has no deadline, is left out."""
        assert isinstance(connection, sqlite3.Connection)
        connection.set_trace_callback(self._said)
        connection.set_progress_handler(self._worked, _INSTRUCTIONS)

    def _said(self, _statement: str) -> None:
        self._statements += deadline.time_left() is not None

    def _worked(self) -> int:
        if deadline.time_left() is not None:
            self._instructions += _INSTRUCTIONS
        return 0

    def of(self, call: Callable[[], object]) -> Costs:
        """Return what a call costs."""
        self._statements = self._instructions = 0
        if self._memory:
            tracemalloc.start()
        began = time.process_time()
        try:
            call()
        finally:
            took = time.process_time() - began
            peak = tracemalloc.get_traced_memory()[1] if self._memory else 0
            tracemalloc.stop()
        return Costs(self._statements, self._instructions, peak, took)


@contextmanager
def metered(*, memory: bool = True) -> Iterator[Meter]:
    """Listen to every database that is opened in the block."""
    meter = Meter(memory=memory)
    event.listen(Pool, "connect", meter.connected)
    try:
        yield meter
    finally:
        event.remove(Pool, "connect", meter.connected)


def exponent(costs: Sequence[float], noticed: float) -> float:
    """Return how fast something grew, given what it was at three sizes: as n to the power of this.

    What does not depend on the size does not count, and a growth that is hardly noticed is taken
    for what could just be.
    """
    first, second, third = costs
    later = third - second
    if later <= noticed:
        return 0.0
    return math.log(later / max(second - first, noticed / STEP), STEP)
