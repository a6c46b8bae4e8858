"""Rules, and what webhooks are signed with."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, Select, delete, func, select

from mneme_server.common.stored import reads, require_times
from mneme_server.engine.store.reading import read_rows
from mneme_server.engine.store.records import row_reader, row_writer
from mneme_server.engine.store.rows import latest_after, upsert
from mneme_server.features.alerts.model import (
    AlertState,
    Rule,
    Scope,
    Secret,
)
from mneme_server.features.alerts.store.tables import alert_rules, alert_secrets

_c = alert_rules.c


class SqlAlertRules:
    """The tenant's rules."""

    def __init__(self, connection: Connection, tenant_id: str) -> None:
        self._connection = connection
        self._tenant_id = tenant_id

    def get(self, rule_id: str) -> Rule | None:
        """Return a rule, or None."""
        found = self._read(self._of_state(select(alert_rules), None).where(_c.id == rule_id))
        return found[0] if found else None

    def enabled(self) -> Sequence[Rule]:
        """Return all rules that are enabled."""
        query = self._of_state(select(alert_rules), None).where(_c.enabled.is_(True))
        return self._read(query.order_by(_c.created_at, _c.id))

    def save(self, rule: Rule) -> None:
        """Insert a rule, or change it."""
        self._connection.execute(upsert(alert_rules), _row(rule, self._tenant_id))

    def remove(self, rule_id: str) -> None:
        """Remove a rule."""
        self._connection.execute(
            delete(alert_rules).where(_c.tenant_id == self._tenant_id, _c.id == rule_id)
        )

    def page(
        self, state: AlertState | None, after: tuple[int, str] | None, limit: int
    ) -> Sequence[Rule]:
        """Return rules, latest first, after the key (created_us, id)."""
        query = self._of_state(select(alert_rules), state)
        return self._read(latest_after(query, _c.created_at, _c.id, after, limit))

    def count(self, state: AlertState | None) -> int:
        """Return how many there are."""
        query = self._of_state(select(func.count()).select_from(alert_rules), state)
        return int(self._connection.execute(query).scalar_one())

    def _of_state(self, query: Select[Any], state: AlertState | None) -> Select[Any]:
        conditions: list[ColumnElement[bool]] = [_c.tenant_id == self._tenant_id]
        if state is not None:
            triggered = _c.open_entry != ""
            conditions.append(triggered if state is AlertState.TRIGGERED else ~triggered)
        return query.where(*conditions)

    def _read(self, query: Select[Any]) -> list[Rule]:
        return read_rows(self._connection, query, _rule, kind="alert rule")


class SqlAlertSecrets:
    """What the tenant's webhooks are signed with."""

    def __init__(self, connection: Connection, tenant_id: str) -> None:
        self._connection = connection
        self._tenant_id = tenant_id

    def get(self) -> Secret | None:
        """Return it; None: it was never made."""
        query = select(alert_secrets).where(alert_secrets.c.tenant_id == self._tenant_id)
        found = read_rows(self._connection, query, _secret, kind="webhook secret", key="tenant_id")
        return found[0] if found else None

    def set(self, secret: Secret) -> None:
        """Keep it."""
        row = {
            "tenant_id": self._tenant_id,
            "secret": secret.text,
            "created_at": secret.created_us,
            "old_secret": secret.old_text,
            "old_until": secret.old_until_us,
        }
        self._connection.execute(upsert(alert_secrets), row)


_read = row_reader(alert_rules, Rule)


@reads("alert rule")
def _rule(row: Row[Any]) -> Rule:
    scope = Scope(row.agent_id, row.project, tuple(json.loads(row.tags)))
    return replace(_read(row), scope=scope)


_row = row_writer(
    Rule,
    alert_rules,
    made={
        "agent_id": lambda rule: rule.scope.agent_id,
        "project": lambda rule: rule.scope.project,
        "tags": lambda rule: json.dumps(rule.scope.tags, ensure_ascii=False),
    },
    elsewhere=["scope"],
)


@reads("webhook secret", "tenant_id")
def _secret(row: Row[Any]) -> Secret:
    require_times(row.created_at, row.old_until)
    return Secret(row.secret, row.created_at, row.old_secret, row.old_until)
