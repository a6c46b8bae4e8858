"""What reflections were good for, counted: in each tenant's database, and since the start."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Mapping
from functools import partial

from mneme_server.features.learn.reflection_model import ReflectionMetrics


class Counter:
    """The names of the counters that the metrics are made of."""

    STORED = "reflections_stored"
    SEARCHED = "reflections_searched"
    HIT = "reflections_hit"
    CROSS_SESSION = "reflections_cross_session"
    ATTEMPTS = ("attempts_without_lessons", "attempts_with_lessons")
    SUCCESSES = ("successes_without_lessons", "successes_with_lessons")


_GAUGES = {
    "reflection_store_count": ("store_count", "Reflections stored"),
    "reflection_search_count": ("search_count", "Searches for reflections"),
    "reflection_hit_rate": ("hit_rate", "Share of those searches that found something relevant"),
    "outcome_improvement_rate": (
        "outcome_improvement_rate",
        "Success rate of attempts with past lessons less that of those without",
    ),
    "cross_session_reuse": (
        "cross_session_reuse",
        "Attempts that applied a reflection of another session",
    ),
}
"""The metrics' names for operators, each with its field of `ReflectionMetrics`."""


class Tally:
    """What the tenants' counters moved by since the server's start, all tenants together."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._lock = threading.Lock()

    def add(self, counts: Mapping[str, int]) -> None:
        """Add what a transaction added, once it is committed."""
        with self._lock:
            for name, count in counts.items():
                self._counts[name] = self._counts.get(name, 0) + count

    def metrics(self) -> ReflectionMetrics:
        """The metrics over all tenants since the start."""
        with self._lock:
            return metrics_of(self._counts)

    def gauges(self) -> Iterator[tuple[str, str, Callable[[], float]]]:
        """Each metric's name, meaning and value; what means nothing yet is not a number."""
        for name, (field, meaning) in _GAUGES.items():
            yield name, f"{meaning}, of all tenants since the start.", partial(self._value, field)

    def _value(self, field: str) -> float:
        value: float | None = getattr(self.metrics(), field)
        return math.nan if value is None else float(value)


def metrics_of(counts: Mapping[str, int]) -> ReflectionMetrics:
    """Return the metrics that these counters give."""
    searched = counts.get(Counter.SEARCHED, 0)
    rates = [
        counts.get(won, 0) / counts[tried] if counts.get(tried) else None
        for tried, won in zip(Counter.ATTEMPTS, Counter.SUCCESSES, strict=True)
    ]
    without, with_ = rates
    improvement = None if without is None or with_ is None else with_ - without
    return ReflectionMetrics(
        store_count=counts.get(Counter.STORED, 0),
        search_count=searched,
        hit_rate=counts.get(Counter.HIT, 0) / searched if searched else None,
        outcome_improvement_rate=improvement,
        cross_session_reuse=counts.get(Counter.CROSS_SESSION, 0),
    )
