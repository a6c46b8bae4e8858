"""The events that tell what happened in a session."""

from __future__ import annotations

from collections.abc import Sequence

from mneme_server.context.model import KeyEvent, PastSession
from mneme_server.context.ports import ContextUnit
from mneme_server.context.sessions import source_ids
from mneme_server.context.words import cut
from mneme_server.corpus.document import DocumentFilter, Scope
from mneme_server.corpus.ports import CorpusIndex, Matrix
from mneme_server.events.model import Event

MAX_KEY_EVENTS = 5
_SIMILAR = 3
_CHARS = 300


def key_events(
    unit: ContextUnit,
    index: CorpusIndex,
    past: PastSession,
    vector: Matrix,
    recalled: Sequence[str],
) -> list[KeyEvent]:
    """Return the session's events most like a topic's vector (d,), then its errors, in time.

    Args:
        unit: the transaction.
        index: the tenant's index.
        past: the session.
        vector: the topic's.
        recalled: the session's events that recall found for the topic, the best first.
    """
    ids = list(recalled[:_SIMILAR])
    if len(ids) < _SIMILAR:
        filter_ = DocumentFilter(scopes=frozenset({Scope.EVENT}), session_id=past.session.id)
        hits = index.search_dense(vector, MAX_KEY_EVENTS, index.select(filter_), exact=False)
        ids += source_ids(unit, index, hits.rows)
    ids = list(dict.fromkeys(filter(None, ids)))
    similar = unit.events.by_ids(ids)
    chosen = {key: similar[key] for key in ids[:_SIMILAR] if key in similar}
    errors = (
        unit.summaries.errors_of(past.session.id, MAX_KEY_EVENTS)
        if past.session.error_count
        else ()
    )
    for event in [*errors, *(similar[key] for key in ids[_SIMILAR:] if key in similar)]:
        if len(chosen) < MAX_KEY_EVENTS:
            chosen.setdefault(event.id, event)
    in_time = sorted(chosen.values(), key=lambda event: (event.timestamp_us, event.sequence))
    return [_key_event(event) for event in in_time]


def _key_event(event: Event) -> KeyEvent:
    said = event.text or ": ".join(filter(None, [event.name, event.error]))
    return KeyEvent(event.id, event.event_type, cut(said, _CHARS), event.timestamp_us)
