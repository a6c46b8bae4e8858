"""Edges from causes to effects, added, changed and deleted. They form no circle."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from mneme_server.common import turns
from mneme_server.common.clock import later_us, now_us
from mneme_server.common.errors import (
    AlreadyExists,
    FailedPrecondition,
    InvalidArgument,
    NotFound,
)
from mneme_server.common.etags import existing, require_unchanged
from mneme_server.common.identity import new_id
from mneme_server.engine.corpus.tenant import OpenTenants
from mneme_server.engine.corpus.tenant_store import CorpusUnit
from mneme_server.features.causal.model import (
    EPISODE,
    FIGURES,
    SKILL,
    CausalEdge,
    EdgeFilter,
    Origin,
    stored_id,
)
from mneme_server.features.causal.store.edges import SqlEdges
from mneme_server.features.memory.store import SqlMemories
from mneme_server.features.skills.links import NextTo, circle_closed_by
from mneme_server.features.skills.store.episodes import SqlEpisodes
from mneme_server.features.skills.store.skills import SqlSkills

_KINDS = {"memories": "memory", "episodes": "episode", "skills": "skill"}


@dataclass(frozen=True, slots=True)
class Edges:
    """The use cases of edges."""

    tenants: OpenTenants

    def add(self, tenant_id: str, given: CausalEdge) -> CausalEdge:
        """Add the edge; an empty id is made. The same content again changes nothing.

        Raises:
            InvalidArgument: cause and effect are the same.
            NotFound: one of them is stored here, and does not exist.
            AlreadyExists: the id is taken by other content, or the two have another edge.
            FailedPrecondition: the effect would bring about its own cause.
        """
        now = now_us()
        edge = replace(given, id=given.id or new_id(), created_us=now, updated_us=now)
        if edge.cause == edge.effect:
            raise InvalidArgument("cause and effect are the same", field="effect")
        with self.tenants.open(tenant_id) as tenant, tenant.write() as unit:
            edges = unit.get(SqlEdges)
            known = edges.get_many([edge.id]).get(edge.id)
            if known is not None:
                return _unchanged(known, edge)
            other = edges.between(edge.cause, edge.effect)
            if other is not None:
                return _the_same(other, edge)
            for name in ("cause", "effect"):
                require_stored(unit, getattr(edge, name), name)
            refuse_circle(unit, edge.cause, edge.effect)
            edges.save(edge)
        return edge

    def get(self, tenant_id: str, edge_id: str) -> CausalEdge:
        """Return the edge.

        Raises:
            NotFound: there is no such edge.
        """
        with self.tenants.open(tenant_id) as tenant, tenant.read() as unit:
            return _existing(unit, edge_id)

    def update(
        self, tenant_id: str, edge_id: str, changes: Mapping[str, Any], *, etag: str = ""
    ) -> CausalEdge:
        """Change the given fields. One whose figures change is stated by the caller from now on.

        Raises:
            NotFound: there is no such edge.
            Aborted: `etag` is given and is not the edge's any more.
        """
        with self.tenants.open(tenant_id) as tenant, tenant.write() as unit:
            before = _existing(unit, edge_id, etag)
            after = replace(before, **changes)
            differing = after.differing(before)
            if not differing:
                return before
            if any(name in FIGURES for name in differing):
                after = replace(after, origin=Origin.STATED, low=None, high=None, scope="")
            after = replace(after, updated_us=later_us(before.updated_us))
            unit.get(SqlEdges).save(after)
        return after

    def page(
        self, tenant_id: str, filter_: EdgeFilter, after: tuple[int, str] | None, limit: int
    ) -> tuple[Sequence[CausalEdge], int]:
        """Return edges, latest first, after that key; and how many match."""
        with self.tenants.open(tenant_id) as tenant, tenant.read() as unit:
            page = turns.read_page(
                partial(unit.get(SqlEdges).page, filter_),
                after,
                limit,
                lambda one: (one.created_us, one.id),
            )
            return page, unit.get(SqlEdges).count(filter_)

    def delete(self, tenant_id: str, edge_id: str, *, etag: str = "") -> CausalEdge:
        """Delete the edge, and return it as it was.

        Raises:
            NotFound: there is no such edge.
            Aborted: `etag` is given and is not the edge's any more.
        """
        with self.tenants.open(tenant_id) as tenant, tenant.write() as unit:
            edge = _existing(unit, edge_id, etag)
            unit.get(SqlEdges).remove([edge_id])
        return edge


class DependentEdges:
    """Edges from or to what is deleted. Implements `engine.corpus.forgetting.Dependents`."""

    name = "causal_edges"

    def resting_on(self, unit: CorpusUnit, gone: Mapping[str, Collection[str]]) -> Collection[str]:
        """Return the edges that begin or end at one of those."""
        return {
            edge
            for name, kind in _KINDS.items()
            for edge in unit.get(SqlEdges).touching(kind, gone.get(name, ()))
        }

    def remove(self, unit: CorpusUnit, ids: Collection[str]) -> None:
        """Delete the edges."""
        unit.get(SqlEdges).remove(ids)


def refuse_circle(
    unit: CorpusUnit, cause: str, effect: str, unsaved: Sequence[CausalEdge] = ()
) -> None:
    """Check that an edge from the cause to the effect closes no circle, also with others that are
    to be saved together with it.

    Raises:
        FailedPrecondition: it would; the message names the circle.
    """
    edges = unit.get(SqlEdges)
    circle = circle_closed_by(
        cause,
        effect,
        _also(edges.effects_of, ((one.cause, one.effect) for one in unsaved)),
        _also(edges.causes_of, ((one.effect, one.cause) for one in unsaved)),
    )
    if circle:
        path = " → ".join(map(repr, circle))
        raise FailedPrecondition(f"these would bring each other about: {path}", field="effect")


def require_stored(unit: CorpusUnit, name: str, field_: str) -> None:
    """Check that what a cause or an effect names exists, if it is stored here.

    Raises:
        NotFound: it does not.
    """
    stored = stored_id(name)
    if stored is None:
        return
    kind, item_id = stored
    of_kind: Any = unit.get(SqlMemories)
    if kind == EPISODE:
        of_kind = unit.get(SqlEpisodes)
    elif kind == SKILL:
        of_kind = unit.get(SqlSkills)
    if item_id not in of_kind.get_many([item_id]):
        raise NotFound(f"there is no {kind} {item_id!r}", field=field_)


def _also(next_to: NextTo, unsaved: Iterable[tuple[str, str]]) -> NextTo:
    """Return what looks up nodes that are next to some, also by pairs that are not saved yet."""
    more: dict[str, set[str]] = defaultdict(set)
    for here, there in unsaved:
        more[here].add(there)

    def both(nodes: Collection[str]) -> Mapping[str, Collection[str]]:
        found = next_to(nodes)
        return {node: {*found.get(node, ()), *more.get(node, ())} for node in nodes}

    return both


def _existing(unit: CorpusUnit, edge_id: str, etag: str = "") -> CausalEdge:
    """Return the edge, which must still have this etag, if one is given."""
    found = unit.get(SqlEdges).get_many([edge_id])
    return existing("edge", found.get(edge_id), edge_id, etag)


def _unchanged(known: CausalEdge, given: CausalEdge) -> CausalEdge:
    require_unchanged("edge", known, known.differing(given))
    return known


def _the_same(known: CausalEdge, given: CausalEdge) -> CausalEdge:
    """Return the edge that is there between the two if it says what is given."""
    if known.differing(given):
        raise AlreadyExists(
            f"edge {known.id!r} leads from {known.cause!r} to {known.effect!r} already; update it",
            field="effect",
        )
    return known
