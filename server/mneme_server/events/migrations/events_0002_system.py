"""Sessions that Mneme itself records are marked: those of alert rules, which looked like an agent's
that never ended. They have no summaries: whoever makes these takes back what there is."""

import sqlalchemy as sa
from alembic import op

revision = "events_0002"
down_revision = "events_0001"
depends_on = "0002"


def upgrade() -> None:
    op.add_column(
        "sessions", sa.Column("system", sa.Boolean(), nullable=False, server_default=sa.false())
    )
    op.create_index(
        "sessions_of_the_system",
        "sessions",
        ["tenant_id", "id"],
        sqlite_where=sa.text("system"),
        postgresql_where=sa.text("system"),
    )
    # Nobody started them by a call, and nothing but alerts was ever recorded in them.
    op.execute(
        "UPDATE sessions SET system = TRUE, status = 2, ended_at = last_event_at"
        " WHERE id LIKE 'alerts-%' AND NOT declared AND event_count > 0 AND NOT EXISTS"
        " (SELECT 1 FROM events WHERE events.tenant_id = sessions.tenant_id"
        " AND events.session_id = sessions.id"
        " AND events.event_type NOT IN ('alert_triggered', 'alert_resolved'))"
    )
    op.execute(
        "INSERT INTO summary_queue (tenant_id, session_id, due_at, attempts, last_error)"
        " SELECT tenant_id, id, 0, 0, '' FROM sessions WHERE system"
        " ON CONFLICT (tenant_id, session_id) DO NOTHING"
    )
