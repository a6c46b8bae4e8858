"""The tables of edges and experiments."""

from __future__ import annotations

from sqlalchemy import Boolean, Column, Float, ForeignKeyConstraint, Index, Table, Text

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
from mneme_server.features.causal.model import ExperimentStatus, Origin

causal_edges = Table(
    "causal_edges",
    metadata,
    tenant_key(),
    Column("id", Text, nullable=False, primary_key=True),
    text_column("cause"),
    text_column("effect"),
    Column("uplift", Float, nullable=False),
    Column("confidence", Float, nullable=False),
    int64_column("sample_size"),
    json_column("evidence_ids"),
    json_column("experiment_ids"),
    Column("confounder_score", Float),
    text_column("mechanism"),
    json_column("metadata"),
    enum_column("origin", Origin),
    Column("low", Float),
    Column("high", Float),
    # Which of Discover's questions found it: asked again, it may find that there is no such effect.
    text_column("scope"),
    time_column("created_at"),
    time_column("updated_at"),
    Index("causal_edges_by_cause", "tenant_id", "cause", "effect", unique=True),
    Index("causal_edges_by_effect", "tenant_id", "effect"),
    Index("causal_edges_by_time", "tenant_id", "created_at", "id"),
    info=rows_are("edge", "id"),
)

causal_experiments = Table(
    "causal_experiments",
    metadata,
    tenant_key(),
    Column("id", Text, nullable=False, primary_key=True),
    text_column("name"),
    text_column("cause"),
    text_column("effect"),
    text_column("description"),
    int64_column("block_size"),
    int64_column("treated_per_block"),
    text_column("seed"),
    json_column("metadata"),
    enum_column("status", ExperimentStatus),
    # How many assignments and observations it has: kept, so that nobody counts them.
    int64_column("assigned"),
    int64_column("observed"),
    # What it was concluded with; {} before.
    json_column("result"),
    text_column("edge_id"),
    time_column("created_at"),
    time_column("completed_at", nullable=True),
    Index("causal_experiments_by_time", "tenant_id", "created_at", "id"),
    info=rows_are("experiment", "id"),
)

_OF_AN_EXPERIMENT = (
    ("tenant_id", "experiment_id"),
    (
        "causal_experiments.tenant_id",
        "causal_experiments.id",
    ),
)

causal_assignments = Table(
    "causal_assignments",
    metadata,
    tenant_key(),
    Column("experiment_id", Text, nullable=False, primary_key=True),
    Column("subject", Text, nullable=False, primary_key=True),
    Column("treatment", Boolean, nullable=False),
    text_column("stratum"),
    int64_column("place"),
    time_column("assigned_at"),
    ForeignKeyConstraint(*_OF_AN_EXPERIMENT, ondelete="CASCADE"),
    Index(
        "causal_assignments_by_place", "tenant_id", "experiment_id", "stratum", "place",
        unique=True,
    ),
    sqlite_with_rowid=False,
    info=rows_are("assignment", "subject"),
)  # fmt: skip

causal_observations = Table(
    "causal_observations",
    metadata,
    tenant_key(),
    Column("experiment_id", Text, nullable=False, primary_key=True),
    Column("id", Text, nullable=False, primary_key=True),
    text_column("subject"),
    Column("treatment", Boolean, nullable=False),
    # Whether chance said the arm, or a caller.
    Column("assigned", Boolean, nullable=False),
    Column("outcome", Float, nullable=False),
    json_column("context"),
    time_column("observed_at"),
    ForeignKeyConstraint(*_OF_AN_EXPERIMENT, ondelete="CASCADE"),
    sqlite_with_rowid=False,
    info=rows_are("observation", "id"),
)
