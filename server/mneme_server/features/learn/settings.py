"""The settings of reflections."""

from __future__ import annotations

from pydantic import BaseModel, Field


class ReflectionSettings(BaseModel):
    """How many reflections are kept."""

    reflections_per_session: int = Field(
        20, ge=1, description="reflections kept per session; beyond that the oldest are removed"
    )
    reflections_per_project: int = Field(
        100, ge=1, description="reflections kept per project; beyond that the oldest are removed"
    )
