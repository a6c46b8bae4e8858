"""Ports of context: to storage, to recall and to the capability of learning."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from mneme_server.features.learn.model import FoundReflection, ReflectionFilter
from mneme_server.features.recall.model import RecallAnswer


class ReflectionSearch(Protocol):
    """Searches reflections; `features.learn.reflections.Reflections` does."""

    def search(
        self,
        tenant_id: str,
        task: str,
        filter_: ReflectionFilter,
        *,
        limit: int,
        min_score: float,
        min_confidence: float = 0.0,
        counted: bool = True,
    ) -> tuple[Sequence[FoundReflection], RecallAnswer]:
        """Return the reflections that bear on a task, and what recall said; count the search if it
        is to be `counted`."""
        ...
