"""Memories in a tenant's database, and what recall shows of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from typing import Any, TypeAlias

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ColumnElement,
    Connection,
    Executable,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    Row,
    Select,
    Subquery,
    Table,
    Text,
    bindparam,
    false,
    func,
    select,
    update,
)

from mneme_server.common.canonical import Json, JsonObject
from mneme_server.common.clock import MICROSECONDS
from mneme_server.common.stored import reads
from mneme_server.engine.store.guard import Prepared
from mneme_server.engine.store.memories import Details
from mneme_server.engine.store.portable import array_of, joined, listed, unindexed
from mneme_server.engine.store.reading import decoded, read_rows
from mneme_server.engine.store.records import row_reader, row_writer
from mneme_server.engine.store.rows import (
    chunks,
    decode_tags,
    delete_among,
    equal_where_given,
    insert_rows,
    latest_after,
    read_with,
    rows_among,
    upsert,
)
from mneme_server.engine.store.schema import (
    documents,
    enum_column,
    int64_column,
    json_column,
    metadata,
    rows_are,
    tenant_key,
    text_column,
    time_column,
    vectors,
)
from mneme_server.engine.store.totals import add_to_total, known, total
from mneme_server.features.memory.model import (
    MEMORY,
    Importance,
    JoinedTexts,
    Memory,
    MemoryFilter,
    MemoryPart,
    OfUser,
)
from mneme_server.features.memory.values import ValueRange, leaves

memories = Table(
    "memories",
    metadata,
    tenant_key(),
    Column("id", Text, nullable=False, primary_key=True),
    text_column("text"),
    text_column("user_id"),
    text_column("agent_id"),
    text_column("project"),
    json_column("tags"),
    json_column("metadata"),
    enum_column("importance", Importance),
    # What memories share that say the same; see `features.memory.model.Memory.digest`.
    Column("digest", LargeBinary, nullable=False),
    time_column("since"),
    text_column("superseded_by"),
    Column("until", BigInteger),
    time_column("created_at"),
    time_column("updated_at"),
    Column("pinned", Boolean, nullable=False, server_default=false()),
    Column("confirmed_count", Integer, nullable=False, server_default="0"),
    Column("last_said", BigInteger, nullable=False, server_default="0", info={"time": True}),
    # What the user's profile is in the order of; see `features.memory.model.Memory.standing`.
    Column("standing", Integer, nullable=False, server_default="0"),
    Index("memories_by_since", "tenant_id", "since", "id"),
    Index("memories_by_user", "tenant_id", "user_id", "since", "id"),
    Index("memories_by_digest", "tenant_id", "digest"),
    Index("memories_by_successor", "tenant_id", "superseded_by"),
    # Of one user what holds, in the order of the profile, which is read from its end; all that is
    # counted and filtered by is in the index, too.
    Index(
        "memories_by_standing",
        "tenant_id", "user_id", "superseded_by", "standing", "last_said", "digest", "since",
        "agent_id", "project",
    ),
    info=rows_are("memory", "id"),
)  # fmt: skip

memory_tags = Table(
    "memory_tags",
    metadata,
    tenant_key(),
    Column("tag", Text, nullable=False, primary_key=True),
    Column("memory_id", Text, nullable=False, primary_key=True),
    ForeignKeyConstraint(
        ["tenant_id", "memory_id"], ["memories.tenant_id", "memories.id"], ondelete="CASCADE"
    ),
    Index("memory_tags_by_memory", "tenant_id", "memory_id"),
    sqlite_with_rowid=False,
)

# On which days, of those since 1970 in UTC, a memory was said again.
memory_confirmations = Table(
    "memory_confirmations",
    metadata,
    tenant_key(),
    Column("memory_id", Text, nullable=False, primary_key=True),
    Column("day", Integer, nullable=False, primary_key=True),
    ForeignKeyConstraint(
        ["tenant_id", "memory_id"], ["memories.tenant_id", "memories.id"], ondelete="CASCADE"
    ),
    sqlite_with_rowid=False,
)

# The values in the metadata, as `features.memory.values` spells them; with the number of the
# memory's document, by which a search knows it.
memory_values = Table(
    "memory_values",
    metadata,
    tenant_key(),
    Column("key", Text, nullable=False, primary_key=True),
    Column("value", Text, nullable=False, primary_key=True),
    Column("memory_id", Text, nullable=False, primary_key=True),
    int64_column("doc_id"),
    ForeignKeyConstraint(
        ["tenant_id", "memory_id"], ["memories.tenant_id", "memories.id"], ondelete="CASCADE"
    ),
    Index("memory_values_by_memory", "tenant_id", "memory_id"),
    sqlite_with_rowid=False,
)

_TOTAL = "memories"
_PartKey: TypeAlias = tuple[MemoryFilter, MemoryPart | None]


class SqlMemories:
    """The tenant's memories."""

    def __init__(self, connection: Connection, tenant_id: str) -> None:
        self._connection = connection
        self._tenant_id = tenant_id
        self._parts: dict[_PartKey, Executable] = {}

    def get_many(self, memory_ids: Collection[str]) -> dict[str, Memory]:
        """Return those that exist, by id."""
        if not memory_ids:
            return {}
        found = read_with(
            self._connection, memories, _memory, self._tenant_id, memory_ids, kind="memory"
        )
        return {memory.id: memory for memory in self._linked(found)}

    def holding(self, digests: Collection[bytes], *, but: str = "") -> dict[bytes, Memory]:
        """Return those that hold, by digest; of several with one digest, the first stored.

        `but` is the id of a memory to leave out.
        """
        found: dict[bytes, Memory] = {}
        for some in chunks(set(digests)):
            query = (
                select(memories)
                .where(
                    memories.c.tenant_id == self._tenant_id,
                    memories.c.digest.in_(some),
                    memories.c.id != but,
                    unindexed(memories.c.superseded_by) == "",  # As of nearly all.
                )
                .order_by(memories.c.created_at.desc(), memories.c.id.desc())
            )
            rows = read_rows(self._connection, query, _memory, kind="memory")
            found |= {memory.digest: memory for memory in self._linked(rows)}
        return found

    def superseded_by(self, memory_ids: Collection[str]) -> dict[str, str]:
        """Return what each of those that one of these superseded is superseded by, by id."""
        return self._pairs(memories.c.superseded_by, set(memory_ids) - {""})

    def successors(self, memory_ids: Collection[str]) -> dict[str, str]:
        """Return by what each of these that exist is superseded, by id; "" for those that hold."""
        return self._pairs(memories.c.id, memory_ids)

    def _pairs(self, key: Column[str], values: Collection[str]) -> dict[str, str]:
        query = select(memories.c.id, memories.c.superseded_by)
        rows = rows_among(self._connection, self._tenant_id, query, key, values)
        return {row.id: row.superseded_by for row in rows}

    def save(self, saved: Sequence[Memory], doc_ids: Mapping[str, int]) -> None:
        """Insert or replace these memories, but for what they supersede: that is said of those.

        `doc_ids` are the numbers of their documents, by the memories' ids.
        """
        ids = {memory.id for memory in saved}
        before = known(self._connection, self._tenant_id, memories.c.id, ids)
        self._connection.execute(
            upsert(memories), [_memory_row(memory, self._tenant_id) for memory in saved]
        )
        add_to_total(self._connection, self._tenant_id, _TOTAL, len(ids) - before)
        if before:
            self._remove_labels(ids)
        tags = [
            {"tenant_id": self._tenant_id, "tag": tag, "memory_id": memory.id}
            for memory in saved
            for tag in memory.tags
        ]
        values = [
            {
                "tenant_id": self._tenant_id,
                "key": key,
                "value": value,
                "memory_id": memory.id,
                "doc_id": doc_ids[memory.id],
            }
            for memory in saved
            for key, value in set(leaves(json.loads(memory.metadata_json)))
        ]
        if tags:
            insert_rows(self._connection, memory_tags, tags)
        if values:
            insert_rows(self._connection, memory_values, values)

    def mark(self, memory_ids: Collection[str], successor: str, until_us: int | None) -> None:
        """Say by what these are superseded, and until when they held; "" and None: they hold."""
        for some in chunks(memory_ids):
            self._connection.execute(
                update(memories)
                .where(memories.c.tenant_id == self._tenant_id, memories.c.id.in_(some))
                .values(superseded_by=successor, until=until_us)
            )

    def confirmed_on(self, memory_ids: Collection[str]) -> dict[str, set[int]]:
        """Return on which days since 1970 each of these was said again, by id."""
        found: dict[str, set[int]] = {}
        columns = memory_confirmations.c
        query, mine = select(columns.memory_id, columns.day), (self._connection, self._tenant_id)
        for row in rows_among(*mine, query, columns.memory_id, memory_ids):
            found.setdefault(row.memory_id, set()).add(row.day)
        return found

    def confirm(self, days: Mapping[str, Collection[int]]) -> None:
        """Note the days on which memories were said again, by id: new ones, of memories that are
        stored."""
        rows = [
            {"tenant_id": self._tenant_id, "memory_id": memory_id, "day": day}
            for memory_id, of_memory in days.items()
            for day in of_memory
        ]
        if rows:
            insert_rows(self._connection, memory_confirmations, rows)

    def unconfirm(self, memory_ids: Collection[str]) -> None:
        """Forget that memories were said again."""
        column = memory_confirmations.c.memory_id
        delete_among(self._connection, self._tenant_id, column, memory_ids)

    def rank(self, ranked: Collection[Memory]) -> None:
        """Write of stored memories what their place in a profile goes by, and nothing else."""
        for memory in ranked:
            self._connection.execute(
                update(memories)
                .where(memories.c.tenant_id == self._tenant_id, memories.c.id == memory.id)
                .values(
                    pinned=memory.pinned,
                    confirmed_count=memory.confirmed_count,
                    last_said=memory.last_said_us,
                    standing=memory.standing,
                )
            )

    def remove(self, memory_ids: Collection[str]) -> None:
        """Remove these memories."""
        self._remove_labels(memory_ids)
        self.unconfirm(memory_ids)
        removed = delete_among(self._connection, self._tenant_id, memories.c.id, memory_ids)
        add_to_total(self._connection, self._tenant_id, _TOTAL, -removed)

    def page(
        self, filter_: MemoryFilter, after: tuple[int, str] | None, limit: int
    ) -> Sequence[Memory]:
        """Return memories, the latest first, that come after the key (since_us, id)."""
        query = select(memories).where(*self._conditions(filter_))
        query = latest_after(query, memories.c.since, memories.c.id, after, limit)
        return self._linked(read_rows(self._connection, query, _memory, kind="memory"))

    def count(self, filter_: MemoryFilter) -> int:
        """Return how many match."""
        if filter_ == MemoryFilter(include_superseded=True):
            return total(self._connection, self._tenant_id, _TOTAL)
        query = select(func.count()).select_from(memories).where(*self._conditions(filter_))
        return int(self._connection.execute(query).scalar_one())

    def profile(self, whose: OfUser, now: int, limit: int, *, after: int = 0) -> Sequence[Memory]:
        """Return memories of a user's profile, without what they supersede: those that hold and
        began to, by `Memory.standing`, then the last said first, then by what they say; `limit` of
        them, after the first `after`."""
        columns = memories.c
        order = (columns.standing.desc(), columns.last_said.desc(), columns.digest.desc())
        query = select(memories).where(*self._of_user(whose, now)).order_by(*order)
        query = query.limit(limit).offset(after)
        return read_rows(self._connection, query, _memory, kind="memory")

    def count_of(self, whose: OfUser, now: int) -> int:
        """Return how many memories a user's profile could have."""
        query = select(func.count()).select_from(memories).where(*self._of_user(whose, now))
        return int(self._connection.execute(query).scalar_one())

    def _of_user(self, whose: OfUser, now: int) -> list[ColumnElement[bool]]:
        columns = memories.c
        conditions: list[ColumnElement[bool]] = [
            columns.tenant_id == self._tenant_id,
            columns.user_id == whose.user_id,
            columns.superseded_by == "",
            unindexed(columns.since) <= now,  # As of nearly all.
        ]
        for column, name in ((columns.agent_id, whose.agent_id), (columns.project, whose.project)):
            if name:
                conditions.append(unindexed(column).in_(("", name) if whose.shared else (name,)))
        return conditions

    def ids(self, filter_: MemoryFilter) -> Sequence[str]:
        """Return the ids of all that match."""
        query = select(memories.c.id).where(*self._conditions(filter_))
        return self._connection.execute(query).scalars().all()

    def texts(self, filter_: MemoryFilter, what: MemoryPart, after: str, limit: int) -> JoinedTexts:
        """Return what many memories hold, of those that match, by id, after that id.

        It takes a tenth of the time that reading the memories does.
        """

        def made() -> Executable:
            some = self._part(filter_, memories.c[what.value].label("said"))
            # In one value, as NUL is in none of them: making rows of them would take longer than
            # reading them does.
            times, last = func.count().label("times"), func.max(some.c.id).label("last")
            return select(times, joined(some.c.said).label("said"), last).select_from(some)

        row = self._of_part((filter_, what), made, after, limit)
        return JoinedTexts(row.times, row.said, row.last) if row.times else JoinedTexts()

    def stamps(
        self, filter_: MemoryFilter, after: str, limit: int, places: Collection[int]
    ) -> Sequence[tuple[int, str]]:
        """Return since when the memories at these places hold, and their ids.

        They are places in what `texts` returns for the same filter, in the same unit of work. It
        takes as long again as to read the texts, and mostly there are none.
        """

        def made() -> Executable:
            some = self._part(filter_, memories.c.since)
            return select(joined(some.c.since).label("since"), joined(some.c.id).label("ids"))

        row = self._of_part((filter_, None), made, after, limit)
        since, ids = decoded(row.since).split("\0"), decoded(row.ids).split("\0")
        return [(int(since[place]), ids[place]) for place in places]

    def _of_part(
        self, key: _PartKey, made: Callable[[], Executable], after: str, limit: int
    ) -> Row[Any]:
        """Run the query; it is made once for all parts, as that takes as long as to run it."""
        if key not in self._parts:
            self._parts[key] = made()
        return self._connection.execute(self._parts[key], {"after": after, "limit": limit}).one()

    def _part(self, filter_: MemoryFilter, column: ColumnElement[Any]) -> Subquery:
        """Return the column of those that match, and their ids, after `after`, up to `limit`."""
        return (
            select(memories.c.id, column)
            .where(*self._conditions(filter_, by_id=True), memories.c.id > bindparam("after"))
            .order_by(memories.c.id)
            .limit(bindparam("limit"))
            .subquery()
        )

    def frequent_tags(self, limit: int) -> tuple[Sequence[tuple[str, int]], int]:
        """Return the most frequent labels with their counts, and how many different ones there
        are."""
        return self._frequent(memory_tags.c.tag, limit)

    def frequent_keys(self, limit: int) -> tuple[Sequence[tuple[str, int]], int]:
        """Return the most frequent keys of metadata with their counts, and how many different ones
        there are."""
        return self._frequent(memory_values.c.key, limit)

    def _frequent(
        self, name: ColumnElement[str], limit: int
    ) -> tuple[Sequence[tuple[str, int]], int]:
        mine = name.table.c.tenant_id == self._tenant_id
        count = func.count().label("times")
        query = select(name, count).where(mine).group_by(name)
        query = query.order_by(count.desc(), name).limit(limit)
        found = [(str(row[0]), int(row[1])) for row in self._connection.execute(query)]
        if len(found) < limit:
            return found, len(found)
        different = select(func.count(name.distinct())).where(mine)
        return found, int(self._connection.execute(different).scalar_one())

    def vectors_of(self, memory_ids: Collection[str]) -> int:
        """Return how many of these have a vector."""
        count = 0
        for some in chunks(memory_ids):
            theirs = select(documents.c.doc_id).where(
                documents.c.tenant_id == self._tenant_id,
                documents.c.kind == MEMORY.name,
                documents.c.source_id.in_(some),
            )
            query = (
                select(func.count())
                .select_from(vectors)
                .where(vectors.c.tenant_id == self._tenant_id, vectors.c.doc_id.in_(theirs))
            )
            count += int(self._connection.execute(query).scalar_one())
        return count

    def doc_ids(self, span: ValueRange) -> Sequence[int]:
        """Return the numbers of the documents of all whose metadata holds a value in the span."""
        query = self._in_span(select(memory_values.c.doc_id), span)
        return self._connection.execute(query).scalars().all()

    def by_document(self, doc_ids: Collection[int]) -> Mapping[int, Memory]:
        """Return the memories of documents, by their numbers; those that are gone are left out."""
        wanted = {"tenant": self._tenant_id, "ids": json.dumps(list(doc_ids))}
        sources = {row.source_id: row.doc_id for row in _sources().all(self._connection, wanted)}
        return {sources[found.id]: found for found in self.get_many(sources).values()}

    def _linked(self, read: Sequence[Memory]) -> list[Memory]:
        """Return memories as they were read, with what they supersede."""
        if not read:
            return []
        superseded: dict[str, list[str]] = {}
        wanted = {"tenant": self._tenant_id, "ids": array_of(memory.id for memory in read)}
        for row in _superseded().all(self._connection, wanted):
            superseded.setdefault(row.superseded_by, []).append(row.id)
        return [
            replace(memory, supersedes=tuple(sorted(superseded[memory.id])))
            if memory.id in superseded
            else memory
            for memory in read
        ]

    def _remove_labels(self, memory_ids: Collection[str]) -> None:
        for table in (memory_tags, memory_values):
            delete_among(self._connection, self._tenant_id, table.c.memory_id, memory_ids)

    def _conditions(
        self, filter_: MemoryFilter, *, by_id: bool = False
    ) -> list[ColumnElement[bool]]:
        """Return the conditions of a filter; `by_id` for what reads in the order of ids, which
        another index would have to sort again for each part."""
        columns = memories.c
        names = ("user_id", "agent_id", "project", "since", "superseded_by")
        looked_at = {name: unindexed(columns[name]) if by_id else columns[name] for name in names}
        conditions: list[ColumnElement[bool]] = [columns.tenant_id == self._tenant_id]
        conditions += equal_where_given(looked_at, filter_, ("user_id", "agent_id", "project"))
        conditions += [columns.id.in_(self._tagged([tag])) for tag in filter_.tags]
        if filter_.any_tags:
            conditions.append(columns.id.in_(self._tagged(filter_.any_tags)))
        conditions += [
            columns.id.in_(self._in_span(select(memory_values.c.memory_id), span))
            for span in filter_.values
        ]
        if filter_.start_us is not None:
            conditions.append(looked_at["since"] >= filter_.start_us)
        if filter_.end_us is not None:
            conditions.append(looked_at["since"] < filter_.end_us)
        if not filter_.include_superseded:
            conditions.append(looked_at["superseded_by"] == "")
        if filter_.only_pinned:
            conditions.append(columns.pinned)
        return conditions

    def _tagged(self, tags: Collection[str]) -> Select[Any]:
        """Select the ids of the memories that have one of the tags."""
        return select(memory_tags.c.memory_id).where(
            memory_tags.c.tenant_id == self._tenant_id, memory_tags.c.tag.in_(tags)
        )

    def _in_span(self, query: Select[Any], span: ValueRange) -> Select[Any]:
        """Return a query of `memory_values`, of those in the span."""
        columns = memory_values.c
        query = query.where(columns.tenant_id == self._tenant_id, columns.key == span.key)
        if span.is_one:
            return query.where(columns.value == span.low)
        return query.where(
            columns.value >= span.low if span.least else columns.value > span.low,
            columns.value <= span.high if span.most else columns.value < span.high,
        )


@cache
def _superseded() -> Prepared:
    return Prepared(
        select(memories.c.id, memories.c.superseded_by).where(
            memories.c.tenant_id == bindparam("tenant"),
            memories.c.superseded_by.in_(listed(bindparam("ids"))),
        )
    )


@cache
def _sources() -> Prepared:
    return Prepared(
        select(documents.c.doc_id, documents.c.source_id).where(
            unindexed(documents.c.tenant_id) == bindparam("tenant"),
            documents.c.doc_id.in_(listed(bindparam("ids"), numbers=True)),
            unindexed(documents.c.kind) == MEMORY.name,
        )
    )


_memory = reads("memory")(row_reader(memories, Memory))
_memory_row = row_writer(Memory, memories, sets=["tags"], elsewhere=["supersedes"])


def _shown_fields(
    tags: str, metadata: str, importance: int, *times: *tuple[int, int | None, str]
) -> JsonObject:
    since_us, until_us, superseded_by = times
    details: dict[str, Json] = {
        "tags": decode_tags(tags),
        "metadata": json.loads(metadata),
        "importance": Importance(importance).name,
        "since": _day_and_time(since_us),
    }
    if superseded_by:
        details["superseded_by"] = superseded_by
    if until_us is not None:
        details["until"] = _day_and_time(until_us)
    return details


def _day_and_time(us: int) -> str:
    """Return a time as RFC 3339 has it, to the second."""
    return datetime.fromtimestamp(us // MICROSECONDS, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


MEMORY_DETAILS = Details(
    key=memories.c.id,
    columns=(
        memories.c.tags,
        memories.c.metadata,
        memories.c.importance,
        memories.c.since,
        memories.c.until,
        memories.c.superseded_by,
    ),
    decode=_shown_fields,
    followed=True,
)
