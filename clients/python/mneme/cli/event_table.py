"""How events are chosen by options, and shown in a table."""

from __future__ import annotations

from mneme.cli import cells
from mneme.cli.fields import Fields
from mneme.cli.options import Agent, MinSeverity, Project, Session, Types
from mneme.cli.output import Column

EVENT_FILTER = Fields(
    session_id=Session,
    agent_id=Agent,
    event_types=Types,
    min_severity=MinSeverity,
    project=Project,
)
EVENT_COLUMNS = (
    Column("When", "timestamp"),
    Column("Type", "event_type"),
    Column("Name", "name", flexible=True, optional=1),
    Column("Session", "session_id", optional=2, style="dim"),
    Column("Id", "id", optional=3, style="dim"),
    Column("Text", lambda event: cells.preview(event.text or event.error), flexible=True, least=30),
)
