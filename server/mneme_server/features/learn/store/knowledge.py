"""The knowledge log in a tenant's database."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, delete, func, select

from mneme_server.common.canonical import JsonObject
from mneme_server.common.stored import reads
from mneme_server.engine.store.memories import Details
from mneme_server.engine.store.portable import json_items
from mneme_server.engine.store.reading import read_rows
from mneme_server.engine.store.records import row_reader, row_writer
from mneme_server.engine.store.rows import equal_where_given, latest_after, read_with
from mneme_server.features.learn.model import (
    KnowledgeEntry,
    KnowledgeFilter,
    KnowledgeType,
    SuccessRate,
)
from mneme_server.features.learn.store.tables import knowledge


class SqlKnowledge:
    """The tenant's knowledge log."""

    def __init__(self, connection: Connection, tenant_id: str) -> None:
        self._connection = connection
        self._tenant_id = tenant_id

    def get_many(self, entry_ids: Collection[str]) -> dict[str, KnowledgeEntry]:
        """Return those that exist, by id."""
        found = read_with(
            self._connection, knowledge, _entry, self._tenant_id, entry_ids, kind="knowledge entry"
        )
        return {entry.id: entry for entry in found}

    def add(self, entry: KnowledgeEntry) -> None:
        """Insert an entry."""
        self._connection.execute(knowledge.insert(), _entry_row(entry, self._tenant_id))

    def remove(self, entry_id: str) -> None:
        """Remove an entry."""
        self._connection.execute(
            delete(knowledge).where(
                knowledge.c.tenant_id == self._tenant_id, knowledge.c.id == entry_id
            )
        )

    def page(
        self, filter_: KnowledgeFilter, after: tuple[int, str] | None, limit: int
    ) -> Sequence[KnowledgeEntry]:
        """Return entries, newest first, that come after the key (timestamp_us, id)."""
        query = self._filtered(select(knowledge), filter_)
        query = latest_after(query, knowledge.c.timestamp, knowledge.c.id, after, limit)
        return read_rows(self._connection, query, _entry, kind="knowledge entry")

    def count(self, filter_: KnowledgeFilter) -> int:
        """Return how many match."""
        query = self._filtered(select(func.count()).select_from(knowledge), filter_)
        return int(self._connection.execute(query).scalar_one())

    def _filtered(self, query: Select[Any], filter_: KnowledgeFilter) -> Select[Any]:
        columns = knowledge.c
        conditions: list[ColumnElement[bool]] = [columns.tenant_id == self._tenant_id]
        conditions += equal_where_given(columns, filter_, ("project",))
        if filter_.type is not None:
            conditions.append(columns.type == int(filter_.type))
        for tag in filter_.tags:
            each = json_items(columns.tags)
            conditions.append(select(each.c.value).where(each.c.value == tag).exists())
        return query.where(*conditions)


_entry = reads("knowledge entry")(
    row_reader(knowledge, KnowledgeEntry, parts={"success_rate": SuccessRate.parse})
)
_entry_row = row_writer(
    KnowledgeEntry,
    knowledge,
    made={"success_rate": lambda entry: str(entry.success_rate or "")},
    sets=["tags"],
)


def _entry_details(project: str, type_: int, success_rate: str) -> JsonObject:
    """Return what is shown of a recalled knowledge entry beside its text."""
    rate = SuccessRate.parse(success_rate)
    return {
        "project": project,
        "type": KnowledgeType(type_).name,
        "success_rate": {"successes": rate.successes, "tries": rate.tries} if rate else None,
    }


KNOWLEDGE_DETAILS = Details(
    key=knowledge.c.id,
    columns=(knowledge.c.project, knowledge.c.type, knowledge.c.success_rate),
    decode=_entry_details,
    followed=True,
)
