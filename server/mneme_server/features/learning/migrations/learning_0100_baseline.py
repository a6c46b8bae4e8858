"""The tables of learning: sessions, what they were told, what they learned, how they did."""

import sqlalchemy as sa
from alembic import op

revision = "learning_0100"
down_revision = None
branch_labels = ("learning",)


def upgrade() -> None:
    _make_sessions()
    _make_steps()
    _make_models()
    _make_figures()


def _make_sessions() -> None:
    op.create_table(
        "learning_sessions",
        sa.Column("number", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True),
        _text("tenant_id"),
        _text("id"),
        _text("algorithm"),
        sa.Column("version", sa.Integer(), nullable=False),
        _text("config"),
        _text("state_space"),
        _text("action_space"),
        _int64("seed"),
        sa.Column("mode", sa.SmallInteger(), nullable=False),
        sa.Column("secret", sa.LargeBinary(), nullable=False),
        sa.Column("status", sa.SmallInteger(), nullable=False),
        _text("seen"),
        _int64("transitions"),
        _int64("episodes"),
        _real("total_reward"),
        _real("ended_reward"),
        _real("lowest"),
        _real("highest"),
        _int64("bytes"),
        _int64("learned"),
        _int64("updates"),
        _int64("training_us"),
        _int64("created_at"),
        _int64("updated_at"),
        sa.Column("ended_at", sa.BigInteger()),
        sa.UniqueConstraint("tenant_id", "id", name="learning_sessions_id"),
        sqlite_autoincrement=True,
    )


def _make_steps() -> None:
    op.create_table(
        "experience_trajectories",
        _text("tenant_id"),
        sa.Column("session", sa.Integer(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("trajectory_id", sa.Text()),
        sa.Column("place", sa.Integer(), nullable=False),
        _int64("episode"),
        _text("actor"),
        _text("state"),
        _text("action"),
        _real("reward"),
        _text("next_state"),
        sa.Column("terminated", sa.Boolean(), nullable=False),
        sa.Column("truncated", sa.Boolean(), nullable=False),
        _real("probability", nullable=True),
        _text("allowed"),
        _text("available"),
        sa.Column("prediction", sa.Text()),
        _int64("recorded_at"),
        _real("episode_reward", nullable=True),
        sa.PrimaryKeyConstraint("tenant_id", "session", "number"),
    )
    op.create_index(
        "experience_by_trajectory",
        "experience_trajectories",
        ["tenant_id", "session", "trajectory_id", "place"],
    )
    op.create_index(
        "experience_by_prediction",
        "experience_trajectories",
        ["tenant_id", "session", "prediction"],
        unique=True,
    )
    op.create_table(
        "learning_trajectories",
        _text("tenant_id"),
        sa.Column("session", sa.Integer(), nullable=False),
        sa.Column("first", sa.Integer(), nullable=False),
        _text("id"),
        _text("metadata"),
        _int64("steps"),
        _real("total_reward"),
        _int64("recorded_at"),
        sa.PrimaryKeyConstraint("tenant_id", "session", "first"),
    )


def _make_models() -> None:
    op.create_table(
        "learning_checkpoints",
        _text("tenant_id"),
        sa.Column("session", sa.Integer(), nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("data", sa.LargeBinary(), nullable=False),
        _int64("saved_at"),
        sa.PrimaryKeyConstraint("tenant_id", "session"),
    )
    op.create_table(
        "learning_exports",
        _text("tenant_id"),
        sa.Column("session", sa.Integer(), nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        _int64("size"),
        _int64("exported_at"),
        sa.PrimaryKeyConstraint("tenant_id", "session"),
    )
    op.create_table(
        "learning_export_chunks",
        _text("tenant_id"),
        sa.Column("session", sa.Integer(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("data", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "session", "number"),
    )


def _make_figures() -> None:
    op.create_table(
        "training_metrics",
        _text("tenant_id"),
        sa.Column("session", sa.Integer(), nullable=False),
        sa.Column("episode", sa.Integer(), nullable=False),
        _int64("transitions"),
        _real("episode_reward"),
        _real("moving_avg_reward"),
        _real("convergence_score"),
        _real("loss", nullable=True),
        _real("value_mean", nullable=True),
        _real("gradient_norm", nullable=True),
        _real("exploration_rate", nullable=True),
        _int64("recorded_at"),
        sa.PrimaryKeyConstraint("tenant_id", "session", "episode"),
    )
    op.create_table(
        "learning_usage",
        _text("tenant_id"),
        sa.Column("day", sa.Integer(), nullable=False),
        _int64("training_us"),
        sa.PrimaryKeyConstraint("tenant_id", "day"),
    )


def _text(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.Text(), nullable=False)


def _int64(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger(), nullable=False)


def _real(name: str, *, nullable: bool = False) -> sa.Column[float]:
    return sa.Column(name, sa.Double(), nullable=nullable)
