"""Sessions as recall finds them."""

from __future__ import annotations

from mneme_server.context.model import SessionSummary, active_us
from mneme_server.corpus.document import Document, Scope
from mneme_server.events.model import Session


def session_document(session: Session, summary: SessionSummary) -> Document:
    """Return the document of a session: found by its summary, at the time when it ended."""
    return Document(
        doc_id=0,
        scope=Scope.SESSION,
        source_id=session.id,
        text=summary.text,
        timestamp_us=active_us(session),
        session_id=session.id,
        agent_id=session.agent_id,
        user_id=session.user_id,
        project=session.project,
        category=summary.outcome.name.lower(),
        tags=session.tags,
    )
