"""The settings of taking in telemetry."""

from __future__ import annotations

from pydantic import BaseModel, Field


class TelemetrySettings(BaseModel):
    """How long spans wait for what belongs to them, and how many may."""

    otlp_wait_seconds: float = Field(
        10.0,
        ge=0.1,
        le=3600,
        description="how long a span that names no session waits for the root of its trace before"
        " it becomes events, and how long log records may take to bring a call's texts",
    )
    otlp_inbox_bytes: int = Field(
        256 * 1024 * 1024,
        ge=1024 * 1024,
        description="bytes of spans and log records of a tenant that may wait to become events;"
        " beyond that exports are refused until some have",
    )
