"""The tables of episodes and skills."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKeyConstraint,
    Index,
    LargeBinary,
    SmallInteger,
    Table,
    Text,
)

from mneme_server.engine.store.schema import (
    json_column,
    metadata,
    rows_are,
    tenant_key,
    text_column,
    time_column,
)
from mneme_server.features.skills.model import Relationship

episodes = Table(
    "episodes",
    metadata,
    tenant_key(),
    Column("id", Text, nullable=False, primary_key=True),
    text_column("session_id"),
    text_column("agent_id"),
    text_column("user_id"),
    text_column("project"),
    text_column("task"),
    text_column("input"),
    text_column("output"),
    text_column("critique"),
    Column("reward", Float, nullable=False),
    Column("success", Boolean, nullable=False),
    Column("latency_ms", BigInteger),
    Column("tokens_used", BigInteger),
    json_column("tools"),
    json_column("tags"),
    json_column("metadata"),
    time_column("occurred_at"),
    time_column("created_at"),
    # The fields that were taken from the session's record.
    json_column("filled"),
    # The task's vector, where it is not the document's: tasks are grouped without the critiques,
    # which tell failures from successes. Empty where there is none.
    Column("task_vector", LargeBinary, nullable=False),
    Index("episodes_by_time", "tenant_id", "occurred_at", "id"),
    Index("episodes_by_reward", "tenant_id", "reward"),  # For their mean.
    Index("episodes_by_session", "tenant_id", "session_id", "occurred_at", "id"),
    info=rows_are("episode", "id"),
)

episode_tags = Table(
    "episode_tags",
    metadata,
    tenant_key(),
    Column("tag", Text, nullable=False, primary_key=True),
    Column("episode_id", Text, nullable=False, primary_key=True),
    ForeignKeyConstraint(
        ["tenant_id", "episode_id"], ["episodes.tenant_id", "episodes.id"], ondelete="CASCADE"
    ),
    Index("episode_tags_by_episode", "tenant_id", "episode_id"),
    sqlite_with_rowid=False,
)

episode_memories = Table(
    "episode_memories",
    metadata,
    tenant_key(),
    Column("memory_id", Text, nullable=False, primary_key=True),
    Column("episode_id", Text, nullable=False, primary_key=True),
    ForeignKeyConstraint(
        ["tenant_id", "memory_id"], ["memories.tenant_id", "memories.id"], ondelete="CASCADE"
    ),
    ForeignKeyConstraint(
        ["tenant_id", "episode_id"], ["episodes.tenant_id", "episodes.id"], ondelete="CASCADE"
    ),
    Index("episode_memories_by_episode", "tenant_id", "episode_id"),
    sqlite_with_rowid=False,
)

skills = Table(
    "skills",
    metadata,
    tenant_key(),
    Column("id", Text, nullable=False, primary_key=True),
    text_column("name"),
    text_column("description"),
    json_column("inputs"),
    json_column("outputs"),
    text_column("code"),
    text_column("project"),
    json_column("tags"),
    json_column("metadata"),
    Column("claimed_rate", Float),
    # What was counted of its uses, and of the episodes that it was consolidated from.
    json_column("reported"),
    json_column("learned"),
    # The success rate that filters go by.
    Column("value", Float, nullable=False),
    # Whether a caller wrote the description.
    Column("edited", Boolean, nullable=False),
    # What its episodes say, where it was consolidated from some; and their ids, the latest first.
    json_column("findings"),
    json_column("sources"),
    time_column("created_at"),
    time_column("updated_at"),
    Index("skills_by_name", "tenant_id", "name", unique=True),
    info=rows_are("skill", "id"),
)

skill_tags = Table(
    "skill_tags",
    metadata,
    tenant_key(),
    Column("tag", Text, nullable=False, primary_key=True),
    Column("skill_id", Text, nullable=False, primary_key=True),
    ForeignKeyConstraint(
        ["tenant_id", "skill_id"], ["skills.tenant_id", "skills.id"], ondelete="CASCADE"
    ),
    Index("skill_tags_by_skill", "tenant_id", "skill_id"),
    sqlite_with_rowid=False,
)

skill_uses = Table(
    "skill_uses",
    metadata,
    tenant_key(),
    Column("skill_id", Text, nullable=False, primary_key=True),
    Column("id", Text, nullable=False, primary_key=True),
    Column("success", Boolean, nullable=False),
    Column("reward", Float),
    Column("latency_ms", BigInteger),
    time_column("used_at"),
    ForeignKeyConstraint(
        ["tenant_id", "skill_id"], ["skills.tenant_id", "skills.id"], ondelete="CASCADE"
    ),
    sqlite_with_rowid=False,
    info=rows_are("use of a skill", "id"),
)

skill_links = Table(
    "skill_links",
    metadata,
    tenant_key(),
    Column("parent_id", Text, nullable=False, primary_key=True),
    Column("child_id", Text, nullable=False, primary_key=True),
    Column(
        "relationship", SmallInteger, nullable=False, primary_key=True, autoincrement=False,
        info={"enum": Relationship},
    ),
    Column("weight", Float, nullable=False),
    json_column("metadata"),
    ForeignKeyConstraint(
        ["tenant_id", "parent_id"], ["skills.tenant_id", "skills.id"], ondelete="CASCADE"
    ),
    ForeignKeyConstraint(
        ["tenant_id", "child_id"], ["skills.tenant_id", "skills.id"], ondelete="CASCADE"
    ),
    Index("skill_links_by_child", "tenant_id", "child_id"),
    sqlite_with_rowid=False,
    info=rows_are("link of a skill", "parent_id"),
)  # fmt: skip
