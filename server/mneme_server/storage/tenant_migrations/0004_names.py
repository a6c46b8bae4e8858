"""Names: a project is called one everywhere; types of events and kinds of memory are no numbers."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"

# The types of events, by the numbers that stood for them: from 1.
_EVENT_TYPES = (
    "session_started", "session_ended", "tool_call", "tool_response", "tool_error", "llm_call",
    "llm_response", "message", "error", "custom", "approval_requested", "approval_granted",
    "approval_denied", "approval_expired", "form_submitted", "form_completed", "form_expired",
    "cost_tracked", "alert_triggered", "alert_resolved",
)  # fmt: skip
_KINDS = {1: "event", 2: "session", 3: "lesson", 4: "reflection", 5: "knowledge"}


def upgrade() -> None:
    _call_projects_projects()
    _name_event_types()
    _name_kinds()


def _call_projects_projects() -> None:
    op.drop_index("knowledge_by_repo", "knowledge")
    op.alter_column("knowledge", "repo", new_column_name="project")
    op.create_index("knowledge_by_project", "knowledge", ["tenant_id", "project", "timestamp"])


def _name_event_types() -> None:
    # SQLite does not change a column's type. Not by a batch of Alembic's, which puts the
    # constraints in any order: every database shall have the same schema.
    named = op.create_table(
        "events_named",
        sa.Column(
            "cursor",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=True,
            nullable=False,
        ),
        *(sa.Column(name, sa.Text(), nullable=False) for name in ("tenant_id", "id", "session_id")),
        sa.Column("sequence", sa.BigInteger(), nullable=False),
        sa.Column("agent_id", sa.Text(), nullable=False),
        sa.Column("event_type", sa.Text(), nullable=False),
        sa.Column("severity", sa.SmallInteger(), nullable=False),
        sa.Column("timestamp", sa.BigInteger(), nullable=False),
        *(
            sa.Column(name, sa.Text(), nullable=False)
            for name in ("text", "name", "call_id", "error", "model")
        ),
        sa.Column("input_tokens", sa.BigInteger(), nullable=False),
        sa.Column("output_tokens", sa.BigInteger(), nullable=False),
        sa.Column("cost_usd", sa.Float(), nullable=False),
        sa.Column("duration", sa.BigInteger(), nullable=True),
        sa.Column("payload", sa.Text(), nullable=False),
        sa.Column("metadata", sa.Text(), nullable=False),
        sa.Column("searchable", sa.Boolean(), nullable=False),
        sa.Column("recorded_at", sa.BigInteger(), nullable=False),
        sa.Column("prev_hash", sa.Text(), nullable=False),
        sa.Column("hash", sa.Text(), nullable=False),
        sa.Column("hash_version", sa.SmallInteger(), server_default="1", nullable=False),
        sa.Column("salt", sa.LargeBinary(), nullable=True),
        sa.Column("commitment", sa.LargeBinary(), nullable=True),
        sa.ForeignKeyConstraint(["tenant_id", "session_id"], ["sessions.tenant_id", "sessions.id"]),
        sa.PrimaryKeyConstraint("cursor"),
        sa.UniqueConstraint("tenant_id", "id", name="events_id"),
        sa.UniqueConstraint("tenant_id", "session_id", "sequence", name="events_chain"),
        sqlite_autoincrement=True,
    )
    number = sa.column("event_type", sa.SmallInteger())
    # A number that never stood for a type is damage, and stays what it is.
    name = sa.case(
        *((number == place, type_) for place, type_ in enumerate(_EVENT_TYPES, 1)),
        else_=sa.cast(number, sa.Text()),
    )
    kept = [column.name for column in named.columns]
    values = [name if one == "event_type" else sa.column(one) for one in kept]
    numbered = sa.select(*values).select_from(sa.table("events")).order_by(sa.column("cursor"))
    op.execute(sa.insert(named).from_select(kept, numbered))
    op.drop_table("events")
    op.rename_table("events_named", "events")
    op.create_index("events_by_agent", "events", ["tenant_id", "agent_id", "timestamp", "cursor"])
    op.create_index(
        "events_by_session", "events", ["tenant_id", "session_id", "timestamp", "cursor"]
    )
    op.create_index("events_by_time", "events", ["tenant_id", "timestamp", "cursor"])
    op.create_index(
        "events_that_failed",
        "events",
        ["tenant_id", "timestamp", "cursor"],
        sqlite_where=sa.text("severity >= 4"),
        postgresql_where=sa.text("severity >= 4"),
    )


def _name_kinds() -> None:
    # Made anew: SQLite changes neither a column's type nor a constraint.
    op.rename_table("documents", "documents_before")
    op.drop_index("documents_by_session", table_name="documents_before")
    op.create_table(
        "documents",
        sa.Column(
            "doc_id",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=True,
            nullable=False,
        ),
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("source_id", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("timestamp", sa.BigInteger(), nullable=False),
        sa.Column("session_id", sa.Text(), nullable=False),
        sa.Column("position", sa.BigInteger(), nullable=False),
        sa.Column("agent_id", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("project", sa.Text(), nullable=False),
        sa.Column("category", sa.Text(), nullable=False),
        sa.Column("importance", sa.SmallInteger(), nullable=False),
        sa.Column("archived", sa.Boolean(), nullable=False),
        sa.Column("tags", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("doc_id"),
        sa.UniqueConstraint("tenant_id", "kind", "source_id", name="documents_source"),
        sqlite_autoincrement=True,
    )
    rest = (
        "source_id, text, timestamp, session_id, position, agent_id, user_id, project, category,"
        " importance, archived, tags"
    )
    names = " ".join(f"WHEN {number} THEN '{name}'" for number, name in _KINDS.items())
    op.execute(
        f"INSERT INTO documents (doc_id, tenant_id, kind, {rest})"
        # A number that is damaged stays, as a name that nobody knows.
        f" SELECT doc_id, tenant_id, CASE scope {names} ELSE CAST(scope AS TEXT) END, {rest}"
        " FROM documents_before"
    )
    if op.get_bind().dialect.name == "sqlite":
        # An id is never used again, not even that of a document that was removed since.
        op.execute("DELETE FROM sqlite_sequence WHERE name = 'documents'")
        op.execute(
            "INSERT INTO sqlite_sequence (name, seq) SELECT 'documents', seq FROM sqlite_sequence"
            " WHERE name = 'documents_before'"
        )
    op.drop_table("documents_before")
    op.create_index(
        "documents_by_session", "documents", ["tenant_id", "session_id", "position"], unique=False
    )
