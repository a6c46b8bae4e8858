"""Reflections, their sayings and the counters in a tenant's database."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from sqlalchemy import ColumnElement, Connection, Select, func, select

from mneme_server.common.canonical import JsonObject
from mneme_server.common.stored import reads
from mneme_server.engine.corpus.ports import Matrix
from mneme_server.engine.store.memories import Details
from mneme_server.engine.store.portable import insert
from mneme_server.engine.store.reading import read_rows
from mneme_server.engine.store.records import row_reader, row_writer
from mneme_server.engine.store.rows import (
    delete_among,
    equal_where_given,
    latest_after,
    read_with,
)
from mneme_server.engine.store.schema import sessions_of_user
from mneme_server.engine.store.totals import add_to_total, total
from mneme_server.engine.store.vectors import STORED_VECTOR
from mneme_server.features.events.model import Outcome
from mneme_server.features.learn.model import (
    Reflection,
    ReflectionFilter,
    ReflectionLimits,
    Saying,
)
from mneme_server.features.learn.store.tables import counters, reflection_tags, reflections, sayings

_NO_VECTOR = b""


class SqlReflections:
    """The tenant's reflections."""

    def __init__(self, connection: Connection, tenant_id: str) -> None:
        self._connection = connection
        self._tenant_id = tenant_id

    def get_many(self, reflection_ids: Collection[str]) -> dict[str, Reflection]:
        """Return those that exist, by id."""
        found = read_with(
            self._connection,
            reflections,
            _reflection,
            self._tenant_id,
            reflection_ids,
            kind="reflection",
        )
        return {reflection.id: reflection for reflection in found}

    def add(self, reflection: Reflection, said: Matrix | None) -> None:
        """Insert a reflection with the vectors (n, d) of what worked, then of what did not; None
        while they have none."""
        mine = {"tenant_id": self._tenant_id}
        self._connection.execute(reflections.insert(), _reflection_row(reflection, self._tenant_id))
        add_to_total(self._connection, self._tenant_id, "reflections", 1)
        key = mine | {"reflection_id": reflection.id}
        if reflection.tags:
            self._connection.execute(
                reflection_tags.insert(), [key | {"tag": tag} for tag in reflection.tags]
            )
        rows = [
            key | {"worked": worked, "place": place, "text": text}
            for worked, texts in (
                (True, reflection.what_worked),
                (False, reflection.what_did_not_work),
            )
            for place, text in enumerate(texts)
        ]
        if said is None:
            stored = [_NO_VECTOR] * len(rows)
        else:
            stored = [row.tobytes() for row in np.ascontiguousarray(said, dtype=STORED_VECTOR)]
        for row, vector in zip(rows, stored, strict=True):
            row["vector"] = vector
        if rows:
            self._connection.execute(sayings.insert(), rows)

    def remove(self, reflection_ids: Collection[str]) -> None:
        """Remove reflections with their sayings."""
        gone = delete_among(self._connection, self._tenant_id, reflections.c.id, reflection_ids)
        add_to_total(self._connection, self._tenant_id, "reflections", -gone)

    def attempts(self, session_id: str, task_key: str) -> int:
        """Return the highest attempt number of a task in a session; 0 without any."""
        query = self._filtered(select(func.max(reflections.c.attempt_number))).where(
            reflections.c.session_id == session_id, reflections.c.task_key == task_key
        )
        return int(self._connection.execute(query).scalar_one() or 0)

    def beyond(self, newest: Reflection, limits: ReflectionLimits) -> Sequence[str]:
        """Return the oldest reflections that `newest`'s session and project have too many."""
        columns = reflections.c
        spans = [(columns.session_id == newest.session_id, limits.per_session)]
        if newest.project:
            spans.append((columns.project == newest.project, limits.per_project))
        surplus: dict[str, None] = {}
        for condition, kept in spans:
            query = (
                self._filtered(select(columns.id))
                .where(condition)
                .order_by(columns.created_at.desc(), columns.id.desc())
                .offset(kept)
            )
            surplus |= dict.fromkeys(self._connection.execute(query).scalars())
        return list(surplus)

    def page(
        self, filter_: ReflectionFilter, after: tuple[int, str] | None, limit: int
    ) -> Sequence[Reflection]:
        """Return reflections, newest first, that come after the key (created_us, id)."""
        query = self._filtered(select(reflections), filter_)
        query = latest_after(query, reflections.c.created_at, reflections.c.id, after, limit)
        return read_rows(self._connection, query, _reflection, kind="reflection")

    def count(self, filter_: ReflectionFilter) -> int:
        """Return how many match."""
        if filter_ == ReflectionFilter():
            return total(self._connection, self._tenant_id, "reflections")
        query = self._filtered(select(func.count()).select_from(reflections), filter_)
        return int(self._connection.execute(query).scalar_one())

    def outcomes(self, filter_: ReflectionFilter) -> Mapping[Outcome, int]:
        """Return how many of those that match ended how."""
        query = self._filtered(select(reflections.c.outcome, func.count()), filter_)
        rows = self._connection.execute(query.group_by(reflections.c.outcome))
        return {Outcome(outcome): count for outcome, count in rows}

    def sayings(
        self, filter_: ReflectionFilter, *, worked: bool, outcomes: Collection[Outcome]
    ) -> tuple[Sequence[Saying], Matrix]:
        """Return what worked, or did not, in reflections with these outcomes, and the vectors
        (n, d): zeros for those that have none yet."""
        query = (
            self._filtered(
                select(
                    sayings.c.text,
                    reflections.c.id,
                    reflections.c.created_at,
                    sayings.c.vector,
                ).join(
                    sayings,
                    (sayings.c.tenant_id == reflections.c.tenant_id)
                    & (sayings.c.reflection_id == reflections.c.id),
                ),
                filter_,
            )
            .where(
                sayings.c.worked == worked,
                reflections.c.outcome.in_([int(outcome) for outcome in outcomes]),
            )
            .order_by(reflections.c.created_at, reflections.c.id, sayings.c.place)
        )
        rows = self._connection.execute(query).all()
        said = [Saying(row.text, row.id, row.created_at) for row in rows]
        size = max((len(row.vector) for row in rows), default=0)
        joined = b"".join(row.vector or bytes(size) for row in rows)
        dimensions = size // STORED_VECTOR.itemsize
        return said, np.frombuffer(joined, STORED_VECTOR).reshape(len(said), dimensions)

    def _filtered(self, query: Select[Any], filter_: ReflectionFilter | None = None) -> Select[Any]:
        columns = reflections.c
        conditions: list[ColumnElement[bool]] = [columns.tenant_id == self._tenant_id]
        if filter_ is None:
            return query.where(*conditions)
        conditions += equal_where_given(columns, filter_, ("session_id", "project", "agent_id"))
        if filter_.user_id:
            served = sessions_of_user(self._tenant_id, filter_.user_id)
            conditions.append(columns.session_id.in_(served))
        if filter_.outcomes:
            conditions.append(columns.outcome.in_([int(one) for one in filter_.outcomes]))
        for tag in filter_.tags:
            tagged = select(reflection_tags.c.reflection_id).where(
                reflection_tags.c.tenant_id == self._tenant_id, reflection_tags.c.tag == tag
            )
            conditions.append(columns.id.in_(tagged))
        return query.where(*conditions)


class SqlCounters:
    """Counts that outlive the rows they were taken from."""

    def __init__(self, connection: Connection, tenant_id: str) -> None:
        self._connection = connection
        self._tenant_id = tenant_id

    def add(self, counts: Mapping[str, int]) -> None:
        """Add to the counters."""
        rows = [
            {"tenant_id": self._tenant_id, "name": name, "value": value}
            for name, value in counts.items()
            if value
        ]
        if not rows:
            return
        statement = insert(counters)
        self._connection.execute(
            statement.on_conflict_do_update(
                index_elements=["tenant_id", "name"],
                set_={"value": counters.c.value + statement.excluded.value},
            ),
            rows,
        )

    def all(self) -> dict[str, int]:
        """Return every counter."""
        query = select(counters.c.name, counters.c.value).where(
            counters.c.tenant_id == self._tenant_id
        )
        return {row.name: row.value for row in self._connection.execute(query)}


_reflection = reads("reflection")(row_reader(reflections, Reflection))
_reflection_row = row_writer(Reflection, reflections, sets=["tags"])


def _reflection_details(outcome: int, attempt_number: int, next_strategy: str) -> JsonObject:
    """Return what is shown of a recalled reflection beside its text."""
    return {
        "outcome": Outcome(outcome).name,
        "attempt_number": attempt_number,
        "next_strategy": next_strategy,
    }


REFLECTION_DETAILS = Details(
    key=reflections.c.id,
    columns=(reflections.c.outcome, reflections.c.attempt_number, reflections.c.next_strategy),
    decode=_reflection_details,
    followed=True,
)
