"""One name for one thing: what the knowledge log called a repository is a project."""

from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    op.drop_index("knowledge_by_repo", "knowledge")
    op.alter_column("knowledge", "repo", new_column_name="project")
    op.create_index("knowledge_by_project", "knowledge", ["tenant_id", "project", "timestamp"])
