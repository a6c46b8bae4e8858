"""The tables of learning."""

from __future__ import annotations

from sqlalchemy import (
    Boolean,
    Column,
    Double,
    Index,
    Integer,
    LargeBinary,
    Table,
    Text,
    UniqueConstraint,
)

from mneme_server.engine.store.schema import (
    enum_column,
    int64_column,
    json_column,
    metadata,
    rows_are,
    serial_type,
    tenant_column,
    tenant_key,
    text_column,
    time_column,
)
from mneme_server.features.learning.model import LearningMode, LearningStatus


def _real(name: str, *, nullable: bool = False) -> Column[float]:
    return Column(name, Double, nullable=nullable)


sessions = Table(
    "learning_sessions",
    metadata,
    # Never used again: steps and points name it.
    Column("number", serial_type, primary_key=True, autoincrement=True),
    tenant_column(),
    text_column("id"),
    text_column("algorithm"),
    Column("version", Integer, nullable=False),
    json_column("config"),
    json_column("state_space"),
    json_column("action_space"),
    int64_column("seed"),
    enum_column("mode", LearningMode),
    Column("secret", LargeBinary, nullable=False),
    enum_column("status", LearningStatus),
    json_column("seen"),
    int64_column("transitions"),
    int64_column("episodes"),
    _real("total_reward"),
    _real("ended_reward"),
    _real("lowest"),
    _real("highest"),
    int64_column("bytes"),
    int64_column("learned"),
    int64_column("updates"),
    int64_column("training_us"),
    time_column("created_at"),
    time_column("updated_at"),
    time_column("ended_at", nullable=True),
    UniqueConstraint("tenant_id", "id", name="learning_sessions_id"),
    sqlite_autoincrement=True,
    info=rows_are("learning session", "id"),
)

checkpoints = Table(
    "learning_checkpoints",
    metadata,
    tenant_key(),
    Column("session", Integer, nullable=False, primary_key=True, autoincrement=False),
    # SHA-256 of the data.
    Column("digest", LargeBinary, nullable=False),
    # What was learned, as NumPy writes archives.
    Column("data", LargeBinary, nullable=False),
    time_column("saved_at"),
    info=rows_are("checkpoint of learning session", "session"),
)

exports = Table(
    "learning_exports",
    metadata,
    tenant_key(),
    Column("session", Integer, nullable=False, primary_key=True, autoincrement=False),
    # SHA-256 of all its chunks, in their order, and how many bytes they are.
    Column("digest", LargeBinary, nullable=False),
    int64_column("size"),
    time_column("exported_at"),
    info=rows_are("exported model of learning session", "session"),
)

export_chunks = Table(
    "learning_export_chunks",
    metadata,
    tenant_key(),
    Column("session", Integer, nullable=False, primary_key=True, autoincrement=False),
    # From 0.
    Column("number", Integer, nullable=False, primary_key=True, autoincrement=False),
    Column("data", LargeBinary, nullable=False),
    info=rows_are("part of an exported model", "number"),
)

steps = Table(
    "experience_trajectories",
    metadata,
    tenant_key(),
    Column("session", Integer, nullable=False, primary_key=True, autoincrement=False),
    Column("number", Integer, nullable=False, primary_key=True, autoincrement=False),
    Column("trajectory_id", Text),
    Column("place", Integer, nullable=False),
    int64_column("episode"),
    text_column("actor"),
    json_column("state"),
    json_column("action"),
    _real("reward"),
    json_column("next_state"),
    Column("terminated", Boolean, nullable=False),
    Column("truncated", Boolean, nullable=False),
    _real("probability", nullable=True),
    json_column("allowed"),
    json_column("available"),
    Column("prediction", Text),
    time_column("recorded_at"),
    # Of its episode up to it; null where that is not known any more.
    _real("episode_reward", nullable=True),
    Index("experience_by_trajectory", "tenant_id", "session", "trajectory_id", "place"),
    Index("experience_by_prediction", "tenant_id", "session", "prediction", unique=True),
    info=rows_are("recorded step", "number"),
)

trajectories = Table(
    "learning_trajectories",
    metadata,
    tenant_key(),
    Column("session", Integer, nullable=False, primary_key=True, autoincrement=False),
    # The number of its first step.
    Column("first", Integer, nullable=False, primary_key=True, autoincrement=False),
    text_column("id"),
    json_column("metadata"),
    int64_column("steps"),
    _real("total_reward"),
    time_column("recorded_at"),
    info=rows_are("trajectory", "id"),
)

usage = Table(
    "learning_usage",
    metadata,
    tenant_key(),
    # Days since 1970.
    Column("day", Integer, nullable=False, primary_key=True, autoincrement=False),
    int64_column("training_us"),
    info=rows_are("day of learning", "day"),
)

points = Table(
    "training_metrics",
    metadata,
    tenant_key(),
    Column("session", Integer, nullable=False, primary_key=True, autoincrement=False),
    Column("episode", Integer, nullable=False, primary_key=True, autoincrement=False),
    int64_column("transitions"),
    _real("episode_reward"),
    _real("moving_avg_reward"),
    _real("convergence_score"),
    _real("loss", nullable=True),
    _real("value_mean", nullable=True),
    _real("gradient_norm", nullable=True),
    _real("exploration_rate", nullable=True),
    time_column("recorded_at"),
    info=rows_are("training metric", "episode"),
)
