"""Forgetting of causes and effects."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

from sqlalchemy import Table, and_, delete, or_, select, update

from mneme_server.engine.corpus.forgetting import (
    AGENT,
    USER,
    ForgetSelection,
    Items,
    merged,
    named_of,
    things,
)
from mneme_server.engine.corpus.tenant_store import CorpusUnit
from mneme_server.engine.store.forgetting import Forgets, Rows, SqlForgetter, array
from mneme_server.engine.store.portable import json_array, json_items, listed
from mneme_server.features.causal.model import node
from mneme_server.features.causal.store.edges import SqlEdges
from mneme_server.features.causal.store.tables import (
    causal_assignments,
    causal_edges,
    causal_experiments,
    causal_observations,
)

EDGE, EXPERIMENT = "causal_edge", "experiment"
ASSIGNMENT, OBSERVATION = "assignment", "observation"


class CausalForgetter(SqlForgetter):
    """Forgets edges, experiments, and what was assigned to subjects and observed of them.

    An edge and an experiment go with what they are about: their cause or their effect. Evidence
    that goes is taken off its list, and an edge that goes off the experiment that gave it. An
    assignment and an observation, whose ids are JSON lists of the experiment's and their own, go
    with their subject: a user, an agent, or anything that is forgotten.
    """

    rows = (Rows(EXPERIMENT, causal_experiments.c.id, total="causal_experiments"),)

    @property
    def kinds(self) -> frozenset[str]:
        """See `Forgetter`. What is of a subject is not named itself."""
        return frozenset({EDGE, EXPERIMENT})

    def named(self, selection: ForgetSelection) -> Items:
        """See `Forgetter`."""
        people = {selection.user_id, selection.agent_id} - {""}
        ends = {
            node(kind, name)
            for kind, name in ((USER, selection.user_id), (AGENT, selection.agent_id))
            if name
        }
        found = [super().named(selection), self._about(people), self._at(ends)]
        if wanted := selection.items.get(EDGE):
            of_these = causal_edges.c.id.in_(listed(array(wanted)))
            found.append({EDGE: self.select(causal_edges.c.id, of_these)})
        return merged(found)

    def derived(self, found: Items) -> Items:
        """See `Forgetter`."""
        gone = things(found)
        ends = {node(kind, one) for kind, ids in gone.items() for one in ids}
        subjects = {one for ids in gone.values() for one in ids}
        follow = [self._about(subjects), self._at(ends)]
        if experiments := gone.get(EXPERIMENT):
            for kind, table, key in _OF_SUBJECTS:
                of_these = table.c.experiment_id.in_(listed(array(experiments)))
                follow.append({kind: self._pairs(table, key, of_these)})
        return merged(follow)

    def erase(self, found: Items, unit: CorpusUnit) -> None:
        """See `Forgetter`."""
        SqlEdges(self._connection, self._tenant_id).remove(sorted(found.get(EDGE, ())))
        self._unlink({one for ids in named_of(found).values() for one in ids})
        for (kind, table, key), counter in zip(_OF_SUBJECTS, ("assigned", "observed"), strict=True):
            self._erase_pairs(table, key, found.get(kind, set()), counter)
        if edges := found.get(EDGE):
            self._connection.execute(
                update(causal_experiments)
                .where(
                    causal_experiments.c.tenant_id == self._tenant_id,
                    causal_experiments.c.edge_id.in_(listed(array(edges))),
                )
                .values(edge_id="")
            )
        super().erase(found, unit)

    def names(self, what: str) -> Iterator[str]:
        """See `Forgetter`."""
        yield from super().names(what)
        if what in (USER, AGENT):
            for _, table, _ in _OF_SUBJECTS:
                yield from self.distinct(table.c.subject)
        for column in (column for both in _ENDS.values() for column in both):
            for end in self.distinct(column):
                if end.startswith(node(what, "")):
                    yield end.removeprefix(node(what, ""))
        if what == EDGE:
            yield from self.distinct(causal_edges.c.id)

    def _about(self, subjects: set[str]) -> Items:
        if not subjects:
            return {}
        return {
            kind: self._pairs(table, key, table.c.subject.in_(listed(array(subjects))))
            for kind, table, key in _OF_SUBJECTS
        }

    def _at(self, ends: set[str]) -> Items:
        """Return the edges and experiments that begin or end there."""
        if not ends:
            return {}
        return {
            kind: self.select(
                both[0].table.c.id, or_(*(column.in_(listed(array(ends))) for column in both))
            )
            for kind, both in _ENDS.items()
        }

    def _pairs(self, table: Table, key: str, condition: Any) -> set[str]:
        query = select(table.c.experiment_id, table.c[key]).where(
            table.c.tenant_id == self._tenant_id, condition
        )
        return {json.dumps([*row]) for row in self._connection.execute(query)}

    def _erase_pairs(self, table: Table, key: str, pairs: set[str], counter: str) -> None:
        gone: Counter[str] = Counter()
        for pair in sorted(pairs):
            experiment, one = json.loads(pair)
            which = and_(table.c.experiment_id == experiment, table.c[key] == one)
            gone[experiment] += self._connection.execute(
                delete(table).where(table.c.tenant_id == self._tenant_id, which)
            ).rowcount
        column = causal_experiments.c[counter]
        for experiment, count in gone.items():
            self._connection.execute(
                update(causal_experiments)
                .where(
                    causal_experiments.c.tenant_id == self._tenant_id,
                    causal_experiments.c.id == experiment,
                )
                .values({counter: column - count})
            )

    def _unlink(self, gone: set[str]) -> None:
        """Take what is gone off the edges' evidence."""
        for name in ("evidence_ids", "experiment_ids"):
            column = causal_edges.c[name]
            each = json_items(column)
            named = select(each.c.value).where(each.c.value.in_(listed(array(gone))))
            left = select(json_array(each.c.value)).where(each.c.value.not_in(listed(array(gone))))
            self._connection.execute(
                update(causal_edges)
                .where(causal_edges.c.tenant_id == self._tenant_id, column != "[]", named.exists())
                .values({name: left.scalar_subquery()})
            )


_ENDS = {
    EDGE: (causal_edges.c.cause, causal_edges.c.effect),
    EXPERIMENT: (causal_experiments.c.cause, causal_experiments.c.effect),
}
_OF_SUBJECTS = (
    (ASSIGNMENT, causal_assignments, "subject"),
    (OBSERVATION, causal_observations, "id"),
)

FORGETS = Forgets(
    CausalForgetter,
    {
        causal_edges: "deleted with what they begin or end at; lose evidence that goes",
        causal_experiments: "deleted with what they are about; others stay, with figures that name"
        " nobody",
        causal_assignments: "deleted with their subject",
        causal_observations: "deleted with their subject",
    },
)
