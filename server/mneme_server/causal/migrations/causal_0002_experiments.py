"""The tables of experiments."""

import sqlalchemy as sa
from alembic import op

revision = "causal_0002"
down_revision = "causal_0001"


def _texts(*names: str) -> list[sa.Column[str]]:
    return [sa.Column(name, sa.Text(), nullable=False) for name in names]


def _numbers(*names: str) -> list[sa.Column[int]]:
    return [sa.Column(name, sa.BigInteger(), nullable=False) for name in names]


def _owned() -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(
        ["tenant_id", "experiment_id"],
        ["causal_experiments.tenant_id", "causal_experiments.id"],
        ondelete="CASCADE",
    )


def upgrade() -> None:
    op.create_table(
        "causal_experiments",
        *_texts("tenant_id", "id", "name", "cause", "effect", "description"),
        *_numbers("block_size", "treated_per_block"),
        *_texts("seed", "metadata"),
        sa.Column("status", sa.SmallInteger(), nullable=False),
        *_numbers("assigned", "observed"),
        *_texts("result", "edge_id"),
        *_numbers("created_at"),
        sa.Column("completed_at", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("tenant_id", "id"),
    )
    op.create_index(
        "causal_experiments_by_time", "causal_experiments", ["tenant_id", "created_at", "id"]
    )
    op.create_table(
        "causal_assignments",
        *_texts("tenant_id", "experiment_id", "subject"),
        sa.Column("treatment", sa.Boolean(), nullable=False),
        *_texts("stratum"),
        *_numbers("place", "assigned_at"),
        _owned(),
        sa.PrimaryKeyConstraint("tenant_id", "experiment_id", "subject"),
        sqlite_with_rowid=False,
    )
    op.create_index(
        "causal_assignments_by_place",
        "causal_assignments",
        ["tenant_id", "experiment_id", "stratum", "place"],
        unique=True,
    )
    op.create_table(
        "causal_observations",
        *_texts("tenant_id", "experiment_id", "id", "subject"),
        sa.Column("treatment", sa.Boolean(), nullable=False),
        sa.Column("assigned", sa.Boolean(), nullable=False),
        sa.Column("outcome", sa.Float(), nullable=False),
        *_texts("context"),
        *_numbers("observed_at"),
        _owned(),
        sa.PrimaryKeyConstraint("tenant_id", "experiment_id", "id"),
        sqlite_with_rowid=False,
    )
