"""What is noted of trajectories, and for how long a tenant's sessions learned on each day."""

import sqlalchemy as sa
from alembic import op

revision = "learning_0002"
down_revision = "learning_0001"


def upgrade() -> None:
    op.create_table(
        "learning_trajectories",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("session", sa.Integer(), nullable=False),
        sa.Column("first", sa.Integer(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("metadata", sa.Text(), nullable=False),
        sa.Column("steps", sa.BigInteger(), nullable=False),
        sa.Column("total_reward", sa.Double(), nullable=False),
        sa.Column("recorded_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "session", "first"),
    )
    op.create_table(
        "learning_usage",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("day", sa.Integer(), nullable=False),
        sa.Column("training_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "day"),
    )
