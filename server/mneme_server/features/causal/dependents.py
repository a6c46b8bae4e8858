"""Edges that begin or end at what is deleted."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from mneme_server.features.causal.ports import CausalUnit

_KINDS = {"memories": "memory", "episodes": "episode", "skills": "skill"}


class DependentEdges:
    """Edges from or to what is deleted. Implements `engine.corpus.dependents.Dependents`."""

    name = "causal_edges"

    def resting_on(self, unit: CausalUnit, gone: Mapping[str, Collection[str]]) -> Collection[str]:
        """Return the edges that begin or end at one of those."""
        return {
            edge
            for name, kind in _KINDS.items()
            for edge in unit.causal_edges.touching(kind, gone.get(name, ()))
        }

    def remove(self, unit: CausalUnit, ids: Collection[str]) -> None:
        """Delete the edges."""
        unit.causal_edges.remove(ids)
