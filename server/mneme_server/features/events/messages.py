"""Translation between the event service's messages and the domain."""

from __future__ import annotations

from mneme.v1 import event_service_pb2 as pb
from mneme.v1 import grade_pb2

from mneme_server.common.stored import reads
from mneme_server.edge.grpc.records import MessageReader, message_writer
from mneme_server.features.events.event_types import type_named
from mneme_server.features.events.model import (
    Agent,
    Event,
    EventFilter,
    Grade,
    GradeFilter,
    NewEvent,
    NewGrade,
    Session,
    SessionFilter,
    Severity,
)
from mneme_server.features.events.sessions import NewSession

_SEVERITIES = {int(severity): severity for severity in Severity}


new_event = MessageReader(
    pb.NewEvent,
    NewEvent,
    made={
        "event_type": lambda message, _path: type_named(message.event_type),
        "severity": lambda message, _path: _SEVERITIES.get(message.severity),
    },
)
"""Return the event of a message."""
event = reads("event")(
    message_writer(
        Event,
        pb.Event,
        made={"commitment": lambda recorded: recorded.commitment.hex()},
        unshown=["cursor", "commitment"],
    )
)
"""Return the message of an event."""
new_session = MessageReader(pb.StartSessionRequest, NewSession, spelled={"id": "session_id"})
"""Return the session that a request starts."""
session = reads("session")(message_writer(Session, pb.Session, unshown=["declared", "observed"]))
"""Return the message of a session."""
new_grade = MessageReader(grade_pb2.NewGrade, NewGrade)
"""Return the grade of a message."""
grade_of_session = MessageReader(pb.GradeSessionRequest, NewGrade, spelled={"id": "grade_id"})
"""Return the grade that a request gives a session."""
grade = reads("grade")(message_writer(Grade, grade_pb2.Grade))
"""Return the message of a grade."""
agent = reads("agent")(message_writer(Agent, pb.Agent))
"""Return the message of an agent."""


_PAGES = ("page_size", "page_token")
session_filter = MessageReader(
    pb.ListSessionsRequest, SessionFilter, spelled={"with_system": "include_system"}, unread=_PAGES
)
"""Return the filter of a request."""


grade_filter = MessageReader(grade_pb2.ListGradesRequest, GradeFilter, unread=_PAGES)
"""Return the filter of a request."""


def _types(message: pb.ListEventsRequest | pb.WatchEventsRequest, _path: str) -> tuple[str, ...]:
    return tuple(map(type_named, message.event_types))


def _least(message: pb.ListEventsRequest | pb.WatchEventsRequest, _path: str) -> Severity | None:
    return _SEVERITIES.get(message.min_severity)


event_filter = MessageReader(
    pb.ListEventsRequest,
    EventFilter,
    made={"event_types": _types, "min_severity": _least},
    unread=[*_PAGES, "descending"],
)
"""Return the filter of a request."""
watch_filter = MessageReader(
    pb.WatchEventsRequest,
    EventFilter,
    made={"event_types": _types, "min_severity": _least},
    unread=["after_cursor"],
)
"""Return the filter of a request to watch events."""


def watch_begun(cursor: int) -> pb.WatchEventsResponse:
    """Return the first message of a watch: where it begins."""
    return pb.WatchEventsResponse(cursor=str(cursor))


def watched(recorded: Event) -> pb.WatchEventsResponse:
    """Return the message of a watched event."""
    return pb.WatchEventsResponse(event=event(recorded), cursor=str(recorded.cursor))
