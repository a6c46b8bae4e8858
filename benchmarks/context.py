"""What every measurement gets: sizes, folders and somebody to tell."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from benchmarks import memories
from benchmarks.measure import Round, Rounds, time_calls
from benchmarks.texts import questions

T = TypeVar("T")


@dataclass(frozen=True)
class Sizes:
    """How much is measured."""

    memories: int
    rounds: int
    calls: int
    """Calls in a round."""
    record_s: float
    """Seconds of sustained recording."""
    embed_texts: int
    tenants: int
    size: int
    """Memories of one large tenant."""
    fleet_s: float
    """Seconds that a server with many tenants on PostgreSQL is asked for, and left alone for."""
    writes_s: float
    """Seconds of small writes at one pace."""
    many: int
    """Tenants that small writes go to, where there are many."""


FULL = Sizes(
    memories=100_000, rounds=5, calls=200, record_s=5.0, embed_texts=256, tenants=500, size=100_000,
    fleet_s=60.0, writes_s=8.0, many=1_000,
)  # fmt: skip
QUICK = Sizes(
    memories=5_000, rounds=1, calls=40, record_s=1.0, embed_texts=64, tenants=20, size=5_000,
    fleet_s=2.0, writes_s=3.0, many=10,
)  # fmt: skip


class Context:
    """Shared by the measurements of one run.

    Args:
        sizes: how much to measure.
        work: a temporary folder.
        cache: a folder that outlives the run.
        sets: the files of sets that recall is measured on, by name: those that are given.
        say: told what is going on.
    """

    def __init__(
        self,
        sizes: Sizes,
        *,
        work: Path,
        cache: Path,
        sets: Mapping[str, Path],
        say: Callable[[str], None],
    ) -> None:
        self.sizes = sizes
        self.work = work
        self.sets = sets
        self.locomo = sets.get("locomo")
        self.say = say
        self.cache = cache
        self._seed = 1_000

    @cached_property
    def memories(self) -> memories.Memories:
        """The data folder with many memories."""
        return memories.ensure(self.cache, self.sizes.memories, self.say)

    def fresh_questions(self, count: int) -> list[str]:
        """Return questions that this run has not asked yet, as good as certainly."""
        self._seed += 1
        return questions(count, self._seed)

    def rounds(
        self,
        call: Callable[[T], object],
        inputs: Callable[[], Iterable[T]],
        *,
        in_flight: int = 1,
        warm_up: Sequence[T] = (),
        cpu_s: Callable[[], float] | None = None,
    ) -> Rounds:
        """Call in rounds, each with new `inputs()`; first once with each of `warm_up`.

        `cpu_s` tells the processor time that the server has used.
        """
        if warm_up:
            time_calls(call, warm_up)
        rounds: list[Round] = []
        for _ in range(self.sizes.rounds):
            items = list(inputs())
            before = cpu_s() if cpu_s else 0.0
            timed = time_calls(call, items, in_flight)
            rounds.append(replace(timed, cpu_s=cpu_s() - before) if cpu_s else timed)
        return Rounds(rounds)
