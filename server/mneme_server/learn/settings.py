"""The settings of reflections."""

from __future__ import annotations

from pydantic import BaseModel, Field


class ReflectionSettings(BaseModel):
    """How many reflections are kept."""

    reflections_per_session: int = Field(
        20, ge=1, description="reflections kept of a session; beyond it the oldest leave"
    )
    reflections_per_project: int = Field(
        100, ge=1, description="reflections kept of a project; beyond it the oldest leave"
    )
