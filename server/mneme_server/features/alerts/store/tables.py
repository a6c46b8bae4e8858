"""The tables of alerts."""

from __future__ import annotations

from sqlalchemy import Boolean, Column, Float, ForeignKeyConstraint, Index, Table, Text

from mneme_server.engine.store.schema import (
    enum_column,
    int64_column,
    json_column,
    metadata,
    rows_are,
    tenant_key,
    text_column,
    time_column,
)
from mneme_server.features.alerts.model import AlertCondition, Delivered, Resolution, WatchedMeasure

alert_rules = Table(
    "alert_rules",
    metadata,
    tenant_key(),
    Column("id", Text, nullable=False, primary_key=True),
    text_column("name"),
    Column("enabled", Boolean, nullable=False),
    enum_column("condition", AlertCondition),
    Column("threshold", Float, nullable=False),
    Column("resolve_threshold", Float),
    int64_column("min_events"),
    int64_column("window_minutes"),
    text_column("agent_id"),
    text_column("project"),
    json_column("tags"),
    json_column("channels"),
    # The API key that set them; "" if none did.
    Column("key_id", Text, nullable=False, server_default=""),
    text_column("pattern"),
    enum_column("trend", WatchedMeasure),
    # The entry of the history that is not resolved; "" if there is none.
    text_column("open_entry"),
    time_column("triggered_at", nullable=True),
    time_column("created_at"),
    time_column("updated_at"),
    Index("alert_rules_by_creation", "tenant_id", "created_at", "id"),
    info=rows_are("alert rule", "id"),
)

alert_history = Table(
    "alert_history",
    metadata,
    tenant_key(),
    Column("id", Text, nullable=False, primary_key=True),
    text_column("rule_id"),
    text_column("rule_name"),
    enum_column("condition", AlertCondition),
    text_column("agent_id"),
    time_column("triggered_at"),
    time_column("resolved_at", nullable=True),
    Column("current_value", Float, nullable=False),
    Column("resolved_value", Float),
    Column("threshold", Float, nullable=False),
    text_column("message"),
    enum_column("resolution", Resolution),
    Index("alert_history_by_time", "tenant_id", "triggered_at", "id"),
    Index("alert_history_by_rule", "tenant_id", "rule_id", "triggered_at", "id"),
    info=rows_are("alert", "id"),
)

alert_deliveries = Table(
    "alert_deliveries",
    metadata,
    tenant_key(),
    Column("id", Text, nullable=False, primary_key=True),
    text_column("entry_id"),
    # The place among those of the entry.
    int64_column("position"),
    text_column("channel"),
    # The API key that had set it; "" if none had.
    Column("key_id", Text, nullable=False, server_default=""),
    text_column("kind"),
    json_column("body"),
    enum_column("state", Delivered),
    int64_column("attempts"),
    text_column("error"),
    time_column("created_at"),
    time_column("next_at", nullable=True),
    time_column("delivered_at", nullable=True),
    ForeignKeyConstraint(
        ["tenant_id", "entry_id"],
        ["alert_history.tenant_id", "alert_history.id"],
        ondelete="CASCADE",
    ),
    Index("alert_deliveries_by_entry", "tenant_id", "entry_id", "position"),
    Index("alert_deliveries_due", "tenant_id", "next_at"),
    info=rows_are("delivery", "id"),
)

alert_secrets = Table(
    "alert_secrets",
    metadata,
    tenant_key(),
    text_column("secret"),
    time_column("created_at"),
    text_column("old_secret"),
    time_column("old_until"),
    info=rows_are("webhook secret", "tenant_id"),
)
