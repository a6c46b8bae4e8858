"""The tables of memories."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Column,
    ForeignKeyConstraint,
    Index,
    LargeBinary,
    Table,
    Text,
)

from mneme_server.engine.store.schema import (
    enum_column,
    int64_column,
    json_column,
    metadata,
    rows_are,
    tenant_key,
    text_column,
    time_column,
)
from mneme_server.features.memory.model import Importance

memories = Table(
    "memories",
    metadata,
    tenant_key(),
    Column("id", Text, nullable=False, primary_key=True),
    text_column("text"),
    text_column("user_id"),
    text_column("agent_id"),
    text_column("project"),
    json_column("tags"),
    json_column("metadata"),
    enum_column("importance", Importance),
    # What memories share that say the same; see `features.memory.model.Memory.digest`.
    Column("digest", LargeBinary, nullable=False),
    time_column("since"),
    text_column("superseded_by"),
    Column("until", BigInteger),
    time_column("created_at"),
    time_column("updated_at"),
    Index("memories_by_since", "tenant_id", "since", "id"),
    Index("memories_by_user", "tenant_id", "user_id", "since", "id"),
    Index("memories_by_digest", "tenant_id", "digest"),
    Index("memories_by_successor", "tenant_id", "superseded_by"),
    info=rows_are("memory", "id"),
)

memory_tags = Table(
    "memory_tags",
    metadata,
    tenant_key(),
    Column("tag", Text, nullable=False, primary_key=True),
    Column("memory_id", Text, nullable=False, primary_key=True),
    ForeignKeyConstraint(
        ["tenant_id", "memory_id"], ["memories.tenant_id", "memories.id"], ondelete="CASCADE"
    ),
    Index("memory_tags_by_memory", "tenant_id", "memory_id"),
    sqlite_with_rowid=False,
)

# The values in the metadata, as `features.memory.values` spells them; with the number of the
# memory's document, by which a search knows it.
memory_values = Table(
    "memory_values",
    metadata,
    tenant_key(),
    Column("key", Text, nullable=False, primary_key=True),
    Column("value", Text, nullable=False, primary_key=True),
    Column("memory_id", Text, nullable=False, primary_key=True),
    int64_column("doc_id"),
    ForeignKeyConstraint(
        ["tenant_id", "memory_id"], ["memories.tenant_id", "memories.id"], ondelete="CASCADE"
    ),
    Index("memory_values_by_memory", "tenant_id", "memory_id"),
    sqlite_with_rowid=False,
)
