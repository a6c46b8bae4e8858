"""The knowledge log in a tenant's database."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from sqlalchemy import Connection, Row

from mneme_server.common.canonical import JsonObject
from mneme_server.common.stored import reads
from mneme_server.engine.store.memories import Details
from mneme_server.engine.store.rows import decode_tags, encode_tags, read_with
from mneme_server.features.learn.model import KnowledgeEntry, KnowledgeType, SuccessRate
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
        self._connection.execute(
            knowledge.insert(),
            {
                "tenant_id": self._tenant_id,
                "id": entry.id,
                "project": entry.project,
                "agent_id": entry.agent_id,
                "type": int(entry.type),
                "context": entry.context,
                "command": entry.command,
                "lesson": entry.lesson,
                "success_rate": str(entry.success_rate or ""),
                "tags": encode_tags(entry.tags),
                "timestamp": entry.timestamp_us,
            },
        )


@reads("knowledge entry")
def _entry(row: Row[Any]) -> KnowledgeEntry:
    return KnowledgeEntry(
        id=row.id,
        project=row.project,
        agent_id=row.agent_id,
        type=KnowledgeType(row.type),
        context=row.context,
        command=row.command,
        lesson=row.lesson,
        success_rate=SuccessRate.parse(row.success_rate),
        tags=decode_tags(row.tags),
        timestamp_us=row.timestamp,
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
