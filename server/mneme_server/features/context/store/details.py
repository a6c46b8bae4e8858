"""What is shown of a recalled session beside its summary."""

from __future__ import annotations

import json

from mneme_server.common.canonical import JsonObject
from mneme_server.engine.store.kinds import Details
from mneme_server.features.context.store.tables import session_summaries
from mneme_server.features.events.model import Outcome


def _details(outcome: int, topics: str, tools: str, error_summary: str) -> JsonObject:
    return {
        "outcome": Outcome(outcome).name,
        "topics": json.loads(topics),
        "tools": dict(json.loads(tools)),
        "error_summary": error_summary,
    }


_COLUMNS = session_summaries.c
SESSION_DETAILS = Details(
    key=_COLUMNS.session_id,
    columns=(_COLUMNS.outcome, _COLUMNS.topics, _COLUMNS.tools, _COLUMNS.error_summary),
    decode=_details,
    followed=True,
)
