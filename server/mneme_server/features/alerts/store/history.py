"""The history of what rules triggered, and the messages about it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, delete, func, select, update

from mneme_server.common.stored import reads
from mneme_server.engine.store.reading import read_rows
from mneme_server.engine.store.records import row_reader, row_writer
from mneme_server.engine.store.rows import (
    chunks,
    equal_where_given,
    insert_rows,
    latest_after,
    upsert,
)
from mneme_server.features.alerts.model import (
    RECORDED,
    AlertEntry,
    AlertState,
    Delivery,
    EntryFilter,
)
from mneme_server.features.alerts.store.tables import alert_deliveries, alert_history

_h = alert_history.c
_d = alert_deliveries.c


class SqlAlertHistory:
    """What the tenant's rules triggered."""

    def __init__(self, connection: Connection, tenant_id: str) -> None:
        self._connection = connection
        self._tenant_id = tenant_id

    def get(self, entry_id: str) -> AlertEntry | None:
        """Return an entry, or None."""
        query = select(alert_history).where(_h.tenant_id == self._tenant_id, _h.id == entry_id)
        found = read_rows(self._connection, query, _entry, kind="alert")
        return found[0] if found else None

    def save(self, entry: AlertEntry) -> None:
        """Insert an entry, or change it."""
        self._connection.execute(upsert(alert_history), _entry_row(entry, self._tenant_id))

    def page(
        self, filter_: EntryFilter, after: tuple[int, str] | None, limit: int
    ) -> Sequence[AlertEntry]:
        """Return entries, latest first, after the key (triggered_us, id)."""
        query = self._filtered(select(alert_history), filter_)
        query = latest_after(query, _h.triggered_at, _h.id, after, limit)
        return read_rows(self._connection, query, _entry, kind="alert")

    def count(self, filter_: EntryFilter) -> int:
        """Return how many there are."""
        query = self._filtered(select(func.count()).select_from(alert_history), filter_)
        return int(self._connection.execute(query).scalar_one())

    def keep(self, most: int) -> None:
        """Remove the oldest of those that are resolved, with their deliveries, beyond so many."""
        surplus = self.count(EntryFilter()) - most
        if surplus <= 0:
            return
        oldest = select(_h.id).where(_h.tenant_id == self._tenant_id, _h.resolved_at.is_not(None))
        oldest = oldest.order_by(_h.triggered_at, _h.id).limit(surplus)
        for some in chunks(self._connection.execute(oldest).scalars().all()):
            self._connection.execute(
                delete(alert_history).where(_h.tenant_id == self._tenant_id, _h.id.in_(some))
            )

    def _filtered(self, query: Select[Any], filter_: EntryFilter) -> Select[Any]:
        conditions: list[ColumnElement[bool]] = [_h.tenant_id == self._tenant_id]
        conditions += equal_where_given(_h, filter_, ("rule_id",))
        if filter_.state is not None:
            is_open = filter_.state is AlertState.TRIGGERED
            conditions.append(_h.resolved_at.is_(None) if is_open else _h.resolved_at.is_not(None))
        if filter_.start_us is not None:
            conditions.append(_h.triggered_at >= filter_.start_us)
        if filter_.end_us is not None:
            conditions.append(_h.triggered_at < filter_.end_us)
        return query.where(*conditions)


class SqlAlertDeliveries:
    """The messages about what was triggered."""

    def __init__(self, connection: Connection, tenant_id: str) -> None:
        self._connection = connection
        self._tenant_id = tenant_id

    def add(self, deliveries: Sequence[Delivery]) -> None:
        """Insert messages."""
        rows = [_delivery_row(one, self._tenant_id) for one in deliveries]
        if rows:
            insert_rows(self._connection, alert_deliveries, rows)

    def save(self, delivery: Delivery) -> None:
        """Keep what became of a message, unless it is gone."""
        mine = update(alert_deliveries).where(_d.tenant_id == self._tenant_id, _d.id == delivery.id)
        self._connection.execute(mine.values(**_progress(delivery)))

    def of_entries(self, entry_ids: Collection[str]) -> Mapping[str, Sequence[Delivery]]:
        """Return the messages to channels about entries, in the order in which they were made."""
        found: dict[str, list[Delivery]] = {}
        for some in chunks(entry_ids):
            query = select(alert_deliveries).where(
                _d.tenant_id == self._tenant_id, _d.entry_id.in_(some), _d.channel != RECORDED
            )
            for one in self._read(query.order_by(_d.entry_id, _d.position)):
                found.setdefault(one.entry_id, []).append(one)
        return found

    def due(self, now_us: int, limit: int) -> Sequence[Delivery]:
        """Return messages that are to be sent by now, the one that waits longest first."""
        query = select(alert_deliveries).where(
            _d.tenant_id == self._tenant_id, _d.next_at <= now_us
        )
        return self._read(query.order_by(_d.next_at, _d.position, _d.id).limit(limit))

    def waiting(self) -> int:
        """Return how many messages are still to be sent."""
        query = select(func.count()).where(_d.tenant_id == self._tenant_id, _d.next_at.is_not(None))
        return int(self._connection.execute(query).scalar_one())

    def next_us(self) -> int | None:
        """Return when the next message is to be sent; None without any."""
        query = select(func.min(_d.next_at)).where(
            _d.tenant_id == self._tenant_id, _d.next_at.is_not(None)
        )
        found: int | None = self._connection.execute(query).scalar_one()
        return found

    def _read(self, query: Select[Any]) -> list[Delivery]:
        return read_rows(self._connection, query, _delivery, kind="delivery")


def _progress(delivery: Delivery) -> dict[str, Any]:
    return {
        "state": int(delivery.state),
        "attempts": delivery.attempts,
        "error": delivery.error,
        "next_at": delivery.next_us,
        "delivered_at": delivery.delivered_us,
    }


_entry = reads("alert")(row_reader(alert_history, AlertEntry))
_delivery = reads("delivery")(row_reader(alert_deliveries, Delivery))
_entry_row = row_writer(AlertEntry, alert_history)
_delivery_row = row_writer(Delivery, alert_deliveries)
