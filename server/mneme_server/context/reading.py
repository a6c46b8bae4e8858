"""Reading a session and all of its events for a summary."""

from __future__ import annotations

from mneme_server.context.collecting import Collector
from mneme_server.context.ports import ContextUnit
from mneme_server.context.summarizing import SessionNotes
from mneme_server.corpus.tenant import TenantMemory

_PAGE = 2_000


def read_notes(
    memory: TenantMemory[ContextUnit], session_id: str, also: Collector | None = None
) -> SessionNotes:
    """Return the notes on a session's events; have `also` read them, too.

    They are read page by page, so that a long session takes no more memory than a short one, and
    no reader keeps the write-ahead log from being emptied.
    """
    notes = SessionNotes()
    while True:
        with memory.read() as unit:
            page = unit.summaries.digests(session_id, notes.last_sequence, _PAGE)
        notes.add(page)
        if also is not None:
            also.add(page)
        if len(page) < _PAGE:
            return notes
