"""The settings of sessions."""

from __future__ import annotations

from pydantic import BaseModel, Field


class SessionSettings(BaseModel):
    """When a session is taken to be over."""

    session_idle_seconds: float = Field(
        1800.0,
        ge=1,
        description="a session that was not ended is summarised as it is after this long without"
        " an event",
    )
