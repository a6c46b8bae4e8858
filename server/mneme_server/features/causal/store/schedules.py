"""Schedules of discovery, of all tenants, in the catalog."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    Index,
    Integer,
    MetaData,
    Row,
    String,
    Table,
    Text,
    delete,
    select,
    update,
)

from mneme_server.common.canonical import canonical_json
from mneme_server.common.stored import reads, require_times
from mneme_server.engine.store.connections import Database
from mneme_server.engine.store.portable import insert
from mneme_server.features.causal.model import DiscoveryQuestion, DiscoverySchedule

metadata = MetaData()

discovery_schedules = Table(
    "discovery_schedules",
    metadata,
    Column("tenant_id", String, primary_key=True),
    Column("minute", Integer, nullable=False),
    Column("question", Text, nullable=False),
    Column("next_at", BigInteger),
    Column("last_at", BigInteger),
    Column("last_operation", String, nullable=False),
    Index("ix_discovery_schedules_next", "next_at"),
)

_c = discovery_schedules.c


class SqlSchedules:
    """The schedules of all tenants."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def get(self, tenant_id: str) -> DiscoverySchedule | None:
        """Return a tenant's schedule; None: it was never set."""
        query = select(discovery_schedules).where(_c.tenant_id == tenant_id)
        with self._database.read() as connection:
            row = connection.execute(query).first()
        return None if row is None else _schedule(row)

    def set(self, tenant_id: str, schedule: DiscoverySchedule) -> None:
        """Keep a tenant's schedule; what it started last stays."""
        asked = {
            "minute": schedule.minute,
            "question": canonical_json(schedule.question.as_json()),
            "next_at": schedule.next_us,
        }
        new = {"tenant_id": tenant_id, "last_at": None, "last_operation": ""}
        statement = insert(discovery_schedules).values(**new, **asked)
        with self._database.write() as connection:
            connection.execute(
                statement.on_conflict_do_update(index_elements=["tenant_id"], set_=asked)
            )

    def due(self, now_us: int) -> Sequence[str]:
        """Return the tenants whose time has come, the one that waits longest first."""
        query = select(_c.tenant_id).where(_c.next_at <= now_us)
        with self._database.read() as connection:
            return connection.execute(query.order_by(_c.next_at, _c.tenant_id)).scalars().all()

    def started(self, tenant_id: str, before: DiscoverySchedule, after: DiscoverySchedule) -> None:
        """Note what was started, and when it starts next, unless that was set anew meanwhile."""
        mine = update(discovery_schedules).where(_c.tenant_id == tenant_id)
        last = mine.values(last_at=after.last_us, last_operation=after.last_operation)
        again = mine.where(_c.next_at == before.next_us).values(next_at=after.next_us)
        with self._database.write() as connection:
            connection.execute(last)
            connection.execute(again)

    def drop(self, tenant_id: str) -> None:
        """Forget a tenant's schedule."""
        with self._database.write() as connection:
            connection.execute(delete(discovery_schedules).where(_c.tenant_id == tenant_id))


@reads("discovery schedule", "tenant_id")
def _schedule(row: Row[Any]) -> DiscoverySchedule:
    require_times(row.next_at, row.last_at)
    return DiscoverySchedule(
        minute=row.minute,
        question=DiscoveryQuestion.of(json.loads(row.question)),
        next_us=row.next_at,
        last_us=row.last_at,
        last_operation=row.last_operation,
    )
