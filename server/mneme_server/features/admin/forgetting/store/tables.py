"""The table of what was forgotten."""

from __future__ import annotations

from sqlalchemy import Column, Table, Text

from mneme_server.engine.store.schema import (
    json_column,
    metadata,
    rows_are,
    tenant_key,
    time_column,
)

forgettings = Table(
    "forgettings",
    metadata,
    tenant_key(),
    Column("id", Text, nullable=False, primary_key=True),
    json_column("counts"),
    json_column("policies"),
    json_column("leaves"),
    time_column("hidden_at"),
    time_column("erased_at", nullable=True),
    Column("receipt", Text, info={"json": True}),
    # Places in chains of events, by their sessions' digests, as runs.
    Column("places", Text, nullable=False, server_default="{}", info={"json": True}),
    # Who signed `leaves` and `places`.
    Column("mark", Text, info={"json": True}),
    info=rows_are("forgetting", "id"),
)
