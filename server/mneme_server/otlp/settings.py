"""The settings of taking in telemetry."""

from __future__ import annotations

from pydantic import BaseModel, Field


class TelemetrySettings(BaseModel):
    """How long spans wait for what belongs to them."""

    otlp_wait_seconds: float = Field(
        10.0,
        ge=0.1,
        le=3600,
        description="how long a span that names no session waits for the root of its trace before"
        " it becomes events",
    )
