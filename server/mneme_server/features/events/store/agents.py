"""Agents in a tenant's database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, func, select

from mneme_server.common.stored import reads
from mneme_server.engine.store.guard import Prepared
from mneme_server.engine.store.portable import greatest, insert, least
from mneme_server.engine.store.reading import read_rows
from mneme_server.engine.store.totals import add_to_total, known, total
from mneme_server.features.events.model import Agent
from mneme_server.features.events.store.tables import agents


class SqlAgents:
    """Implements `AgentRepository`."""

    def __init__(self, connection: Connection, tenant_id: str) -> None:
        self._connection = connection
        self._tenant_id = tenant_id

    def total(self) -> int:
        return total(self._connection, self._tenant_id, "agents")

    def add_activity(self, activity: Mapping[str, Agent]) -> None:
        if not activity:
            return
        rows = [_agent_row(agent, self._tenant_id) for agent in activity.values()]
        new = len(activity) - known(self._connection, self._tenant_id, agents.c.id, activity)
        _add_activity().insert(self._connection, rows)
        add_to_total(self._connection, self._tenant_id, "agents", new)

    def page(self, after: str | None, limit: int) -> Sequence[Agent]:
        query = select(agents).where(
            agents.c.tenant_id == self._tenant_id, agents.c.id > (after or "")
        )
        query = query.order_by(agents.c.id).limit(limit)
        return read_rows(self._connection, query, _agent, kind="agent")


@cache
def _add_activity() -> Prepared:
    """Return what adds agents, or their activity to what is known of them."""
    statement = insert(agents)
    new, old = statement.excluded, agents.c
    counters = ("session_count", "event_count", "tool_call_count", "error_count", "total_cost_usd")
    changed: dict[str, ColumnElement[Any]] = {name: old[name] + new[name] for name in counters}
    changed["name"] = func.coalesce(func.nullif(new.name, ""), old.name)
    changed["first_seen_at"] = least(old.first_seen_at, new.first_seen_at)
    changed["last_seen_at"] = greatest(old.last_seen_at, new.last_seen_at)
    return Prepared(
        statement.on_conflict_do_update(index_elements=["tenant_id", "id"], set_=changed),
        [column.name for column in agents.columns],
    )


@reads("agent")
def _agent(row: Row[Any]) -> Agent:
    return Agent(
        id=row.id,
        name=row.name,
        first_seen_us=row.first_seen_at,
        last_seen_us=row.last_seen_at,
        session_count=row.session_count,
        event_count=row.event_count,
        tool_call_count=row.tool_call_count,
        error_count=row.error_count,
        total_cost_usd=row.total_cost_usd,
    )


def _agent_row(agent: Agent, tenant_id: str) -> dict[str, Any]:
    return {
        "tenant_id": tenant_id,
        "id": agent.id,
        "name": agent.name,
        "first_seen_at": agent.first_seen_us,
        "last_seen_at": agent.last_seen_us,
        "session_count": agent.session_count,
        "event_count": agent.event_count,
        "tool_call_count": agent.tool_call_count,
        "error_count": agent.error_count,
        "total_cost_usd": agent.total_cost_usd,
    }
