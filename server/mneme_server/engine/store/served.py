"""Whose a session is: for stores whose rows belong to the user of a session, which may become known
after they were written."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Select, select

from mneme_server.engine.store.schema import metadata

_SESSIONS = "sessions"
"""The table that has a row for each session; it is the events' own."""


def sessions_of_user(tenant_id: str, user_id: str) -> Select[Any]:
    """Return the statement that selects the ids of the sessions of a user."""
    sessions = metadata.tables[_SESSIONS].c
    return select(sessions.id).where(sessions.tenant_id == tenant_id, sessions.user_id == user_id)
