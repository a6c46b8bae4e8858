"""What is shown of a recalled event beside its text."""

from __future__ import annotations

from mneme_server.common.canonical import JsonObject
from mneme_server.engine.corpus.document import Document
from mneme_server.features.events.model import Severity

_SEVERITIES = {int(severity): severity.name for severity in Severity}


def event_details(document: Document) -> JsonObject:
    """Return what an event's document tells of it."""
    return {
        "event_type": document.type,
        "name": document.name,
        "severity": _SEVERITIES[document.severity],
        "sequence": document.position,
    }
