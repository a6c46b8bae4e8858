"""Chains of edges: what follows from a cause, what an effect comes from."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from mneme_server.common import deadline, turns
from mneme_server.engine.corpus.tenant import OpenTenants
from mneme_server.engine.corpus.tenant_store import CorpusUnit
from mneme_server.features.causal.model import CausalChain, CausalEdge
from mneme_server.features.causal.store.edges import SqlEdges

MOST_CHAINS = 10_000
"""Chains that a query follows, the surest."""
_MOST_STEPS = 5 * MOST_CHAINS
"""Chains of one length that are looked at to find the surest."""
ASSUMPTION = (
    "The uplift of a chain is the product of its edges' uplifts. That takes for granted that"
    " nothing acts on its end but through the chain, and that each step has the same effect however"
    " much of the one before there is."
)


@dataclass(frozen=True, slots=True)
class EffectQuery:
    """Which chains: from `cause`, to `effect`; "" is anything. Confidence and the size of the
    uplift are at least the given ones; a chain has up to `max_length` edges."""

    cause: str = ""
    effect: str = ""
    min_confidence: float = 0.5
    min_uplift: float = 0.0
    max_length: int = 5


@dataclass(frozen=True, slots=True)
class FoundChains:
    """The best chains, how many match, and whether some were not followed."""

    chains: Sequence[CausalChain]
    total: int
    truncated: bool = False


@dataclass(frozen=True, slots=True)
class EffectChains:
    """The use case: find chains."""

    tenants: OpenTenants

    def find(self, tenant_id: str, query: EffectQuery, limit: int) -> FoundChains:
        """Return the chains that the query picks, the weightiest first."""
        with self.tenants.open(tenant_id) as tenant, tenant.read() as unit:
            if not query.cause and not query.effect:
                return _single(unit, query, limit)
            with turns.computing():
                return find_chains(query, limit, unit.get(SqlEdges).out_of, unit.get(SqlEdges).into)


def _single(unit: CorpusUnit, query: EffectQuery, limit: int) -> FoundChains:
    edges = unit.get(SqlEdges).strongest(query.min_confidence, query.min_uplift, limit)
    chains = [CausalChain((edge,), edge.uplift, edge.confidence) for edge in edges]
    total = unit.get(SqlEdges).count_strong(query.min_confidence, query.min_uplift)
    return FoundChains(chains, total)


EdgesOf = Callable[[Collection[str]], Sequence[CausalEdge]]


def find_chains(query: EffectQuery, limit: int, out_of: EdgesOf, into: EdgesOf) -> FoundChains:
    """Return the chains that a query with a cause or an effect picks.

    Args:
        query: which chains.
        limit: how many of them, the weightiest.
        out_of: returns the edges that begin at nodes.
        into: returns those that end at nodes. Edges form no circle.
    """
    if query.cause:
        within = _leading_to(query, into) if query.effect else None
        found, truncated = _follow(query, query.cause, out_of, within, forward=True)
        if query.effect:
            found = [chain for chain in found if chain.effect == query.effect]
    else:
        found, truncated = _follow(query, query.effect, into, None, forward=False)
    chains = [chain for chain in found if abs(chain.uplift) >= query.min_uplift]
    chains.sort(key=lambda one: (-one.weight, len(one.edges), one.cause, one.effect))
    return FoundChains(chains[:limit], len(chains), truncated)


def _leading_to(query: EffectQuery, into: EdgesOf) -> set[str]:
    """Return everything from which a chain that is sure enough may lead to the query's effect."""
    seen = edge = {query.effect}
    for _ in range(query.max_length):
        deadline.check()
        before = {one.cause for one in into(edge) if one.confidence >= query.min_confidence}
        edge = before - seen
        seen = seen | edge
    return seen


def _follow(
    query: EffectQuery, start: str, edges_of: EdgesOf, within: set[str] | None, *, forward: bool
) -> tuple[list[CausalChain], bool]:
    """Return the chains that begin at `start`, or end there if not `forward`; and whether there
    were too many to follow all."""
    grown = [CausalChain((), 1.0, 1.0)]
    found: list[CausalChain] = []
    truncated = False
    for _ in range(query.max_length):
        deadline.check()
        ends = {_end(chain, start, forward=forward) for chain in grown}
        edges = _by_node(edges_of(ends), within, forward=forward)
        longer = (
            _grown(chain, edge, forward=forward)
            for chain in grown
            for edge in edges.get(_end(chain, start, forward=forward), ())
            if chain.confidence * edge.confidence >= query.min_confidence
        )
        grown = sorted(islice(longer, _MOST_STEPS), key=lambda chain: -chain.confidence)
        room = MOST_CHAINS - len(found)
        truncated = truncated or len(grown) > room
        grown = grown[:room]
        found += grown
        if not grown:
            break
    return found, truncated


def _by_node(
    edges: Sequence[CausalEdge], within: set[str] | None, *, forward: bool
) -> Mapping[str, list[CausalEdge]]:
    found: dict[str, list[CausalEdge]] = defaultdict(list)
    for edge in sorted(edges, key=lambda one: -one.confidence):
        if within is None or edge.effect in within:
            found[edge.cause if forward else edge.effect].append(edge)
    return found


def _end(chain: CausalChain, start: str, *, forward: bool) -> str:
    if not chain.edges:
        return start
    return chain.effect if forward else chain.cause


def _grown(chain: CausalChain, edge: CausalEdge, *, forward: bool) -> CausalChain:
    edges = (*chain.edges, edge) if forward else (edge, *chain.edges)
    return CausalChain(edges, chain.uplift * edge.uplift, chain.confidence * edge.confidence)
