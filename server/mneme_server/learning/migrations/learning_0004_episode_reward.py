"""What a step's episode had earned with it; nobody knows it of steps that were recorded before."""

import sqlalchemy as sa
from alembic import op

revision = "learning_0004"
down_revision = "learning_0003"


def upgrade() -> None:
    op.add_column(
        "experience_trajectories", sa.Column("episode_reward", sa.Double(), nullable=True)
    )
