"""Table of grades, and in sessions how they turned out, and who said so."""

import json

import sqlalchemy as sa
from alembic import op

revision = "events_0101"
down_revision = "events_0100"
depends_on = "0100"

_SUCCESS, _PARTIAL, _FAILURE = 1, 2, 3
_AGENT, _METADATA = 1, 2
_BY_STATUS = {2: _SUCCESS, 3: _FAILURE}
_WORDS = {
    "success": _SUCCESS, "succeeded": _SUCCESS, "completed": _SUCCESS, "partial": _PARTIAL,
    "failure": _FAILURE, "failed": _FAILURE, "error": _FAILURE,
}  # fmt: skip
_PAGE = 5_000


def upgrade() -> None:
    op.create_table(
        "session_grades",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("session_id", sa.Text(), nullable=False),
        sa.Column("outcome", sa.SmallInteger(), nullable=False),
        sa.Column("reward", sa.Float(), nullable=True),
        sa.Column("source", sa.SmallInteger(), nullable=False),
        sa.Column("grader", sa.Text(), nullable=False),
        sa.Column("comment", sa.Text(), nullable=False),
        sa.Column("graded_at", sa.BigInteger(), nullable=False),
        sa.Column("recorded_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "id"),
        sa.ForeignKeyConstraint(["tenant_id", "session_id"], ["sessions.tenant_id", "sessions.id"]),
    )
    op.create_index("session_grades_by_session", "session_grades", ["tenant_id", "session_id"])
    op.create_index("session_grades_by_time", "session_grades", ["tenant_id", "graded_at", "id"])
    op.add_column(
        "sessions",
        sa.Column("observed", sa.Boolean(), nullable=False, server_default=sa.false()),
    )
    op.add_column("sessions", sa.Column("outcome", sa.SmallInteger(), nullable=True))
    op.add_column("sessions", sa.Column("outcome_by", sa.SmallInteger(), nullable=True))
    op.add_column("sessions", sa.Column("reward", sa.Float(), nullable=True))
    _judge()


def _judge() -> None:
    """Fill in what the sessions that are there said so far by their metadata, else by their
    status."""
    sessions = sa.table(
        "sessions",
        sa.column("tenant_id"), sa.column("id"), sa.column("status"), sa.column("metadata"),
        sa.column("outcome"), sa.column("outcome_by"), sa.column("reward"),
    )  # fmt: skip
    connection = op.get_bind()
    of_status = sa.case(_BY_STATUS, value=sessions.c.status)
    connection.execute(
        sessions.update()
        .where(sessions.c.status.in_(_BY_STATUS), ~_may_say(sessions.c.metadata))
        .values(outcome=of_status, outcome_by=_AGENT)
    )
    after: tuple[str, str] = ("", "")
    while True:
        keys = sa.tuple_(sessions.c.tenant_id, sessions.c.id)
        rows = connection.execute(
            sa.select(sessions.c.tenant_id, sessions.c.id, sessions.c.status, sessions.c.metadata)
            .where(_may_say(sessions.c.metadata), keys > sa.tuple_(*after))
            .order_by(sessions.c.tenant_id, sessions.c.id)
            .limit(_PAGE)
        ).all()
        for row in rows:
            said = _said(row.status, row.metadata)
            if said:
                connection.execute(
                    sessions.update()
                    .where(sessions.c.tenant_id == row.tenant_id, sessions.c.id == row.id)
                    .values(**said)
                )
        if len(rows) < _PAGE:
            return
        after = (rows[-1].tenant_id, rows[-1].id)


def _may_say(metadata: sa.ColumnElement[str]) -> sa.ColumnElement[bool]:
    return sa.or_(*(metadata.contains(f'"{key}"') for key in ("reward", "success", "outcome")))


def _said(status: int, text: str) -> dict[str, float | int]:
    metadata = json.loads(text)
    reward, success, word = (metadata.get(key) for key in ("reward", "success", "outcome"))
    if isinstance(reward, int | float) and not isinstance(reward, bool):
        outcome = _SUCCESS if reward >= 0.5 else _FAILURE
        return {"outcome": outcome, "outcome_by": _METADATA, "reward": float(reward)}
    if isinstance(success, bool):
        return {"outcome": _SUCCESS if success else _FAILURE, "outcome_by": _METADATA}
    if isinstance(word, str) and word.lower() in _WORDS:
        return {"outcome": _WORDS[word.lower()], "outcome_by": _METADATA}
    return {"outcome": _BY_STATUS[status], "outcome_by": _AGENT} if status in _BY_STATUS else {}
