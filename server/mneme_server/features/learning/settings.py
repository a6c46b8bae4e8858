"""The settings of learning."""

from __future__ import annotations

from pydantic import BaseModel, Field


class LearningSettings(BaseModel):
    """How much tenants may learn."""

    learning_sessions: int = Field(
        1_000, ge=1, description="active learning sessions that a tenant may have"
    )
    learning_open_sessions: int = Field(
        32,
        ge=1,
        description="learning sessions of a tenant that are kept in memory; beyond that, the least"
        " recently used one is parked on disk",
    )
    learning_bytes: int = Field(
        1024**3,
        ge=1024**2,
        description="bytes that the recorded steps and the exported models of a tenant's learning"
        " sessions may take",
    )
    learning_seconds: int = Field(
        86_400,
        ge=1,
        description="for how many seconds of a day (UTC) a tenant's learning sessions may learn,"
        " in total",
    )
