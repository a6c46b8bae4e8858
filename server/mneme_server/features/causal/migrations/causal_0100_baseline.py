"""Edges, and experiments."""

import sqlalchemy as sa
from alembic import op

revision = "causal_0100"
down_revision = None
branch_labels = ("causal",)


def upgrade() -> None:
    _make_edges()
    _make_experiments()


def _make_edges() -> None:
    op.create_table(
        "causal_edges",
        *_texts("tenant_id", "id", "cause", "effect"),
        sa.Column("uplift", sa.Float(), nullable=False),
        sa.Column("confidence", sa.Float(), nullable=False),
        sa.Column("sample_size", sa.BigInteger(), nullable=False),
        *_texts("evidence_ids", "experiment_ids"),
        sa.Column("confounder_score", sa.Float(), nullable=True),
        *_texts("mechanism", "metadata"),
        sa.Column("origin", sa.SmallInteger(), nullable=False),
        sa.Column("low", sa.Float(), nullable=True),
        sa.Column("high", sa.Float(), nullable=True),
        *_texts("scope"),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "id"),
    )
    op.create_index(
        "causal_edges_by_cause", "causal_edges", ["tenant_id", "cause", "effect"], unique=True
    )
    op.create_index("causal_edges_by_effect", "causal_edges", ["tenant_id", "effect"])
    op.create_index("causal_edges_by_time", "causal_edges", ["tenant_id", "created_at", "id"])


def _make_experiments() -> None:
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
