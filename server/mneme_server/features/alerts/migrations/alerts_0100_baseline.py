"""Rules, what they triggered, the messages about it, and what webhooks are signed with."""

from collections.abc import Callable
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "alerts_0100"
down_revision = None
branch_labels = ("alerts",)


def _columns(
    kind: Callable[[], sa.types.TypeEngine[Any]], *names: str, nullable: bool = False
) -> list[sa.Column[Any]]:
    return [sa.Column(name, kind(), nullable=nullable) for name in names]


def upgrade() -> None:
    op.create_table(
        "alert_rules",
        *_columns(sa.Text, "tenant_id", "id", "name"),
        *_columns(sa.Boolean, "enabled"),
        *_columns(sa.SmallInteger, "condition"),
        *_columns(sa.Float, "threshold"),
        *_columns(sa.Float, "resolve_threshold", nullable=True),
        *_columns(sa.BigInteger, "min_events", "window_minutes"),
        *_columns(sa.Text, "agent_id", "project", "tags", "channels", "pattern"),
        *_columns(sa.SmallInteger, "trend"),
        *_columns(sa.Text, "open_entry"),
        *_columns(sa.BigInteger, "triggered_at", nullable=True),
        *_columns(sa.BigInteger, "created_at", "updated_at"),
        sa.Column("key_id", sa.Text(), nullable=False, server_default=""),
        sa.PrimaryKeyConstraint("tenant_id", "id"),
    )
    op.create_index("alert_rules_by_creation", "alert_rules", ["tenant_id", "created_at", "id"])
    op.create_table(
        "alert_history",
        *_columns(sa.Text, "tenant_id", "id", "rule_id", "rule_name"),
        *_columns(sa.SmallInteger, "condition"),
        *_columns(sa.Text, "agent_id"),
        *_columns(sa.BigInteger, "triggered_at"),
        *_columns(sa.BigInteger, "resolved_at", nullable=True),
        *_columns(sa.Float, "current_value"),
        *_columns(sa.Float, "resolved_value", nullable=True),
        *_columns(sa.Float, "threshold"),
        *_columns(sa.Text, "message"),
        *_columns(sa.SmallInteger, "resolution"),
        sa.PrimaryKeyConstraint("tenant_id", "id"),
    )
    op.create_index("alert_history_by_time", "alert_history", ["tenant_id", "triggered_at", "id"])
    op.create_index(
        "alert_history_by_rule", "alert_history", ["tenant_id", "rule_id", "triggered_at", "id"]
    )
    op.create_table(
        "alert_deliveries",
        *_columns(sa.Text, "tenant_id", "id", "entry_id"),
        *_columns(sa.BigInteger, "position"),
        *_columns(sa.Text, "channel", "kind", "body"),
        *_columns(sa.SmallInteger, "state"),
        *_columns(sa.BigInteger, "attempts"),
        *_columns(sa.Text, "error"),
        *_columns(sa.BigInteger, "created_at"),
        *_columns(sa.BigInteger, "next_at", "delivered_at", nullable=True),
        sa.Column("key_id", sa.Text(), nullable=False, server_default=""),
        sa.ForeignKeyConstraint(
            ["tenant_id", "entry_id"],
            ["alert_history.tenant_id", "alert_history.id"],
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("tenant_id", "id"),
    )
    op.create_index(
        "alert_deliveries_by_entry", "alert_deliveries", ["tenant_id", "entry_id", "position"]
    )
    op.create_index("alert_deliveries_due", "alert_deliveries", ["tenant_id", "next_at"])
    op.create_table(
        "alert_secrets",
        *_columns(sa.Text, "tenant_id", "secret"),
        *_columns(sa.BigInteger, "created_at"),
        *_columns(sa.Text, "old_secret"),
        *_columns(sa.BigInteger, "old_until"),
        sa.PrimaryKeyConstraint("tenant_id"),
    )
