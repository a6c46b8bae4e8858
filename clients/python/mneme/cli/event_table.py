"""How events are shown in a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mneme.cli import cells
from mneme.cli.output import Column

if TYPE_CHECKING:
    from mneme.types import Event

EVENT_COLUMNS = (
    Column("When"),
    Column("Type"),
    Column("Name", flexible=True, optional=1),
    Column("Session", optional=2, style="dim"),
    Column("Id", optional=3, style="dim"),
    Column("Text", flexible=True, least=30),
)


def event_row(event: Event) -> list[str]:
    """The cells of `EVENT_COLUMNS`."""
    return [
        cells.when(event.timestamp),
        event.event_type,
        cells.preview(event.name),
        cells.preview(event.session_id),
        cells.preview(event.id),
        cells.preview(event.text or event.error),
    ]
