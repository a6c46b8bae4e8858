"""Key events: those of a session that tell most about a topic, and its errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from mneme_server.engine.corpus.document import DocumentFilter
from mneme_server.engine.corpus.ports import CorpusIndex, Matrix, Rows
from mneme_server.engine.corpus.tenant_store import CorpusUnit
from mneme_server.features.context.model import KeyEvent, PastSession
from mneme_server.features.context.sessions import nearest, source_ids
from mneme_server.features.context.words import cut, telling, without_tokens
from mneme_server.features.events.event_types import EVENT, EventPart, traits_of
from mneme_server.features.events.model import Event, is_of_user
from mneme_server.features.events.store.events import SqlEvents
from mneme_server.features.events.store.history import SqlActivity

MAX_KEY_EVENTS = 5
_SIMILAR = 3
_EVENT_CHARS = 300
_NO_ROWS: Rows = np.empty(0, np.int64)


def key_events(
    unit: CorpusUnit,
    index: CorpusIndex,
    sessions: Sequence[PastSession],
    vector: Matrix | None,
    recalled: Mapping[str, Sequence[str]],
    *,
    user_id: str = "",
    shared: bool = False,
) -> dict[str, list[KeyEvent]]:
    """Return each session's events most like a topic's vector (d,), then its errors, in time.

    Without a vector, those that recall found alone are like it.

    Args:
        unit: the transaction.
        index: the tenant's index.
        sessions: the sessions.
        vector: the topic's.
        recalled: by session, the events that recall found for the topic, the best first.
        user_id: the user whose they must be; "" for any.
        shared: whether they may be nobody's, too.
    """
    similar = {
        past.session.id: _nearest(index, past.session.id, vector, user_id, shared=shared)
        for past in sessions
        if vector is not None
        and len(recalled[past.session.id]) < min(_SIMILAR, past.session.event_count)
    }
    rows = np.concatenate([_NO_ROWS, *similar.values()])
    names = dict(zip(rows.tolist(), source_ids(unit, index, rows), strict=True))
    wanted: dict[str, list[str]] = {}
    for past in sessions:
        ids = list(recalled[past.session.id][:_SIMILAR])
        ids += [names[row] for row in similar.get(past.session.id, _NO_ROWS).tolist()]
        wanted[past.session.id] = list(dict.fromkeys(filter(None, ids)))
    stored = unit.get(SqlEvents).by_ids([key for ids in wanted.values() for key in ids])
    failed = [past.session.id for past in sessions if past.session.error_count]
    errors = {
        key: [event for event in of_session if is_of_user(event.metadata_json, user_id)]
        for key, of_session in unit.get(SqlActivity).errors_of(failed, MAX_KEY_EVENTS).items()
    }
    return {
        session_id: _chosen([stored[key] for key in ids if key in stored], errors.get(session_id))
        for session_id, ids in wanted.items()
    }


def _nearest(
    index: CorpusIndex, session_id: str, vector: Matrix, user_id: str, *, shared: bool
) -> Rows:
    filter_ = DocumentFilter(
        kinds=frozenset({EVENT}), session_id=session_id, user_id=user_id, shared=shared
    )
    rows, _ = nearest(index, vector, index.select(filter_), MAX_KEY_EVENTS)
    return rows


def _chosen(similar: Sequence[Event], errors: Sequence[Event] | None) -> list[KeyEvent]:
    similar = [event for event in similar if _tells(event)]
    chosen = {event.id: event for event in similar[:_SIMILAR]}
    for event in [*(errors or ()), *similar[_SIMILAR:]]:
        if len(chosen) < MAX_KEY_EVENTS:
            chosen.setdefault(event.id, event)
    in_time = sorted(chosen.values(), key=lambda event: (event.timestamp_us, event.sequence))
    return [_key_event(event) for event in in_time]


def _tells(event: Event) -> bool:
    """Tell whether an event is more than a courtesy: "Yes, please" is no key event."""
    return traits_of(event.event_type).part is not EventPart.TALK or bool(telling(event.text))


def _key_event(event: Event) -> KeyEvent:
    said = without_tokens(event.text) or ": ".join(filter(None, [event.name, event.error]))
    return KeyEvent(event.id, event.event_type, cut(said, _EVENT_CHARS), event.timestamp_us)
