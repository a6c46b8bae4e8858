"""Handovers in a tenant's database."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any

from sqlalchemy import Connection, Row, select

from mneme_server.common.stored import reads
from mneme_server.engine.store.reading import read_rows
from mneme_server.engine.store.rows import chunks, read_with, upsert
from mneme_server.engine.store.schema import sessions_of_user
from mneme_server.features.context.model import Collected, Decision, Handover, LockedContext, Todo
from mneme_server.features.context.store.tables import handovers


class SqlHandovers:
    """The tenant's handovers."""

    def __init__(self, connection: Connection, tenant_id: str) -> None:
        self._connection = connection
        self._tenant_id = tenant_id

    def get_many(self, session_ids: Collection[str]) -> dict[str, Handover]:
        """Return those that exist, by session."""
        found = read_with(
            self._connection,
            handovers,
            _handover,
            self._tenant_id,
            session_ids,
            kind="handover",
            key="session_id",
        )
        return {one.session_id: one for one in found}

    def save(self, handover: Handover) -> None:
        """Insert or replace a session's handover."""
        self._connection.execute(upsert(handovers), [_handover_row(handover, self._tenant_id)])

    def last(self, project: str, agent_id: str, user_id: str) -> Handover | None:
        """Return the last one; of any project, agent or user where they are empty."""
        query = select(handovers).where(handovers.c.tenant_id == self._tenant_id)
        if project:
            query = query.where(handovers.c.project == project)
        if agent_id:
            query = query.where(handovers.c.agent_id == agent_id)
        if user_id:
            served = sessions_of_user(self._tenant_id, user_id)
            query = query.where(handovers.c.session_id.in_(served))
        query = query.order_by(handovers.c.created_at.desc(), handovers.c.session_id.desc())
        found = read_rows(
            self._connection, query.limit(1), _handover, kind="handover", key="session_id"
        )
        return found[0] if found else None

    def weights(self, session_ids: Collection[str]) -> dict[str, int]:
        """Return `Handover.weight` of those that exist, by session."""
        found: dict[str, int] = {}
        for some in chunks(session_ids):
            query = select(handovers.c.session_id, handovers.c.weight).where(
                handovers.c.tenant_id == self._tenant_id, handovers.c.session_id.in_(some)
            )
            found |= {row.session_id: row.weight for row in self._connection.execute(query)}
        return found


@reads("handover", "session_id")
def _handover(row: Row[Any]) -> Handover:
    content = json.loads(row.content)
    return Handover(
        session_id=row.session_id,
        project=row.project,
        agent_id=row.agent_id,
        progress=tuple(content["progress"]),
        completed_todos=tuple(content["completed_todos"]),
        open_todos=tuple(Todo(*todo) for todo in content["open_todos"]),
        decisions=tuple(Decision(*decision) for decision in content["decisions"]),
        locked_contexts=tuple(LockedContext(*c) for c in content["locked_contexts"]),
        files=tuple(content["files"]),
        unresolved_errors=tuple(content["unresolved_errors"]),
        collected=tuple(
            Collected(kind, index, tuple(event_ids))
            for kind, index, event_ids in content["collected"]
        ),
        tools=tuple(content["tools"]),
        duration_s=row.duration_seconds,
        summary=row.summary,
        created_us=row.created_at,
    )


def _handover_row(handover: Handover, tenant_id: str) -> dict[str, Any]:
    content = {
        "progress": handover.progress,
        "completed_todos": handover.completed_todos,
        "open_todos": [[todo.content, todo.priority] for todo in handover.open_todos],
        "decisions": [[d.decision, d.rationale] for d in handover.decisions],
        "locked_contexts": [[c.label, c.version] for c in handover.locked_contexts],
        "files": handover.files,
        "unresolved_errors": handover.unresolved_errors,
        "collected": [[entry.kind, entry.index, entry.event_ids] for entry in handover.collected],
        "tools": handover.tools,
    }
    return {
        "tenant_id": tenant_id,
        "session_id": handover.session_id,
        "project": handover.project,
        "agent_id": handover.agent_id,
        "content": json.dumps(content, ensure_ascii=False, separators=(",", ":")),
        "weight": handover.weight,
        "duration_seconds": handover.duration_s,
        "summary": handover.summary,
        "created_at": handover.created_us,
    }
