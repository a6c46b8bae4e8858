"""Forgetting of rows in capabilities' tables: what most of them need, said once."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from sqlalchemy import (
    BindParameter,
    Column,
    ColumnElement,
    Connection,
    Table,
    bindparam,
    select,
    update,
)

from mneme_server.engine.corpus.document import MemoryKind
from mneme_server.engine.corpus.forgetting import (
    AGENT,
    PROJECT,
    SESSION,
    TAG,
    USER,
    ForgetFilter,
    ForgetSelection,
    Forgetter,
    Items,
    Places,
    merged,
    named_of,
)
from mneme_server.engine.corpus.tenant_store import CorpusUnit
from mneme_server.engine.store.portable import json_items, listed
from mneme_server.engine.store.rows import delete_among
from mneme_server.engine.store.schema import (
    documents,
    embedding_queue,
    feed,
    followers,
    settings,
    totals,
    vectors,
)
from mneme_server.engine.store.totals import add_to_total


@dataclass(frozen=True, slots=True)
class Forgets:
    """What a capability declares of how it forgets.

    Args:
        make: makes the forgetter of a transaction, from the connection and the tenant's id.
        tables: its tables, each with what becomes of its rows. Every table of a tenant's database
            is in one capability's.
    """

    make: Callable[[Connection, str], Forgetter]
    tables: Mapping[Table, str]


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """A kind of things of which each is a row.

    Args:
        kind: what they are called.
        id: the column with their ids.
        user: the column that names the user they are of, if one does.
        agent: the same of the agent.
        session: the same of the session.
        project: the same of the project.
        tag: the column with their labels, of another table.
        document: the kind of memory that they are, if they can be recalled.
        total: what they are counted under; "" where nobody counts them.
    """

    kind: str
    id: Column[str]
    user: Column[str] | None = None
    agent: Column[str] | None = None
    session: Column[str] | None = None
    project: Column[str] | None = None
    tag: Column[str] | None = None
    document: MemoryKind | None = None
    total: str = ""

    @property
    def columns(self) -> Mapping[str, Column[str] | None]:
        """The columns by what they name."""
        return {
            USER: self.user,
            AGENT: self.agent,
            SESSION: self.session,
            PROJECT: self.project,
            TAG: self.tag,
            self.kind: self.id,
        }


class SqlForgetter:
    """Implements `Forgetter` for kinds of things that are rows, which are deleted.

    A thing is named by its user, agent or id. What is of a session follows from the session.
    """

    rows: ClassVar[Sequence[Rows]] = ()
    renumbered: frozenset[str] = frozenset()

    def __init__(self, connection: Connection, tenant_id: str) -> None:
        self._connection = connection
        self._tenant_id = tenant_id
        self.places: Places = {}

    @property
    def kinds(self) -> frozenset[str]:
        """See `Forgetter`."""
        return frozenset(rows.kind for rows in self.rows)

    def named(self, selection: ForgetSelection) -> Items:
        """See `Forgetter`."""
        found: list[Items] = []
        for rows in self.rows:
            for column, value in ((rows.user, selection.user_id), (rows.agent, selection.agent_id)):
                if column is not None and value:
                    found.append({rows.kind: self.ids_where(rows, column, [value])})
            wanted = selection.items.get(rows.kind)
            if wanted:
                found.append({rows.kind: self.ids_where(rows, rows.id, wanted)})
        return merged(found)

    def derived(self, found: Items) -> Items:
        """See `Forgetter`."""
        sessions = found.get(SESSION, set())
        return merged(
            {rows.kind: self.ids_where(rows, rows.session, sessions)}
            for rows in self.rows
            if rows.session is not None and sessions
        )

    def recallable(self, found: Items) -> Items:
        """See `Forgetter`."""
        return merged(
            {rows.document.name: found.get(rows.kind, set())}
            for rows in self.rows
            if rows.document is not None
        )

    def erase(self, found: Items, unit: CorpusUnit) -> None:
        """See `Forgetter`."""
        for rows in self.rows:
            ids = found.get(rows.kind)
            if not ids:
                continue
            gone = self.delete(rows.id, ids)
            if rows.total:
                self.count(rows.total, -gone)
            if rows.document is not None:
                unit.documents.remove(rows.document, sorted(ids), named=False)

    def names(self, what: str) -> Iterator[str]:
        """See `Forgetter`."""
        for rows in self.rows:
            column = rows.columns.get(what)
            if column is not None:
                yield from self.distinct(column)

    def ids_where(
        self, rows: Rows, column: ColumnElement[str], values: Collection[str]
    ) -> set[str]:
        """Return the ids of the rows whose column has one of the values."""
        return self.select(rows.id, column.in_(listed(array(values))))

    def select(self, column: Column[str], *conditions: ColumnElement[bool]) -> set[str]:
        """Return the values of a column in the tenant's rows that meet conditions."""
        query = select(column).where(column.table.c.tenant_id == self._tenant_id, *conditions)
        return set(self._connection.execute(query).scalars())

    def count(self, name: str, rows: int) -> None:
        """Note that there are so many rows more, or fewer, of what is counted under a name."""
        add_to_total(self._connection, self._tenant_id, name, rows)

    def distinct(self, column: Column[str]) -> Iterator[str]:
        """Yield the different values of a column."""
        query = select(column).where(column.table.c.tenant_id == self._tenant_id).distinct()
        yield from self._connection.execute(query).scalars().all()

    def delete(self, column: Column[str], values: Collection[str]) -> int:
        """Delete the tenant's rows whose column has one of the values; return how many."""
        return delete_among(self._connection, self._tenant_id, column, sorted(values))


def array(values: Iterable[str]) -> BindParameter[Any]:
    """Return values as a parameter for `listed`."""
    return bindparam(None, json.dumps(sorted(values)))


@dataclass(slots=True)
class CorpusForgetter:
    """Implements `Forgetter` for what all capabilities stand on: finds by the filter what can be
    recalled, and has the feed name nothing that is forgotten.

    Documents, vectors and the queue go with what they are made of.
    """

    connection: Connection
    tenant_id: str
    kinds: frozenset[str] = frozenset()
    renumbered: frozenset[str] = frozenset()
    places: Places = field(default_factory=dict)

    def named(self, selection: ForgetSelection) -> Items:
        """Return what the filter lets through."""
        if selection.filter is None:
            return {}
        # Sessions are found by what they are, not by what their summaries say.
        query = select(documents.c.kind, documents.c.source_id).where(
            documents.c.tenant_id == self.tenant_id,
            documents.c.kind != SESSION,
            *_passing(selection.filter),
        )
        found: Items = {}
        for kind, source_id in self.connection.execute(query):
            found.setdefault(kind, set()).add(source_id)
        return found

    def derived(self, found: Items) -> Items:
        """Return nothing: documents go with what they are made of."""
        return {}

    def recallable(self, found: Items) -> Items:
        """Return nothing: what documents are made of says so itself."""
        return {}

    def erase(self, found: Items, unit: CorpusUnit) -> None:
        """Have the feed name none of these any more. Numbers tell followers all that they need."""
        rows = self.connection.execute(
            select(feed.c.number, feed.c.changes).where(
                feed.c.tenant_id == self.tenant_id, feed.c.changes.contains('_ids"')
            )
        ).all()
        for row in rows:
            changes = json.loads(row.changes)
            if _without(changes, named_of(found)):
                text = json.dumps(
                    changes, ensure_ascii=False, separators=(",", ":"), sort_keys=True
                )
                self.connection.execute(
                    update(feed)
                    .where(feed.c.tenant_id == self.tenant_id, feed.c.number == row.number)
                    .values(changes=text)
                )

    def names(self, what: str) -> Iterator[str]:
        """Yield the users, agents, sessions, projects and tags of documents."""
        columns: dict[str, Column[str]] = {
            USER: documents.c.user_id,
            AGENT: documents.c.agent_id,
            SESSION: documents.c.session_id,
            PROJECT: documents.c.project,
        }
        column = documents.c.tags if what == TAG else columns.get(what)
        if column is None:
            return
        query = select(column).where(documents.c.tenant_id == self.tenant_id).distinct()
        for value in self.connection.execute(query).scalars().all():
            if what == TAG:
                yield from json.loads(value)
            else:
                yield value


CORPUS_FORGETS = Forgets(
    CorpusForgetter,
    {
        documents: "deleted with what they are made of",
        vectors: "deleted with their documents",
        embedding_queue: "deleted with their documents",
        feed: "names numbers of what is forgotten, and no ids",
        followers: "holds no content",
        settings: "holds no content",
        totals: "holds no content",
    },
)
"""How the tables are forgotten that all capabilities stand on."""


def _passing(filter_: ForgetFilter) -> list[ColumnElement[bool]]:
    columns = documents.c
    conditions: list[ColumnElement[bool]] = [
        columns[name] == value
        for name in ("user_id", "agent_id", "session_id", "project")
        if (value := getattr(filter_, name))
    ]
    if filter_.kinds:
        conditions.append(columns.kind.in_(sorted(filter_.kinds)))
    if filter_.start_us is not None:
        conditions.append(columns.timestamp >= filter_.start_us)
    if filter_.end_us is not None:
        conditions.append(columns.timestamp < filter_.end_us)
    for tag in sorted(filter_.tags):
        each = json_items(columns.tags)
        conditions.append(select(each.c.value).where(each.c.value == tag).exists())
    return conditions


def _without(changes: dict[str, Any], found: Items) -> bool:
    """Take ids that were found out of a row of the feed; tell whether it named any."""
    changed = False
    for kind, said in changes.get("kinds", {}).items():
        gone = found.get(kind)
        for name in ("saved_ids", "removed_ids"):
            if gone and not gone.isdisjoint(said.get(name, ())):
                said[name] = [one for one in said[name] if one not in gone]
                changed = True
    return changed
