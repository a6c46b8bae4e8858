"""What is shown of a recalled event beside its text."""

from __future__ import annotations

from mneme_server.common.canonical import JsonObject
from mneme_server.events.model import Severity
from mneme_server.events.store.tables import events
from mneme_server.storage.kinds import Details

_SEVERITIES = {int(severity): severity.name for severity in Severity}


def _details(event_type: str, name: str, severity: int, sequence: int) -> JsonObject:
    return {
        "event_type": event_type,
        "name": name,
        "severity": _SEVERITIES[severity],
        "sequence": sequence,
    }


EVENT_DETAILS = Details(
    key=events.c.id,
    columns=(events.c.event_type, events.c.name, events.c.severity, events.c.sequence),
    decode=_details,
    joined=True,  # Most of what is recalled are events.
)
