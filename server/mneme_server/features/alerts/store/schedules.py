"""Times at which work of tenants is due, in the catalog."""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import BigInteger, Column, MetaData, String, Table, delete, select

from mneme_server.engine.store.connections import Database
from mneme_server.engine.store.portable import insert

metadata = MetaData()

alert_due = Table(
    "alert_due",
    metadata,
    Column("tenant_id", String, primary_key=True),
    Column("work", String, primary_key=True),
    Column("due_at", BigInteger, nullable=False),
)

_c = alert_due.c


class SqlDue:
    """Implements `features.alerts.due.Due`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def all(self, work: str) -> Mapping[str, int]:
        query = select(_c.tenant_id, _c.due_at).where(_c.work == work)
        with self._database.read() as connection:
            return {row.tenant_id: row.due_at for row in connection.execute(query)}

    def set(self, tenant_id: str, work: str, due_us: int | None) -> None:
        with self._database.write() as connection:
            if due_us is None:
                mine = delete(alert_due).where(_c.tenant_id == tenant_id, _c.work == work)
                connection.execute(mine)
            else:
                row = insert(alert_due).values(tenant_id=tenant_id, work=work, due_at=due_us)
                connection.execute(
                    row.on_conflict_do_update(
                        index_elements=["tenant_id", "work"], set_={"due_at": due_us}
                    )
                )

    def drop(self, tenant_id: str) -> None:
        with self._database.write() as connection:
            connection.execute(delete(alert_due).where(_c.tenant_id == tenant_id))
