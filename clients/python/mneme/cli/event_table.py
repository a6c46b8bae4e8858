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
    Column("Name", flexible=True, needs_width=90),
    Column("Session", needs_width=140, style="dim"),
    Column("Id", needs_width=170, style="dim"),
    Column("Text", flexible=True),
)


def event_row(event: Event) -> list[str]:
    """The cells of `EVENT_COLUMNS`."""
    from mneme.types import EventType

    return [
        cells.when(event.timestamp),
        cells.name_of(EventType, event.event_type),
        cells.preview(event.name),
        cells.preview(event.session_id),
        cells.preview(event.id),
        cells.preview(event.text or event.error),
    ]
