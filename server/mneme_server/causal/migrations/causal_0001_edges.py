"""The table of edges."""

import sqlalchemy as sa
from alembic import op

revision = "causal_0001"
down_revision = None
branch_labels = ("causal",)


def _texts(*names: str) -> list[sa.Column[str]]:
    return [sa.Column(name, sa.Text(), nullable=False) for name in names]


def upgrade() -> None:
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
