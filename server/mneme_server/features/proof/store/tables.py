"""The tables of the log."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Column,
    ForeignKeyConstraint,
    Index,
    LargeBinary,
    SmallInteger,
    Table,
    Text,
)

from mneme_server.engine.store.schema import (
    int64_column,
    metadata,
    rows_are,
    tenant_key,
    text_column,
    time_column,
)
from mneme_server.features.proof.merkle import TILE

# The hashes of the tree, in tiles; see `features.proof.merkle`.
log_tiles = Table(
    "log_tiles",
    metadata,
    tenant_key(),
    Column("level", SmallInteger, nullable=False, primary_key=True),
    Column("number", BigInteger, nullable=False, primary_key=True),
    Column("hashes", LargeBinary, nullable=False),
    info=rows_are(TILE, "number"),
)

# Leaves of what keeps no salt itself, and those that were forgotten.
log_leaves = Table(
    "log_leaves",
    metadata,
    tenant_key(),
    Column("leaf", BigInteger, nullable=False, primary_key=True),
    text_column("kind"),
    # Empty once it was forgotten.
    text_column("source_id"),
    # Null where the source keeps it: an event that was forgotten.
    Column("commitment", LargeBinary),
    # Of the newest version of an item alone; null once there is a newer one, or it was forgotten.
    Column("salt", LargeBinary),
    Column("content", Text),
    time_column("logged_at"),
    time_column("forgotten_at", nullable=True),
    Index("log_leaves_by_source", "tenant_id", "kind", "source_id", "leaf"),
    info=rows_are("leaf of the log", "leaf"),
)

# Leaves of events, which keep their salts: runs of leaves, one for each of a run of documents.
log_runs = Table(
    "log_runs",
    metadata,
    tenant_key(),
    Column("first_leaf", BigInteger, nullable=False, primary_key=True),
    int64_column("leaves"),
    int64_column("first_doc"),
    Index("log_runs_by_document", "tenant_id", "first_doc"),
    info=rows_are("run of leaves", "first_leaf"),
)

# "log": what names the log. "generation": the store's that the log was begun in.
log_state = Table(
    "log_state",
    metadata,
    tenant_key(),
    Column("key", Text, nullable=False, primary_key=True),
    text_column("value"),
    sqlite_with_rowid=False,
)

certificates = Table(
    "certificates",
    metadata,
    tenant_key(),
    Column("id", Text, nullable=False, primary_key=True),
    text_column("text"),
    time_column("created_at"),
    # What the question was narrowed to.
    text_column("user_id"),
    text_column("agent_id"),
    text_column("session_id"),
    text_column("project"),
    # Of `text`, in UTF-8.
    Column("bytes", BigInteger, nullable=False, server_default="0"),
    Index("certificates_by_time", "tenant_id", "created_at", "id", "bytes"),
    info=rows_are("certificate", "id"),
)

# What each certificate shows.
certificate_items = Table(
    "certificate_items",
    metadata,
    tenant_key(),
    Column("kind", Text, nullable=False, primary_key=True),
    Column("source_id", Text, nullable=False, primary_key=True),
    Column("certificate_id", Text, nullable=False, primary_key=True),
    ForeignKeyConstraint(
        ["tenant_id", "certificate_id"],
        ["certificates.tenant_id", "certificates.id"],
        ondelete="CASCADE",
    ),
    Index("certificate_items_by_certificate", "tenant_id", "certificate_id"),
    sqlite_with_rowid=False,
)
