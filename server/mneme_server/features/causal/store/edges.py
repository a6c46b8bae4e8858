"""Edges in a tenant's database."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, func, or_, select

from mneme_server.common.stored import reads
from mneme_server.engine.store.reading import read_rows
from mneme_server.engine.store.records import row_reader, row_writer
from mneme_server.engine.store.rows import (
    chunks,
    delete_among,
    equal_where_given,
    latest_after,
    read_with,
    rows_among,
    upsert,
)
from mneme_server.engine.store.totals import add_to_total, known, total
from mneme_server.features.causal.model import CausalEdge, EdgeFilter, Origin, node
from mneme_server.features.causal.store.tables import causal_edges

_EDGES = "causal_edges"
_SURE = 0.5
"""Edges from this confidence on say something of what they begin at."""


class SqlEdges:
    """The tenant's edges."""

    def __init__(self, connection: Connection, tenant_id: str) -> None:
        self._connection = connection
        self._tenant_id = tenant_id

    def get_many(self, edge_ids: Collection[str]) -> dict[str, CausalEdge]:
        """Return those that exist, by id."""
        return {edge.id: edge for edge in self._having("id", edge_ids)}

    def between(self, cause: str, effect: str) -> CausalEdge | None:
        """Return the edge from a cause to an effect, or None."""
        query = self._filtered(select(causal_edges), EdgeFilter(cause=cause, effect=effect))
        found = read_rows(self._connection, query, _edge, kind="edge")
        return found[0] if found else None

    def out_of(self, nodes: Collection[str]) -> Sequence[CausalEdge]:
        """Return the edges that have one of these as their cause."""
        return self._having("cause", nodes)

    def into(self, nodes: Collection[str]) -> Sequence[CausalEdge]:
        """Return the edges that have one of these as their effect."""
        return self._having("effect", nodes)

    def _having(self, column: str, values: Collection[str]) -> list[CausalEdge]:
        return read_with(
            self._connection, causal_edges, _edge, self._tenant_id, values, kind="edge", key=column
        )

    def effects_of(self, nodes: Collection[str]) -> Mapping[str, Collection[str]]:
        """Return the effects of those of these causes that have some."""
        return self._next_to(nodes, "cause", "effect")

    def causes_of(self, nodes: Collection[str]) -> Mapping[str, Collection[str]]:
        """Return the causes of effects that have some, by effect."""
        return self._next_to(nodes, "effect", "cause")

    def _next_to(
        self, nodes: Collection[str], here: str, there: str
    ) -> Mapping[str, Collection[str]]:
        columns = causal_edges.c
        found: dict[str, set[str]] = defaultdict(set)
        query, mine = select(columns[here], columns[there]), (self._connection, self._tenant_id)
        for row in rows_among(*mine, query, columns[here], nodes):
            found[getattr(row, here)].add(getattr(row, there))
        return found

    def strongest(
        self, min_confidence: float, min_uplift: float, limit: int
    ) -> Sequence[CausalEdge]:
        """Return the edges with the greatest weight, at least so sure and so large either way."""
        columns = causal_edges.c
        query = self._strong(select(causal_edges), min_confidence, min_uplift)
        weight = columns.confidence * func.abs(columns.uplift)
        query = query.order_by(weight.desc(), columns.cause, columns.effect).limit(limit)
        return read_rows(self._connection, query, _edge, kind="edge")

    def count_strong(self, min_confidence: float, min_uplift: float) -> int:
        """Return how many edges are at least so sure and so large either way."""
        query = select(func.count()).select_from(causal_edges)
        found = self._connection.execute(self._strong(query, min_confidence, min_uplift))
        return int(found.scalar_one())

    def _strong(self, query: Select[Any], min_confidence: float, min_uplift: float) -> Select[Any]:
        columns = causal_edges.c
        return query.where(
            columns.tenant_id == self._tenant_id,
            columns.confidence >= min_confidence,
            func.abs(columns.uplift) >= min_uplift,
        )

    def uplifts(self, kind: str, ids: Collection[str]) -> Mapping[str, float]:
        """Return the uplift of those of these things (memories, episodes, skills; by id) that an
        edge with a confidence of at least one half says something of: of the edges out of one,
        that of the greatest weight."""
        names = {node(kind, one): one for one in ids}
        best: dict[str, CausalEdge] = {}
        for edge in self.out_of(names):
            if edge.confidence < _SURE:
                continue
            before = best.get(edge.cause)
            if before is None or (edge.weight, edge.effect) > (before.weight, before.effect):
                best[edge.cause] = edge
        return {names[cause]: edge.uplift for cause, edge in best.items()}

    def of_scope(self, scope: str) -> Sequence[CausalEdge]:
        """Return the edges that this question of Discover's found."""
        columns = causal_edges.c
        query = select(causal_edges).where(
            columns.tenant_id == self._tenant_id,
            columns.scope == scope,
            columns.origin == int(Origin.DISCOVERED),
        )
        return read_rows(self._connection, query, _edge, kind="edge")

    def save(self, edge: CausalEdge) -> None:
        """Insert or replace an edge."""
        before = known(self._connection, self._tenant_id, causal_edges.c.id, {edge.id})
        self._connection.execute(upsert(causal_edges), _edge_row(edge, self._tenant_id))
        add_to_total(self._connection, self._tenant_id, _EDGES, 1 - before)

    def remove(self, edge_ids: Collection[str]) -> int:
        """Remove edges, and return how many there were."""
        removed = delete_among(self._connection, self._tenant_id, causal_edges.c.id, edge_ids)
        add_to_total(self._connection, self._tenant_id, _EDGES, -removed)
        return removed

    def touching(self, kind: str, ids: Collection[str]) -> Sequence[str]:
        """Return the ids of the edges that begin or end at one of these things, sorted."""
        columns = causal_edges.c
        found: set[str] = set()
        for some in chunks([node(kind, one) for one in ids]):
            query = select(columns.id).where(
                columns.tenant_id == self._tenant_id,
                or_(columns.cause.in_(some), columns.effect.in_(some)),
            )
            found.update(self._connection.execute(query).scalars())
        return sorted(found)

    def page(
        self, filter_: EdgeFilter, after: tuple[int, str] | None, limit: int
    ) -> Sequence[CausalEdge]:
        """Return edges, latest first, that come after the key (created_us, id)."""
        columns = causal_edges.c
        query = self._filtered(select(causal_edges), filter_)
        query = latest_after(query, columns.created_at, columns.id, after, limit)
        return read_rows(self._connection, query, _edge, kind="edge")

    def count(self, filter_: EdgeFilter) -> int:
        """Return how many match."""
        if filter_ == EdgeFilter():
            return total(self._connection, self._tenant_id, _EDGES)
        query = self._filtered(select(func.count()).select_from(causal_edges), filter_)
        return int(self._connection.execute(query).scalar_one())

    def confidence(self) -> float | None:
        """Return the mean of the edges' confidence; None without edges."""
        query = select(func.avg(causal_edges.c.confidence)).where(
            causal_edges.c.tenant_id == self._tenant_id
        )
        average: float | None = self._connection.execute(query).scalar_one()
        return average

    def _filtered(self, query: Select[Any], filter_: EdgeFilter) -> Select[Any]:
        columns = causal_edges.c
        conditions: list[ColumnElement[bool]] = [columns.tenant_id == self._tenant_id]
        conditions += equal_where_given(columns, filter_, ("cause", "effect"))
        if filter_.origin is not None:
            conditions.append(columns.origin == int(filter_.origin))
        if filter_.min_confidence:
            conditions.append(columns.confidence >= filter_.min_confidence)
        return query.where(*conditions)


_edge = reads("edge")(row_reader(causal_edges, CausalEdge))
_edge_row = row_writer(CausalEdge, causal_edges)
